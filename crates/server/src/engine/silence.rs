//! Sees to runs of which nothing is heard: sends them again, asks, and draws the conclusion.
//!
//! Not acknowledged in time: the same job id goes out again, to minions that can be trusted to know it again. Then the
//! silent are asked what they run, many in one question (`saltutil.running`), and at last whether they have an answer that
//! never arrived (`saltutil.find_cached_job`). Whoever says twice that he does not run it, and has no answer, does not.
//! Whoever does not answer is asked again until the deadline decides.
//!
//! Nobody is asked who has spoken lately: a fleet at work costs nothing here.

use super::dispatch::transition;
use super::tracker::{InProgress, Tracked};
use super::{Request, lock};
use crate::master::{Master, Member};
use crate::{Error, clock};
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{Input, Outcome, RunState};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{AckMethod, Transition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How often one attempt is published at most.
const MOST_DELIVERIES: u32 = 4;
/// How long stock minions take at most to subscribe again after the server was away.
pub(super) const RECONNECT: Duration = Duration::from_secs(12);
/// A minion that has just signed in may be about to say that it was restarted.
const SETTLING: Duration = Duration::from_secs(10);
/// How long an answer to a question is waited for.
const GATHER: Duration = Duration::from_secs(10);
/// Shortest and longest time between two questions about one run.
const ASK_AGAIN: Duration = Duration::from_secs(5);
const LEAST_SILENCE: Duration = Duration::from_secs(15);
const MOST_SILENCE: Duration = Duration::from_secs(300);
/// Most minions in one question.
const MOST_ASKED: usize = 1_000;
/// How often a minion has to say that it does not run a job before it is asked for an answer that got lost.
const CONVINCED: u32 = 2;

/// A question that is out, by the action that carries it.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// What do you run?
    Running,
    /// Do you still have the answer of this job?
    Cached(ActionId, Jid),
    /// Kill this job
    Kill(ActionId, Jid),
    /// Which boot is this? Asked then
    BootId(Timestamp),
    /// Take the module that runs chains
    ChainModule,
    /// Clear what you keep of chains; somebody waits for what each says
    Clear(tokio::sync::mpsc::Sender<(MinionId, Value)>),
}

/// What is to be done about the silent.
#[derive(Default)]
struct Plan {
    transitions: Vec<Transition>,
    /// Jobs to be ended on the minion as well
    kill: BTreeMap<(ActionId, Jid), BTreeSet<MinionId>>,
    ask: BTreeSet<MinionId>,
    cached: BTreeMap<(ActionId, Jid), BTreeSet<MinionId>>,
}

impl Master {
    /// Looks after the silent until the server stops.
    pub(crate) async fn keep_watch(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            if let Err(error) = self.look_after_the_silent().await {
                tracing::error!(%error, "cannot look after silent minions");
            }
            if let Err(error) = self.knock().await {
                tracing::error!(%error, "cannot knock at minions that are away");
            }
            if let Err(error) = self.end_overdue().await {
                tracing::error!(%error, "cannot end what is past its deadline");
            }
        }
    }

    async fn look_after_the_silent(self: &Arc<Self>) -> Result<(), Error> {
        let now = clock::now();
        let plan = self.plan(now);
        self.settle(plan.transitions).await?;
        for ((action, jid), minions) in plan.kill {
            self.ask(minions, "saltutil.term_job", vec![jid.into()], Question::Kill(action, jid));
        }
        for ((action, jid), minions) in plan.cached {
            self.ask(minions, "saltutil.find_cached_job", vec![jid.into()], Question::Cached(action, jid));
        }
        let ask: Vec<MinionId> = plan.ask.into_iter().collect();
        for part in ask.chunks(MOST_ASKED) {
            self.ask(part.iter().cloned().collect(), "saltutil.running", Vec::new(), Question::Running);
        }
        Ok(())
    }

    /// What is to be done now. Takes note of whom it decides to ask.
    fn plan(&self, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        let mut tracker = self.engine.tracker();
        for (action, in_progress) in tracker.actions() {
            let silence = patience(in_progress);
            let timeout = in_progress.work.timeout();
            let has_own_end = in_progress.work.ends_by_boot();
            let ends_with_agent = in_progress.work.may_end_with_agent();
            for (minion, run) in &mut in_progress.runs {
                let mut note = |input, message: &str| {
                    let message = Some(message.to_owned());
                    plan.transitions.push(Transition { message, ..transition(*action, minion, input, now) });
                };
                if timeout.is_some_and(|timeout| now.since(run.sent) >= timeout) {
                    note(Input::TimedOut, "it took longer than its job_timeout");
                    if !has_own_end {
                        plan.kill.entry((*action, run.jid)).or_default().insert(minion.clone());
                    }
                    continue;
                }
                if run.strikes > CONVINCED {
                    let started = self.member(minion.as_str()).and_then(|member| member.facts().started);
                    match run.picked_up {
                        // Its end is the end of the agent that would have returned it.
                        _ if ends_with_agent && started.is_some_and(|started| started > run.sent) => {
                            note(Input::Settled(true), "the agent was restarted");
                        }
                        Some(_) => note(Input::Gone, "the minion does not run it any more and has no answer"),
                        None => note(Input::NotDelivered(false), "the minion has nothing of this job"),
                    }
                    continue;
                }
                // A machine that reboots says nothing until it is up.
                if has_own_end && run.picked_up.is_some() {
                    continue;
                }
                let member = self.member(minion.as_str());
                let is_there = member.as_ref().is_some_and(|member| self.is_there(member));
                let asked_lately = run.asked.is_some_and(|asked| now.since(asked) < again(run));
                if run.picked_up.is_none() {
                    if now.since(run.delivered) < ack_patience(run, self.config.ack_timeout) {
                        continue;
                    }
                    let may = member.as_ref().is_some_and(|member| may_redeliver(member, run, now));
                    if may && (run.acks || run.recovered) && run.deliveries < MOST_DELIVERIES {
                        note(Input::Redeliver, "nothing was heard of it, so it is sent again under the same job id");
                        continue;
                    }
                } else if now.since(run.heard) < silence {
                    continue;
                }
                if !is_there || asked_lately {
                    continue;
                }
                run.asked = Some(now);
                if run.strikes == CONVINCED {
                    plan.cached.entry((*action, run.jid)).or_default().insert(minion.clone());
                } else {
                    plan.ask.insert(minion.clone());
                }
            }
        }
        plan
    }

    /// Writes transitions, and draws the consequences for those that happened.
    pub(super) async fn settle(self: &Arc<Self>, transitions: Vec<Transition>) -> Result<(), Error> {
        if transitions.is_empty() {
            return Ok(());
        }
        let outcomes = self.store.transit(transitions.clone()).await?;
        for (transition, outcome) in transitions.iter().zip(outcomes) {
            let Transition { action, minion, at, .. } = transition;
            self.consequences(*action, minion, &outcome, *at);
            // Nothing came of it: somebody else was first, perhaps another server.
            if outcome == Outcome::Nothing && self.engine.tracker().get_mut(*action, minion).is_some() {
                let run = self.store.run(*action, minion).await?;
                if run.is_none_or(|run| !matches!(run.state, RunState::Sent | RunState::PickedUp)) {
                    self.engine.ended(*action, minion, *at);
                }
            }
        }
        Ok(())
    }

    /// What follows in memory from what has become of a run.
    pub(crate) fn consequences(
        self: &Arc<Self>,
        action: ActionId,
        minion: &MinionId,
        outcome: &Outcome,
        at: Timestamp,
    ) {
        match outcome {
            Outcome::Change(change) => match change.standing.state {
                RunState::PickedUp => self.engine.heard(action, minion, at),
                RunState::Queued => {
                    self.engine.ended(action, minion, at);
                    self.engine.wake(action);
                }
                RunState::Completed | RunState::Failed | RunState::Cancelled => {
                    self.engine.metrics.note_ended(change.standing.reason);
                    if self.engine.ended(action, minion, at) {
                        self.tell_batch_end(action);
                    }
                }
                RunState::Sent => {}
            },
            Outcome::Late => self.engine.metrics.note_late(),
            // Somebody else was first; whoever it was has told the tracker, or the run is not in progress.
            Outcome::Nothing | Outcome::Refused(_) => {}
        }
    }

    /// Asks these minions something, in the background.
    pub(super) fn ask(
        self: &Arc<Self>,
        minions: BTreeSet<MinionId>,
        fun: &'static str,
        arg: Vec<Value>,
        question: Question,
    ) {
        let master = self.clone();
        self.tasks.spawn(crate::tasks::Kind::Errand, "ask the silent", async move {
            let target = Target::list(minions.iter().map(MinionId::as_str));
            let mut request = Request::house(target, fun, arg);
            request.deadline = Some(GATHER);
            match master.submit_question(request, question.clone()).await {
                Ok(action) => {
                    tokio::time::sleep(GATHER).await;
                    lock(&master.engine.questions).remove(&action);
                    if let Question::Cached(run, jid) = question {
                        master.no_answer(run, jid, &minions);
                    }
                }
                Err(error) => tracing::debug!(%error, fun, "silent minions could not be asked"),
            }
        });
    }

    /// Asks these minions which boot they are on.
    pub(super) fn ask_boot_ids(self: &Arc<Self>, minions: BTreeSet<MinionId>) {
        let arg = vec![Value::from("cat /proc/sys/kernel/random/boot_id")];
        self.ask(minions, "cmd.run", arg, Question::BootId(clock::now()));
    }

    /// Kills a job on these minions.
    pub(super) fn kill(self: &Arc<Self>, minions: BTreeSet<MinionId>, action: ActionId, jid: Jid) {
        self.ask(minions, "saltutil.kill_job", vec![jid.into()], Question::Kill(action, jid));
    }

    pub(super) async fn submit_question(
        self: &Arc<Self>,
        request: Request,
        question: Question,
    ) -> Result<ActionId, Error> {
        // Noted when it is stored, before it is published: no answer can come earlier.
        let accepted = self.submit_noting(request, |action| {
            lock(&self.engine.questions).insert(action, question.clone());
        });
        Ok(accepted.await?.action)
    }

    /// An answer to a question.
    pub(crate) async fn answered(
        self: &Arc<Self>,
        question_id: ActionId,
        member: &Arc<Member>,
        load: &Value,
    ) -> Result<(), Error> {
        let Some(question) = lock(&self.engine.questions).get(&question_id).cloned() else { return Ok(()) };
        let now = clock::now();
        let answer = load.get("return").unwrap_or(&Value::Nil);
        match question {
            Question::Running => self.heard_running(member, answer, now).await,
            Question::Cached(action, jid) => match answer.as_map() {
                Some(map) if map.get("return").is_some() => {
                    let mut load = map.clone();
                    load.insert("jid", jid);
                    load.insert("id", member.id.as_str());
                    tracing::info!(minion = %member.id, %jid, "an answer that had got lost was found");
                    Box::pin(self.take_return(member, load)).await.map(drop)
                }
                _ => {
                    self.no_answer(action, jid, &[member.id.clone()].into());
                    Ok(())
                }
            },
            Question::Kill(action, jid) => {
                let killed = answer.as_str().is_some_and(|text| text.starts_with("Signal"));
                if killed {
                    let input = transition(action, &member.id, Input::Stopped, now);
                    let message = Some("it was killed on the minion".into());
                    return self.settle(vec![Transition { message, ..input }]).await;
                }
                if let Some(run) = self.engine.tracker().get_mut(action, &member.id).filter(|run| run.jid == jid) {
                    run.strikes = run.strikes.max(CONVINCED);
                    run.asked = None;
                }
                Ok(())
            }
            Question::Clear(tell) => {
                // Whoever asked may have gone.
                tell.try_send((member.id.clone(), answer.clone())).ok();
                Ok(())
            }
            Question::ChainModule => {
                // An error is a text; whatever was synced is a list.
                if answer.as_list().is_some() {
                    self.chain_module_brought(member);
                }
                Ok(())
            }
            Question::BootId(asked) => {
                // An answer that was kept over a reboot tells of the boot before.
                if member.facts().signed_in.is_some_and(|signed_in| signed_in > asked) {
                    return Ok(());
                }
                self.learn_boot_id(member, answer.as_str().unwrap_or_default().trim(), now).await
            }
        }
    }

    async fn heard_running(self: &Arc<Self>, member: &Member, answer: &Value, now: Timestamp) -> Result<(), Error> {
        // Anything but a list, an error text too, says nothing.
        let Some(jobs) = answer.as_list() else { return Ok(()) };
        let running: BTreeSet<Jid> = jobs.iter().filter_map(|job| Jid::parse(job.get("jid")?.as_str()?)).collect();
        let mut news = Vec::new();
        {
            let mut tracker = self.engine.tracker();
            for (action, in_progress) in tracker.actions() {
                let Some(run) = in_progress.runs.get_mut(&member.id) else { continue };
                if running.contains(&run.jid) {
                    (run.heard, run.strikes) = (now, 0);
                    if run.picked_up.is_none() {
                        news.push(transition(*action, &member.id, Input::Ack(run.jid), now));
                    }
                } else if run.asked.is_some() {
                    run.strikes += 1;
                }
            }
        }
        self.settle(news).await
    }

    /// These have no answer for this job: that settles it.
    fn no_answer(&self, action: ActionId, jid: Jid, minions: &BTreeSet<MinionId>) {
        let mut tracker = self.engine.tracker();
        for minion in minions {
            if let Some(run) = tracker.get_mut(action, minion).filter(|run| run.jid == jid && run.strikes >= CONVINCED)
            {
                run.strikes = CONVINCED + 1;
            }
        }
    }

    /// A minion's agent was started anew: whatever it was at is looked into at once.
    pub(crate) fn restarted(self: &Arc<Self>, minion: &MinionId) {
        let mut boots = false;
        {
            let mut tracker = self.engine.tracker();
            for (_, in_progress) in tracker.actions() {
                boots |= in_progress.work.ends_by_boot() && in_progress.runs.contains_key(minion);
                if let Some(run) = in_progress.runs.get_mut(minion) {
                    (run.heard, run.delivered, run.asked) = (Timestamp(0), Timestamp(0), None);
                }
            }
        }
        if boots {
            self.ask_boot_ids([minion.clone()].into());
        }
    }
}

impl super::Engine {
    /// A return has come.
    pub(crate) fn note_return(&self, action: ActionId, minion: &MinionId, now: Timestamp) {
        if let Some(run) = self.tracker().get_mut(action, minion) {
            self.metrics.note_return(now.since(run.sent));
        }
    }

    /// Somebody had jobs killed on a minion, not through us: what was under way there is asked about at once.
    pub(crate) fn doubt(&self, minion: &MinionId) {
        for (_, in_progress) in self.tracker().actions() {
            if let Some(run) = in_progress.runs.get_mut(minion).filter(|run| run.picked_up.is_some()) {
                (run.heard, run.asked) = (Timestamp(0), None);
            }
        }
    }

    /// Something was heard of a run: it is under way.
    pub(crate) fn heard(&self, action: ActionId, minion: &MinionId, now: Timestamp) {
        if let Some(run) = self.tracker().get_mut(action, minion) {
            if run.picked_up.is_none() {
                self.metrics.note_ack(now.since(run.delivered));
            }
            run.picked_up.get_or_insert(now);
            (run.heard, run.strikes) = (now, 0);
        }
    }
}

/// How long a run under way may be silent: longer where its like take longer.
fn patience(in_progress: &InProgress) -> Duration {
    in_progress.mean().map_or(LEAST_SILENCE * 2, |mean| mean.saturating_mul(4)).clamp(LEAST_SILENCE, MOST_SILENCE)
}

/// How long an acknowledgement is waited for: longer after each time that it was sent.
fn ack_patience(run: &Tracked, first: Duration) -> Duration {
    if run.recovered {
        return RECONNECT;
    }
    let first = if run.acks { first } else { LEAST_SILENCE };
    first.saturating_mul(1 << run.deliveries.saturating_sub(1).min(4))
}

/// How long until the next question: sooner where the answer was a no.
fn again(run: &Tracked) -> Duration {
    if run.strikes > 0 { ASK_AGAIN } else { LEAST_SILENCE }
}

/// Whether a minion can be trusted to know a job id again. Our own keep a ledger. Stock ones remember job ids until they
/// are restarted, which they say soon after they have signed in.
fn may_redeliver(member: &Member, run: &Tracked, now: Timestamp) -> bool {
    let facts = member.facts();
    if facts.ack_method == AckMethod::Native {
        return true;
    }
    let restarted = facts.started.is_some_and(|started| started > run.sent);
    let settling = facts.signed_in.is_some_and(|signed_in| now.since(signed_in) < SETTLING);
    !restarted && !settling
}
