//! Keys as JSON.

use super::Time;
use saltern_core::keys::KeyState;
use saltern_server::{Error, app};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Every key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    /// The server's own fingerprint, for `master_finger` on minions
    pub master_fingerprint: String,
    /// The keys, in the order of ids; an id can have an accepted and a denied one
    pub keys: Vec<Key>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Key {
    /// Whose
    pub id: String,
    /// `unaccepted`, `accepted`, `rejected` or `denied`
    pub state: String,
    /// Its fingerprint
    pub fingerprint: String,
    /// The public key, PEM; only when one minion's keys are asked for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pem: Option<String>,
    /// Since when it is in this state
    pub since: Time,
}

/// Which keys a decision is about: exactly one of `match`, `ids` and `all`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyDecision {
    /// Ids that match a shell pattern
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Exactly these ids
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// All that the decision can apply to
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// States beyond the usual ones: `rejected`, `denied`, `accepted`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
}

/// What a decision did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyResult {
    /// The ids it applied to
    pub ids: Vec<String>,
}

impl Key {
    pub(crate) fn of(entry: app::KeyEntry, with_pem: bool) -> Self {
        Self {
            id: entry.minion.to_string(),
            state: entry.state.as_str().into(),
            fingerprint: entry.fingerprint,
            pem: with_pem.then_some(entry.pem),
            since: entry.since.into(),
        }
    }
}

impl KeyDecision {
    /// The domain's words for it.
    pub(crate) fn read(self) -> Result<(app::KeyMatch, Vec<KeyState>), Error> {
        let which = match (self.pattern, self.ids, self.all) {
            (Some(pattern), None, false) => app::KeyMatch::Glob(pattern),
            (None, Some(ids), false) => app::KeyMatch::Ids(ids),
            (None, None, true) => app::KeyMatch::All,
            _ => return Err(Error::Invalid("give exactly one of match, ids and all".into())),
        };
        let state = |word: &String| {
            KeyState::parse(word).ok_or_else(|| Error::Invalid(format!("{word:?} is not a state of a key")))
        };
        Ok((which, self.include.iter().map(state).collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<(app::KeyMatch, Vec<KeyState>), Error> {
        serde_json::from_str::<KeyDecision>(json).unwrap().read()
    }

    #[test]
    fn a_decision_names_its_keys_in_one_way() {
        assert!(matches!(read(r#"{"match": "web*"}"#), Ok((app::KeyMatch::Glob(_), _))));
        assert!(matches!(read(r#"{"ids": ["a"]}"#), Ok((app::KeyMatch::Ids(_), _))));
        assert!(matches!(read(r#"{"all": true}"#), Ok((app::KeyMatch::All, _))));
        for bad in ["{}", r#"{"all": true, "match": "x"}"#, r#"{"ids": [], "match": "x"}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn states_to_include_are_words() {
        assert_eq!(read(r#"{"all": true, "include": ["rejected"]}"#).unwrap().1, [KeyState::Rejected]);
        assert!(read(r#"{"all": true, "include": ["maybe"]}"#).is_err());
    }
}
