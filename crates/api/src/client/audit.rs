//! What a client can ask about the audit log.

use super::{Client, ClientError, Query};
use crate::shape::{AuditCheck, AuditList};

/// Which entries are wanted, newest first; what is not given does not matter.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// Only by this user or program
    pub who: Option<String>,
    /// Only this, or whatever was done to such a noun
    pub what: Option<String>,
    /// Only what was done to this
    pub subject: Option<String>,
    /// Only older than this number
    pub before: Option<i64>,
    /// At most so many
    pub limit: Option<usize>,
}

impl Client {
    /// A page of the audit log, newest first.
    pub async fn audit(&self, query: &AuditQuery) -> Result<AuditList, ClientError> {
        let query = Query::new()
            .add("who", query.who.as_ref())
            .add("what", query.what.as_ref())
            .add("subject", query.subject.as_ref())
            .add("before", query.before)
            .add("limit", query.limit);
        self.get(&query.onto("/api/v1/audit")).await
    }

    /// Whether the audit log is whole; `expect` is a head that was noted earlier, as `NUMBER:HASH`.
    pub async fn verify_audit(&self, expect: Option<&str>) -> Result<AuditCheck, ClientError> {
        self.get(&Query::new().add("expect", expect).onto("/api/v1/audit/verify")).await
    }
}
