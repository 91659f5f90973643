//! What minions sent back.
//!
//! One row per (job, minion): a minion that repeats its return, because our answer was lost or late, changes nothing.

use crate::actions::{self, NewAction};
use crate::counts::Counts;
use crate::db::{Effects, Operation, Row, Tx, params};
use crate::events::NewEvent;
use crate::jobs::{self, NewJob};
use crate::transit::{self, Cause};
use crate::{Body, Error, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{Change, Input, Outcome, RunState, Standing, Verdict};
use saltern_core::time::Timestamp;
use std::sync::Arc;

/// A return to be stored.
#[derive(Clone, Debug)]
pub struct NewReturn {
    /// For which job
    pub jid: Jid,
    /// The action of that job, if it is one of ours
    pub action: Option<ActionId>,
    /// The action to store with it and its job, for what a minion did on its own
    pub standalone: Option<Box<NewAction>>,
    /// From whom
    pub minion: MinionId,
    /// When it came
    pub at: Timestamp,
    /// The function
    pub fun: String,
    /// How it was judged
    pub verdict: Verdict,
    /// Whether it is the end of its run; otherwise something else will tell
    pub settles: bool,
    /// Whether it tells of what was killed because somebody wanted it stopped
    pub stopped: bool,
    /// The whole load
    pub body: Arc<Body>,
    /// Its event's tag
    pub tag: String,
    /// Further events to log if it is news
    pub events: Vec<NewEvent>,
}

/// What came of a return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Whether it was not known before
    pub news: bool,
    /// What it did to its run, if it has one
    pub outcome: Option<Outcome>,
}

/// A stored return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    /// For which job
    pub jid: Jid,
    /// From whom
    pub minion: MinionId,
    /// When it came
    pub at: Timestamp,
    /// The function
    pub fun: String,
    /// The exit code
    pub retcode: i64,
    /// Whether it was judged good
    pub success: bool,
    /// The whole load
    pub body: Body,
}

const INSERT: &str = "INSERT INTO returns (jid, minion, at, fun, retcode, success, encoding, body) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (jid, minion) DO NOTHING";
pub(crate) const OF_JOB: &str = "SELECT jid, minion, at, fun, retcode, success, encoding, body FROM returns \
    WHERE jid = ?1 AND minion > ?2 ORDER BY minion LIMIT ?3";

// The way of nearly every return, without reading first. What it does not find goes the long way, by `step`.
const COMPLETE: &str = "UPDATE runs SET state = 'completed', reason = NULL, waiting_for = NULL, due = NULL, message = NULL, \
    ended = ?4, retcode = ?5 WHERE action = ?1 AND minion = ?2 AND jid = ?3 AND state IN ('sent', 'picked_up') \
    RETURNING attempt, deliveries";
const LATE: &str = "UPDATE runs SET late = 1 \
    WHERE action = ?1 AND minion = ?2 AND (coalesce(jid, '') <> ?3 OR ended IS NOT NULL)";

impl Operation for NewReturn {
    type Output = Recorded;
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Recorded>> {
        Box::pin(async move {
            let Verdict { success, retcode } = self.verdict;
            let body = &self.body;
            let values =
                params![self.jid, &self.minion, self.at, &self.fun, retcode, success, body.encoding, &body.bytes];
            if tx.execute(INSERT, values).await? == 0 {
                return Ok(Recorded { news: false, outcome: None });
            }
            if let Some(action) = &self.standalone {
                self.bring(tx, action).await?;
            }
            let outcome = match self.action {
                Some(action) => self.settle(tx, effects, action).await?,
                None => None,
            };
            effects.push(NewEvent {
                at: self.at,
                tag: self.tag.clone(),
                minion: Some(self.minion.clone()),
                jid: Some(self.jid),
                body: self.body.clone(),
                is_return: true,
            });
            effects.log(&self.events);
            Ok(Recorded { news: true, outcome })
        })
    }
}

impl NewReturn {
    /// Stores the action and job of what a minion did on its own. Nobody asked for it, so there is nothing to run.
    async fn bring(&self, tx: &Tx<'_>, action: &NewAction) -> Result<()> {
        // Two minions may well make up the same id; the job of the first is good enough for both.
        if jobs::exists(tx, self.jid).await? {
            return Ok(());
        }
        let id = actions::insert(tx, action, Some(self.jid), Counts::default(), self.at).await?;
        let job = NewJob { jid: self.jid, minions: vec![self.minion.clone()], missing: Vec::new() };
        jobs::insert(tx, id, action.created, &job, &jobs::Copied::from(action)).await
    }

    /// Does to the run what the return says.
    async fn settle(&self, tx: &Tx<'_>, effects: &mut Effects, action: ActionId) -> Result<Option<Outcome>> {
        if self.settles && self.verdict.success {
            let values = params![action, &self.minion, self.jid, self.at, self.verdict.retcode];
            if let Some(row) = tx.query(COMPLETE, values).await?.first() {
                effects.moved(action, (RunState::Sent, None), (RunState::Completed, None), self.at);
                return Ok(Some(self.completed(row)?));
            }
        }
        let input = match (self.settles, self.stopped && !self.verdict.success) {
            (false, _) => Input::Accepted(self.jid),
            (true, false) => Input::Return(self.jid, self.verdict),
            (true, true) => Input::Stopped,
        };
        let retcode = Some(self.verdict.retcode);
        let cause = Cause { action, input, at: self.at, retcode, message: None, evidence: None };
        let outcome = transit::happen(tx, effects, &self.minion, &cause, false).await?;
        // One that does not settle anything is nothing new to `step`; shown as late it is all the same if it is.
        if matches!(outcome, Some(Outcome::Late | Outcome::Nothing)) {
            tx.execute(LATE, params![action, &self.minion, self.jid]).await?;
        }
        Ok(outcome)
    }

    fn completed(&self, row: &Row) -> Result<Outcome> {
        let number = |column| u32::try_from(row.int(column)?).map_err(|_| Error::Shape { what: "runs", column });
        let standing = Standing {
            state: RunState::Completed,
            reason: None,
            waiting_for: None,
            attempt: number(0)?,
            deliveries: number(1)?,
            jid: Some(self.jid),
        };
        Ok(Outcome::Change(Change { standing, due: None, closes_attempt: false }))
    }
}

impl Store {
    /// Stores a return; tells whether it was news, and what it did. Answers after the commit, so the minion may be answered
    /// then.
    pub async fn record_return(&self, new: NewReturn) -> Result<Recorded> {
        self.write(new).await
    }

    /// The returns of a job in the order of minions, after `after` (empty text: from the first).
    pub async fn returns(&self, jid: Jid, after: &str, limit: usize) -> Result<Vec<Return>> {
        self.query(OF_JOB, params![jid, after, limit]).await?.into_iter().map(read).collect()
    }
}

fn read(mut row: Row) -> Result<Return> {
    Ok(Return {
        jid: row.jid(0)?,
        minion: row.minion(1)?,
        at: row.time(2)?,
        fun: row.text(3)?,
        retcode: row.int(4)?,
        success: row.flag(5)?,
        body: Body { encoding: row.int(6)?, bytes: row.blob(7)? },
    })
}
