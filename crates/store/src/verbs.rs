//! What people, and the rules they gave, do to whole actions: cancel, retry, pause, move, put away.

use crate::actions::{self, Paused};
use crate::audit::AuditEntry;
use crate::db::{Effects, Locking, Operation, Param, Row, Tx, locking, params};
use crate::runs::{self, Run, columns};
use crate::transit::{self, Cause, Told};
use crate::{Result, Store};
use futures_util::future::{LocalBoxFuture, try_join_all};
use saltern_core::ids::{ActionId, MinionId};
use saltern_core::run::{Input, Outcome, Refusal, RunState, WaitingFor, step};
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;

/// Something done to many runs of an action at once.
#[derive(Clone, Debug)]
pub struct Verb {
    /// Which action
    pub action: ActionId,
    /// Only its runs on these minions; nothing: all
    pub minions: Option<Vec<MinionId>>,
    /// Only those that failed
    pub only_failed: bool,
    /// What is done: [`Input::Cancel`], [`Input::Fail`], [`Input::Retry`], [`Input::Budget`], [`Input::Deadline`] or
    /// [`Input::Prerequisite`]
    pub input: Input,
    /// When
    pub at: Timestamp,
    /// What to say about it
    pub message: Option<String>,
    /// The new deadline of the action, if any run was changed: what is tried again needs time
    pub deadline: Option<Timestamp>,
    /// The audit entry to add with it
    pub audit: Option<AuditEntry>,
}

const RULES: Locking = locking!("SELECT policy, internal FROM actions WHERE id = ?1 AND deleting = 0");
const ALL: Locking = locking!(concat!("SELECT ", columns!(), " FROM runs r WHERE r.action = ?1 ORDER BY r.minion"));
const OPEN: Locking =
    locking!(concat!("SELECT ", columns!(), " FROM runs r WHERE r.action = ?1 AND r.ended IS NULL ORDER BY r.minion"));
const ONE: Locking = locking!(concat!("SELECT ", columns!(), " FROM runs r WHERE r.action = ?1 AND r.minion = ?2"));
const MOVE_DEADLINE: &str = "UPDATE actions SET deadline = ?2 WHERE id = ?1";

const PAUSE: &str = "UPDATE actions SET paused = ?2, paused_by = ?3, paused_why = ?4 \
    WHERE id = ?1 AND paused IS NULL AND ended IS NULL";
const RESUME: &str = "UPDATE actions SET paused = NULL, paused_by = NULL, paused_why = NULL \
    WHERE id = ?1 AND paused IS NOT NULL";
// What was due while it was held is due now; what is due later still is.
const RESUME_RUNS: &str = "UPDATE runs SET waiting_for = 'due', due = CASE WHEN due > ?2 THEN due ELSE ?2 END \
    WHERE action = ?1 AND state = 'queued' AND waiting_for = 'paused'";
const RESCHEDULE: &str = "UPDATE actions SET due = ?2, deadline = ?3 WHERE id = ?1 AND ended IS NULL";
// What somebody else has to release first stays so; a minion that comes back too early releases nothing, its run has a new
// time to wait for.
const RESCHEDULE_RUNS: &str = "UPDATE runs SET due = ?2, \
    waiting_for = CASE WHEN ?2 > CAST(?3 AS BIGINT) AND coalesce(waiting_for, '') <> 'paused' THEN 'due' ELSE waiting_for END \
    WHERE action = ?1 AND state = 'queued' AND deliveries = 0 \
    AND (due IS NOT NULL OR coalesce(waiting_for, 'offline') = 'offline')";
const ARCHIVE: &str = "UPDATE actions SET archived = ?2 WHERE id = ?1 AND archived IS NULL AND deleting = 0";
const UNARCHIVE: &str = "UPDATE actions SET archived = NULL WHERE id = ?1 AND archived IS NOT NULL AND deleting = 0";
const RELEASE: &str = "UPDATE runs SET due = ?2 WHERE minion = ?1 AND ended IS NULL AND state = 'queued' \
    AND waiting_for = 'offline' AND (due IS NULL OR due > ?2) \
    AND (SELECT a.step FROM actions a WHERE a.id = runs.action) IS NULL RETURNING action";
const MARK_WAITING: &str =
    "UPDATE runs SET waiting_for = ?3 WHERE action = ?1 AND state = 'queued' AND waiting_for = ?2";
const MARK_LATE: &str = "UPDATE actions SET late = 1 WHERE id = ?1 AND late = 0";
const SET_EVIDENCE: &str = "UPDATE runs SET evidence = ?3 WHERE action = ?1 AND minion = ?2";

/// What became of one run.
type Fate = (MinionId, Result<RunState, Refusal>);

impl Verb {
    async fn runs(&self, tx: &Tx<'_>) -> Result<Vec<Run>> {
        let rows: Vec<Row> = match (&self.minions, self.input) {
            (None, Input::Deadline | Input::Prerequisite) => tx.query_locking(&OPEN, params![self.action]).await?,
            (None, _) => tx.query_locking(&ALL, params![self.action]).await?,
            (Some(minions), _) => {
                let named: BTreeSet<&MinionId> = minions.iter().collect();
                let found = named.into_iter().map(|minion| tx.query_locking(&ONE, params![self.action, minion]));
                try_join_all(found).await?.into_iter().flatten().collect()
            }
        };
        let runs = rows.into_iter().map(|mut row| runs::read(&mut row));
        runs.filter(|run| !self.only_failed || run.as_ref().is_ok_and(|run| run.state == RunState::Failed)).collect()
    }
}

impl Operation for Verb {
    type Output = Vec<Fate>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Vec<Fate>>> {
        Box::pin(async move {
            let rules = tx.query_locking(&RULES, params![self.action]).await?;
            let Some(mut rules) = rules.into_iter().next() else { return Ok(Vec::new()) };
            let (policy, internal) = (actions::read_policy(&rules.text(0)?)?, rules.flag(1)?);
            let message = self.message.as_deref();
            let (input, at) = (self.input, self.at);
            let cause = Cause { action: self.action, input, at, retcode: None, message, evidence: None };
            let (mut told, mut written) = (Vec::new(), Vec::new());
            for run in self.runs(tx).await? {
                match step(&run.standing(), input, &policy, at) {
                    Outcome::Change(change) => {
                        written.push(transit::write(&run, &change, &cause));
                        transit::note(effects, &run, &change, &cause, Told::ByTeller { internal });
                        told.push((run.minion, Ok(change.standing.state)));
                    }
                    Outcome::Refused(refusal) => told.push((run.minion, Err(refusal))),
                    Outcome::Nothing | Outcome::Late => {}
                }
            }
            if !written.is_empty()
                && let Some(deadline) = self.deadline
            {
                tx.execute(MOVE_DEADLINE, params![self.action, deadline]).await?;
            }
            transit::write_all(tx, written).await?;
            effects.audit(&self.audit);
            Ok(told)
        })
    }
}

/// Statements that change an action itself; the rest and the audit entry only if the first changes anything.
struct Statements {
    first: (&'static str, Vec<Param>),
    then: Option<(&'static str, Vec<Param>)>,
    audit: Option<AuditEntry>,
}

impl Operation for Statements {
    type Output = Option<u64>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Option<u64>>> {
        Box::pin(async move {
            let (sql, values) = &self.first;
            if tx.execute(sql, values.clone()).await? == 0 {
                return Ok(None);
            }
            let changed = match &self.then {
                Some((sql, values)) => tx.execute(sql, values.clone()).await?,
                None => 0,
            };
            effects.audit(&self.audit);
            Ok(Some(changed))
        })
    }
}

struct Release(Vec<MinionId>, Timestamp);

impl Operation for Release {
    type Output = Vec<ActionId>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Vec<ActionId>>> {
        Box::pin(async move {
            let minions: BTreeSet<&MinionId> = self.0.iter().collect();
            let released = minions.into_iter().map(|minion| tx.query(RELEASE, params![minion, self.1]));
            let rows = try_join_all(released).await?;
            let actions = rows.iter().flatten().map(|row| row.int(0).map(ActionId));
            Ok(actions.collect::<Result<BTreeSet<_>>>()?.into_iter().collect())
        })
    }
}

struct Mark(&'static str, Vec<Param>);

impl Operation for Mark {
    type Output = u64;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<u64>> {
        Box::pin(tx.execute(self.0, self.1.clone()))
    }
}

impl Store {
    /// Does something to many runs in one transaction; tells what became of each, in the order of minions. Left out are
    /// named minions without such a run, and runs about which there was nothing to do.
    pub async fn apply(&self, verb: Verb) -> Result<Vec<(MinionId, Result<RunState, Refusal>)>> {
        self.write(verb).await
    }

    /// Holds an action: nothing of it is claimed any more. False if it is held already, or has ended.
    pub async fn pause(&self, action: ActionId, paused: Paused, audit: Option<AuditEntry>) -> Result<bool> {
        let Paused { at, by, why } = paused;
        let first = (PAUSE, params![action, at, by, why]);
        Ok(self.write(Statements { first, then: None, audit }).await?.is_some())
    }

    /// Lets a held action go on; runs that wait for that are due at `at`, or when they would have been. False if it is not
    /// held.
    pub async fn resume(&self, action: ActionId, at: Timestamp, audit: Option<AuditEntry>) -> Result<bool> {
        let (first, then) = ((RESUME, params![action]), Some((RESUME_RUNS, params![action, at])));
        Ok(self.write(Statements { first, then, audit }).await?.is_some())
    }

    /// Moves an open action and those of its queued runs that nothing was sent of; tells how many runs.
    pub async fn reschedule(
        &self,
        action: ActionId,
        due: Timestamp,
        deadline: Timestamp,
        at: Timestamp,
        audit: Option<AuditEntry>,
    ) -> Result<usize> {
        let first = (RESCHEDULE, params![action, due, deadline]);
        let then = Some((RESCHEDULE_RUNS, params![action, due, at]));
        Ok(count(self.write(Statements { first, then, audit }).await?.unwrap_or(0)))
    }

    /// Puts an action away, or takes it back; tells whether that was news.
    pub async fn archive(&self, action: ActionId, at: Option<Timestamp>, audit: Option<AuditEntry>) -> Result<bool> {
        let first = match at {
            Some(at) => (ARCHIVE, params![action, at]),
            None => (UNARCHIVE, params![action]),
        };
        Ok(self.write(Statements { first, then: None, audit }).await?.is_some())
    }

    /// Makes queued runs of these minions, which are back, due at `at`; tells of which actions. Not those of steps of
    /// launches, which are never due by themselves.
    pub async fn release(&self, minions: Vec<MinionId>, at: Timestamp) -> Result<Vec<ActionId>> {
        self.write(Release(minions, at)).await
    }

    /// Has the queued runs of an action that wait for one thing wait for another; tells how many.
    pub async fn mark_waiting(&self, action: ActionId, from: WaitingFor, to: WaitingFor) -> Result<usize> {
        let values = params![action, from.as_str(), to.as_str()];
        Ok(count(self.write(Mark(MARK_WAITING, values)).await?))
    }

    /// Notes that an action is begun after it should have been; tells whether that was news.
    pub async fn mark_late(&self, action: ActionId) -> Result<bool> {
        Ok(self.write(Mark(MARK_LATE, params![action])).await? > 0)
    }

    /// Notes something about a run, as JSON text, in place of what was noted before.
    pub async fn set_evidence(&self, action: ActionId, minion: MinionId, evidence: String) -> Result<()> {
        self.write(Mark(SET_EVIDENCE, params![action, &minion, evidence])).await.map(drop)
    }
}

fn count(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}
