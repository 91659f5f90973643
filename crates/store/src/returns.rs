//! What minions sent back.
//!
//! One row per (job, minion): a minion that repeats its return, because our answer was lost or late, changes nothing.

use crate::db::{Log, Operation, Row, Tx, params};
use crate::events::NewEvent;
use crate::jobs::{self, NewJob};
use crate::{Body, Result, Store, runs};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::Verdict;
use saltern_core::time::Timestamp;
use std::sync::Arc;

/// A return to be stored.
#[derive(Clone, Debug)]
pub struct NewReturn {
    /// For which job
    pub jid: Jid,
    /// The action of that job, if it is one of ours
    pub action: Option<ActionId>,
    /// The job to store with it, for what a minion did on its own
    pub standalone: Option<Box<NewJob>>,
    /// From whom
    pub minion: MinionId,
    /// When it came
    pub at: Timestamp,
    /// The function
    pub fun: String,
    /// How it was judged
    pub verdict: Verdict,
    /// The whole load
    pub body: Arc<Body>,
    /// Its event's tag
    pub tag: String,
    /// Further events to log if it is news
    pub events: Vec<NewEvent>,
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

impl Operation for NewReturn {
    type Output = bool;
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, log: &'a mut Log) -> LocalBoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Verdict { success, retcode } = self.verdict;
            let body = &self.body;
            let values =
                params![self.jid, &self.minion, self.at, &self.fun, retcode, success, body.encoding, &body.bytes];
            if tx.execute(INSERT, values).await? == 0 {
                return Ok(false);
            }
            if let Some(job) = &self.standalone {
                jobs::insert(tx, job, Some(self.at)).await?;
            }
            if let Some(action) = self.action {
                runs::end(tx, action, &self.minion, &self.jid, self.verdict, self.at).await?;
            }
            log.push(NewEvent {
                at: self.at,
                tag: self.tag.clone(),
                minion: Some(self.minion.clone()),
                jid: Some(self.jid),
                body: self.body.clone(),
                is_return: true,
            });
            log.extend_from_slice(&self.events);
            Ok(true)
        })
    }
}

impl Store {
    /// Stores a return; tells whether it was news. Returns after the commit, so the minion may be answered then.
    pub async fn record_return(&self, new: NewReturn) -> Result<bool> {
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
