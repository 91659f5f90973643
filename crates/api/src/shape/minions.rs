//! Minions as JSON.

use super::Time;
use saltern_core::value::Value;
use saltern_server::{Presence, app};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// Minions, in the order of ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MinionList {
    /// The minions
    pub minions: Vec<Minion>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A minion in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    /// The organisation it belongs to
    #[serde(default)]
    pub org: String,
}

/// Everything known of a minion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MinionDetail {
    /// What a list shows
    #[serde(flatten)]
    pub minion: Minion,
    /// Its key's fingerprint
    pub fingerprint: Option<String>,
    /// Its grains, as it last sent them
    #[schema(value_type = Value)]
    pub grains: Option<Value>,
    /// When it sent them
    pub grains_at: Option<Time>,
}

/// A minion's grains, as it last sent them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Grains {
    /// The minion
    pub id: String,
    /// When it sent them
    pub at: Option<Time>,
    /// The grains; nothing if it never sent any
    #[schema(value_type = Value)]
    pub grains: Option<Value>,
}

/// What can be set for one minion; what is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1)]
pub struct MinionChange {
    /// Whether jobs ask it to acknowledge; `null` means as the server does
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<bool>)]
    pub ack: Option<Option<bool>>,
    /// The organisation it is to belong to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
}

/// `null` is a word here, and not the same as leaving the field out: serde's own rule for options takes both for nothing.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<bool>>, D::Error> {
    Option::deserialize(from).map(Some)
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
            org: entry.org,
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
        let ack = |json: &str| serde_json::from_str::<MinionChange>(json).unwrap().ack;
        assert_eq!(ack(r#"{"ack": null}"#), Some(None));
        assert_eq!(ack(r#"{"ack": false}"#), Some(Some(false)));
        assert_eq!(ack("{}"), None);
    }
}
