//! Runs and their attempts as they are read: where each minion stands with each action.
//!
//! What changes them: `work` (created, claimed), `transit` (what happens to them), `returns`, `verbs`.

use crate::db::{Param, Row, params};
use crate::{Error, Result, Store};
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{Reason, RunState, Standing, WaitingFor};
use saltern_core::time::Timestamp;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// On which minion
    pub minion: MinionId,
    /// Where it stands
    pub state: RunState,
    /// Why it failed or was cancelled
    pub reason: Option<Reason>,
    /// What it waits for while queued
    pub waiting_for: Option<WaitingFor>,
    /// When it may be taken while queued; nothing: not before it is released
    pub due: Option<Timestamp>,
    /// The number of its newest attempt; 0 before the first
    pub attempt: u32,
    /// How often that attempt was published
    pub deliveries: u32,
    /// The job of its newest attempt
    pub jid: Option<Jid>,
    /// When it was last sent
    pub sent: Option<Timestamp>,
    /// When the minion said that it began
    pub picked_up: Option<Timestamp>,
    /// When it ended
    pub ended: Option<Timestamp>,
    /// The exit code it returned
    pub retcode: Option<i64>,
    /// What was said when it came to stand where it stands
    pub message: Option<String>,
    /// What the server noted about it, as JSON text
    pub evidence: Option<String>,
    /// Whether a return came that did not count
    pub late: bool,
}

/// An attempt that was followed by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, from 1 on
    pub number: u32,
    /// Its job, if it was sent
    pub jid: Option<Jid>,
    /// When it was sent
    pub sent: Option<Timestamp>,
    /// When the minion said that it began
    pub picked_up: Option<Timestamp>,
    /// When it was over
    pub ended: Option<Timestamp>,
    /// Why it was not the last
    pub reason: Option<Reason>,
    /// The exit code it returned
    pub retcode: Option<i64>,
    /// What was said about its end
    pub message: Option<String>,
}

/// The columns of a run, for [`read`].
macro_rules! columns {
    () => {
        "r.minion, r.state, r.reason, r.waiting_for, r.due, r.attempt, r.deliveries, r.jid, r.sent, r.picked_up, r.ended, \
         r.retcode, r.message, r.evidence, r.late"
    };
}
pub(crate) use columns;

/// How many columns that is.
pub(crate) const COLUMNS: usize = 15;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM runs r ", $rest)
    };
    (with action, $rest:literal) => {
        concat!("SELECT ", columns!(), ", r.action FROM runs r ", $rest)
    };
}

const ONE: &str = select!("WHERE r.action = ?1 AND r.minion = ?2");
pub(crate) const OF_ACTION: &str = select!("WHERE r.action = ?1 AND r.minion > ?2 ORDER BY r.minion LIMIT ?3");
pub(crate) const IN_STATE: &str =
    select!("WHERE r.action = ?1 AND r.minion > ?2 AND r.state = ?4 ORDER BY r.minion LIMIT ?3");
pub(crate) const DUE: &str = select!(
    "WHERE r.action = ?1 AND r.state = 'queued' AND r.due <= ?2 AND (r.due, r.minion) > (?4, ?5) \
             ORDER BY r.due, r.minion LIMIT ?3"
);
pub(crate) const NEXT_DUE: &str =
    "SELECT min(r.due) FROM runs r WHERE r.action = ?1 AND r.state = 'queued' AND r.due IS NOT NULL";
pub(crate) const IN_PROGRESS: &str = select!(
    with action,
    "WHERE r.ended IS NULL AND (r.minion, r.action) > (?1, ?2) AND r.state IN ('sent', 'picked_up') \
     AND (SELECT a.step FROM actions a WHERE a.id = r.action) IS NULL \
     ORDER BY r.minion, r.action LIMIT ?3"
);
pub(crate) const OPEN_OF_MINION: &str =
    select!(with action, "WHERE r.ended IS NULL AND r.minion = ?1 ORDER BY r.action");
pub(crate) const ATTEMPTS: &str = "SELECT number, jid, sent, picked_up, ended, reason, retcode, message FROM attempts \
    WHERE action = ?1 AND minion = ?2 ORDER BY number";

impl Run {
    /// What decisions about it depend on.
    pub fn standing(&self) -> Standing {
        Standing {
            state: self.state,
            reason: self.reason,
            waiting_for: self.waiting_for,
            attempt: self.attempt,
            deliveries: self.deliveries,
            jid: self.jid,
        }
    }
}

impl Store {
    /// One run.
    pub async fn run(&self, action: ActionId, minion: &MinionId) -> Result<Option<Run>> {
        Ok(self.list_runs(ONE, params![action, minion]).await?.into_iter().next())
    }

    /// The runs of an action, in the order of minions, after `after` (empty text: from the first).
    pub async fn runs(&self, action: ActionId, after: &str, limit: usize) -> Result<Vec<Run>> {
        self.list_runs(OF_ACTION, params![action, after, limit]).await
    }

    /// Those of them that stand so.
    pub async fn runs_in(&self, action: ActionId, state: RunState, after: &str, limit: usize) -> Result<Vec<Run>> {
        self.list_runs(IN_STATE, params![action, after, limit, state.as_str()]).await
    }

    /// Queued runs of an action that may be taken now, the one that is due longest first.
    pub async fn due_runs(&self, action: ActionId, now: Timestamp, limit: usize) -> Result<Vec<Run>> {
        self.due_runs_after(action, now, None, limit).await
    }

    /// Those of them that come after this one.
    pub async fn due_runs_after(
        &self,
        action: ActionId,
        now: Timestamp,
        after: Option<&Run>,
        limit: usize,
    ) -> Result<Vec<Run>> {
        let due = after.and_then(|run| run.due).unwrap_or(Timestamp(i64::MIN));
        let minion = after.map_or("", |run| run.minion.as_str());
        self.list_runs(DUE, params![action, now, limit, due, minion]).await
    }

    /// When the next queued run of an action may be taken, if any will be without being released.
    pub async fn next_due(&self, action: ActionId) -> Result<Option<Timestamp>> {
        self.query(NEXT_DUE, params![action]).await?.first().map_or(Ok(None), |row| row.opt_time(0))
    }

    /// Runs that were sent and have not ended, with their actions, in the order of minions and actions. Without those of
    /// steps of launches: what brings them to minions is among these.
    pub async fn runs_in_progress(
        &self,
        after: Option<(MinionId, ActionId)>,
        limit: usize,
    ) -> Result<Vec<(ActionId, Run)>> {
        let (minion, action) = after.as_ref().map_or(("", 0), |(minion, action)| (minion.as_str(), action.0));
        self.list_with_actions(IN_PROGRESS, params![minion, action, limit]).await
    }

    /// The runs of a minion that have not ended, the oldest action first.
    pub async fn open_runs_of(&self, minion: &MinionId) -> Result<Vec<(ActionId, Run)>> {
        self.list_with_actions(OPEN_OF_MINION, params![minion]).await
    }

    /// The attempts of a run that were followed by another, oldest first. The newest is the run itself.
    pub async fn attempts(&self, action: ActionId, minion: &MinionId) -> Result<Vec<Attempt>> {
        self.query(ATTEMPTS, params![action, minion]).await?.into_iter().map(read_attempt).collect()
    }

    async fn list_runs(&self, sql: &'static str, values: Vec<Param>) -> Result<Vec<Run>> {
        self.query(sql, values).await?.into_iter().map(|mut row| read(&mut row)).collect()
    }

    async fn list_with_actions(&self, sql: &'static str, values: Vec<Param>) -> Result<Vec<(ActionId, Run)>> {
        let read = |mut row: Row| Ok((ActionId(row.int(COLUMNS)?), read(&mut row)?));
        self.query(sql, values).await?.into_iter().map(read).collect()
    }
}

/// Reads a run from the first columns of a row.
pub(crate) fn read(row: &mut Row) -> Result<Run> {
    Ok(Run {
        minion: row.minion(0)?,
        state: word(row, 1, RunState::parse)?.ok_or(Error::Shape { what: "runs", column: 1 })?,
        reason: word(row, 2, Reason::parse)?,
        waiting_for: word(row, 3, WaitingFor::parse)?,
        due: row.opt_time(4)?,
        attempt: number(row, 5)?,
        deliveries: number(row, 6)?,
        jid: row.opt_jid(7)?,
        sent: row.opt_time(8)?,
        picked_up: row.opt_time(9)?,
        ended: row.opt_time(10)?,
        retcode: row.opt_int(11)?,
        message: row.opt_text(12)?,
        evidence: row.opt_text(13)?,
        late: row.flag(14)?,
    })
}

fn read_attempt(mut row: Row) -> Result<Attempt> {
    Ok(Attempt {
        number: number(&row, 0)?,
        jid: row.opt_jid(1)?,
        sent: row.opt_time(2)?,
        picked_up: row.opt_time(3)?,
        ended: row.opt_time(4)?,
        reason: word(&mut row, 5, Reason::parse)?,
        retcode: row.opt_int(6)?,
        message: row.opt_text(7)?,
    })
}

fn number(row: &Row, column: usize) -> Result<u32> {
    u32::try_from(row.int(column)?).map_err(|_| Error::Shape { what: "runs", column })
}

/// A word of a small vocabulary, or nothing; a word that is not one of it is an error.
fn word<T>(row: &mut Row, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    let Some(text) = row.opt_text(column)? else { return Ok(None) };
    parse(&text).map(Some).ok_or(Error::Shape { what: "runs", column })
}
