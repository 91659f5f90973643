//! Minions as JSON.

use super::Time;
use saltern_core::value::Value;
use saltern_server::{Presence, app};
use serde::{Deserialize, Deserializer, Serialize};

/// Minions, in the order of ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinionList {
    /// The minions
    pub minions: Vec<Minion>,
}

/// A minion in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minion {
    /// Its id
    pub id: String,
    /// `present`, `absent`, or `unknown` when it was not heard of since the server started
    pub presence: String,
    /// Since when it is present or absent
    pub since: Option<Time>,
    /// When it was first accepted
    pub first_seen: Time,
    /// Its last authenticated traffic
    pub last_seen: Time,
    /// When its agent last said that it started
    pub started: Option<Time>,
    /// Where it connects from
    pub address: Option<String>,
    /// Its Salt version
    pub version: Option<String>,
    /// How it can acknowledge jobs: `none`, `start_event`, `executor` or `native`
    pub ack_method: String,
    /// The operator's word about that; nothing means as the server does
    pub ack: Option<bool>,
    /// Whether it says that its machine has to be rebooted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot_needed: Option<bool>,
}

/// Everything known of a minion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MinionDetail {
    /// What a list shows
    #[serde(flatten)]
    pub minion: Minion,
    /// Its key's fingerprint
    pub fingerprint: Option<String>,
    /// Its grains, as it last sent them
    pub grains: Option<Value>,
    /// When it sent them
    pub grains_at: Option<Time>,
}

/// What can be set for one minion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinionChange {
    /// Whether jobs ask it to acknowledge; `null` means as the server does
    #[serde(deserialize_with = "given")]
    pub ack: Option<bool>,
}

/// `null` is a word here, and leaving the field out is a mistake: serde's own rule for options takes both for `null`.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Option::deserialize(from)
}

impl From<app::MinionEntry> for Minion {
    fn from(entry: app::MinionEntry) -> Self {
        let (presence, since) = match entry.presence {
            Presence::Unknown => ("unknown", None),
            Presence::Present(since) => ("present", Some(since)),
            Presence::Absent(since) => ("absent", Some(since)),
        };
        Self {
            id: entry.id.to_string(),
            presence: presence.into(),
            since: since.map(Time),
            first_seen: entry.first_seen.into(),
            last_seen: entry.last_seen.into(),
            started: entry.started.map(Time),
            address: entry.address,
            version: entry.version,
            ack_method: entry.ack_method.as_str().into(),
            ack: entry.ack_setting,
            reboot_needed: entry.reboot_needed,
        }
    }
}

impl From<app::MinionDetail> for MinionDetail {
    fn from(detail: app::MinionDetail) -> Self {
        Self {
            minion: detail.entry.into(),
            fingerprint: detail.fingerprint,
            grains: detail.grains,
            grains_at: detail.grains_at.map(Time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_a_setting_and_nothing_is_not() {
        assert_eq!(serde_json::from_str::<MinionChange>(r#"{"ack": null}"#).unwrap().ack, None);
        assert_eq!(serde_json::from_str::<MinionChange>(r#"{"ack": false}"#).unwrap().ack, Some(false));
        assert!(serde_json::from_str::<MinionChange>("{}").is_err());
    }
}
