//! The audit log as JSON.

use super::Time;
use saltern_core::value::Value;
use saltern_server::app;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of the audit log, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The entries
    pub entries: Vec<AuditEntry>,
    /// What `before` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number, from 1 on without a gap
    pub number: i64,
    /// When
    pub at: Time,
    /// The user or program
    pub who: String,
    /// The address or socket it came from
    pub origin: String,
    /// What was done, as `noun.verb`
    pub what: String,
    /// What it was done to
    pub subject: String,
    /// Particulars
    #[schema(value_type = Value)]
    pub detail: Value,
}

/// Whether the chain of hashes is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditCheck {
    /// Whether every entry is as it was written, and none is missing
    pub intact: bool,
    /// How many entries there are
    pub entries: i64,
    /// The hash of the last one: who notes it elsewhere can tell later whether the log was replaced as a whole
    pub head: String,
    /// The first place where the chain is broken
    pub broken: Option<AuditBreak>,
}

/// Where the chain is broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditBreak {
    /// At which entry
    pub number: i64,
    /// What is wrong there
    pub what: String,
}

impl From<(i64, app::AuditEntry)> for AuditEntry {
    fn from((number, entry): (i64, app::AuditEntry)) -> Self {
        let app::AuditEntry { at, who, origin, what, subject, detail } = entry;
        let detail = serde_json::from_str(&detail).unwrap_or_default();
        Self { number, at: at.into(), who, origin, what, subject, detail }
    }
}

impl From<app::AuditCheck> for AuditCheck {
    fn from(check: app::AuditCheck) -> Self {
        Self {
            intact: check.broken.is_none(),
            entries: check.entries,
            head: check.head.iter().map(|byte| format!("{byte:02x}")).collect(),
            broken: check.broken.map(|place| AuditBreak { number: place.number, what: place.what }),
        }
    }
}
