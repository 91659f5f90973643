//! Who changed what, when and from where. Rows are only ever added, in the transaction of the change itself.

use crate::counters::{self, Counter};
use crate::db::{Effects, Operation, Tx, params};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::time::Timestamp;

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When
    pub at: Timestamp,
    /// The user or program
    pub who: String,
    /// The address or socket it came from
    pub origin: String,
    /// What was done, as `noun.verb`
    pub what: String,
    /// What it was done to
    pub subject: String,
    /// Particulars, as JSON text
    pub detail: String,
}

const INSERT: &str =
    "INSERT INTO audit (number, at, who, origin, what, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(crate) const BEFORE: &str =
    "SELECT number, at, who, origin, what, subject, detail FROM audit WHERE number < ?1 ORDER BY number DESC LIMIT ?2";

pub(crate) async fn append(tx: &Tx<'_>, entry: &AuditEntry) -> Result<()> {
    let number = counters::take(tx, Counter::Audit, 1).await?;
    let AuditEntry { at, who, origin, what, subject, detail } = entry;
    tx.execute(INSERT, params![number, *at, who, origin, what, subject, detail]).await?;
    Ok(())
}

impl Operation for AuditEntry {
    type Output = ();
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(append(tx, self))
    }
}

impl Store {
    /// Adds an entry that belongs to no other write.
    pub async fn record_audit(&self, entry: AuditEntry) -> Result<()> {
        self.write(entry).await
    }

    /// Entries older than number `before`, newest first, each with its number.
    pub async fn audit_before(&self, before: i64, limit: usize) -> Result<Vec<(i64, AuditEntry)>> {
        let rows = self.query(BEFORE, params![before, limit]).await?;
        let read = |mut row: crate::db::Row| {
            let entry = AuditEntry {
                at: row.time(1)?,
                who: row.text(2)?,
                origin: row.text(3)?,
                what: row.text(4)?,
                subject: row.text(5)?,
                detail: row.text(6)?,
            };
            Ok((row.int(0)?, entry))
        };
        rows.into_iter().map(read).collect()
    }
}
