//! Servers that share this database: who lives, and whose minions are whose.
//!
//! A server holds a place as long as it shows itself from time to time. A minion belongs to the server it last connected to:
//! only that one can publish to it. When a server no longer shows itself its minions belong to nobody, until they connect
//! elsewhere.

use crate::db::{Effects, Locking, Operation, Tx, locking, params};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// What a server reads when it shows itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// How many other servers live
    pub servers: usize,
    /// How many of them have a lower place
    pub lower: usize,
    /// The minions that are theirs
    pub minions: Vec<MinionId>,
    /// Changes whenever a key was decided on
    pub keys: (i64, i64),
}

const PLACES: Locking = locking!("SELECT place, beat FROM servers ORDER BY place");
const TAKE: &str = "INSERT INTO servers (place, name, beat) VALUES (?1, ?2, ?3) \
    ON CONFLICT (place) DO UPDATE SET name = excluded.name, beat = excluded.beat";
const BEAT: &str = "UPDATE servers SET beat = ?2 WHERE place = ?1";
const LEAVE: &str = "DELETE FROM servers WHERE place = ?1";
const OWN: &str = "UPDATE minions SET server = ?2 WHERE id = ?1 AND (server IS NULL OR server <> ?2)";
const OTHERS: &str = "SELECT count(*), coalesce(sum(CASE WHEN place < ?1 THEN 1 ELSE 0 END), 0) FROM servers \
    WHERE place <> ?1 AND beat > ?2";
const THEIRS: &str = "SELECT m.id FROM minions m JOIN servers s ON s.place = m.server \
    WHERE s.place <> ?1 AND s.beat > ?2 ORDER BY m.id";
const KEYS: &str = "SELECT count(*), coalesce(max(since), 0) FROM keys";

struct Join(String, Timestamp, Timestamp);

impl Operation for Join {
    type Output = i64;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<i64>> {
        Box::pin(async move {
            let Self(name, now, dead) = self;
            let mut place = 0;
            for row in tx.query_locking(&PLACES, params![]).await? {
                if row.int(0)? != place || row.time(1)? < *dead {
                    break;
                }
                place += 1;
            }
            tx.execute(TAKE, params![place, name, *now]).await?;
            Ok(place)
        })
    }
}

struct Change(&'static str, Vec<Vec<crate::db::Param>>);

impl Operation for Change {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move { tx.execute_many(self.0, self.1.clone()).await.map(drop) })
    }
}

impl Store {
    /// Takes a place among the servers of this database: the first that is free, or whose holder has not shown itself
    /// since `dead`.
    pub async fn join_servers(&self, name: String, now: Timestamp, dead: Timestamp) -> Result<i64> {
        self.write(Join(name, now, dead)).await
    }

    /// Gives the place up.
    pub async fn leave_servers(&self, place: i64) -> Result<()> {
        self.write(Change(LEAVE, vec![params![place]])).await
    }

    /// Shows that the server of this place lives, and looks who else does.
    pub async fn beat(&self, place: i64, now: Timestamp, dead: Timestamp) -> Result<Neighbours> {
        self.write(Change(BEAT, vec![params![place, now]])).await?;
        let others = self.query(OTHERS, params![place, dead]).await?;
        let (servers, lower) = match others.first() {
            Some(row) => (row.int(0)?, row.int(1)?),
            None => (0, 0),
        };
        let keys = self.query(KEYS, params![]).await?;
        let keys = match keys.first() {
            Some(row) => (row.int(0)?, row.int(1)?),
            None => (0, 0),
        };
        let mut minions = Vec::new();
        if servers > 0 {
            for mut row in self.query(THEIRS, params![place, dead]).await? {
                minions.push(row.minion(0)?);
            }
        }
        let count = |number: i64| usize::try_from(number).unwrap_or(0);
        Ok(Neighbours { servers: count(servers), lower: count(lower), minions, keys })
    }

    /// Notes that these minions are connected to the server of this place.
    pub async fn own_minions(&self, place: i64, minions: &[MinionId]) -> Result<()> {
        self.write(Change(OWN, minions.iter().map(|minion| params![minion, place]).collect())).await
    }
}
