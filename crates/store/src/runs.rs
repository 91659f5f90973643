//! Runs and their attempts: where each minion stands with each action.
//!
//! A state is never overwritten blindly: every statement names what it may leave.

use crate::db::{Log, Operation, Row, Tx, params};
use crate::events::NewEvent;
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{RunState, Verdict};
use saltern_core::time::Timestamp;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// On which minion
    pub minion: MinionId,
    /// Where it stands
    pub state: RunState,
    /// Why it failed
    pub reason: Option<String>,
    /// What it waits for while queued
    pub waiting_for: Option<String>,
    /// The job of its current attempt
    pub jid: Option<Jid>,
    /// When it was sent
    pub sent: Option<Timestamp>,
    /// When the minion said that it began
    pub picked_up: Option<Timestamp>,
    /// When it ended
    pub ended: Option<Timestamp>,
    /// The exit code it returned
    pub retcode: Option<i64>,
}

/// A minion's word that it has begun a job.
#[derive(Clone, Debug)]
pub struct Ack {
    /// Which job
    pub jid: Jid,
    /// The action it carries out
    pub action: ActionId,
    /// Who says so
    pub minion: MinionId,
    /// When it said so
    pub at: Timestamp,
    /// Events to log, whether or not it is news
    pub events: Vec<NewEvent>,
}

const INSERT: &str =
    "INSERT INTO runs (action, minion, state, attempt, jid, deadline, sent) VALUES (?1, ?2, 'sent', 1, ?3, ?4, ?5)";
const INSERT_ATTEMPT: &str = "INSERT INTO attempts (jid, minion, action, number, sent) VALUES (?1, ?2, ?3, 1, ?4)";
const PICK_UP: &str = "UPDATE runs SET state = 'picked_up', picked_up = ?4 \
    WHERE action = ?1 AND minion = ?2 AND jid = ?3 AND state IN ('queued', 'sent')";
const ACKED: &str = "UPDATE attempts SET acked = ?3 WHERE jid = ?1 AND minion = ?2 AND acked IS NULL";
const END: &str = "UPDATE runs SET state = ?4, reason = ?5, ended = ?6, retcode = ?7 \
    WHERE action = ?1 AND minion = ?2 AND jid = ?3 AND ended IS NULL";
pub(crate) const OF_ACTION: &str = "SELECT minion, state, reason, waiting_for, jid, sent, picked_up, ended, retcode \
    FROM runs WHERE action = ?1 AND minion > ?2 ORDER BY minion LIMIT ?3";

pub(crate) async fn insert(
    tx: &Tx<'_>,
    action: ActionId,
    jid: &Jid,
    sent: Timestamp,
    deadline: Timestamp,
    minions: &[MinionId],
) -> Result<()> {
    let run = |minion| params![action, minion, jid, deadline, sent];
    tx.execute_many(INSERT, minions.iter().map(run).collect()).await?;
    let attempt = |minion| params![jid, minion, action, sent];
    tx.execute_many(INSERT_ATTEMPT, minions.iter().map(attempt).collect()).await?;
    Ok(())
}

/// Ends a run by the judgement of its return, if it has not ended yet.
pub(crate) async fn end(
    tx: &Tx<'_>,
    action: ActionId,
    minion: &MinionId,
    jid: &Jid,
    verdict: Verdict,
    at: Timestamp,
) -> Result<bool> {
    let (state, reason) = verdict.outcome();
    let reason = reason.map(saltern_core::run::Reason::as_str);
    Ok(tx.execute(END, params![action, minion, jid, state.as_str(), reason, at, verdict.retcode]).await? > 0)
}

impl Operation for Ack {
    type Output = bool;
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, log: &'a mut Log) -> LocalBoxFuture<'a, Result<bool>> {
        log.extend_from_slice(&self.events);
        Box::pin(async move {
            tx.execute(ACKED, params![self.jid, &self.minion, self.at]).await?;
            let news = tx.execute(PICK_UP, params![self.action, &self.minion, self.jid, self.at]).await?;
            Ok(news > 0)
        })
    }
}

impl Store {
    /// Notes that a minion has begun a job; tells whether that was news.
    pub async fn record_ack(&self, ack: Ack) -> Result<bool> {
        self.write(ack).await
    }

    /// The runs of an action, in the order of minions, after `after` (empty text: from the first).
    pub async fn runs(&self, action: ActionId, after: &str, limit: usize) -> Result<Vec<Run>> {
        self.query(OF_ACTION, params![action, after, limit]).await?.into_iter().map(read).collect()
    }
}

fn read(mut row: Row) -> Result<Run> {
    let state = row.text(1)?;
    Ok(Run {
        minion: row.minion(0)?,
        state: RunState::parse(&state).ok_or(crate::Error::Shape { what: "runs", column: 1 })?,
        reason: row.opt_text(2)?,
        waiting_for: row.opt_text(3)?,
        jid: row.opt_jid(4)?,
        sent: row.opt_time(5)?,
        picked_up: row.opt_time(6)?,
        ended: row.opt_time(7)?,
        retcode: row.opt_int(8)?,
    })
}
