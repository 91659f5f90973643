//! Jobs: one publish each, with the minions it was for.
//!
//! An action has a job for its first attempts and one for each round of further ones. What is told about a job beside its
//! minions is that of its action, copied: clients that know Salt ask for jobs, and get all of it with one read.

use crate::actions::NewAction;
use crate::db::{Row, Tx, params};
use crate::{Body, Error, Result, Store};
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::time::Timestamp;

/// A job to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Its id
    pub jid: Jid,
    /// The minions it is for
    pub minions: Vec<MinionId>,
    /// Names in a list target that no accepted minion has
    pub missing: Vec<String>,
}

/// A job as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id
    pub jid: Jid,
    /// The action it carries out
    pub action: ActionId,
    /// When it was made
    pub created: Timestamp,
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
    /// Whether it is housekeeping of the server itself
    pub internal: bool,
    /// What its asker wrote beside it, as JSON text
    pub metadata: Option<String>,
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
    /// Only jobs of actions with a run that has not ended
    pub open: bool,
}

/// What a job has from its action.
pub(crate) struct Copied {
    fun: String,
    arg: String,
    target: String,
    target_type: String,
    initiator: String,
    internal: bool,
}

const INSERT: &str = "INSERT INTO jobs (jid, action, created, fun, arg, target, target_type, initiator, minions, missing, internal) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (jid) DO NOTHING";

macro_rules! select {
    ($rest:literal) => {
        select!("jobs j", $rest)
    };
    ($from:literal, $rest:literal) => {
        concat!(
            "SELECT j.jid, j.action, j.created, j.fun, j.arg, j.target, j.target_type, j.initiator, j.minions, \
             j.missing, j.internal, (SELECT a.metadata FROM actions a WHERE a.id = j.action) FROM ",
            $from,
            " ",
            $rest
        )
    };
}

const ONE: &str = select!("WHERE j.jid = ?1");
pub(crate) const OF_ACTION: &str = select!("WHERE j.action = ?1 ORDER BY j.jid");
pub(crate) const PAGE: &str = select!("WHERE j.jid < ?1 AND j.internal <= ?2 ORDER BY j.jid DESC LIMIT ?3");
// From the open actions to their jobs: the cost is that of what is open, however many jobs there have been. SQLite keeps to
// the order of a cross join.
pub(crate) const OPEN_PAGE: &str = select!(
    "actions o CROSS JOIN jobs j",
    "WHERE o.ended IS NULL AND j.action = o.id AND j.jid < ?1 AND j.internal <= ?2 ORDER BY j.jid DESC LIMIT ?3"
);
/// Behind every job id in any order of text: one digit longer than the largest.
pub(crate) const AFTER_ALL: &str = "999999999999999999999";
// Runner calls have ids of the same kind, and launches have keys.
const NEWEST: &str = "SELECT max(jid) FROM (SELECT max(jid) AS jid FROM jobs UNION ALL SELECT max(jid) FROM calls \
    UNION ALL SELECT max(key) FROM launches) AS newest";

/// Stores a job of an action.
pub(crate) async fn insert(
    tx: &Tx<'_>,
    action: ActionId,
    created: Timestamp,
    job: &NewJob,
    copied: &Copied,
) -> Result<()> {
    let (minions, missing) =
        (join(job.minions.iter().map(MinionId::as_str)), join(job.missing.iter().map(String::as_str)));
    let Copied { fun, arg, target, target_type, initiator, internal } = copied;
    let values =
        params![job.jid, action, created, fun, arg, target, target_type, initiator, minions, missing, *internal];
    if tx.execute(INSERT, values).await? == 0 {
        return Err(Error::JidTaken);
    }
    Ok(())
}

/// Whether there is such a job.
pub(crate) async fn exists(tx: &Tx<'_>, jid: Jid) -> Result<bool> {
    Ok(!tx.query("SELECT 1 FROM jobs WHERE jid = ?1", params![jid]).await?.is_empty())
}

impl Copied {
    /// Reads the columns `fun, arg, target, target_type, initiator, internal` of an action.
    pub(crate) fn read(mut row: Row) -> Result<Self> {
        Ok(Self {
            fun: row.text(0)?,
            arg: row.text(1)?,
            target: row.text(2)?,
            target_type: row.text(3)?,
            initiator: row.text(4)?,
            internal: row.flag(5)?,
        })
    }
}

impl From<&NewAction> for Copied {
    fn from(action: &NewAction) -> Self {
        let NewAction { fun, arg, target, target_type, initiator, internal, .. } = action.clone();
        Self { fun, arg, target, target_type, initiator, internal }
    }
}

impl Store {
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

    /// The jobs of an action, oldest first.
    pub async fn jobs_of(&self, action: ActionId) -> Result<Vec<Job>> {
        self.query(OF_ACTION, params![action]).await?.into_iter().map(read).collect()
    }

    /// The newest job id there is, those of runner calls and the keys of launches included.
    pub async fn newest_jid(&self) -> Result<Option<Jid>> {
        match self.query(NEWEST, params![]).await?.into_iter().next() {
            Some(mut row) => row.opt_jid(0),
            None => Ok(None),
        }
    }
}

fn read(mut row: Row) -> Result<Job> {
    let id = |id| MinionId::new(id).map_err(|_| Error::Shape { what: "jobs", column: 8 });
    let minions = split(&row.text(8)?).map(id).collect::<Result<_>>()?;
    let missing = split(&row.text(9)?).map(str::to_owned).collect();
    Ok(Job {
        jid: row.jid(0)?,
        action: ActionId(row.int(1)?),
        created: row.time(2)?,
        fun: row.text(3)?,
        arg: row.text(4)?,
        target: row.text(5)?,
        target_type: row.text(6)?,
        initiator: row.text(7)?,
        minions,
        missing,
        internal: row.flag(10)?,
        metadata: row.opt_text(11)?,
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
