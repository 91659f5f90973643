//! What people do to a launch: cancel it, stop it, say yes to a step; and what they do to a minion that kept a stale one.

use super::super::dispatch::transition;
use super::super::lock;
use super::super::silence::Question;
use super::Errand;
use super::book::Going;
use super::carry::{is_between, number_of, stays};
use crate::app::Caller;
use crate::engine::Request;
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::ids::{LaunchId, MinionId};
use saltern_core::run::Input;
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{Launch, LaunchMinion, MinionMove, MinionState, Transition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What is to be done with a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchVerb {
    /// Nothing more begins; what runs is finished
    Cancel,
    /// Nothing more begins, and what runs is killed
    Stop,
    /// A step that waits for somebody's yes has it
    Approve {
        /// Which one, from 1
        step: usize,
    },
}

/// How long minions are waited for that were told to clear something.
const PATIENCE: Duration = Duration::from_secs(10);

/// More runs than any step has.
const MOST_BEGUN: usize = 1_000_000;

/// What was done.
#[derive(Clone, Debug)]
pub struct LaunchDone {
    /// With which launch
    pub launch: LaunchId,
    /// What
    pub note: String,
}

impl LaunchVerb {
    /// The word for it, in the audit log too.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Stop => "stop",
            Self::Approve { .. } => "approve",
        }
    }
}

impl Master {
    /// Does something with a launch.
    pub(crate) async fn act_on_launch(
        self: &Arc<Self>,
        caller: &Caller,
        launch: &Launch,
        verb: &LaunchVerb,
    ) -> Result<LaunchDone, Error> {
        if launch.ended.is_some() {
            return Err(Error::Conflict(format!("launch {} has ended", launch.id)));
        }
        match verb {
            LaunchVerb::Cancel => self.cancel_launch(caller, launch, false).await,
            LaunchVerb::Stop => self.cancel_launch(caller, launch, true).await,
            LaunchVerb::Approve { step } => self.approve_step(caller, launch, *step).await,
        }
    }

    async fn cancel_launch(
        self: &Arc<Self>,
        caller: &Caller,
        launch: &Launch,
        stop: bool,
    ) -> Result<LaunchDone, Error> {
        let at = clock::now();
        let word = if stop { "stopped" } else { "cancelled" };
        let audit = caller.audit(
            &format!("chain.{}", if stop { "stop" } else { "cancel" }),
            &launch.id.to_string(),
            serde_json::json!({ "name": launch.name }),
        );
        let message = format!("{word} by {}", caller.who);
        let mut between = self.rows(launch.id, MinionState::Waiting).await?;
        between.retain(is_between);
        let cancelled = self
            .store
            .cancel_launch(launch.id, at, caller.who.clone(), stop, Some(audit), Some(message.clone()))
            .await?;
        let Some(cancelled) = cancelled else {
            return Err(Error::Conflict(format!("launch {} has ended", launch.id)));
        };
        let Some(going) = self.going(launch.id).await? else {
            return Err(Error::NotFound(format!("there is no launch {}", launch.id)));
        };
        // Whoever is at it is told at once; whoever is away hears of it when he is back, before anything else.
        let mut rows = self.rows(launch.id, MinionState::Sent).await?;
        rows.extend(self.rows(launch.id, MinionState::Restarting).await?);
        rows.extend(self.rows(launch.id, MinionState::Asking).await?);
        let there = |row: &LaunchMinion| self.is_reachable(&row.minion);
        self.cancel_later_chunks(&going, &rows, &message, at).await?;
        self.end_begun(&going, &cancelled.minions, at).await?;
        let keeps = between.iter().filter(|row| cancelled.minions.binary_search(&row.minion).is_ok());
        keeps.for_each(|row| self.tidy_later(&going, &row.minion));
        let (busy, away): (Vec<_>, Vec<_>) = rows.into_iter().partition(there);
        self.leave_alone(&away, at).await?;
        let told = busy.len();
        if stop {
            self.ask_chunk(&going, Errand::Stop, &busy).await?;
        } else if !busy.is_empty() {
            let target = Target::list(busy.iter().map(|row| row.minion.as_str()));
            let request = Request::house(target, Errand::Cancel.function(), vec![going.key.to_string().into()]);
            self.submit(request).await?;
        }
        self.engine.chains.wake(launch.id);
        self.engine.chains.minion_is_free();
        let note = match (told, stop) {
            (0, _) => format!("{word}: nothing of it runs"),
            (told, false) => format!("{word}: {told} minions finish the step they are at and begin no other"),
            (told, true) => format!("{word}: {told} minions were told to kill what they are at"),
        };
        Ok(LaunchDone { launch: launch.id, note })
    }

    /// What was begun on minions that have ended with the launch and is told no more of, nobody knows the end of: an update whose
    /// check was not made.
    async fn end_begun(&self, going: &Going, ended: &[MinionId], at: Timestamp) -> Result<(), Error> {
        let ended: BTreeSet<&MinionId> = ended.iter().collect();
        let mut transitions = Vec::new();
        for step in &going.steps {
            let begun = self.store.runs_begun_before(step.action, at, MOST_BEGUN).await?;
            for run in begun.into_iter().filter(|run| ended.contains(&run.minion)) {
                let message = Some("the launch was cancelled before it was known how it ended".to_owned());
                transitions.push(Transition { message, ..transition(step.action, &run.minion, Input::Gone, at) });
            }
        }
        if !transitions.is_empty() {
            self.store.transit(transitions).await?;
        }
        Ok(())
    }

    /// Chunks that were not sent to a minion never will be. Of the one that it is at it tells itself.
    async fn cancel_later_chunks(
        &self,
        going: &Going,
        rows: &[LaunchMinion],
        message: &str,
        at: Timestamp,
    ) -> Result<(), Error> {
        let mut transitions = Vec::new();
        for row in rows {
            let plan = self.plan_of(going, &row.plan).await?;
            let now = number_of(row);
            // The check of an update is in the chunk after it, and the update itself is under way.
            let here: BTreeSet<usize> =
                plan.chunk(now).into_iter().flat_map(|chunk| &chunk.steps).map(|step| step.number).collect();
            let later = plan.chunks.iter().skip(now).flat_map(|chunk| &chunk.steps);
            for step in later.filter(|step| !here.contains(&step.number)) {
                let Some(own) = going.step(step.number) else { continue };
                let message = Some(message.to_owned());
                transitions.push(Transition { message, ..transition(own.action, &row.minion, Input::Cancel, at) });
            }
        }
        if !transitions.is_empty() {
            self.store.transit(transitions).await?;
        }
        Ok(())
    }

    /// What is on its way to minions that are away is not sent again: they are asked when they are back.
    async fn leave_alone(&self, away: &[LaunchMinion], at: Timestamp) -> Result<(), Error> {
        let moves = away.iter().map(|row| MinionMove {
            since: at,
            transitions: row
                .carrier
                .map(|carrier| transition(carrier, &row.minion, Input::Fail, at))
                .into_iter()
                .collect(),
            ..stays(row, MinionState::Restarting)
        });
        self.store.move_minions(moves.collect()).await?;
        for row in away {
            if let Some(carrier) = row.carrier {
                self.engine.ended(carrier, &row.minion, at);
            }
        }
        Ok(())
    }

    async fn approve_step(
        self: &Arc<Self>,
        caller: &Caller,
        launch: &Launch,
        number: usize,
    ) -> Result<LaunchDone, Error> {
        let Some(going) = self.going(launch.id).await? else {
            return Err(Error::NotFound(format!("there is no launch {}", launch.id)));
        };
        let Some(step) = going.step(number) else {
            return Err(Error::NotFound(format!("launch {} has no step {number}", launch.id)));
        };
        if step.step.approval.is_none() {
            return Err(Error::Invalid(format!("step {number} of launch {} waits for nobody's yes", launch.id)));
        }
        let audit = caller.audit("chain.approve", &launch.id.to_string(), serde_json::json!({ "step": number }));
        let at = i64::try_from(number).unwrap_or(i64::MAX);
        let news = self.store.approve(launch.id, at, caller.who.clone(), clock::now(), audit).await?;
        self.engine.chains.wake(launch.id);
        let note =
            if news { format!("step {number} is approved") } else { format!("step {number} was approved already") };
        Ok(LaunchDone { launch: launch.id, note })
    }

    /// Clears what minions keep of chains; with force, also of one that has not ended there. What each says, as far as it says
    /// something within a moment.
    pub(crate) async fn clear_chains(
        self: &Arc<Self>,
        minions: &[MinionId],
        force: bool,
    ) -> Result<BTreeMap<MinionId, String>, Error> {
        let there: Vec<&MinionId> = minions.iter().filter(|minion| self.is_reachable(minion)).collect();
        let mut said: BTreeMap<MinionId, String> =
            minions.iter().map(|minion| (minion.clone(), "it is not connected".into())).collect();
        if there.is_empty() {
            return Ok(said);
        }
        said.extend(there.iter().map(|minion| ((*minion).clone(), "it has not answered".into())));
        let target = Target::list(there.iter().map(|minion| minion.as_str()));
        let request = Request::house(target, "saltern_chain.clear", vec![Value::Nil, force.into()]);
        let (tell, mut told) = tokio::sync::mpsc::channel(there.len());
        let question = self.submit_question(request, Question::Clear(tell)).await?;
        let until = tokio::time::Instant::now() + PATIENCE;
        for _ in &there {
            let Ok(Some((minion, answer))) = tokio::time::timeout_at(until, told.recv()).await else { break };
            said.insert(minion, cleared(&answer));
        }
        lock(&self.engine.questions).remove(&question);
        Ok(said)
    }
}

/// What a minion says that it has cleared.
fn cleared(answer: &Value) -> String {
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match (answer.get("error").and_then(Value::as_str), answer.get("cleared")) {
        (Some("open"), _) => format!("launch {} is under way there; force ends that", text("launch")),
        (Some(word), _) => format!("{word}: {}", text("reason")),
        (None, Some(Value::Text(launch))) => format!("cleared launch {launch}"),
        (None, Some(_)) if !text("kept").is_empty() => format!("put aside as {}", text("kept")),
        (None, Some(_)) => "there was nothing to clear".into(),
        (None, None) => answer.as_str().unwrap_or("it said nothing that makes sense").chars().take(500).collect(),
    }
}
