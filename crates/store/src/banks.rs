//! Banks: values that clients of salt-api keep on the server, by bank and key (`cache.store`, `cache.fetch`).

use crate::audit::AuditEntry;
use crate::db::{Effects, Operation, Tx, params};
use crate::{Body, Result, Store};
use futures_util::future::LocalBoxFuture;

const PUT: &str = "INSERT INTO banks (bank, key, encoding, body) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (bank, key) DO UPDATE SET encoding = excluded.encoding, body = excluded.body";
const ONE: &str = "SELECT encoding, body FROM banks WHERE bank = ?1 AND key = ?2";
pub(crate) const KEYS: &str = "SELECT key FROM banks WHERE bank = ?1 ORDER BY key LIMIT ?2";
const REMOVE: &str = "DELETE FROM banks WHERE bank = ?1 AND key = ?2";
const CLEAR: &str = "DELETE FROM banks WHERE bank = ?1";

enum Change {
    Put(Body),
    Remove,
    Clear,
}

struct Write {
    bank: String,
    key: String,
    change: Change,
    audit: AuditEntry,
}

impl Operation for Write {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Self { bank, key, change, audit } = self;
            match change {
                Change::Put(body) => tx.execute(PUT, params![bank, key, body.encoding, &body.bytes]).await?,
                Change::Remove => tx.execute(REMOVE, params![bank, key]).await?,
                Change::Clear => tx.execute(CLEAR, params![bank]).await?,
            };
            effects.audit([audit]);
            Ok(())
        })
    }
}

impl Store {
    /// Keeps a value, in place of the one that was there.
    pub async fn put_in_bank(&self, bank: String, key: String, body: Body, audit: AuditEntry) -> Result<()> {
        self.write(Write { bank, key, change: Change::Put(body), audit }).await
    }

    /// Removes one value, or without a key all of a bank.
    pub async fn flush_bank(&self, bank: String, key: Option<String>, audit: AuditEntry) -> Result<()> {
        let change = if key.is_some() { Change::Remove } else { Change::Clear };
        self.write(Write { bank, key: key.unwrap_or_default(), change, audit }).await
    }

    /// What is kept under a key.
    pub async fn from_bank(&self, bank: &str, key: &str) -> Result<Option<Body>> {
        let rows = self.query(ONE, params![bank, key]).await?;
        let read = |mut row: crate::db::Row| Ok(Body { encoding: row.int(0)?, bytes: row.blob(1)? });
        rows.into_iter().next().map(read).transpose()
    }

    /// The keys of a bank in their order, at most `limit`.
    pub async fn keys_of_bank(&self, bank: &str, limit: usize) -> Result<Vec<String>> {
        self.query(KEYS, params![bank, limit]).await?.into_iter().map(|mut row| row.text(0)).collect()
    }
}
