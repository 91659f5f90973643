//! What people do with actions that are there: cancel, stop, retry, fail, pause, move, archive, delete.
//!
//! Each is one transaction and tells, per minion, what it did. Cancel is decided against claim by compare-and-set in the
//! store: what was sent is not cancelled, and the answer says so; stopping what runs is another verb.

use crate::app::Caller;
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{Input, Refusal, RunState};
use saltern_core::time::Timestamp;
use saltern_store::{Action, AuditEntry, Deleted, Paused};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What is to be done with an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// What was not sent yet never starts
    Cancel,
    /// What was not sent never starts, and what runs is killed on its minion
    Stop,
    /// What has ended is done again, with a new attempt
    Retry {
        /// Only what failed
        only_failed: bool,
    },
    /// What is open is declared failed
    Fail {
        /// Why
        message: String,
    },
    /// Nothing more is started
    Pause,
    /// What was paused goes on
    Resume,
    /// What was not sent yet is due then
    Reschedule {
        /// The new due time
        due: Timestamp,
        /// How long after it everything ends; nothing: as configured
        deadline: Option<Duration>,
    },
    /// It leaves the lists
    Archive,
    /// It comes back to the lists
    Unarchive,
    /// It is removed with everything that came of it; only what is archived and has ended
    Delete,
}

/// What a verb did.
#[derive(Clone, Debug)]
pub struct Done {
    /// With which action
    pub action: ActionId,
    /// What became of each minion's run: a word, or why not
    pub minions: BTreeMap<MinionId, &'static str>,
    /// What was done with the action as a whole
    pub note: String,
}

/// Rows removed in one step of a deletion.
const DELETE_STEP: usize = 2_000;

impl Verb {
    /// Whether it is for an action as a whole, and cannot be for some of its minions.
    pub const fn is_for_the_whole(&self) -> bool {
        matches!(
            self,
            Self::Pause | Self::Resume | Self::Reschedule { .. } | Self::Archive | Self::Unarchive | Self::Delete
        )
    }

    /// The word for it, in the audit log too.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Stop => "stop",
            Self::Retry { .. } => "retry",
            Self::Fail { .. } => "fail",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Reschedule { .. } => "reschedule",
            Self::Archive => "archive",
            Self::Unarchive => "unarchive",
            Self::Delete => "delete",
        }
    }
}

impl Master {
    /// Does something with an action. `minions`: only with these.
    pub(crate) async fn act(
        self: &Arc<Self>,
        caller: &Caller,
        action: &Action,
        minions: Option<Vec<MinionId>>,
        verb: &Verb,
    ) -> Result<Done, Error> {
        let now = clock::now();
        let id = action.id;
        let detail = serde_json::json!({ "minions": minions.as_ref().map(Vec::len) });
        let audit = Some(caller.audit(&format!("action.{}", verb.word()), &id.to_string(), detail));
        let whole = |note: String| Done { action: id, minions: BTreeMap::new(), note };
        if minions.is_some() && verb.is_for_the_whole() {
            return Err(Error::Invalid(format!("{} is for the whole action, not for some minions", verb.word())));
        }
        let by = format!("by {}", caller.who);
        match verb {
            Verb::Cancel => {
                let done =
                    self.apply(action, minions, false, Input::Cancel, Some(format!("cancelled {by}")), None, audit);
                done.await
            }
            Verb::Stop => self.stop_runs(action, minions, &by, audit).await,
            Verb::Fail { message } => {
                self.apply(action, minions, false, Input::Fail, Some(message.clone()), None, audit).await
            }
            Verb::Retry { only_failed } => {
                let deadline = now.plus(action.new.deadline.since(action.new.due).max(Duration::from_secs(60)));
                let done = self.apply(action, minions, *only_failed, Input::Retry, None, Some(deadline), audit).await?;
                self.engine.wake(id);
                Ok(done)
            }
            Verb::Pause => {
                let pause = Paused { at: now, by: caller.who.clone(), why: String::new() };
                let news = self.store.pause(id, pause, audit).await?;
                self.engine.wake(id);
                Ok(whole(if news { "paused: nothing more is started".into() } else { "was paused already".into() }))
            }
            Verb::Resume => {
                let news = self.store.resume(id, now, audit).await?;
                self.engine.wake(id);
                Ok(whole(if news { "goes on".into() } else { "was not paused".into() }))
            }
            Verb::Reschedule { due, deadline } => {
                let deadline = (*due).max(now).plus(deadline.unwrap_or(self.config.job_deadline));
                let moved = self.store.reschedule(id, *due, deadline, now, audit).await?;
                self.engine.wake(id);
                Ok(whole(format!("{moved} runs are due {}", due.rfc3339())))
            }
            Verb::Archive => {
                let news = self.store.archive(id, Some(now), audit).await?;
                Ok(whole(if news { "archived".into() } else { "was archived already".into() }))
            }
            Verb::Unarchive => {
                let news = self.store.archive(id, None, audit).await?;
                Ok(whole(if news { "back in the lists".into() } else { "was not archived".into() }))
            }
            Verb::Delete => {
                self.delete(action).await?;
                if let Some(audit) = audit {
                    self.store.record_audit(audit).await?;
                }
                Ok(whole("deleted".into()))
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one request to the store")]
    async fn apply(
        self: &Arc<Self>,
        action: &Action,
        minions: Option<Vec<MinionId>>,
        only_failed: bool,
        input: Input,
        message: Option<String>,
        deadline: Option<Timestamp>,
        audit: Option<AuditEntry>,
    ) -> Result<Done, Error> {
        let at = clock::now();
        let (id, named) = (action.id, minions.clone());
        let verb = saltern_store::Verb { action: id, minions, only_failed, input, at, message, deadline, audit };
        let outcomes = self.store.apply(verb).await?;
        let mut done = BTreeMap::new();
        for (minion, outcome) in outcomes {
            let word = match outcome {
                Ok(state) => {
                    if state.is_terminal() {
                        self.engine.ended(id, &minion, at);
                    }
                    state.as_str()
                }
                Err(Refusal::Sent) => "too late: it was sent",
                Err(Refusal::Ended) => "has ended",
                Err(Refusal::Open) => "has not ended",
            };
            done.insert(minion, word);
        }
        for minion in named.into_iter().flatten() {
            done.entry(minion).or_insert("is not part of it");
        }
        let changed = done.values().filter(|word| RunState::parse(word).is_some()).count();
        Ok(Done { action: id, note: format!("{changed} of {} runs changed", done.len()), minions: done })
    }

    /// Cancels what was not sent and has the rest killed. What becomes of the killed ones is told by their minions.
    async fn stop_runs(
        self: &Arc<Self>,
        action: &Action,
        minions: Option<Vec<MinionId>>,
        by: &str,
        audit: Option<AuditEntry>,
    ) -> Result<Done, Error> {
        let message = Some(format!("stopped {by}"));
        let mut done = self.apply(action, minions, false, Input::Cancel, message, None, audit).await?;
        let mut kill: BTreeMap<Jid, BTreeSet<MinionId>> = BTreeMap::new();
        {
            let mut tracker = self.engine.tracker();
            for (minion, word) in done.minions.iter_mut().filter(|(_, word)| word.starts_with("too late")) {
                if let Some(run) = tracker.get_mut(action.id, minion) {
                    run.stopping = true;
                    kill.entry(run.jid).or_default().insert(minion.clone());
                    *word = "told to stop";
                }
            }
        }
        let told: usize = kill.values().map(BTreeSet::len).sum();
        for (jid, minions) in kill {
            self.kill(minions, action.id, jid);
        }
        done.note = format!("{}, {told} were told to stop", done.note);
        Ok(done)
    }

    async fn delete(&self, action: &Action) -> Result<(), Error> {
        if action.archived.is_none() || action.ended.is_none() {
            let open = if action.ended.is_none() { "it has not ended" } else { "it is not archived" };
            return Err(Error::Conflict(format!("action {} cannot be deleted: {open}; archive it first", action.id)));
        }
        loop {
            match self.store.delete_action(action.id, DELETE_STEP).await? {
                Deleted::More => {}
                Deleted::Gone => return Ok(()),
                Deleted::NotArchived | Deleted::Open | Deleted::NotFound => {
                    return Err(Error::Conflict(format!("action {} was changed meanwhile", action.id)));
                }
            }
        }
    }
}
