//! How launches go that ended long ago: with their minions, plans and actions, a few rows at a time.

use super::plans;
use crate::db::{Effects, Locking, Operation, Tx, locking, params};
use crate::retention::{self, Deleted};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, LaunchId};
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;

pub(crate) const OLDEST: &str =
    "SELECT id FROM launches WHERE ended IS NOT NULL AND ended < ?1 ORDER BY ended, id LIMIT 1";
const LOCK: Locking = locking!("SELECT id FROM launches WHERE id = ?1");
const MINIONS: &str = "SELECT minion, plan FROM launch_minions WHERE launch = ?1 ORDER BY minion LIMIT ?2";
const REMOVE_MINION: &str = "DELETE FROM launch_minions WHERE launch = ?1 AND minion = ?2";
pub(crate) const ACTIONS: &str =
    "SELECT id FROM actions WHERE launch = ?1 AND ended IS NOT NULL ORDER BY step, id LIMIT ?2";
const REMOVE: &str = "DELETE FROM launches WHERE id = ?1";

struct Purge {
    before: Timestamp,
    step: usize,
}

impl Purge {
    /// Removes minions of a launch, and plans that were theirs alone; tells how many minions.
    async fn minions(&self, tx: &Tx<'_>, launch: LaunchId, room: u64) -> Result<u64> {
        let (mut keys, mut hashes) = (Vec::new(), BTreeSet::new());
        for mut row in tx.query(MINIONS, params![launch, limit(room)]).await? {
            keys.push(params![launch, &row.minion(0)?]);
            hashes.insert(row.text(1)?);
        }
        let removed = tx.execute_many(REMOVE_MINION, keys).await?.into_iter().sum();
        plans::drop_unused(tx, &hashes).await?;
        Ok(removed)
    }

    /// Removes actions of a launch; tells how many rows are left to remove then. One that is open after all stays, and goes
    /// like any other when it has ended.
    async fn actions(&self, tx: &Tx<'_>, launch: LaunchId, mut room: u64) -> Result<u64> {
        for row in tx.query(ACTIONS, params![launch, limit(room)]).await? {
            if retention::remove(tx, ActionId(row.int(0)?), false, &mut room).await? == Deleted::More {
                return Ok(0);
            }
            room = room.saturating_sub(1);
        }
        Ok(room)
    }
}

impl Operation for Purge {
    type Output = usize;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            let oldest = tx.query(OLDEST, params![self.before]).await?;
            let Some(launch) = oldest.first().map(|row| row.int(0).map(LaunchId)).transpose()? else { return Ok(0) };
            let all = self.step.max(1) as u64;
            tx.query_locking(&LOCK, params![launch]).await?;
            let mut room = all - self.minions(tx, launch, all).await?.min(all);
            if room > 0 {
                room = self.actions(tx, launch, room).await?;
            }
            if room > 0 {
                tx.execute(REMOVE, params![launch]).await?;
                room -= 1;
            }
            Ok(usize::try_from(all - room).unwrap_or(usize::MAX))
        })
    }
}

impl Store {
    /// Removes the launch that ended first, if it was before then, with its minions, the plans that only they had, and its
    /// actions; at most `step` rows at once. Tells how many; 0: there is none left.
    pub async fn purge_launches(&self, before: Timestamp, step: usize) -> Result<usize> {
        self.write(Purge { before, step }).await
    }
}

fn limit(room: u64) -> i64 {
    i64::try_from(room).unwrap_or(i64::MAX)
}
