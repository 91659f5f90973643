//! How the database stays small: what is old enough goes, a few rows at a time.
//!
//! Every call is one short write, so whoever waits for a commit never waits for a clean-up.

use crate::db::{Effects, Locking, Operation, Param, Tx, locking, params};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, Jid};
use saltern_core::time::Timestamp;

/// What came of a step of deleting an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// There is no such action
    NotFound,
    /// Some of its runs have not ended
    Open,
    /// It was not put away before
    NotArchived,
    /// It is no longer listed, and there is more of it to remove: go on
    More,
    /// Nothing of it is left but its events
    Gone,
}

const FATE: Locking = locking!("SELECT ended, archived, deleting FROM actions WHERE id = ?1");
const HIDE: &str = "UPDATE actions SET deleting = 1 WHERE id = ?1";
// Returns are found by the jobs, so these go after them; the action goes last, or nobody would know of the rest.
// What goes first is said, so that the databases agree on what is left in between.
const PARTS: [&str; 4] = [
    "DELETE FROM returns WHERE (jid, minion) IN \
     (SELECT r.jid, r.minion FROM jobs j JOIN returns r ON r.jid = j.jid WHERE j.action = ?1 \
     ORDER BY r.jid, r.minion LIMIT ?2)",
    "DELETE FROM attempts WHERE (action, minion, number) IN \
     (SELECT action, minion, number FROM attempts WHERE action = ?1 \
     ORDER BY minion, number LIMIT ?2)",
    "DELETE FROM runs WHERE (action, minion) IN \
     (SELECT action, minion FROM runs WHERE action = ?1 ORDER BY minion LIMIT ?2)",
    "DELETE FROM jobs WHERE jid IN (SELECT jid FROM jobs WHERE action = ?1 ORDER BY jid LIMIT ?2)",
];
const REMOVE: &str = "DELETE FROM actions WHERE id = ?1";
// A launch that goes on still asks how its earlier steps ended.
pub(crate) const FINISHED: &str = "SELECT a.id FROM actions a WHERE a.ended IS NOT NULL AND a.ended < ?1 \
    AND (SELECT l.id FROM launches l WHERE l.id = a.launch AND l.ended IS NULL) IS NULL ORDER BY a.ended, a.id LIMIT ?2";
const FINISHED_COUNT: &str = "SELECT count(*) FROM actions WHERE ended IS NOT NULL";

struct Delete {
    action: ActionId,
    step: usize,
    only_archived: bool,
}

impl Operation for Delete {
    type Output = Deleted;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Deleted>> {
        Box::pin(async move { remove(tx, self.action, self.only_archived, &mut (self.step.max(1) as u64)).await })
    }
}

/// Removes an action that has ended with all that belongs to it, at most `room` rows, which is less by so many then.
pub(crate) async fn remove(tx: &Tx<'_>, action: ActionId, only_archived: bool, room: &mut u64) -> Result<Deleted> {
    let rows = tx.query_locking(&FATE, params![action]).await?;
    let Some(row) = rows.first() else { return Ok(Deleted::NotFound) };
    if row.opt_time(0)?.is_none() {
        return Ok(Deleted::Open);
    }
    if only_archived && row.opt_time(1)?.is_none() {
        return Ok(Deleted::NotArchived);
    }
    if !row.flag(2)? {
        tx.execute(HIDE, params![action]).await?;
    }
    for part in PARTS {
        let limit = i64::try_from(*room).unwrap_or(i64::MAX);
        *room = room.saturating_sub(tx.execute(part, params![action, limit]).await?);
        if *room == 0 {
            return Ok(Deleted::More);
        }
    }
    tx.execute(REMOVE, params![action]).await?;
    Ok(Deleted::Gone)
}

/// A numbered log that is cut off at its old end.
struct Cut {
    bounds: &'static str,
    first_young: &'static str,
    remove: &'static str,
    /// Whether the newest entry stays in any case.
    keeps_last: bool,
}

macro_rules! cut {
    ($table:literal, keeps_last: $keeps_last:literal) => {
        Cut {
            bounds: concat!("SELECT (SELECT min(number) FROM ", $table, "), (SELECT max(number) FROM ", $table, ")"),
            first_young: concat!(
                "SELECT number FROM ",
                $table,
                " WHERE number >= ?1 AND number <= ?2 AND at >= ?3 ORDER BY number LIMIT 1"
            ),
            remove: concat!("DELETE FROM ", $table, " WHERE number >= ?1 AND number <= ?2"),
            keeps_last: $keeps_last,
        }
    };
}

// The newest event tells where the log is; without it a listener could not tell an empty log from a new one.
const EVENTS: Cut = cut!("events", keeps_last: true);
const DEAD_LETTERS: Cut = cut!("dead_letters", keeps_last: false);

struct Purge {
    log: &'static Cut,
    before: Timestamp,
    keep_newest: usize,
    step: usize,
}

impl Operation for Purge {
    type Output = usize;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            let rows = tx.query(self.log.bounds, params![]).await?;
            let Some((Some(first), Some(last))) =
                rows.first().map(|row| Ok::<_, crate::Error>((row.opt_int(0)?, row.opt_int(1)?))).transpose()?
            else {
                return Ok(0);
            };
            let whole = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
            let end = first.saturating_add(whole(self.step.max(1)) - 1).min(last - i64::from(self.log.keeps_last));
            let young = tx.query(self.log.first_young, params![first, end, self.before]).await?;
            let old_end = young.first().map_or(Ok(end), |row| row.int(0).map(|number| number - 1))?;
            let excess_end = last.saturating_sub(whole(self.keep_newest)).min(end);
            let removed = tx.execute(self.log.remove, params![first, old_end.max(excess_end)]).await?;
            Ok(usize::try_from(removed).unwrap_or(usize::MAX))
        })
    }
}

pub(crate) const OLD_TOKENS: &str = "SELECT id FROM tokens WHERE expires <= ?1 ORDER BY expires, id LIMIT ?2";
pub(crate) const OLD_REQUESTS: &str =
    "SELECT user_name, key FROM requests WHERE at < ?1 ORDER BY at, user_name, key LIMIT ?2";
pub(crate) const OLD_CALLS: &str = "SELECT jid FROM calls WHERE jid < ?1 AND ended IS NOT NULL ORDER BY jid LIMIT ?2";
pub(crate) const OLD_DEAD_DELIVERIES: &str =
    "SELECT webhook, number FROM webhook_dead WHERE at < ?1 ORDER BY at, webhook, number LIMIT ?2";
pub(crate) const OLD_FIRES: &str =
    "SELECT recurring, planned FROM fires WHERE at < ?1 ORDER BY at, recurring, planned LIMIT ?2";

/// Removes the oldest rows of a table by their keys. In one statement, PostgreSQL may well read the whole table for it.
struct Clear {
    old: &'static str,
    bounds: Vec<Param>,
    remove: &'static str,
}

impl Operation for Clear {
    type Output = usize;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            let keys = tx.query(self.old, self.bounds.clone()).await?.into_iter().map(|row| row.0).collect();
            let removed: u64 = tx.execute_many(self.remove, keys).await?.into_iter().sum();
            Ok(usize::try_from(removed).unwrap_or(usize::MAX))
        })
    }
}

impl Store {
    /// Removes an action that was put away and has ended, with all that belongs to it, at most `step` rows at once. From the
    /// first step on it is listed no more.
    pub async fn delete_action(&self, action: ActionId, step: usize) -> Result<Deleted> {
        self.write(Delete { action, step, only_archived: true }).await
    }

    /// The same for an action that has ended, whether or not it was put away.
    pub async fn purge_action(&self, action: ActionId, step: usize) -> Result<Deleted> {
        self.write(Delete { action, step, only_archived: false }).await
    }

    /// Actions that ended before then, the one that ended first before the others; also those that are being deleted. Not
    /// those of a launch that goes on.
    pub async fn finished_actions(&self, before: Timestamp, limit: usize) -> Result<Vec<ActionId>> {
        let rows = self.query(FINISHED, params![before, limit]).await?;
        rows.iter().map(|row| row.int(0).map(ActionId)).collect()
    }

    /// How many more actions have ended than are to be kept.
    pub async fn finished_count_excess(&self, keep: usize) -> Result<usize> {
        let rows = self.query(FINISHED_COUNT, params![]).await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(usize::try_from(count).unwrap_or(0).saturating_sub(keep))
    }

    /// Removes events from the old end of the log: those before `before`, and those that are not among the `keep_newest`
    /// newest; at most `step` at once. Tells how many. The newest event always stays.
    pub async fn purge_events(&self, before: Timestamp, keep_newest: usize, step: usize) -> Result<usize> {
        self.write(Purge { log: &EVENTS, before, keep_newest, step }).await
    }

    /// The same for dead letters.
    pub async fn purge_dead_letters(&self, before: Timestamp, keep_newest: usize, step: usize) -> Result<usize> {
        self.write(Purge { log: &DEAD_LETTERS, before, keep_newest, step }).await
    }

    /// Removes tokens that are no longer valid at `now`, at most `step` at once; tells how many.
    pub async fn purge_tokens(&self, now: Timestamp, step: usize) -> Result<usize> {
        let remove = "DELETE FROM tokens WHERE id = ?1";
        self.write(Clear { old: OLD_TOKENS, bounds: params![now, step], remove }).await
    }

    /// The same for requests with an idempotency key that came before then, answered or not.
    pub async fn purge_requests(&self, before: Timestamp, step: usize) -> Result<usize> {
        let remove = "DELETE FROM requests WHERE user_name = ?1 AND key = ?2";
        self.write(Clear { old: OLD_REQUESTS, bounds: params![before, step], remove }).await
    }

    /// The same for runner calls with a smaller job id that are over.
    pub async fn purge_calls(&self, before: Jid, step: usize) -> Result<usize> {
        let remove = "DELETE FROM calls WHERE jid = ?1";
        self.write(Clear { old: OLD_CALLS, bounds: params![before, step], remove }).await
    }

    /// The same for deliveries of webhooks that were given up before then.
    pub async fn purge_dead_deliveries(&self, before: Timestamp, step: usize) -> Result<usize> {
        let remove = "DELETE FROM webhook_dead WHERE webhook = ?1 AND number = ?2";
        self.write(Clear { old: OLD_DEAD_DELIVERIES, bounds: params![before, step], remove }).await
    }

    /// The same for what became of planned instants that were accounted for before then.
    pub async fn purge_fires(&self, before: Timestamp, step: usize) -> Result<usize> {
        let remove = "DELETE FROM fires WHERE recurring = ?1 AND planned = ?2";
        self.write(Clear { old: OLD_FIRES, bounds: params![before, step], remove }).await
    }
}
