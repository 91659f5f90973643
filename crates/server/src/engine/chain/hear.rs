//! What minions tell of their chunks: while they run, and at the end or when they are asked.
//!
//! A step's result is a return of the step's own job, whoever brought it; telling it twice changes nothing. What the minion
//! says of a chunk as a whole decides how the launch goes on there.

use super::super::Work;
use super::super::dispatch::transition;
use super::super::work::arguments;
use super::Errand;
use super::book::Going;
use super::carry::{number_of, stays};
use crate::master::{Known, Master, Member, entry};
use crate::{Error, body, clock};
use saltern_core::action::types::Call;
use saltern_core::chain::{self, After, Answer, End, Heard, Next, Plan, PlanStep, Record, StepKind, StepState};
use saltern_core::event;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::run::{Input, Verdict};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{Ack, LaunchMinion, MinionMove, MinionState, NewReturn, Transition};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often a minion is brought its module, or asked, before its part is given up.
const MOST_TRIES: i64 = 10;
/// What a minion told is believed to be of now if it is not older than this; of what is older it tells the time.
const NEWS: Duration = Duration::from_secs(5);
/// How long a minion that is at another chain is left alone.
const BUSY: Duration = Duration::from_secs(10);

impl Master {
    /// A minion tells of a step while its chunk runs.
    pub(crate) async fn chain_progress(
        self: &Arc<Self>,
        member: &Arc<Member>,
        known: &Known,
        data: &Value,
    ) -> Result<(), Error> {
        let Some((launch, chunk, _)) = Self::carriage(&known.work) else { return Ok(()) };
        let Some(progress) = chain::read_progress(data) else { return Ok(()) };
        let Some(going) = self.going(launch).await? else { return Ok(()) };
        if progress.launch != going.key.as_str() || i64::from(progress.chunk) < chunk {
            return Ok(());
        }
        let Some(row) = self.store.launch_minion(launch, &member.id).await? else { return Ok(()) };
        let plan = self.plan_of(&going, &row.plan).await?;
        let Some(step) = find(&plan, progress.chunk, &progress.step) else { return Ok(()) };
        self.hear_step(&going, member, step, &progress.record, false).await
    }

    /// A carrier has brought something back.
    pub(crate) async fn chain_returned(
        self: &Arc<Self>,
        member: &Arc<Member>,
        work: &Work,
        load: &Value,
    ) -> Result<(), Error> {
        let Some((launch, chunk, errand)) = Self::carriage(work) else { return Ok(()) };
        let Some(going) = self.going(launch).await? else { return Ok(()) };
        let Some(row) = self.store.launch_minion(launch, &member.id).await? else { return Ok(()) };
        let returned = load.get("return").unwrap_or(&Value::Nil);
        match chain::read(returned) {
            // The launch has gone on there: what it tells of steps is true all the same.
            Heard::Answer(answer) if chunk < row.chunk => drop(self.hear_steps(&going, member, &row, &answer).await?),
            Heard::Answer(answer) => self.hear_answer(&going, member, &row, &answer).await?,
            // It is about what was asked then, and that is over.
            _ if row.state == MinionState::Ended
                || row.chunk != chunk
                || row.carrier.is_some_and(|now| now != work.id) => {}
            Heard::Error { word, launch: other, reason, answer, .. } => {
                // What its disk can no longer keep, it tells now.
                if let Some(answer) = answer {
                    self.hear_steps(&going, member, &row, &answer).await?;
                }
                self.hear_error(&going, &row, errand, &word, other.as_deref(), &reason).await?;
            }
            Heard::Nonsense(text) => self.hear_nonsense(&going, member, &row, &text).await?,
        }
        self.engine.chains.wake(launch);
        Ok(())
    }

    /// How a chunk stands, from the minion that knows.
    async fn hear_answer(
        self: &Arc<Self>,
        going: &Arc<Going>,
        member: &Arc<Member>,
        row: &LaunchMinion,
        answer: &Answer,
    ) -> Result<(), Error> {
        let plan = self.plan_of(going, &row.plan).await?;
        let is_ours = self.hear_steps(going, member, row, answer).await?;
        if row.state == MinionState::Ended {
            return Ok(());
        }
        let at = clock::now();
        if is_ours && i64::from(answer.chunk) > row.chunk {
            // It is further than is known here, which cannot be.
            tracing::warn!(minion = %row.minion, launch = %going.id, "a minion told of a chunk that was not sent to it");
            return Ok(());
        }
        if !is_ours || i64::from(answer.chunk) < row.chunk {
            return self.hear_nothing_of(going, &plan, row, answer, at).await;
        }
        if !answer.boot_id.is_empty() {
            self.learn_boot_id(member, &answer.boot_id, at).await?;
        }
        let launch = self.store.launch(going.id).await?;
        let cancelled = launch.as_ref().is_some_and(|launch| launch.cancelled.is_some());
        let stopped = launch.is_some_and(|launch| launch.stopped);
        let next = match chain::follow(&plan, number_of(row), answer) {
            Next::Chunk { .. } if cancelled => Next::End(End::Cancelled),
            next => next,
        };
        match next {
            Next::Wait if row.state == MinionState::Sent => Ok(()),
            // Nobody waits any more for a machine that was to restart.
            Next::Restarting if stopped => {
                let number = under_way(&plan, answer).unwrap_or(0);
                let message = "it was stopped before the machine was up again";
                self.fail_part(going, &plan, row, number, Input::Stopped, message, at).await
            }
            // Somebody is at it there, and his return may be lost: it is asked about again.
            Next::Wait | Next::Restarting => {
                let boot_id = Some(answer.boot_id.clone()).filter(|boot| !boot.is_empty());
                let to = MinionMove { since: at, boot_id, asked: 0, ..stays(row, MinionState::Restarting) };
                self.move_row(going, to).await.map(drop)
            }
            Next::Ask => self.ask_again(going, row, "the minion does not go on with its chunk", at).await,
            Next::Chunk { next, failed } => {
                let why = failure(going, &plan, row, Some(answer));
                let to = MinionMove {
                    chunk: i64::try_from(next).unwrap_or(i64::MAX),
                    failed: failed || row.failed,
                    since: at,
                    asked: 0,
                    transitions: skipped(going, &plan, row, answer, next, at),
                    message: why.filter(|_| failed || row.failed),
                    ..stays(row, MinionState::Waiting)
                };
                going.forget_heard(&row.minion);
                self.move_row(going, to).await.map(drop)
            }
            Next::End(end) => self.end_part(going, &plan, row, end, Some(answer), at).await,
            Next::Nothing => self.hear_nothing_of(going, &plan, row, answer, at).await,
        }
    }

    /// What an answer tells of steps; whether it is of this launch.
    async fn hear_steps(
        self: &Arc<Self>,
        going: &Arc<Going>,
        member: &Arc<Member>,
        row: &LaunchMinion,
        answer: &Answer,
    ) -> Result<bool, Error> {
        if answer.launch.as_deref() != Some(going.key.as_str()) {
            return Ok(false);
        }
        let plan = self.plan_of(going, &row.plan).await?;
        for (id, record) in &answer.steps {
            if let Some(step) = find(&plan, answer.chunk, id) {
                self.hear_step(going, member, step, record, true).await?;
            }
        }
        Ok(true)
    }

    /// Of the chunk that was sent the minion knows nothing: it is sent again if it did not begin, and lost if it did.
    async fn hear_nothing_of(
        self: &Arc<Self>,
        going: &Arc<Going>,
        plan: &Plan,
        row: &LaunchMinion,
        answer: &Answer,
        at: Timestamp,
    ) -> Result<(), Error> {
        let mut began = None;
        let chunk = plan.chunk(number_of(row));
        // An update that was begun in the chunk before is decided by the check that begins this one.
        let first = chunk.and_then(|chunk| chunk.steps.first());
        let checked = first.filter(|step| step.kind == StepKind::Check).map(|step| step.number);
        for step in chunk.into_iter().flat_map(|chunk| &chunk.steps).filter(|step| Some(step.number) != checked) {
            let Some(own) = going.step(step.number) else { continue };
            let run = self.store.run(own.action, &row.minion).await?;
            if run.is_some_and(|run| run.picked_up.is_some()) {
                began = Some(step.number);
            }
        }
        match began {
            None if answer.cancelled => self.end_part(going, plan, row, End::Cancelled, Some(answer), at).await,
            None if row.asked >= MOST_TRIES => {
                self.refuse_chunk(going, row, "the minion says again and again that it has nothing of it", at).await
            }
            None => {
                let asked = row.asked + 1;
                let to = MinionMove { since: later(asked, at), asked, ..stays(row, MinionState::Waiting) };
                self.move_row(going, to).await.map(drop)
            }
            Some(number) => {
                let message = "the minion has no record of it any more";
                self.fail_part(going, plan, row, number, Input::Gone, message, at).await
            }
        }
    }

    /// The end of a minion's part: the rest of its steps ends with it.
    async fn end_part(
        self: &Arc<Self>,
        going: &Arc<Going>,
        plan: &Plan,
        row: &LaunchMinion,
        end: End,
        answer: Option<&Answer>,
        at: Timestamp,
    ) -> Result<(), Error> {
        let why = failure(going, plan, row, answer).unwrap_or_else(|| "an earlier step failed".into());
        let has_failed = row.failed || end != End::Completed;
        let mut transitions = Vec::new();
        for step in rest(plan, row, answer.and_then(|answer| culprit(plan, answer))) {
            let Some(own) = going.step(step.number) else { continue };
            let (input, message) = match end {
                End::Cancelled => (Input::Cancel, "the launch was cancelled"),
                _ => left_out(step, has_failed, &why),
            };
            let message = Some(message.to_owned());
            transitions.push(Transition { message, ..transition(own.action, &row.minion, input, at) });
            // What was begun and is told no more of, nobody knows the end of.
            let message = Some("nobody knows how it ended".to_owned());
            transitions.push(Transition { message, ..transition(own.action, &row.minion, Input::Gone, at) });
        }
        let outcome = match end {
            End::Completed if row.failed => "failed",
            End::Completed => "completed",
            End::Failed | End::Stopped => "failed",
            End::Cancelled => "cancelled",
        };
        let message = (outcome == "failed").then(|| why.clone());
        let to = MinionMove {
            since: at,
            failed: row.failed || outcome == "failed",
            outcome: Some(outcome),
            message,
            transitions,
            ..stays(row, MinionState::Ended)
        };
        if self.move_row(going, to).await? {
            self.tidy_later(going, &row.minion);
        }
        Ok(())
    }

    /// A step, and with it the rest, ends badly without the minion's own word.
    #[expect(clippy::too_many_arguments, reason = "the facts of one sad end")]
    pub(super) async fn fail_part(
        self: &Arc<Self>,
        going: &Arc<Going>,
        plan: &Plan,
        row: &LaunchMinion,
        number: usize,
        input: Input,
        message: &str,
        at: Timestamp,
    ) -> Result<(), Error> {
        let how = if input == Input::TimedOut { "took too long" } else { "failed" };
        let mut transitions = Vec::new();
        let mut seen = BTreeSet::new();
        for step in plan.steps().filter(|step| seen.insert(step.number)) {
            let Some(own) = going.step(step.number) else { continue };
            let (input, message) = if step.number == number {
                (input, message.to_owned())
            } else {
                (Input::Prerequisite, format!("{} {how}", going.name(number)))
            };
            transitions.push(Transition { message: Some(message), ..transition(own.action, &row.minion, input, at) });
        }
        let to = MinionMove {
            since: at,
            failed: true,
            outcome: Some("failed"),
            message: Some(format!("{}: {message}", going.name(number))),
            transitions,
            ..stays(row, MinionState::Ended)
        };
        if self.move_row(going, to).await? {
            self.abandon(going.key, std::slice::from_ref(&row.minion));
        }
        Ok(())
    }

    /// Moves a minion's row, and draws the consequences in memory; tells whether it was still as it was thought to be.
    pub(super) async fn move_row(&self, going: &Going, mut to: MinionMove) -> Result<bool, Error> {
        let (minion, state, at) = (to.minion.clone(), to.to, clock::now());
        let data = Value::map([
            ("launch", Value::from(going.id.0)),
            ("minion", (&minion).into()),
            ("chunk", to.chunk.into()),
            ("state", state.as_str().into()),
            ("outcome", to.outcome.map_or(Value::Nil, Value::from)),
            ("message", to.message.as_deref().map_or(Value::Nil, Value::from)),
        ]);
        let tag = format!("saltern/chain/{}/minion/{minion}", going.id);
        to.event = Some(entry(at, tag, data, Some(&minion), None));
        let moved = self.store.move_minions(vec![to]).await? == [true];
        if moved && state == MinionState::Ended {
            going.forget_heard(&minion);
            self.engine.chains.minion_is_free();
        }
        self.engine.chains.wake(going.id);
        Ok(moved)
    }

    /// One step, told while it runs (`is_answer` is false) or with everything else.
    async fn hear_step(
        self: &Arc<Self>,
        going: &Arc<Going>,
        member: &Arc<Member>,
        step: &PlanStep,
        record: &Record,
        is_answer: bool,
    ) -> Result<(), Error> {
        let Some(own) = going.step(step.number) else { return Ok(()) };
        let (minion, now) = (&member.id, clock::now());
        let begun = record.state != StepState::Waiting
            && record.state != StepState::Skipped
            && record.state != StepState::Cancelled;
        // The check of an update is part of it, and was not begun when that was.
        if begun && step.kind != StepKind::Check && !going.has_begun(minion, step.number) {
            let at = when(record.started, going.due, now);
            self.store
                .record_ack(Ack { jid: own.jid, action: own.action, minion: minion.clone(), at, events: Vec::new() })
                .await?;
            going.note_begun(minion, step.number);
        }
        let at = when(record.ended, going.due, now);
        let settle = |input, message: &str| Transition {
            message: Some(message.to_owned()),
            ..transition(own.action, minion, input, at)
        };
        let news = match (record.state, step.kind) {
            (StepState::Waiting, _) => return Ok(()),
            (StepState::Started, StepKind::Reboot) if record.ret.is_some() => {
                return self.step_returned(going, minion, step, record, at, false).await;
            }
            (StepState::Started, _) => return Ok(()),
            _ if is_answer && going.has_ended(minion, step.number) && step.kind != StepKind::Check => return Ok(()),
            (StepState::Done, StepKind::Call)
            | (StepState::Failed, StepKind::Call | StepKind::Reboot | StepKind::Update) => {
                self.step_returned(going, minion, step, record, at, true).await?;
                going.note_ended(minion, step.number);
                return Ok(());
            }
            (StepState::Done, StepKind::Update) => {
                // Whether it took effect, the check in the next chunk tells.
                self.step_returned(going, minion, step, record, at, false).await?;
                going.note_ended(minion, step.number);
                return Ok(());
            }
            (StepState::Done, StepKind::Reboot) => settle(Input::Settled(true), "Reboot completed."),
            (StepState::Done, StepKind::Check) => settle(Input::Settled(true), "the agent was updated"),
            (StepState::Failed, StepKind::Check) => {
                let verdict = Verdict { success: false, retcode: 1 };
                let text = record.ret.as_ref().and_then(Value::as_str).unwrap_or("not updated").to_owned();
                settle(Input::Return(own.jid, verdict), &text)
            }
            (StepState::Interrupted, _) if self.is_being_stopped(going).await? => {
                settle(Input::Stopped, "it was killed on the minion")
            }
            (StepState::Interrupted, _) => {
                settle(Input::Gone, "it was interrupted: the machine or the agent went down while it ran")
            }
            (StepState::Cancelled, _) => settle(Input::Cancel, "the launch was cancelled"),
            // Why it was skipped is known when the chunk is at its end.
            (StepState::Skipped, _) => return Ok(()),
        };
        let outcomes = self.store.transit(vec![news]).await?;
        if let [outcome] = outcomes.as_slice() {
            self.consequences(own.action, minion, outcome, at);
        }
        going.note_ended(minion, step.number);
        Ok(())
    }

    async fn is_being_stopped(&self, going: &Going) -> Result<bool, Error> {
        Ok(self.store.launch(going.id).await?.is_some_and(|launch| launch.stopped))
    }

    /// The result of a step, as a return of its own job.
    async fn step_returned(
        self: &Arc<Self>,
        going: &Going,
        minion: &MinionId,
        step: &PlanStep,
        record: &Record,
        at: Timestamp,
        settles: bool,
    ) -> Result<(), Error> {
        let Some(own) = going.step(step.number) else { return Ok(()) };
        let success = matches!(record.state, StepState::Done | StepState::Started);
        let call = Call { funs: Vec::new(), arg: step.arg.clone(), kwarg: step.kwarg.clone() };
        let load = Value::map([
            ("id", Value::from(minion)),
            ("fun", step.fun.as_str().into()),
            ("fun_args", Value::List(arguments(call))),
            ("return", record.ret.clone().unwrap_or(Value::Nil)),
            ("retcode", record.retcode.into()),
            ("success", success.into()),
        ]);
        let new = NewReturn {
            jid: own.jid,
            action: Some(own.action),
            standalone: None,
            minion: minion.clone(),
            at,
            fun: own.fun.clone(),
            verdict: Verdict { success, retcode: record.retcode },
            settles,
            stopped: false,
            body: Arc::new(body::pack(&self.kept_load(load, own.jid, at))),
            tag: event::tag::job_ret(own.jid, minion),
            events: Vec::new(),
        };
        let recorded = self.store.record_return(new).await?;
        if let Some(outcome) = &recorded.outcome {
            self.consequences(own.action, minion, outcome, at);
        }
        Ok(())
    }

    /// It is asked again where it stands: soon, then less and less often, and not for ever.
    async fn ask_again(
        self: &Arc<Self>,
        going: &Arc<Going>,
        row: &LaunchMinion,
        why: &str,
        at: Timestamp,
    ) -> Result<(), Error> {
        if row.asked >= MOST_TRIES {
            return self.refuse_chunk(going, row, why, at).await;
        }
        let asked = row.asked + 1;
        let to = MinionMove { since: later(asked, at), asked, ..stays(row, MinionState::Restarting) };
        self.move_row(going, to).await.map(drop)
    }

    /// The minion's module says that it cannot.
    async fn hear_error(
        self: &Arc<Self>,
        going: &Arc<Going>,
        row: &LaunchMinion,
        errand: Errand,
        word: &str,
        other: Option<&str>,
        reason: &str,
    ) -> Result<(), Error> {
        let at = clock::now();
        match word {
            // Its own chunk before, or one that is known as past: where does it stand?
            "not_yet" | "past" => {
                self.ask_again(going, row, &format!("the minion is at another chunk ({word})"), at).await
            }
            "busy" => self.hear_busy(going, row, other, at).await,
            "cancelled" => {
                let plan = self.plan_of(going, &row.plan).await?;
                self.end_part(going, &plan, row, End::Cancelled, None, at).await
            }
            _ if errand != Errand::Start && row.asked < MOST_TRIES => self.ask_again(going, row, reason, at).await,
            _ => {
                let hint = if word == "damaged" { "; `saltern chain clear --force` puts it aside" } else { "" };
                let text = format!("the minion cannot keep track of a chain ({word}): {reason}{hint}");
                self.refuse_chunk(going, row, &text, at).await
            }
        }
    }

    /// Another chain is under way there according to its store. What is over here is cleared there; anything else is waited for.
    async fn hear_busy(
        self: &Arc<Self>,
        going: &Arc<Going>,
        row: &LaunchMinion,
        other: Option<&str>,
        at: Timestamp,
    ) -> Result<(), Error> {
        let key = other.and_then(Jid::parse);
        let known = match key {
            Some(key) => self.store.launch_of_key(key, &row.minion).await?,
            None => None,
        };
        let message = match (&known, other) {
            (Some(other), _) if other.state == MinionState::Ended => {
                if let Some(key) = key {
                    self.abandon(key, std::slice::from_ref(&row.minion));
                }
                format!("launch {} is being cleared from the minion", other.launch)
            }
            (Some(other), _) => format!("launch {} is under way on the minion", other.launch),
            (None, Some(other)) => format!(
                "the minion is at chain {other}, which this server does not know; `saltern chain clear {} --force` ends that",
                row.minion
            ),
            (None, None) => "the minion is at another chain".into(),
        };
        let to = MinionMove { since: at.plus(BUSY), message: Some(message), ..stays(row, MinionState::Waiting) };
        self.move_row(going, to).await.map(drop)
    }

    /// A return that is none: the module is not there, or something broke.
    async fn hear_nonsense(
        self: &Arc<Self>,
        going: &Arc<Going>,
        member: &Arc<Member>,
        row: &LaunchMinion,
        text: &str,
    ) -> Result<(), Error> {
        let at = clock::now();
        let is_missing = text.contains("is not available") && text.contains("saltern_chain");
        if is_missing && row.asked < MOST_TRIES {
            self.chain_module_lost(member);
            // A chunk that the minion cannot even read has not begun; and where it stands it cannot say without its module.
            let to = if row.state == MinionState::Sent { MinionState::Waiting } else { MinionState::Restarting };
            let asked = row.asked + 1;
            let to = MinionMove { since: later(asked, at), asked, ..stays(row, to) };
            return self.move_row(going, to).await.map(drop);
        }
        if text.starts_with("ERROR: interrupted") {
            return self.ask_again(going, row, text, at).await;
        }
        self.refuse_chunk(going, row, text, at).await
    }

    /// The chunk could not even begin: its first open step fails with what was said.
    async fn refuse_chunk(
        self: &Arc<Self>,
        going: &Arc<Going>,
        row: &LaunchMinion,
        text: &str,
        at: Timestamp,
    ) -> Result<(), Error> {
        let plan = self.plan_of(going, &row.plan).await?;
        let text: String = text.chars().take(2_000).collect();
        let chunk = plan.chunk(number_of(row));
        let mut first = None;
        for step in chunk.into_iter().flat_map(|chunk| &chunk.steps) {
            let Some(own) = going.step(step.number) else { continue };
            let run = self.store.run(own.action, &row.minion).await?;
            if run.is_some_and(|run| !run.state.is_terminal()) {
                first = Some((step.number, own.jid));
                break;
            }
        }
        match first {
            Some((number, jid)) => {
                let input = Input::Return(jid, Verdict { success: false, retcode: 1 });
                self.fail_part(going, &plan, row, number, input, &text, at).await
            }
            None => self.end_part(going, &plan, row, End::Failed, None, at).await,
        }
    }
}

/// When to try again, the how-manieth time.
fn later(tries: i64, at: Timestamp) -> Timestamp {
    let doublings = u32::try_from(tries.saturating_sub(2)).unwrap_or(0).min(6);
    if tries <= 1 { at } else { at.plus(Duration::from_secs(1 << doublings)) }
}

/// The step of this id in a chunk.
fn find<'a>(plan: &'a Plan, chunk: u32, id: &str) -> Option<&'a PlanStep> {
    plan.chunk(usize::try_from(chunk).ok()?)?.steps.iter().find(|step| step.id == id)
}

/// The step of an answer that failed or was interrupted.
fn culprit(plan: &Plan, answer: &Answer) -> Option<usize> {
    let is_bad = |record: &Record| matches!(record.state, StepState::Failed | StepState::Interrupted);
    let (id, _) = answer.steps.iter().find(|(_, record)| is_bad(record))?;
    find(plan, answer.chunk, id).map(|step| step.number)
}

/// The step of an answer that is under way.
fn under_way(plan: &Plan, answer: &Answer) -> Option<usize> {
    let (id, _) = answer.steps.iter().find(|(_, record)| record.state == StepState::Started)?;
    find(plan, answer.chunk, id).map(|step| step.number)
}

/// What is to be said of the failure that keeps other steps from running: of this chunk, or of one before.
fn failure(going: &Going, plan: &Plan, row: &LaunchMinion, answer: Option<&Answer>) -> Option<String> {
    let here = || Some(format!("{} failed", going.name(culprit(plan, answer?)?)));
    row.message.clone().filter(|_| row.failed).or_else(here)
}

/// How a step ends that is not run: because it is for failures and there was none, or because there was one.
fn left_out<'a>(step: &PlanStep, has_failed: bool, why: &'a str) -> (Input, &'a str) {
    if step.after == After::Failed && !has_failed {
        (Input::NotNeeded, "nothing before it has failed")
    } else {
        (Input::Prerequisite, why)
    }
}

/// The steps that were left out of a chunk after which the launch goes on, and of chunks of which nothing is to be done.
fn skipped(
    going: &Going,
    plan: &Plan,
    row: &LaunchMinion,
    answer: &Answer,
    next: usize,
    at: Timestamp,
) -> Vec<Transition> {
    let why = failure(going, plan, row, Some(answer));
    let (has_failed, why) = (why.is_some(), why.unwrap_or_default());
    let left = answer.steps.iter().filter(|(_, record)| record.state == StepState::Skipped);
    let left = left.filter_map(|(id, _)| find(plan, answer.chunk, id));
    let passed = (number_of(row) + 1..next).filter_map(|chunk| plan.chunk(chunk)).flat_map(|chunk| &chunk.steps);
    let end = |step: &PlanStep| {
        let own = going.step(step.number)?;
        let (input, message) = left_out(step, has_failed, &why);
        Some(Transition { message: Some(message.to_owned()), ..transition(own.action, &row.minion, input, at) })
    };
    left.chain(passed).filter_map(end).collect()
}

/// The steps that are not to begin any more, each once. Those that have ended are not changed by what is said of them.
fn rest<'a>(plan: &'a Plan, row: &LaunchMinion, culprit: Option<usize>) -> Vec<&'a PlanStep> {
    let from = number_of(row).saturating_sub(1);
    let mut seen = BTreeSet::new();
    let steps = plan.chunks.iter().skip(from).flat_map(|chunk| &chunk.steps);
    steps.filter(|step| Some(step.number) != culprit && seen.insert(step.number)).collect()
}

/// When something happened that a minion tells: now, or when it says if that is a while ago; never before the launch was due.
fn when(told: Option<Timestamp>, due: Timestamp, now: Timestamp) -> Timestamp {
    match told {
        Some(told) if now.since(told) > NEWS => told.max(due).min(now),
        _ => now,
    }
}
