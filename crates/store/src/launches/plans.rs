//! What minions are to do, kept once for all that are to do the same, for as long as a minion of a launch has it.

use crate::db::{Locking, Tx, locking, params};
use crate::{Result, Store};
use std::collections::{BTreeMap, BTreeSet};

// One that is there is locked: whoever is about to remove it as of no use waits, and then sees who has come to use it.
const KEEP: &str =
    "INSERT INTO plans (hash, body) VALUES (?1, ?2) ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash";
const LOCK: Locking = locking!("SELECT hash FROM plans WHERE hash = ?1");
const DROP: &str =
    "DELETE FROM plans WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM launch_minions m WHERE m.plan = ?1)";

/// Keeps plans that minions are about to get.
pub(super) async fn keep(tx: &Tx<'_>, plans: &[(String, String)]) -> Result<()> {
    // In the order of their hashes, as they are removed: nobody waits in a circle.
    let plans: BTreeMap<&String, &String> = plans.iter().map(|(hash, body)| (hash, body)).collect();
    let rows = plans.into_iter().map(|(hash, body)| params![hash, body]);
    tx.execute_many(KEEP, rows.collect()).await.map(drop)
}

/// Removes those of these plans that no minion has any more.
pub(super) async fn drop_unused(tx: &Tx<'_>, hashes: &BTreeSet<String>) -> Result<()> {
    // Locked by a statement of their own: the next one sees what was committed while this one waited.
    for hash in hashes {
        tx.query_locking(&LOCK, params![hash]).await?;
    }
    tx.execute_many(DROP, hashes.iter().map(|hash| params![hash]).collect()).await.map(drop)
}

impl Store {
    /// The plan with this hash.
    pub async fn plan(&self, hash: &str) -> Result<Option<String>> {
        let rows = self.query("SELECT body FROM plans WHERE hash = ?1", params![hash]).await?;
        rows.into_iter().next().map(|mut row| row.text(0)).transpose()
    }
}
