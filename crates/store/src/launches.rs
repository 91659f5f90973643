//! Launches: one execution of a chain each. Its steps are actions; beside them it is known where each minion stands.
//!
//! Rows are locked in one order, so that servers on the same database do not wait for each other in a circle: the launch,
//! then minions by name and launch, then plans and runs.

mod create;
pub(crate) mod minions;
mod moves;
mod plans;
pub(crate) mod purge;
mod verbs;
pub(crate) mod watch;

pub use create::{LaunchEvents, NewLaunch, NewLaunchMinion, NewStep, NewStepRun};
pub use minions::{LaunchMinion, MinionState};
pub(crate) use moves::Moves as MinionMoves;
pub use moves::{ChunkClaim, MinionMove};
pub use verbs::LaunchCancelled;

use crate::db::{Effects, Param, Row, Tx, params};
use crate::{Error, Result, Store};
use saltern_core::ids::{ActionId, ChainId, Jid, LaunchId, RecurringId};
use saltern_core::time::Timestamp;

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its id
    pub id: LaunchId,
    /// What minions know it by
    pub key: Jid,
    /// The chain it was launched from
    pub chain: Option<ChainId>,
    /// What people call it
    pub name: String,
    /// Who launched it
    pub initiator: String,
    /// From where
    pub origin: String,
    /// The organisation it belongs to
    pub org: String,
    /// When it was launched
    pub created: Timestamp,
    /// When it is due
    pub due: Timestamp,
    /// When whatever is still open ends
    pub deadline: Timestamp,
    /// Its steps, as JSON text
    pub steps: String,
    /// Who has let which steps begin, in the order in which they said so
    pub approvals: Vec<Approval>,
    /// When somebody cancelled it, and who
    pub cancelled: Option<(Timestamp, String)>,
    /// Whether what is under way is to be stopped, too
    pub stopped: bool,
    /// When its last minion ended; nothing while any is open
    pub ended: Option<Timestamp>,
    /// How its minions stand
    pub counts: LaunchCounts,
    /// The recurring action that it is one time of
    pub recurring: Option<RecurringId>,
}

/// Somebody's word that a step may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Which step
    pub step: i64,
    /// Who says so
    pub by: String,
    /// When
    pub at: Timestamp,
}

/// How many minions of a launch stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchCounts {
    /// All
    pub total: i64,
    /// Not at the end of their plan
    pub open: i64,
    /// Ended well
    pub completed: i64,
    /// Ended badly
    pub failed: i64,
    /// Ended because somebody cancelled it
    pub cancelled: i64,
}

/// A page of launches, newest first.
#[derive(Clone, Debug, Default)]
pub struct LaunchPage {
    /// Only launches older than this one
    pub before: Option<LaunchId>,
    /// At most so many
    pub limit: usize,
    /// Only those with a minion that has not ended
    pub open: bool,
    /// Only those of this chain
    pub chain: Option<ChainId>,
    /// Only those of this user
    pub initiator: Option<String>,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT l.id, l.key, l.chain, l.name, l.initiator, l.origin, l.org, l.created, l.due, l.deadline, l.steps, \
             l.approvals, l.cancelled, l.cancelled_by, l.stopped, l.ended, \
             l.total, l.open, l.completed, l.failed, l.cancelled_count, l.recurring FROM launches l ",
            $rest
        )
    };
}

macro_rules! page {
    ($which:literal) => {
        select!(concat!("WHERE ", $which, "l.id < ?1 AND (?2 = '' OR l.initiator = ?2) ORDER BY l.id DESC LIMIT ?3"))
    };
}

const ONE: &str = select!("WHERE l.id = ?1");
const BY_KEY: &str = select!("WHERE l.key = ?1");
pub(crate) const PAGE_ALL: &str = page!("");
pub(crate) const PAGE_OPEN: &str = page!("l.ended IS NULL AND ");
pub(crate) const PAGE_OF_CHAIN: &str = page!("l.chain = ?4 AND ");
pub(crate) const PAGE_OPEN_OF_CHAIN: &str = page!("l.ended IS NULL AND l.chain = ?4 AND ");
pub(crate) const OPEN: &str = select!("WHERE l.ended IS NULL AND l.id > ?1 ORDER BY l.id LIMIT ?2");

const COUNT: &str = "UPDATE launches SET open = open - ?2, completed = completed + ?3, failed = failed + ?4, \
    cancelled_count = cancelled_count + ?5, ended = CASE WHEN open - ?2 > 0 THEN NULL ELSE coalesce(ended, ?6) END \
    WHERE id = ?1 RETURNING total, open, completed, failed, cancelled_count";
const HEAD: &str = "SELECT id FROM actions WHERE launch = ?1 AND step IS NOT NULL ORDER BY step, id LIMIT 1";

impl Store {
    /// One launch.
    pub async fn launch(&self, id: LaunchId) -> Result<Option<Launch>> {
        Ok(self.list_launches(ONE, params![id]).await?.into_iter().next())
    }

    /// The launch that minions know by this key.
    pub async fn launch_with_key(&self, key: Jid) -> Result<Option<Launch>> {
        Ok(self.list_launches(BY_KEY, params![key]).await?.into_iter().next())
    }

    /// A page of launches, newest first.
    pub async fn launches(&self, page: &LaunchPage) -> Result<Vec<Launch>> {
        let before = page.before.map_or(i64::MAX, |id| id.0);
        let initiator = page.initiator.as_deref().unwrap_or_default();
        let mut values = params![before, initiator, page.limit];
        values.extend(page.chain.map(Param::from));
        let statement = match (page.open, page.chain) {
            (false, None) => PAGE_ALL,
            (true, None) => PAGE_OPEN,
            (false, Some(_)) => PAGE_OF_CHAIN,
            (true, Some(_)) => PAGE_OPEN_OF_CHAIN,
        };
        self.list_launches(statement, values).await
    }

    /// Launches with a minion that has not ended, after `after` in the order of ids.
    pub async fn open_launches(&self, after: LaunchId, limit: usize) -> Result<Vec<Launch>> {
        self.list_launches(OPEN, params![after, limit]).await
    }

    async fn list_launches(&self, sql: &'static str, values: Vec<Param>) -> Result<Vec<Launch>> {
        self.query(sql, values).await?.into_iter().map(read).collect()
    }
}

/// Counts minions of a launch that have just ended; the last one ends the launch, and it is told.
async fn count_ended(
    tx: &Tx<'_>,
    effects: &mut Effects,
    launch: LaunchId,
    ended: LaunchCounts,
    at: Timestamp,
) -> Result<()> {
    let LaunchCounts { completed, failed, cancelled, .. } = ended;
    let values = params![launch, completed + failed + cancelled, completed, failed, cancelled, at];
    let rows = tx.query(COUNT, values).await?;
    let Some(counts) = rows.first().map(|row| read_counts(row, 0)).transpose()? else { return Ok(()) };
    if counts.open == 0 {
        let head = tx.query(HEAD, params![launch]).await?;
        let head = head.first().map(|row| row.int(0).map(ActionId)).transpose()?;
        effects.launch_ended(launch, head, &counts, at);
    }
    Ok(())
}

fn read(mut row: Row) -> Result<Launch> {
    let cancelled_by = row.opt_text(13)?.unwrap_or_default();
    Ok(Launch {
        id: LaunchId(row.int(0)?),
        key: row.jid(1)?,
        chain: row.opt_int(2)?.map(ChainId),
        name: row.text(3)?,
        initiator: row.text(4)?,
        origin: row.text(5)?,
        org: row.text(6)?,
        created: row.time(7)?,
        due: row.time(8)?,
        deadline: row.time(9)?,
        steps: row.text(10)?,
        approvals: read_approvals(&row.text(11)?)?,
        cancelled: row.opt_time(12)?.map(|at| (at, cancelled_by)),
        stopped: row.flag(14)?,
        ended: row.opt_time(15)?,
        counts: read_counts(&row, 16)?,
        recurring: row.opt_int(21)?.map(RecurringId),
    })
}

fn read_counts(row: &Row, first: usize) -> Result<LaunchCounts> {
    Ok(LaunchCounts {
        total: row.int(first)?,
        open: row.int(first + 1)?,
        completed: row.int(first + 2)?,
        failed: row.int(first + 3)?,
        cancelled: row.int(first + 4)?,
    })
}

/// Approvals as they are kept: a list of step, user and time.
fn read_approvals(text: &str) -> Result<Vec<Approval>> {
    let rows: Vec<(i64, String, i64)> =
        serde_json::from_str(text).map_err(|_| Error::Shape { what: "launches.approvals", column: 0 })?;
    Ok(rows.into_iter().map(|(step, by, at)| Approval { step, by, at: Timestamp(at) }).collect())
}

fn write_approvals(approvals: &[Approval]) -> Result<String> {
    let rows: Vec<(i64, &str, i64)> =
        approvals.iter().map(|one| (one.step, one.by.as_str(), one.at.micros())).collect();
    serde_json::to_string(&rows).map_err(|error| Error::Database(error.to_string()))
}
