//! Looks at the launches that are open: what may start is started, who is back is asked, what took too long is ended.
//!
//! A launch is looked at when something has happened to it, and by itself from time to time. One look costs what its waiting
//! minions cost, not what it has done so far; what waits for the same thing is decided once.

use super::super::window::Opening;
use super::super::{dispatch::transition, lock};
use super::book::{Going, GoingStep};
use super::carry::{is_between, number_of, stays};
use super::{Errand, Open};
use crate::master::{Master, Presence};
use crate::{Error, clock};
use saltern_core::chain::{Before, Gate, Plan, gate, past_budget};
use saltern_core::ids::{LaunchId, MinionId};
use saltern_core::run::{Input, Reason, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_store::{Action, Launch, LaunchMinion, MinionMove, MinionState, Transition};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Least time between two rounds: what happens in between is looked at together.
const BETWEEN: Duration = Duration::from_millis(50);
/// Longest time between two looks at a launch.
const AGAIN: Duration = Duration::from_secs(5);
/// Time between two looks at the tables for launches that are not known here.
const SWEEP: Duration = Duration::from_secs(15);
/// How long a minion that is there, and that nothing was heard of, is left alone before it is asked.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a chunk without a carrier is left alone: the one who claimed it may be about to send it.
const STRANDED: Duration = Duration::from_secs(3);
/// Most rows read at once.
const PAGE: usize = 1_000;

/// Why a minion's next chunk does not start, or that it may.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ready {
    Yes,
    Waits(WaitingFor),
    /// Its window is closed until then, or nobody knows until when
    Outside(Option<Timestamp>),
    /// Too many have failed
    Never,
}

/// What a look at a launch needs to know of it as a whole.
pub(super) struct Look {
    pub(super) going: Arc<Going>,
    pub(super) launch: Launch,
    pub(super) actions: Vec<Action>,
    pub(super) now: Timestamp,
    gates: HashMap<usize, Gate>,
}

impl Master {
    /// Carries launches on until the server stops.
    pub(crate) async fn keep_chaining(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        let mut swept = Timestamp(0);
        loop {
            let now = clock::now();
            let since = if self.engine.is_shared() { Duration::from_secs(1) } else { SWEEP };
            if now.since(swept) >= since {
                swept = now;
                if let Err(error) = self.find_launches().await {
                    tracing::error!(%error, "cannot look for open launches");
                }
            }
            let look = lock(&self.engine.chains.open).values().map(|open| open.look).min();
            let pause = look.map_or(SWEEP, |look| look.since(now)).min(since);
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.engine.chains.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            tokio::time::sleep(BETWEEN).await;
            for launch in self.due_launches(clock::now()) {
                match self.look_at_launch(launch).await {
                    Ok(Some(next)) => {
                        if let Some(open) = lock(&self.engine.chains.open).get_mut(&launch) {
                            *open = next;
                        }
                    }
                    Ok(None) => {
                        lock(&self.engine.chains.open).remove(&launch);
                        self.engine.chains.book.remove(launch);
                    }
                    Err(error) => {
                        tracing::error!(%launch, %error, "a launch could not be carried on, it is tried again");
                        if let Some(open) = lock(&self.engine.chains.open).get_mut(&launch) {
                            open.look = clock::now().plus(Duration::from_secs(1));
                        }
                    }
                }
            }
        }
    }

    /// Launches of the tables that are not known here: after a start, or another server's.
    async fn find_launches(&self) -> Result<(), Error> {
        let mut after = LaunchId(0);
        loop {
            let page = self.store.open_launches(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id;
            let done = page.len() < PAGE;
            let mut open = lock(&self.engine.chains.open);
            for launch in page {
                let look = if launch.cancelled.is_some() { Timestamp(0) } else { launch.due };
                open.entry(launch.id).or_insert(Open { look, blocked: false, expects: true });
            }
            drop(open);
            if done {
                return Ok(());
            }
        }
    }

    fn due_launches(&self, now: Timestamp) -> BTreeSet<LaunchId> {
        let mut due = std::mem::take(&mut *lock(&self.engine.chains.woken));
        let open = lock(&self.engine.chains.open);
        due.extend(open.iter().filter(|(_, open)| open.look <= now).map(|(launch, _)| *launch));
        due
    }

    /// One look at a launch; nothing if it has ended.
    async fn look_at_launch(self: &Arc<Self>, id: LaunchId) -> Result<Option<Open>, Error> {
        let Some(launch) = self.store.launch(id).await?.filter(|launch| launch.ended.is_none()) else {
            return Ok(None);
        };
        let Some(mut going) = self.going(id).await? else { return Ok(None) };
        if going.deadline != launch.deadline {
            self.engine.chains.book.remove(id);
            let Some(read) = self.going(id).await? else { return Ok(None) };
            going = read;
        }
        let now = clock::now();
        if launch.due > now && launch.cancelled.is_none() {
            return Ok(Some(Open { look: launch.due, blocked: false, expects: false }));
        }
        let actions = self.store.launch_actions(id).await?;
        let mut look = Look::new(going, launch, actions, now);
        if look.launch.deadline <= now {
            self.end_launch(&look).await?;
            return Ok(Some(Open { look: now.plus(Duration::from_secs(1)), blocked: false, expects: false }));
        }
        let mut next = Open { look: now.plus(AGAIN), blocked: false, expects: false };
        if self.engine.is_first(now) {
            if look.launch.cancelled.is_some() {
                let waiting = self.rows(id, MinionState::Waiting).await?;
                self.end_rows(&look, waiting, Input::Cancel, "cancelled", "the launch was cancelled").await?;
            } else {
                self.start_what_may(&mut look, &mut next).await?;
            }
        }
        self.ask_who_is_back(&look, &mut next).await?;
        let patience = self.end_what_took_too_long(&look).await?;
        next.look = next.look.min(now.plus(patience));
        Ok(Some(next))
    }

    /// Starts the chunks that may start; what may not is told why.
    async fn start_what_may(self: &Arc<Self>, look: &mut Look, next: &mut Open) -> Result<(), Error> {
        let waiting = self.rows(look.going.id, MinionState::Waiting).await?;
        let mut ready: BTreeMap<(String, i64), Vec<LaunchMinion>> = BTreeMap::new();
        let mut held: Vec<(LaunchMinion, WaitingFor)> = Vec::new();
        let mut over: Vec<LaunchMinion> = Vec::new();
        let mut outside: Vec<(LaunchMinion, Option<Timestamp>)> = Vec::new();
        for row in waiting {
            if row.since > look.now {
                next.look = next.look.min(row.since);
            }
            let plan = self.plan_of(&look.going, &row.plan).await?;
            self.look_at_gate(look, &plan, &row).await?;
            match self.ready(look, &plan, &row) {
                Ready::Yes => ready.entry((row.plan.clone(), row.chunk)).or_default().push(row),
                Ready::Waits(what) => held.push((row, what)),
                Ready::Outside(opens) => outside.push((row, opens)),
                Ready::Never => over.push(row),
            }
        }
        let waits = self.wait_for_windows(look, outside, next).await?;
        held.extend(waits.into_iter().map(|row| (row, WaitingFor::Window)));
        for ((hash, chunk), mut rows) in ready {
            let names: Vec<MinionId> = rows.iter().map(|row| row.minion.clone()).collect();
            let holders: BTreeMap<MinionId, LaunchId> = self.store.holders(&names).await?.into_iter().collect();
            let blocked = |row: &LaunchMinion| holders.get(&row.minion).is_some_and(|launch| *launch != row.launch);
            let (busy, free): (Vec<_>, Vec<_>) = rows.drain(..).partition(blocked);
            held.extend(busy.into_iter().map(|row| (row, WaitingFor::Chain)));
            let plan = self.plan_of(&look.going, &hash).await?;
            // A chain that began while it was allowed goes on.
            let restricted = chunk == 1 && look.keeps_to_windows(&plan);
            let number = usize::try_from(chunk).unwrap_or(0);
            let started = self.start_chunk(&look.going, &plan, number, &free, restricted).await?;
            // Somebody else was first with one of them: it is looked at again.
            if started < free.len() {
                next.look = next.look.min(look.now.plus(Duration::from_secs(1)));
            }
        }
        next.blocked = held.iter().any(|(_, what)| *what == WaitingFor::Chain);
        next.expects |= held.iter().any(|(_, what)| matches!(what, WaitingFor::Offline | WaitingFor::Facts));
        if held.iter().any(|(_, what)| *what == WaitingFor::Facts) {
            next.look = next.look.min(look.now.plus(Duration::from_secs(1)));
        }
        self.tell_waiting(look, held).await?;
        self.end_over_budget(look, over).await
    }

    /// Whether the first step of a minion's next chunk may begin, once for all minions.
    async fn look_at_gate(&self, look: &mut Look, plan: &Plan, row: &LaunchMinion) -> Result<(), Error> {
        let chunk = plan.chunk(number_of(row));
        let Some(number) = chunk.and_then(|chunk| chunk.gate) else { return Ok(()) };
        if look.gates.contains_key(&number) {
            return Ok(());
        }
        let Some(step) = look.going.step(number) else { return Ok(()) };
        let before = number.checked_sub(2).and_then(|index| look.actions.get(index));
        let mut counts = before.map(before_of);
        if let (Some(action), Some(counts), true) = (before, &mut counts, step.step.budget.is_some()) {
            // What was held back because of failures is no better than they are.
            counts.failed += self.store.runs_ended_by(action.id, Reason::Budget).await?;
        }
        let approved = look.launch.approvals.iter().any(|approval| usize::try_from(approval.step) == Ok(number));
        look.gates.insert(number, gate(&step.step, counts, approved));
        Ok(())
    }

    fn ready(self: &Arc<Self>, look: &Look, plan: &Plan, row: &LaunchMinion) -> Ready {
        let Some(chunk) = plan.chunk(number_of(row)) else {
            return Ready::Never;
        };
        // It did not take it just now: it is tried again in its time.
        if row.since > look.now {
            return Ready::Waits(if row.message.is_some() { WaitingFor::Chain } else { WaitingFor::Backoff });
        }
        // What is skipped there waits for nobody, nor does what comes after it.
        let is_wanted = chunk.steps.first().is_some_and(|step| step.after.wants(row.failed));
        if let Some(number) = chunk.gate.filter(|_| is_wanted) {
            match look.gates.get(&number).copied().unwrap_or(Gate::Barrier) {
                Gate::Open => {}
                Gate::Approval => return Ready::Waits(WaitingFor::Approval),
                Gate::Barrier => return Ready::Waits(WaitingFor::Barrier),
                Gate::OverBudget => return Ready::Never,
            }
        }
        if row.chunk == 1
            && let Opening::Closed(opens) = self.opening_of(look, plan, &row.minion)
        {
            return Ready::Outside(opens);
        }
        if self.engine.is_elsewhere(&row.minion) {
            return Ready::Yes;
        }
        let Some(member) = self.member(row.minion.as_str()) else { return Ready::Waits(WaitingFor::Offline) };
        if !self.is_there(&member) || self.is_on_its_way(&member, look.now) {
            self.engine.knocks.add(&row.minion, look.now);
            return Ready::Waits(WaitingFor::Offline);
        }
        if !self.has_chain_module(&member) {
            return Ready::Waits(WaitingFor::Facts);
        }
        Ready::Yes
    }

    /// Writes what the next step of each minion waits for, where that has changed.
    async fn tell_waiting(&self, look: &Look, held: Vec<(LaunchMinion, WaitingFor)>) -> Result<(), Error> {
        let mut told = Vec::new();
        let mut by_step: HashMap<(usize, WaitingFor), Vec<MinionId>> = HashMap::new();
        for (row, what) in held {
            let plan = self.plan_of(&look.going, &row.plan).await?;
            let chunk = plan.chunk(number_of(&row));
            if let Some(step) = chunk.and_then(|chunk| chunk.steps.first()) {
                by_step.entry((step.number, what)).or_default().push(row.minion);
            }
        }
        for ((number, what), minions) in by_step {
            let Some(step) = look.going.step(number) else { continue };
            let known: HashMap<MinionId, Option<WaitingFor>> =
                self.store.waiting_runs(step.action, &minions).await?.into_iter().collect();
            let news = minions.iter().filter(|minion| known.get(*minion).is_some_and(|known| *known != Some(what)));
            told.extend(news.map(|minion| transition(step.action, minion, Input::Wait(what, None), look.now)));
        }
        if !told.is_empty() {
            self.store.transit(told).await?;
        }
        Ok(())
    }

    /// Too many have failed before: what has not begun does not begin. A minion with something to do after a failure does that.
    async fn end_over_budget(self: &Arc<Self>, look: &Look, rows: Vec<LaunchMinion>) -> Result<(), Error> {
        let message = "too many runs of the step before have failed";
        let (mut ended, mut moves) = (Vec::new(), Vec::new());
        for row in rows {
            let plan = self.plan_of(&look.going, &row.plan).await?;
            let here = number_of(&row);
            let Some(next) = past_budget(&plan, here) else {
                ended.push(row);
                continue;
            };
            let held_back = plan.chunks.iter().skip(here - 1).flat_map(|chunk| &chunk.steps);
            let numbers: BTreeSet<usize> =
                held_back.filter(|step| !step.after.wants(true)).map(|step| step.number).collect();
            let end = |step: &GoingStep| Transition {
                message: Some(message.to_owned()),
                ..transition(step.action, &row.minion, Input::Budget, look.now)
            };
            moves.push(MinionMove {
                chunk: i64::try_from(next).unwrap_or(i64::MAX),
                failed: true,
                since: look.now,
                message: Some(message.to_owned()),
                transitions: numbers.into_iter().filter_map(|number| look.going.step(number)).map(end).collect(),
                ..stays(&row, MinionState::Waiting)
            });
        }
        if !moves.is_empty() {
            self.store.move_minions(moves).await?;
            self.engine.chains.wake(look.going.id);
        }
        self.end_rows(look, ended, Input::Budget, "failed", message).await
    }

    /// The time of the whole launch is over.
    async fn end_launch(self: &Arc<Self>, look: &Look) -> Result<(), Error> {
        let message = format!("the deadline of its launch was {}", look.launch.deadline.rfc3339());
        for state in [MinionState::Waiting, MinionState::Sent, MinionState::Asking, MinionState::Restarting] {
            let rows = self.rows(look.going.id, state).await?;
            let away: Vec<MinionId> = rows.iter().map(|row| row.minion.clone()).collect();
            self.end_rows(look, rows, Input::Deadline, "failed", &message).await?;
            if state != MinionState::Waiting {
                self.abandon(look.going.key, &away);
            }
        }
        Ok(())
    }

    /// Ends minions' parts with all of their runs that are open.
    pub(super) async fn end_rows(
        self: &Arc<Self>,
        look: &Look,
        rows: Vec<LaunchMinion>,
        input: Input,
        outcome: &'static str,
        message: &str,
    ) -> Result<(), Error> {
        let moves = self.endings(look, &rows, input, outcome, message).await?;
        if moves.is_empty() {
            return Ok(());
        }
        self.store.move_minions(moves).await?;
        rows.iter().for_each(|row| look.going.forget_heard(&row.minion));
        rows.iter().filter(|row| is_between(row)).for_each(|row| self.tidy_later(&look.going, &row.minion));
        self.engine.chains.minion_is_free();
        Ok(())
    }

    /// What ends minions' parts with all of their runs that are open.
    pub(super) async fn endings(
        &self,
        look: &Look,
        rows: &[LaunchMinion],
        input: Input,
        outcome: &'static str,
        message: &str,
    ) -> Result<Vec<MinionMove>, Error> {
        let mut moves = Vec::with_capacity(rows.len());
        for row in rows {
            let plan = self.plan_of(&look.going, &row.plan).await?;
            let numbers: BTreeSet<usize> = plan.steps().map(|step| step.number).collect();
            let steps = numbers.into_iter().filter_map(|number| look.going.step(number));
            let end = |action| Transition {
                message: Some(message.to_owned()),
                ..transition(action, &row.minion, input, look.now)
            };
            moves.push(MinionMove {
                since: look.now,
                outcome: Some(outcome),
                message: Some(message.to_owned()),
                transitions: steps.map(|step| end(step.action)).collect(),
                ..stays(row, MinionState::Ended)
            });
        }
        Ok(moves)
    }

    /// Minions that may have come back are asked where they stand; so are those whose carrier is over without an answer.
    async fn ask_who_is_back(self: &Arc<Self>, look: &Look, next: &mut Open) -> Result<(), Error> {
        let mut ask = Vec::new();
        for row in self.rows(look.going.id, MinionState::Restarting).await? {
            if self.engine.is_elsewhere(&row.minion) {
                continue;
            }
            next.expects = true;
            if row.asked > 0 && row.since > look.now {
                next.look = next.look.min(row.since);
            }
            if self.may_be_back(&row, look.now) {
                ask.push(row);
            }
        }
        let stranded = self.store.stranded_minions(look.going.id, look.now.minus(STRANDED), PAGE).await?;
        if !stranded.is_empty() {
            next.look = next.look.min(look.now.plus(Duration::from_secs(1)));
        }
        for row in stranded {
            let member = self.member(row.minion.as_str());
            let is_there =
                member.is_some_and(|member| self.is_there(&member) && !self.is_on_its_way(&member, look.now));
            if is_there && !self.engine.is_elsewhere(&row.minion) {
                ask.push(row);
            } else {
                next.expects = true;
            }
        }
        if ask.is_empty() {
            return Ok(());
        }
        self.ask_chunk(&look.going, errand(&look.launch), &ask).await
    }

    /// A minion's agent was started anew: what it was at, it is asked about at once.
    pub(crate) fn chain_minion_started(self: &Arc<Self>, minion: &MinionId) {
        self.engine.chains.minions_are_back();
        if lock(&self.engine.chains.open).is_empty() {
            return;
        }
        let (master, minion) = (self.clone(), minion.clone());
        self.tasks.spawn(crate::tasks::Kind::Errand, "ask a minion that was started anew", async move {
            if let Err(error) = master.ask_started(&minion).await {
                tracing::warn!(%minion, %error, "a minion could not be asked where its chain stands");
            }
        });
    }

    async fn ask_started(self: &Arc<Self>, minion: &MinionId) -> Result<(), Error> {
        for row in self.store.open_launch_minions_of(minion).await? {
            // Whoever restarts on purpose is asked with the others that do.
            if row.state != MinionState::Sent {
                continue;
            }
            let Some(launch) = self.store.launch(row.launch).await? else { continue };
            let Some(going) = self.going(row.launch).await? else { continue };
            self.ask_chunk(&going, errand(&launch), &[row]).await?;
        }
        Ok(())
    }

    /// Whether there is reason to believe that a minion is back from its restart.
    fn may_be_back(&self, row: &LaunchMinion, now: Timestamp) -> bool {
        let Some(member) = self.member(row.minion.as_str()) else { return false };
        if !self.is_there(&member) || self.is_on_its_way(&member, now) {
            self.engine.knocks.add(&row.minion, now);
            return false;
        }
        let facts = member.facts();
        // What it said last was no answer: it is asked again in its time.
        if row.asked > 0 {
            return row.since <= now;
        }
        let came = matches!(facts.presence, Presence::Present(since) if since > row.since);
        let started = facts.started.is_some_and(|started| started > row.since);
        came || started || self.engine.started > row.since || now.since(row.since) >= SILENCE
    }

    /// Ends steps that took longer than they may; tells when to look again.
    async fn end_what_took_too_long(self: &Arc<Self>, look: &Look) -> Result<Duration, Error> {
        let mut patience = AGAIN;
        for (index, action) in look.actions.iter().enumerate().filter(|(_, action)| action.counts.running > 0) {
            let Some(step) = look.going.step(index + 1) else { continue };
            let limit = step.step.limit();
            patience = patience.min((limit / 4).max(Duration::from_millis(200)));
            let began_before = look.now.minus(limit);
            for run in self.store.runs_begun_before(action.id, began_before, PAGE).await? {
                self.end_too_long(look, index + 1, &run.minion, limit).await?;
            }
        }
        Ok(patience)
    }

    async fn end_too_long(
        self: &Arc<Self>,
        look: &Look,
        number: usize,
        minion: &MinionId,
        limit: Duration,
    ) -> Result<(), Error> {
        let Some(row) = self.store.launch_minion(look.going.id, minion).await? else { return Ok(()) };
        if row.state == MinionState::Ended {
            return Ok(());
        }
        let message = format!("it took longer than its limit of {} seconds", limit.as_secs());
        let plan = self.plan_of(&look.going, &row.plan).await?;
        self.fail_part(&look.going, &plan, &row, number, Input::TimedOut, &message, look.now).await
    }

    /// All rows of a launch in a state.
    pub(super) async fn rows(&self, launch: LaunchId, state: MinionState) -> Result<Vec<LaunchMinion>, Error> {
        let mut all: Vec<LaunchMinion> = Vec::new();
        loop {
            let after = all.last().map_or(String::new(), |row| row.minion.to_string());
            let page = self.store.launch_minions(launch, Some(state), &after, PAGE).await?;
            let last = page.len() < PAGE;
            all.extend(page);
            if last {
                return Ok(all);
            }
        }
    }
}

impl Look {
    pub(super) fn new(going: Arc<Going>, launch: Launch, actions: Vec<Action>, now: Timestamp) -> Self {
        Self { going, launch, actions, now, gates: HashMap::new() }
    }
}

/// How a step stands, for the one after it.
fn before_of(action: &Action) -> Before {
    let count = |number: i64| usize::try_from(number).unwrap_or(0);
    let counts = &action.counts;
    Before {
        total: count(counts.total),
        ended: count(counts.completed + counts.failed + counts.cancelled),
        failed: count(counts.failed),
    }
}

/// What a minion that is back is to do.
fn errand(launch: &Launch) -> Errand {
    match (&launch.cancelled, launch.stopped) {
        (None, _) => Errand::Resume,
        (Some(_), false) => Errand::Cancel,
        (Some(_), true) => Errand::Stop,
    }
}
