//! Claims due runs and fills free places. Woken by commits, and looks by itself all the same.
//!
//! The order: those somebody waits for first; then every action in turn gets a share of the free places, the oldest first,
//! so that a large action does not keep the small ones waiting. What is claimed in one go is published in one go.
//!
//! When the database falls behind, claims pause: work then waits in the tables and not in memory.

use super::deliver::{self, Delivery};
use super::pace::{Progress, Room, room};
use super::silence::RECONNECT;
use super::tracker::Tracked;
use super::window::{Opening, put_off};
use super::{Engine, Waiting, Work, lock, tell};
use crate::master::{Known, Master, Member, Presence};
use crate::{Error, clock};
use saltern_core::action::OverBudget;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{Input, RunState, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_store::{AckMethod, Action, Claim, NewEvent, NewJob, Paused, Run, Transition, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Runs that are published together.
struct Part {
    /// Under this job id, if they were sent before
    known: Option<Jid>,
    attempt: u32,
    /// The how-manieth time this attempt is sent
    delivery: u32,
    members: Vec<Arc<Member>>,
}

/// When an action is to be looked at again.
enum Next {
    At(Timestamp),
    /// When a place of the server is free, or then
    Place(Timestamp),
    /// When something happens to it
    Never,
}

/// Later than anything.
const NEVER: Timestamp = Timestamp(i64::MAX);
/// Time between two looks at what is held back by the rate of starts.
const RATED: Duration = Duration::from_millis(100);
/// Time between two looks at what waits for an earlier time of what recurs.
const OVERLAP: Duration = Duration::from_secs(2);
/// Most runs claimed in one go.
const MOST_AT_ONCE: usize = 2_000;
/// Least time between two rounds: what is freed in between is filled together.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(10);
/// Writes that wait for the database above which claims pause.
const BACKLOG: usize = 2_000;
/// Longest time without a look at the tables.
const SWEEP: Duration = Duration::from_secs(15);
/// Most actions kept in memory; what is beyond waits in the tables.
const MOST_WAITING: usize = 10_000;
/// An action that is begun so long after it was due, because the server was down, is marked as late.
const LATE: Duration = Duration::from_secs(60);

impl Engine {
    /// Runs that wait, as far as is known here.
    pub(super) fn queued(&self) -> usize {
        self.metrics.queued()
    }

    pub(super) fn await_turn(&self, work: &Arc<Work>, look: Timestamp) {
        lock(&self.waiting).insert(work.id, Waiting { work: work.clone(), look, for_place: false });
        self.wake.notify_one();
    }
}

impl Master {
    /// Notes runs that are in progress from now on.
    pub(super) fn track(
        &self,
        work: &Arc<Work>,
        members: &[Arc<Member>],
        jid: Option<Jid>,
        now: Timestamp,
        deliveries: u32,
    ) {
        let Some(jid) = jid else { return };
        let acks: Vec<bool> = members.iter().map(|member| self.expects_ack(work, member)).collect();
        let mut tracker = self.engine.tracker();
        for (member, acks) in members.iter().zip(acks) {
            let run = Tracked::new(jid, deliveries, acks, now);
            tracker.fill(work, member.id.clone(), run);
        }
    }

    /// Whether a minion can be sent something: it is there, or nothing was heard of it since the server started.
    pub(super) fn is_there(&self, member: &Member) -> bool {
        !matches!(member.facts().presence, Presence::Absent(_))
    }

    /// Whether it may still be on its way back to a server that has just started: what is published now would miss it. A stock
    /// minion that can be heard again is not back yet, it sends requests seconds before it has subscribed; and it could not be
    /// sent the same job again, as it says of a mere reconnection that it has started.
    pub(super) fn is_on_its_way(&self, member: &Member, now: Timestamp) -> bool {
        if now >= self.engine.started.plus(RECONNECT) {
            return false;
        }
        let facts = member.facts();
        let was_here_before = facts.first_seen < self.engine.started;
        was_here_before && (facts.presence == Presence::Unknown || facts.ack_method != AckMethod::Native)
    }

    /// Dispatches until the server stops.
    pub(crate) async fn keep_dispatching(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        if let Err(error) = self.recover().await {
            tracing::error!(%error, "cannot read what was in progress; it is read again later");
        }
        let mut swept = clock::now();
        loop {
            let now = clock::now();
            let until_sweep = SWEEP.saturating_sub(now.since(swept));
            let look = lock(&self.engine.waiting).values().map(|waiting| waiting.look).min();
            let pause = look.map_or(until_sweep, |look| look.since(now).min(until_sweep));
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.engine.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            if clock::now().since(swept) >= SWEEP {
                swept = clock::now();
                if let Err(error) = self.find_waiting().await {
                    tracing::error!(%error, "cannot look for due work");
                }
            }
            if let Err(error) = self.round().await {
                tracing::error!(%error, "a round of dispatching failed, the next tries again");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            tokio::time::sleep(BETWEEN_ROUNDS).await;
        }
    }

    /// Reads back what was in progress when the server last stopped.
    async fn recover(self: &Arc<Self>) -> Result<(), Error> {
        const PAGE: usize = 1_000;
        let mut after = None;
        loop {
            let page = self.store.runs_in_progress(after.clone(), PAGE).await?;
            let Some((action, run)) = page.last() else { break };
            after = Some((run.minion.clone(), *action));
            let last = page.len() < PAGE;
            for (action, run) in page {
                if !self.engine.is_elsewhere(&run.minion) {
                    self.restore(action, run).await?;
                }
            }
            if last {
                break;
            }
        }
        self.find_waiting().await
    }

    /// Takes a run into care that is in progress according to the tables. Whether it was published is not known.
    pub(super) async fn restore(self: &Arc<Self>, action: ActionId, run: Run) -> Result<(), Error> {
        let (Some(jid), RunState::Sent | RunState::PickedUp) = (run.jid, run.state) else { return Ok(()) };
        let Some(known) = self.known_job(jid).await? else { return Ok(()) };
        if known.work.internal || known.work.id != action {
            return Ok(());
        }
        let member = self.member(run.minion.as_str());
        let acks = member.is_some_and(|member| self.expects_ack(&known.work, &member));
        let now = clock::now();
        let tracked = Tracked {
            sent: run.sent.unwrap_or(now),
            picked_up: run.picked_up,
            recovered: true,
            ..Tracked::new(jid, run.deliveries, acks, now)
        };
        let mut tracker = self.engine.tracker();
        if tracker.get_mut(action, &run.minion).is_none() {
            tracker.restore(&known.work, run.minion, tracked);
        }
        Ok(())
    }

    /// Looks in the tables for actions with queued runs: whatever was missed is found here.
    pub(super) async fn find_waiting(self: &Arc<Self>) -> Result<(), Error> {
        const PAGE: usize = 500;
        let (mut after, mut queued) = (ActionId(0), 0);
        loop {
            let page = self.store.open_actions(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            let done = page.len() < PAGE;
            for action in page.into_iter().filter(|action| action.counts.queued > 0) {
                queued += usize::try_from(action.counts.queued).unwrap_or(0);
                let mut waiting = lock(&self.engine.waiting);
                if waiting.len() < MOST_WAITING && !waiting.contains_key(&action.id) && action.paused.is_none() {
                    waiting.insert(
                        action.id,
                        Waiting { work: Work::read(&action)?, look: clock::now(), for_place: false },
                    );
                }
            }
            if done {
                break;
            }
        }
        self.engine.metrics.set_queued(queued);
        Ok(())
    }

    /// One round: who has come back, what was woken, what is due.
    async fn round(self: &Arc<Self>) -> Result<(), Error> {
        let back = std::mem::take(&mut *lock(&self.engine.back));
        if !back.is_empty() {
            self.welcome(back).await?;
        }
        let woken = std::mem::take(&mut *lock(&self.engine.woken));
        for action in woken {
            let Some(row) = self.store.action(action).await? else { continue };
            // A step of a launch is begun by its minion.
            if row.new.step.is_some() {
                continue;
            }
            if row.counts.queued > 0 && row.paused.is_none() {
                self.engine.await_turn(&Work::read(&row)?, clock::now());
            } else {
                lock(&self.engine.waiting).remove(&action);
            }
        }
        if self.store.backlog() > BACKLOG {
            self.engine.metrics.held_back();
            return Ok(());
        }
        let now = clock::now();
        let place_freed = self.engine.place_freed.swap(false, Relaxed);
        let is_ready = |waiting: &&mut Waiting| waiting.look <= now || (place_freed && waiting.for_place);
        let mut ready = Vec::new();
        for waiting in lock(&self.engine.waiting).values_mut().filter(is_ready) {
            // Whoever wakes it from here on is heard, also while it is being looked at.
            waiting.look = NEVER;
            ready.push(waiting.clone());
        }
        ready.sort_by_key(|waiting| (!waiting.work.policy.interactive, waiting.work.id));
        let mut left = ready.len();
        for Waiting { work, .. } in ready {
            // A fair share of what is free, and all of it for the last.
            let share = self.engine.tracker().free(work.policy.interactive).div_ceil(left.max(1)).min(MOST_AT_ONCE);
            left -= 1;
            let next = self.advance(&work, share).await;
            let mut waiting = lock(&self.engine.waiting);
            let Some(entry) = waiting.get_mut(&work.id) else { continue };
            match next {
                Ok(Next::At(next)) => (entry.look, entry.for_place) = (entry.look.min(next), false),
                Ok(Next::Place(next)) => (entry.look, entry.for_place) = (entry.look.min(next), true),
                Ok(Next::Never) if entry.look == NEVER => drop(waiting.remove(&work.id)),
                Ok(Next::Never) => {}
                Err(error) => {
                    entry.look = now;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Minions have come back: what was held for them is due.
    async fn welcome(self: &Arc<Self>, minions: BTreeSet<MinionId>) -> Result<(), Error> {
        self.adopt(&minions).await?;
        for action in self.store.release(minions.into_iter().collect(), clock::now()).await? {
            lock(&self.engine.woken).insert(action);
        }
        Ok(())
    }

    /// Starts what may start of one action; tells when to look at it again.
    async fn advance(self: &Arc<Self>, work: &Arc<Work>, share: usize) -> Result<Next, Error> {
        let now = clock::now();
        let Some(row) = self.store.action(work.id).await? else { return Ok(Next::Never) };
        // What is past its deadline is the sweeper's, and must not be started meanwhile.
        if row.counts.queued <= 0 || row.paused.is_some() || row.new.deadline <= now {
            return Ok(Next::Never);
        }
        let number = |count: i64| usize::try_from(count).unwrap_or(0);
        let progress = {
            let mut tracker = self.engine.tracker();
            let cooling = tracker.cooling(work.id, now);
            let tracked = tracker.action(work.id);
            Progress {
                total: number(row.counts.total),
                queued: number(row.counts.queued),
                in_progress: tracked.map_or(0, |tracked| tracked.runs.len()),
                failed: number(row.counts.failed),
                unreachable: number(row.counts.unreachable),
                cooling,
                last_ended: tracked.and_then(|tracked| tracked.last_ended).or(Some(self.engine.started)),
            }
        };
        let wanted = match room(&work.policy, &progress, now) {
            Room::For(places) => places.min(share),
            Room::None(what, until) => {
                self.store.mark_waiting(work.id, WaitingFor::Due, what).await?;
                // Whatever ends wakes us; time passes by itself.
                return Ok(Next::At(until.unwrap_or_else(|| now.plus(SWEEP))));
            }
            Room::OverBudget(then) => return self.over_budget(work, then, now).await,
        };
        let granted = self.engine.tracker().reserve(work.policy.interactive, wanted, now);
        if granted == 0 {
            let rated = self.engine.tracker().is_rated(now);
            let what = if rated { WaitingFor::Rate } else { WaitingFor::Slot };
            self.store.mark_waiting(work.id, WaitingFor::Due, what).await?;
            return Ok(if rated { Next::At(now.plus(RATED)) } else { Next::Place(now.plus(SWEEP)) });
        }
        let (due, all_seen) = self.due_here(work.id, granted, now).await?;
        // Before anybody can have answered it: who sees it ended sees that it was late.
        let is_late = now.since(work.due.max(work.created)) > LATE && self.engine.started > work.due;
        if is_late && !due.is_empty() && !row.new.late {
            self.store.mark_late(work.id).await?;
        }
        let used = self.start(work, &row, due, now).await;
        let spare = granted - used.as_ref().map_or(0, |used| *used);
        self.engine.tracker().unreserve(work.policy.interactive, spare);
        used?;
        if all_seen {
            // What is due and was not taken is another server's.
            let pause = if self.engine.is_shared() { Duration::from_secs(1) } else { BETWEEN_ROUNDS };
            let next = self.store.next_due(work.id).await?;
            return Ok(next.map_or(Next::Never, |next| Next::At(next.max(now.plus(pause)))));
        }
        Ok(Next::At(now))
    }

    /// Due runs of minions that this server can reach, and whether that were all there are.
    async fn due_here(&self, action: ActionId, wanted: usize, now: Timestamp) -> Result<(Vec<Run>, bool), Error> {
        let mut due = self.store.due_runs(action, now, wanted).await?;
        let mut all_seen = due.len() < wanted;
        if !self.engine.is_shared() {
            return Ok((due, all_seen));
        }
        let mut last = due.last().cloned();
        due.retain(|run| !self.engine.is_elsewhere(&run.minion));
        while !all_seen && due.len() < wanted {
            let more = self.store.due_runs_after(action, now, last.as_ref(), wanted).await?;
            all_seen = more.len() < wanted;
            last = more.last().cloned();
            due.extend(more.into_iter().filter(|run| !self.engine.is_elsewhere(&run.minion)));
        }
        due.truncate(wanted);
        Ok((due, all_seen))
    }

    /// Claims and publishes these runs, as far as their minions are there; tells how many took a place.
    async fn start(
        self: &Arc<Self>,
        work: &Arc<Work>,
        row: &Action,
        due: Vec<Run>,
        now: Timestamp,
    ) -> Result<usize, Error> {
        let (mut held, mut unknown_boot) = (Vec::new(), BTreeSet::new());
        let mut later = None;
        let put_off = |opens| put_off(row.new.due, row.new.deadline, opens, self.config.job_deadline);
        let behind = match row.new.recurring {
            Some(recurring) => self.store.behind_of(recurring, work.id).await?,
            None => BTreeSet::new(),
        };
        // By job id where one is given (sent before), by attempt and by delivery: one publication says one number.
        let mut parts: BTreeMap<(Option<Jid>, u32, u32), Vec<Arc<Member>>> = BTreeMap::new();
        for run in due {
            let again = run.deliveries > 0;
            let is_behind = !again && behind.contains(&run.minion);
            let overlap = is_behind.then(|| Input::Wait(WaitingFor::Overlap, Some(now.plus(OVERLAP))));
            match overlap.or_else(|| self.obstacle(work, &run, now)) {
                Some(input) => {
                    let mut message = None;
                    match input {
                        Input::Wait(WaitingFor::Facts, _) => drop(unknown_boot.insert(run.minion.clone())),
                        Input::Wait(WaitingFor::Window, until) => later = later.max(until.and_then(put_off)),
                        Input::OutsideWindow => message = Some(self.windows.why_outside(&run.minion, now)),
                        _ => {}
                    }
                    held.push(Transition { message, ..transition(work.id, &run.minion, input, now) });
                }
                None => {
                    let Some(member) = self.member(run.minion.as_str()) else { continue };
                    let key =
                        if again { (run.jid, run.attempt, run.deliveries + 1) } else { (None, run.attempt + 1, 1) };
                    parts.entry(key).or_default().push(member);
                }
            }
        }
        if let Some(later) = later {
            self.store.extend_deadline(work.id, later).await?;
        }
        if !held.is_empty() {
            self.store.transit(held).await?;
        }
        if !unknown_boot.is_empty() {
            self.ask_boot_ids(unknown_boot);
        }
        let mut used = 0;
        for ((known, attempt, delivery), members) in parts {
            let part = Part { known, attempt, delivery, members };
            used += self.claim_and_send(work, row.jid, part, now).await?;
        }
        Ok(used)
    }

    /// What keeps a due run from being sent.
    fn obstacle(self: &Arc<Self>, work: &Work, run: &Run, now: Timestamp) -> Option<Input> {
        let Some(member) = self.member(run.minion.as_str()) else { return Some(Input::Unreachable) };
        // Before whether it is there: what waits for a window does not fail because the minion is away meanwhile.
        if let Some(input) = self.outside_window(work, run, now) {
            return Some(input);
        }
        if !self.is_there(&member) {
            self.engine.knocks.add(&run.minion, now);
            return Some(Input::Unreachable);
        }
        if self.is_on_its_way(&member, now) {
            return Some(Input::Wait(WaitingFor::Offline, Some(self.engine.started.plus(RECONNECT))));
        }
        if work.ends_by_boot() && member.facts().current_boot().is_none() {
            return Some(Input::Wait(WaitingFor::Facts, Some(now.plus(Duration::from_secs(5)))));
        }
        None
    }

    fn may_change(&self, work: &Work, minion: &MinionId, at: Timestamp) -> bool {
        self.opening_for(work, minion, at) == Opening::Open
    }

    fn opening_for(&self, work: &Work, minion: &MinionId, at: Timestamp) -> Opening {
        self.windows.opening_by(minion, work.is_restricted(), work.policy.override_window.is_some(), at)
    }

    /// What becomes of a due run whose minion may not be changed now.
    fn outside_window(&self, work: &Work, run: &Run, now: Timestamp) -> Option<Input> {
        let Opening::Closed(until) = self.opening_for(work, &run.minion, now) else { return None };
        // What was sent may have begun, and is not declared failed; nor does a chain fail by what carries it.
        let may_fail = run.deliveries == 0 && work.launch.is_none();
        if may_fail && self.windows.fails_outside(&run.minion, &work.policy) {
            return Some(Input::OutsideWindow);
        }
        let look = until.unwrap_or_else(|| now.plus(Duration::from_secs(30)));
        Some(Input::Wait(WaitingFor::Window, Some(look)))
    }

    async fn claim_and_send(
        self: &Arc<Self>,
        work: &Arc<Work>,
        first: Option<Jid>,
        part: Part,
        now: Timestamp,
    ) -> Result<usize, Error> {
        let Part { known, attempt, delivery, mut members } = part;
        // Time has passed while others were sent: what is claimed may be sent now. The rest is looked at again.
        let at = clock::now();
        members.retain(|member| self.may_change(work, &member.id, at));
        if members.is_empty() {
            return Ok(0);
        }
        let minions: Vec<MinionId> = members.iter().map(|member| member.id.clone()).collect();
        // The first attempts of an action share one job, as one batch of Salt does; every other attempt has one of its own.
        let is_first = known.is_none() && attempt == 1;
        let existing = known.or(if is_first { first.or(work.jid()) } else { None });
        let jid = existing.unwrap_or_else(|| self.next_jid(now));
        let mut events = Vec::new();
        let mut job = None;
        if existing.is_none() {
            let all = if is_first { self.all_minions(work.id).await? } else { minions.clone() };
            events.push(deliver::announce(work, jid, &all, &[], now));
            self.remember_job(jid, Arc::new(Known::new(work.clone(), all.clone())));
            job = Some(NewJob { jid, minions: all, missing: Vec::new() });
        }
        if is_first && work.policy.batch.is_some() && existing.is_none() {
            events.push(self.batch_start(work, jid, now).await?);
        }
        let claim = Claim { action: work.id, jid, job, is_first, minions, at: now, events };
        let claimed = self.store.claim(claim).await?;
        if is_first {
            work.set_jid(jid);
        }
        let taken: BTreeSet<&MinionId> = claimed.iter().collect();
        let members: Vec<Arc<Member>> = members.into_iter().filter(|member| taken.contains(&member.id)).collect();
        if members.is_empty() {
            return Ok(0);
        }
        self.engine.metrics.note_started(members.len(), known.is_some());
        self.track(work, &members, Some(jid), now, delivery);
        if work.ends_by_boot() {
            self.keep_boot_ids(work.id, &members).await?;
        }
        let others = (is_first && members.len() == work.total).then_some(&[][..]);
        self.deliver(&Delivery { work, jid, attempt, members: &members, others }).await?;
        Ok(members.len())
    }

    pub(super) async fn batch_start(&self, work: &Work, jid: Jid, now: Timestamp) -> Result<NewEvent, Error> {
        let is_down = |minion: &MinionId| self.member(minion.as_str()).is_none_or(|member| !self.is_there(&member));
        let (down, available): (Vec<_>, Vec<_>) = self.all_minions(work.id).await?.into_iter().partition(is_down);
        Ok(tell::batch_start(jid, &available, &down, work.metadata_value(), now))
    }

    /// Tells the end of a batch as Salt does, when the last of its runs has ended.
    pub(super) fn tell_batch_end(self: &Arc<Self>, action: ActionId) {
        let master = self.clone();
        self.tasks.spawn(crate::tasks::Kind::Errand, "tell the end of a batch", async move {
            if let Err(error) = master.try_tell_batch_end(action).await {
                tracing::warn!(%action, %error, "the end of a batch could not be told");
            }
        });
    }

    async fn try_tell_batch_end(&self, action: ActionId) -> Result<(), Error> {
        let Some(row) = self.store.action(action).await? else { return Ok(()) };
        let (Some(at), Some(jid)) = (row.ended, row.jid) else { return Ok(()) };
        let work = Work::read(&row)?;
        let (mut done, mut timed_out) = (Vec::new(), Vec::new());
        for run in self.all_runs(action).await? {
            if run.retcode.is_some() { done.push(run.minion) } else { timed_out.push(run.minion) }
        }
        let event = tell::batch_done(jid, &done, &timed_out, work.metadata_value(), at);
        Ok(self.store.log_events(vec![event]).await?)
    }

    /// Everybody an action is for.
    async fn all_minions(&self, action: ActionId) -> Result<Vec<MinionId>, Error> {
        Ok(self.all_runs(action).await?.into_iter().map(|run| run.minion).collect())
    }

    /// Every run of an action, in the order of minions.
    pub(crate) async fn all_runs(&self, action: ActionId) -> Result<Vec<Run>, Error> {
        const PAGE: usize = 1_000;
        let mut all: Vec<Run> = Vec::new();
        loop {
            let after = all.last().map_or(String::new(), |run| run.minion.to_string());
            let page = self.store.runs(action, &after, PAGE).await?;
            let last = page.len() < PAGE;
            all.extend(page);
            if last {
                return Ok(all);
            }
        }
    }

    /// Too many have failed: the rest is held or cancelled, as the action says.
    async fn over_budget(self: &Arc<Self>, work: &Work, then: OverBudget, now: Timestamp) -> Result<Next, Error> {
        tracing::info!(action = %work.id, "too many runs have failed, the rest is held");
        match then {
            OverBudget::Pause => {
                let pause = Paused { at: now, by: "saltern".into(), why: "too many runs have failed".into() };
                self.store.pause(work.id, pause, None).await?;
            }
            OverBudget::Stop => {
                let verb = Verb {
                    action: work.id,
                    minions: None,
                    only_failed: false,
                    input: Input::Budget,
                    at: now,
                    message: Some("too many runs of this action have failed".into()),
                    deadline: None,
                    audit: None,
                };
                self.store.apply(verb).await?;
            }
        }
        Ok(Next::Never)
    }
}

pub(super) fn transition(action: ActionId, minion: &MinionId, input: Input, at: Timestamp) -> Transition {
    Transition { action, minion: minion.clone(), input, at, message: None, evidence: None }
}
