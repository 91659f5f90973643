//! The grains each minion last sent.

use crate::db::{Effects, Operation, Tx, params};
use crate::events::NewEvent;
use crate::{Body, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// A minion's grains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrainsRow {
    /// Whose
    pub minion: MinionId,
    /// When they came
    pub at: Timestamp,
    /// The grains
    pub body: Body,
}

const PUT: &str = "INSERT INTO grains (minion, at, encoding, body) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (minion) DO UPDATE SET at = excluded.at, encoding = excluded.encoding, body = excluded.body";
pub(crate) const AFTER: &str =
    "SELECT minion, at, encoding, body FROM grains WHERE minion > ?1 ORDER BY minion LIMIT ?2";

struct Put(GrainsRow, Vec<NewEvent>);

impl Operation for Put {
    type Output = ();
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        let GrainsRow { minion, at, body } = &self.0;
        effects.log(&self.1);
        Box::pin(async move {
            tx.execute(PUT, params![minion, *at, body.encoding, &body.bytes]).await?;
            Ok(())
        })
    }
}

struct Remove(MinionId);

impl Operation for Remove {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move { tx.execute("DELETE FROM grains WHERE minion = ?1", params![&self.0]).await.map(drop) })
    }
}

impl Store {
    /// Forgets a minion's grains.
    pub async fn remove_grains(&self, minion: MinionId) -> Result<()> {
        self.write(Remove(minion)).await
    }

    /// Keeps a minion's grains, with the events that tell of it.
    pub async fn record_grains(&self, grains: GrainsRow, events: Vec<NewEvent>) -> Result<()> {
        self.write(Put(grains, events)).await
    }

    /// Grains of the minions after `after` in the order of ids (empty text: from the first), at most `limit`.
    pub async fn grains_after(&self, after: &str, limit: usize) -> Result<Vec<GrainsRow>> {
        let rows = self.query(AFTER, params![after, limit]).await?;
        let read = |mut row: crate::db::Row| {
            let body = Body { encoding: row.int(2)?, bytes: row.blob(3)? };
            Ok(GrainsRow { minion: row.minion(0)?, at: row.time(1)?, body })
        };
        rows.into_iter().map(read).collect()
    }
}
