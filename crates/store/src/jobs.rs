//! Jobs: one publish each, with the minions it was for.
//!
//! A job, its action, runs and attempts and the events that tell of it are created in one transaction, before anything is
//! published: what was accepted survives whatever happens next. `published` is set afterwards, so that a crash in between
//! leaves a job that is known to be unpublished.

use crate::actions::{self, NewAction};
use crate::audit::{self, AuditEntry};
use crate::db::{Log, Operation, Row, Tx, params};
use crate::events::NewEvent;
use crate::{Body, Error, Result, Store, runs};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::time::Timestamp;

/// A job to be stored with all that belongs to it.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id
    pub jid: Jid,
    /// The action it carries out
    pub action: NewAction,
    /// The minions it is for
    pub minions: Vec<MinionId>,
    /// Names in a list target that no accepted minion has
    pub missing: Vec<String>,
    /// What will be published: opaque to the store
    pub load: Vec<u8>,
    /// Events to log with it
    pub events: Vec<NewEvent>,
    /// The audit entry to add with it
    pub audit: Option<AuditEntry>,
}

/// A job as it was stored.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id
    pub jid: Jid,
    /// The action it carries out
    pub action: ActionId,
    /// When it was accepted
    pub created: Timestamp,
    /// When it was published
    pub published: Option<Timestamp>,
    /// The function
    pub fun: String,
    /// Its arguments, as JSON text
    pub arg: String,
    /// The target expression, as JSON text
    pub target: String,
    /// The target's type
    pub target_type: String,
    /// Who asked
    pub initiator: String,
    /// The minions it was for
    pub minions: Vec<MinionId>,
    /// Names in a list target that no accepted minion has
    pub missing: Vec<String>,
    /// What was or will be published
    pub load: Vec<u8>,
    /// Whether it is housekeeping of the server itself
    pub internal: bool,
}

/// A page of jobs, newest first.
#[derive(Clone, Debug)]
pub struct JobPage {
    /// Only jobs older than this one
    pub before: Option<Jid>,
    /// At most so many
    pub limit: usize,
    /// With the server's own housekeeping
    pub internal: bool,
    /// Only jobs with a run that has not ended
    pub open: bool,
}

const INSERT: &str = "INSERT INTO jobs (jid, action, created, fun, arg, target, target_type, initiator, minions, missing, load, internal, published) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const PUBLISHED: &str = "UPDATE jobs SET published = ?2 WHERE jid = ?1 AND published IS NULL";

macro_rules! select {
    ($rest:literal) => {
        select!("", $rest)
    };
    ($with:literal, $rest:literal) => {
        concat!(
            $with,
            "SELECT j.jid, j.action, j.created, j.published, j.fun, j.arg, j.target, j.target_type, j.initiator, \
             j.minions, j.missing, j.load, j.internal FROM jobs j ",
            $rest
        )
    };
}

const ONE: &str = select!("WHERE j.jid = ?1");
pub(crate) const PAGE: &str = select!("WHERE j.jid < ?1 AND j.internal <= ?2 ORDER BY j.jid DESC LIMIT ?3");
// From the open runs to their jobs, one step in the index for each open action: the cost is that of what is open, however
// many jobs there have been and however many runs an action has.
pub(crate) const OPEN_PAGE: &str = select!(
    "WITH RECURSIVE open_actions (action) AS ( \
       SELECT max(r.action) FROM runs r WHERE r.ended IS NULL \
       UNION ALL \
       SELECT (SELECT max(r.action) FROM runs r WHERE r.ended IS NULL AND r.action < o.action) \
       FROM open_actions o WHERE o.action IS NOT NULL) ",
    "JOIN open_actions o ON j.action = o.action \
     WHERE j.jid < ?1 AND j.internal <= ?2 ORDER BY j.jid DESC LIMIT ?3"
);
/// Behind every job id in any order of text: one digit longer than the largest.
const AFTER_ALL: &str = "999999999999999999999";
pub(crate) const UNPUBLISHED: &str = select!("WHERE j.published IS NULL ORDER BY j.created, j.jid LIMIT ?1");
const NEWEST: &str = "SELECT max(jid) FROM jobs";

impl Operation for NewJob {
    type Output = ActionId;
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, log: &'a mut Log) -> LocalBoxFuture<'a, Result<ActionId>> {
        Box::pin(async move {
            let action = insert(tx, self, None).await?;
            let created = self.action.created;
            runs::insert(tx, action, &self.jid, created, self.action.deadline, &self.minions).await?;
            if let Some(entry) = &self.audit {
                audit::append(tx, entry).await?;
            }
            log.extend_from_slice(&self.events);
            Ok(action)
        })
    }
}

/// Writes action and job without runs; used for what a minion did on its own as well.
pub(crate) async fn insert(tx: &Tx<'_>, job: &NewJob, published: Option<Timestamp>) -> Result<ActionId> {
    let action = actions::insert(tx, &job.action).await?;
    let a = &job.action;
    let (minions, missing) =
        (join(job.minions.iter().map(MinionId::as_str)), join(job.missing.iter().map(String::as_str)));
    let values = params![
        job.jid,
        action,
        a.created,
        &a.fun,
        &a.arg,
        &a.target,
        &a.target_type,
        &a.initiator,
        minions,
        missing,
        &job.load,
        a.internal,
        published
    ];
    tx.execute(INSERT, values).await?;
    Ok(action)
}

struct Published(Jid, Timestamp);

impl Operation for Published {
    type Output = ();
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _log: &'a mut Log) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move { tx.execute(PUBLISHED, params![self.0, self.1]).await.map(drop) })
    }
}

impl Store {
    /// Stores a job with its action, runs and attempts; returns the action's id after the commit.
    pub async fn create_job(&self, job: NewJob) -> Result<ActionId> {
        self.write(job).await
    }

    /// Notes that a job has gone out.
    pub async fn mark_published(&self, jid: Jid, at: Timestamp) -> Result<()> {
        self.write(Published(jid, at)).await
    }

    /// One job.
    pub async fn job(&self, jid: Jid) -> Result<Option<Job>> {
        self.query(ONE, params![jid]).await?.into_iter().next().map(read).transpose()
    }

    /// A page of jobs, newest first.
    pub async fn jobs(&self, page: &JobPage) -> Result<Vec<Job>> {
        let before = page.before.as_ref().map_or(AFTER_ALL, Jid::as_str);
        let statement = if page.open { OPEN_PAGE } else { PAGE };
        let rows = self.query(statement, params![before, page.internal, page.limit]).await?;
        rows.into_iter().map(read).collect()
    }

    /// Jobs that were accepted and never went out, oldest first.
    pub async fn unpublished_jobs(&self, limit: usize) -> Result<Vec<Job>> {
        self.query(UNPUBLISHED, params![limit]).await?.into_iter().map(read).collect()
    }

    /// The newest job id there is.
    pub async fn newest_jid(&self) -> Result<Option<Jid>> {
        match self.query(NEWEST, params![]).await?.into_iter().next() {
            Some(mut row) => row.opt_jid(0),
            None => Ok(None),
        }
    }
}

fn read(mut row: Row) -> Result<Job> {
    let id = |id| MinionId::new(id).map_err(|_| Error::Shape { what: "jobs", column: 9 });
    let minions = split(&row.text(9)?).map(id).collect::<Result<_>>()?;
    let missing = split(&row.text(10)?).map(str::to_owned).collect();
    Ok(Job {
        jid: row.jid(0)?,
        action: ActionId(row.int(1)?),
        created: row.time(2)?,
        published: row.opt_time(3)?,
        fun: row.text(4)?,
        arg: row.text(5)?,
        target: row.text(6)?,
        target_type: row.text(7)?,
        initiator: row.text(8)?,
        minions,
        missing,
        load: row.blob(11)?,
        internal: row.flag(12)?,
    })
}

/// Names one per line: smaller and quicker than JSON, and no id has a line break.
fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.filter(|name| !name.contains('\n')).collect::<Vec<_>>().join("\n")
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').filter(|name| !name.is_empty())
}

impl Body {
    /// An empty body.
    pub const fn empty() -> Self {
        Self { encoding: 0, bytes: Vec::new() }
    }
}
