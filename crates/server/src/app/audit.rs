//! The audit log: who changed what, and whether nobody has changed the log itself.

use super::{App, Caller};
use crate::Error;
use saltern_core::access::Wish;
use saltern_store::{AuditBreak, AuditCheck, AuditEntry, AuditFilter};

/// Which entries are wanted, newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// Only older than this number
    pub before: Option<i64>,
    /// At most so many
    pub limit: usize,
    /// Which of them
    pub filter: AuditFilter,
}

/// Most entries in one answer.
const PAGE: usize = 1_000;

impl App {
    /// A page of the audit log, each entry with its number.
    pub async fn audit(&self, caller: &Caller, query: &AuditQuery) -> Result<Vec<(i64, AuditEntry)>, Error> {
        self.may(caller, &Wish::Inspect)?;
        let before = query.before.unwrap_or(i64::MAX);
        Ok(self.master.store.audit_page(before, query.limit.clamp(1, PAGE), &query.filter).await?)
    }

    /// Follows the chain from the first entry to the last. `noted`: a number and its hash that somebody wrote down earlier,
    /// which must still be so: whoever rewrites the whole log cannot rewrite that.
    pub async fn verify_audit(&self, caller: &Caller, noted: Option<(i64, [u8; 32])>) -> Result<AuditCheck, Error> {
        self.may(caller, &Wish::Inspect)?;
        let mut check = self.master.store.verify_audit().await?;
        if let (None, Some((number, hash))) = (&check.broken, noted) {
            let found = self.master.store.audit_links(number.saturating_sub(1), 1).await?;
            let found = found.first().filter(|link| link.number == number);
            let what = match found {
                Some(link) if link.hash == hash => return Ok(check),
                Some(_) => "its hash is not the one that was noted",
                None => "there is no such entry, though it was noted",
            };
            check.broken = Some(AuditBreak { number, what: what.into() });
        }
        Ok(check)
    }
}
