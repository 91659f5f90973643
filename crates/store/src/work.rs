//! How work comes in and goes out: an action is created with its runs, and queued runs are claimed to be sent.
//!
//! Action, job, runs and the events that tell of them are one transaction, before anything is published: what was accepted
//! survives whatever happens next, and what was claimed and not published is found as `sent` at the next start.

use crate::actions::{self, NewAction};
use crate::audit::AuditEntry;
use crate::counts::Counts;
use crate::db::{Effects, Locking, Operation, Tx, locking, params};
use crate::events::NewEvent;
use crate::fires::{self, FireSlot};
use crate::jobs::{self, NewJob};
use crate::{Error, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{RunState, WaitingFor};
use saltern_core::time::Timestamp;

/// An action to be stored with all that belongs to it.
pub struct NewWork {
    /// What was asked for
    pub action: NewAction,
    /// The job to publish at once, if any of it is
    pub job: Option<NewJob>,
    /// Its runs
    pub runs: Vec<NewRun>,
    /// The events to log with it; they may name the action
    pub events: Box<dyn Fn(ActionId) -> Vec<NewEvent> + Send>,
    /// The audit entry to add with it
    pub audit: Option<AuditEntry>,
    /// The instant of a recurring action that is accounted for with it
    pub fire: Option<FireSlot>,
}

/// A run to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// On which minion
    pub minion: MinionId,
    /// [`RunState::Sent`] if it is published with the action's job, [`RunState::Queued`] if it waits
    pub state: RunState,
    /// What it waits for
    pub waiting_for: Option<WaitingFor>,
    /// When it may be taken; nothing: not before it is released
    pub due: Option<Timestamp>,
}

/// Queued runs to be taken, to publish them under one job id.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Of which action
    pub action: ActionId,
    /// The job they are published with
    pub jid: Jid,
    /// The job to be stored with the claim, if it is new
    pub job: Option<NewJob>,
    /// Whether it is the job of the action's first attempts
    pub is_first: bool,
    /// Whose runs
    pub minions: Vec<MinionId>,
    /// Now
    pub at: Timestamp,
    /// Events to log if any run was taken
    pub events: Vec<NewEvent>,
}

const INSERT: &str = "INSERT INTO runs (action, minion, state, waiting_for, due, attempt, deliveries, jid, sent, late) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, 0)";
const MAY_START: Locking = locking!("SELECT 1 FROM actions WHERE id = ?1 AND paused IS NULL AND deleting = 0");
// What `step` says to a claim, for many at once: what was sent goes out again under its own job id and is another delivery,
// what was not is another attempt under an id of its own.
const CLAIM: &str = "UPDATE runs SET state = 'sent', reason = NULL, waiting_for = NULL, due = NULL, message = NULL, \
    attempt = CASE WHEN deliveries > 0 THEN attempt ELSE attempt + 1 END, deliveries = deliveries + 1, \
    jid = ?3, sent = ?4, picked_up = NULL, retcode = NULL \
    WHERE action = ?1 AND minion = ?2 AND state = 'queued' AND due <= ?4 \
    AND CASE WHEN deliveries > 0 THEN coalesce(jid, '') = ?3 ELSE coalesce(jid, '') <> ?3 END";
const FIRST_JOB: &str = "UPDATE actions SET jid = ?2 WHERE id = ?1 AND jid IS NULL";
const COPY_ACTION: &str = "SELECT fun, arg, target, target_type, initiator, internal FROM actions WHERE id = ?1";

impl Operation for NewWork {
    type Output = ActionId;
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<ActionId>> {
        Box::pin(async move {
            let may_be = |run: &NewRun| match run.state {
                RunState::Queued => true,
                RunState::Sent => self.job.is_some(),
                RunState::PickedUp | RunState::Completed | RunState::Failed | RunState::Cancelled => false,
            };
            if !self.runs.iter().all(may_be) {
                return Err(Error::Invalid("a new run is queued, or sent with a job"));
            }
            let mut counts = Counts::default();
            self.runs.iter().for_each(|run| counts += Counts::of(run.state, None));
            let jid = self.job.as_ref().map(|job| job.jid);
            let created = self.action.created;
            let action = actions::insert(tx, &self.action, jid, counts, created).await?;
            if let Some(job) = &self.job {
                jobs::insert(tx, action, created, job, &jobs::Copied::from(&self.action)).await?;
            }
            let row = |run: &NewRun| {
                let is_sent = run.state == RunState::Sent;
                let (jid, sent) = (jid.filter(|_| is_sent), is_sent.then_some(created));
                let waiting_for = run.waiting_for.map(WaitingFor::as_str);
                params![action, &run.minion, run.state.as_str(), waiting_for, run.due, is_sent, jid, sent]
            };
            tx.execute_many(INSERT, self.runs.iter().map(row).collect()).await?;
            if let Some(slot) = &self.fire {
                fires::fired(tx, slot, fires::Work::Action(action), self.runs.len(), created).await?;
            }
            effects.audit(&self.audit);
            effects.log(&(self.events)(action));
            Ok(action)
        })
    }
}

impl Operation for Claim {
    type Output = Vec<MinionId>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Vec<MinionId>>> {
        Box::pin(async move {
            if tx.query_locking(&MAY_START, params![self.action]).await?.is_empty() {
                return Ok(Vec::new());
            }
            let row = |minion| params![self.action, minion, self.jid, self.at];
            let changed = tx.execute_many(CLAIM, self.minions.iter().map(row).collect()).await?;
            let claimed = self.minions.iter().zip(changed).filter(|(_, changed)| *changed > 0);
            let claimed: Vec<MinionId> = claimed.map(|(minion, _)| minion.clone()).collect();
            if claimed.is_empty() {
                return Ok(claimed);
            }
            for _ in &claimed {
                effects.moved(self.action, (RunState::Queued, None), (RunState::Sent, None), self.at);
            }
            if let Some(job) = &self.job
                && let Some(row) = tx.query(COPY_ACTION, params![self.action]).await?.into_iter().next()
            {
                jobs::insert(tx, self.action, self.at, job, &jobs::Copied::read(row)?).await?;
            }
            if self.is_first {
                tx.execute(FIRST_JOB, params![self.action, self.jid]).await?;
            }
            effects.log(&self.events);
            Ok(claimed)
        })
    }
}

impl Store {
    /// Stores an action with its job and runs; returns its id after the commit. [`Error::JidTaken`]: there is such a
    /// job already, and nothing was stored. [`Error::FireTaken`]: somebody else has accounted for that instant, likewise.
    pub async fn create(&self, work: NewWork) -> Result<ActionId> {
        self.write(work).await
    }

    /// Takes those of the runs that are queued, due, and not of a paused action; tells which. The job is stored only if any
    /// was taken. [`Error::JidTaken`]: there is such a job already, and nothing was taken.
    pub async fn claim(&self, claim: Claim) -> Result<Vec<MinionId>> {
        self.write(claim).await
    }
}
