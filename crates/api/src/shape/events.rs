//! Events as JSON: one line of the stream each.

use super::Time;
use saltern_core::value::Value;
use saltern_server::app;
use serde::{Deserialize, Serialize};

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number in the log
    pub number: i64,
    /// When it was logged
    pub at: Time,
    /// Its tag
    pub tag: String,
    /// The minion it is of
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minion: Option<String>,
    /// The job it belongs to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jid: Option<String>,
    /// Its body
    pub data: Value,
}

impl From<app::EventEntry> for Event {
    fn from(entry: app::EventEntry) -> Self {
        Self {
            number: entry.number,
            at: entry.at.into(),
            tag: entry.tag,
            minion: entry.minion.map(|minion| minion.to_string()),
            jid: entry.jid.map(|jid| jid.to_string()),
            data: entry.data,
        }
    }
}
