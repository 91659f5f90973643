//! The mine: values that minions offer to each other.

use crate::db::{Effects, Operation, Tx, params};
use crate::{Body, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// One function's value in one minion's mine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MineEntry {
    /// Whose
    pub minion: MinionId,
    /// The function's name, or its alias
    pub fun: String,
    /// The value, with its access rule if it has one
    pub body: Body,
}

const PUT: &str = "INSERT INTO mine (minion, fun, at, encoding, body) VALUES (?1, ?2, ?3, ?4, ?5) \
    ON CONFLICT (minion, fun) DO UPDATE SET at = excluded.at, encoding = excluded.encoding, body = excluded.body";
pub(crate) const OF_FUN: &str = "SELECT minion, fun, encoding, body FROM mine WHERE fun = ?1 ORDER BY minion";
const BY_MINION: &str = "SELECT minion, fun, encoding, body FROM mine WHERE minion = ?1 ORDER BY fun";
const CLEAR: &str = "DELETE FROM mine WHERE minion = ?1";
const REMOVE: &str = "DELETE FROM mine WHERE minion = ?1 AND fun = ?2";

enum Change {
    Put { minion: MinionId, at: Timestamp, entries: Vec<(String, Body)>, clear: bool },
    Remove { minion: MinionId, fun: Option<String> },
}

impl Operation for Change {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self {
                Self::Put { minion, at, entries, clear } => {
                    if *clear {
                        tx.execute(CLEAR, params![minion]).await?;
                    }
                    let row = |(fun, body): &(String, Body)| params![minion, fun, *at, body.encoding, &body.bytes];
                    tx.execute_many(PUT, entries.iter().map(row).collect()).await?;
                }
                Self::Remove { minion, fun: Some(fun) } => drop(tx.execute(REMOVE, params![minion, fun]).await?),
                Self::Remove { minion, fun: None } => drop(tx.execute(CLEAR, params![minion]).await?),
            }
            Ok(())
        })
    }
}

impl Store {
    /// Adds or replaces values; `clear` removes the minion's others first.
    pub async fn put_mine(
        &self,
        minion: MinionId,
        at: Timestamp,
        entries: Vec<(String, Body)>,
        clear: bool,
    ) -> Result<()> {
        self.write(Change::Put { minion, at, entries, clear }).await
    }

    /// Removes one function's value, or all of a minion's.
    pub async fn remove_mine(&self, minion: MinionId, fun: Option<String>) -> Result<()> {
        self.write(Change::Remove { minion, fun }).await
    }

    /// What every minion has under this function.
    pub async fn mine_of(&self, fun: &str) -> Result<Vec<MineEntry>> {
        self.query(OF_FUN, params![fun]).await?.into_iter().map(read).collect()
    }

    /// Everything that one minion has.
    pub async fn mine_by(&self, minion: &MinionId) -> Result<Vec<MineEntry>> {
        self.query(BY_MINION, params![minion]).await?.into_iter().map(read).collect()
    }
}

fn read(mut row: crate::db::Row) -> Result<MineEntry> {
    let body = Body { encoding: row.int(2)?, bytes: row.blob(3)? };
    Ok(MineEntry { minion: row.minion(0)?, fun: row.text(1)?, body })
}
