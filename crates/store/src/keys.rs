//! Minions' public keys and what was decided about them.

use crate::audit::AuditEntry;
use crate::db::{Effects, Operation, Row, Tx, params};
use crate::events::NewEvent;
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// Which of an id's two keys: its own, or the last foreign one that claimed the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeySlot {
    /// Unaccepted, accepted or rejected
    Current,
    /// Denied: another key than the accepted one
    Denied,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Whose
    pub minion: MinionId,
    /// Which of the two
    pub slot: KeySlot,
    /// `unaccepted`, `accepted`, `rejected` or `denied`: the words of `core::keys`
    pub state: String,
    /// The public key, cleaned PEM
    pub pem: String,
    /// Its fingerprint
    pub fingerprint: String,
    /// Since when it is in this state
    pub since: Timestamp,
}

/// A decision about keys: rows to write, rows to remove, what it says to the logs. One transaction.
#[derive(Clone, Debug, Default)]
struct Change {
    put: Vec<Key>,
    remove: Vec<(MinionId, KeySlot)>,
    events: Vec<NewEvent>,
    audit: Vec<AuditEntry>,
}

const ALL: &str = "SELECT minion, slot, state, pem, fingerprint, since FROM keys ORDER BY minion, slot";
const PUT: &str = "INSERT INTO keys (minion, slot, state, pem, fingerprint, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
    ON CONFLICT (minion, slot) DO UPDATE SET state = excluded.state, pem = excluded.pem, \
    fingerprint = excluded.fingerprint, since = excluded.since";
const REMOVE: &str = "DELETE FROM keys WHERE minion = ?1 AND slot = ?2";

impl KeySlot {
    const fn number(self) -> i64 {
        match self {
            Self::Current => 0,
            Self::Denied => 1,
        }
    }
}

impl Operation for Change {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for key in &self.put {
                let slot = key.slot.number();
                tx.execute(PUT, params![&key.minion, slot, &key.state, &key.pem, &key.fingerprint, key.since]).await?;
            }
            for (minion, slot) in &self.remove {
                tx.execute(REMOVE, params![minion, slot.number()]).await?;
            }
            effects.audit(&self.audit);
            effects.log(&self.events);
            Ok(())
        })
    }
}

impl Store {
    /// Every key there is.
    pub async fn keys(&self) -> Result<Vec<Key>> {
        self.query(ALL, params![]).await?.into_iter().map(read).collect()
    }

    /// Writes and removes keys together with the events and audit entries that tell of it.
    pub async fn change_keys(
        &self,
        put: Vec<Key>,
        remove: Vec<(MinionId, KeySlot)>,
        events: Vec<NewEvent>,
        audit: Vec<AuditEntry>,
    ) -> Result<()> {
        self.write(Change { put, remove, events, audit }).await
    }
}

fn read(mut row: Row) -> Result<Key> {
    Ok(Key {
        minion: row.minion(0)?,
        slot: if row.int(1)? == 0 { KeySlot::Current } else { KeySlot::Denied },
        state: row.text(2)?,
        pem: row.text(3)?,
        fingerprint: row.text(4)?,
        since: row.time(5)?,
    })
}
