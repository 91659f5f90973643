//! Runner calls: jobs that the server itself carries out, kept so that they can be asked for like other jobs.

use crate::db::{Effects, Operation, Row, Tx, params};
use crate::events::NewEvent;
use crate::{Body, Error, Result, Store, jobs};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::Jid;
use saltern_core::time::Timestamp;

/// One runner call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerCall {
    /// Its job id
    pub jid: Jid,
    /// What was called, e.g. `runner.jobs.active`
    pub fun: String,
    /// By whom
    pub user: String,
    /// When
    pub created: Timestamp,
    /// When it was over
    pub ended: Option<Timestamp>,
    /// Whether it went well, once it is over
    pub success: Option<bool>,
    /// What its last event says
    pub body: Body,
}

/// More open calls than a server ever carries out at once; who ends them looks again.
const MOST_OPEN: usize = 1000;

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT jid, fun, user_name, created, ended, success, encoding, body FROM calls ", $rest)
    };
}

const ONE: &str = select!("WHERE jid = ?1");
pub(crate) const PAGE: &str = select!("WHERE jid < ?1 ORDER BY jid DESC LIMIT ?2");
pub(crate) const OPEN: &str = select!("WHERE ended IS NULL ORDER BY jid LIMIT ?1");
const INSERT: &str = "INSERT INTO calls (jid, fun, user_name, created, ended, success, encoding, body) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (jid) DO NOTHING";
const END: &str =
    "UPDATE calls SET ended = ?2, success = ?3, encoding = ?4, body = ?5 WHERE jid = ?1 AND ended IS NULL";

struct Record(RunnerCall, Vec<NewEvent>);

impl Operation for Record {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let RunnerCall { jid, fun, user, created, ended, success, body } = &self.0;
            let values = params![jid, fun, user, *created, *ended, *success, body.encoding, &body.bytes];
            if jobs::exists(tx, *jid).await? || tx.execute(INSERT, values).await? == 0 {
                return Err(Error::JidTaken);
            }
            effects.log(&self.1);
            Ok(())
        })
    }
}

struct End {
    jid: Jid,
    ended: Timestamp,
    success: bool,
    body: Body,
    events: Vec<NewEvent>,
}

impl Operation for End {
    type Output = bool;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Self { jid, ended, success, body, events } = self;
            if tx.execute(END, params![jid, *ended, *success, body.encoding, &body.bytes]).await? == 0 {
                return Ok(false);
            }
            effects.log(events);
            Ok(true)
        })
    }
}

impl Store {
    /// Keeps a call with its events. [`Error::JidTaken`]: there is such a call or such a job already.
    pub async fn record_call(&self, call: RunnerCall, events: Vec<NewEvent>) -> Result<()> {
        self.write(Record(call, events)).await
    }

    /// Notes that a call is over, with its events; tells whether it was open. A call ends once.
    pub async fn end_call(
        &self,
        jid: Jid,
        ended: Timestamp,
        success: bool,
        body: Body,
        events: Vec<NewEvent>,
    ) -> Result<bool> {
        self.write(End { jid, ended, success, body, events }).await
    }

    /// One call.
    pub async fn call(&self, jid: Jid) -> Result<Option<RunnerCall>> {
        self.query(ONE, params![jid]).await?.into_iter().next().map(read).transpose()
    }

    /// Calls older than `before`, newest first.
    pub async fn calls(&self, before: Option<Jid>, limit: usize) -> Result<Vec<RunnerCall>> {
        let before = before.as_ref().map_or(jobs::AFTER_ALL, Jid::as_str);
        self.query(PAGE, params![before, limit]).await?.into_iter().map(read).collect()
    }

    /// Calls that are not over, oldest first, at most a thousand; also those of other servers on the same database.
    pub async fn open_calls(&self) -> Result<Vec<RunnerCall>> {
        self.query(OPEN, params![MOST_OPEN]).await?.into_iter().map(read).collect()
    }
}

fn read(mut row: Row) -> Result<RunnerCall> {
    Ok(RunnerCall {
        jid: row.jid(0)?,
        fun: row.text(1)?,
        user: row.text(2)?,
        created: row.time(3)?,
        ended: row.opt_time(4)?,
        success: row.opt_flag(5)?,
        body: Body { encoding: row.int(6)?, bytes: row.blob(7)? },
    })
}
