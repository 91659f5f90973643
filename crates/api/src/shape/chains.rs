//! Chains as JSON: templates of steps that are launched again and again.

use super::Time;
use super::actions::read_minion;
use super::steps::StepShape;
use crate::app;
use saltern_core::chain::Step;
use saltern_core::ids::MinionId;
use saltern_server::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Chains, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainList {
    /// The chains
    pub chains: Vec<Chain>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// A chain in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Chain {
    /// Its number
    pub id: i64,
    /// Its name, of which its owner has one
    pub name: String,
    /// Whose it is
    pub owner: String,
    /// The organisation it belongs to
    pub org: String,
    /// What it is for
    pub description: String,
    /// Whether others of the organisation see it and may launch it
    pub shared: bool,
    /// How many steps it has
    pub step_count: usize,
    /// Since when
    pub created: Time,
    /// When it was last changed
    pub changed: Time,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// A chain with its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainDetail {
    /// What a list shows
    #[serde(flatten)]
    pub chain: Chain,
    /// What it does, in order; the first step has number 1
    #[schema(value_type = Vec<StepShape>)]
    pub steps: Vec<Step>,
}

/// A chain as somebody wants it; what is left out is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainDraft {
    /// Its name: one line, without spaces around it, of which its owner has one
    #[schema(min_length = 1, max_length = 255, example = "Patch web servers")]
    pub name: String,
    /// What it is for
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 10_000)]
    pub description: String,
    /// Whether others of the organisation see it and may launch it
    #[serde(default)]
    pub shared: bool,
    /// What it does, in order; without any it can be kept, but not launched
    #[serde(default)]
    #[schema(value_type = Vec<StepShape>, max_items = 200)]
    pub steps: Vec<Step>,
}

/// A step to be added to a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStep {
    /// The step
    #[schema(value_type = StepShape)]
    pub step: Step,
    /// Which number it is to have; nothing: it is the last
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 200)]
    pub position: Option<usize>,
}

/// A copy to be made of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainCopy {
    /// The name of the copy, of which you have one
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
}

/// A state to be made of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainState {
    /// The name of the state in the catalogue
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
}

/// What is to be done with chains on minions, whichever they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum ChainVerb {
    /// What minions keep of chains is removed
    Clear,
}

/// Minions whose chain is to be cleared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainClear {
    /// Which minions
    #[schema(min_items = 1, max_items = 1000)]
    pub minions: Vec<String>,
    /// Also where the chain has not ended, if nothing of it runs any more
    #[serde(default)]
    pub force: bool,
}

/// What came of clearing the chains of minions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainsCleared {
    /// What was done, by minion
    pub minions: BTreeMap<String, String>,
}

/// Most minions in one request.
const MOST_MINIONS: usize = 1_000;

impl ChainDraft {
    /// The domain's draft.
    pub(crate) fn read(self) -> app::ChainDraft {
        let Self { name, description, shared, steps } = self;
        app::ChainDraft { name, description, shared, steps }
    }
}

impl ChainVerb {
    /// Reads the word.
    pub(crate) fn read(word: &str) -> Result<Self, Error> {
        match word {
            "clear" => Ok(Self::Clear),
            _ => Err(Error::NotFound(format!("nothing is called {word:?} here: there is clear"))),
        }
    }
}

impl ChainClear {
    /// The minions, and whether it is forced.
    pub(crate) fn read(self) -> Result<(Vec<MinionId>, bool), Error> {
        if self.minions.len() > MOST_MINIONS {
            return Err(Error::Invalid(format!("at most {MOST_MINIONS} minions at once")));
        }
        let minions = self.minions.iter().map(|minion| read_minion(minion)).collect::<Result<_, _>>()?;
        Ok((minions, self.force))
    }
}

impl From<BTreeMap<MinionId, String>> for ChainsCleared {
    fn from(done: BTreeMap<MinionId, String>) -> Self {
        Self { minions: done.into_iter().map(|(minion, what)| (minion.to_string(), what)).collect() }
    }
}

impl TryFrom<app::Chain> for ChainDetail {
    type Error = Error;

    fn try_from(chain: app::Chain) -> Result<Self, Error> {
        let steps = app::steps_of(&chain)?;
        let chain = Chain {
            id: chain.id.0,
            name: chain.name,
            owner: chain.owner,
            org: chain.org,
            description: chain.description,
            shared: chain.shared,
            step_count: steps.len(),
            created: chain.created.into(),
            changed: chain.changed.into(),
            version: chain.version,
        };
        Ok(Self { chain, steps })
    }
}

impl TryFrom<app::Chain> for Chain {
    type Error = Error;

    fn try_from(chain: app::Chain) -> Result<Self, Error> {
        ChainDetail::try_from(chain).map(|detail| detail.chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_needs_no_more_than_a_name() {
        let draft: ChainDraft = serde_json::from_str(r#"{"name": "patch"}"#).unwrap();
        let draft = draft.read();
        assert_eq!((draft.name.as_str(), draft.shared, draft.steps.len()), ("patch", false, 0));
        assert!(serde_json::from_str::<ChainDraft>(r#"{"name": "patch", "stpes": []}"#).is_err());
    }

    #[test]
    fn a_chain_reads_back_with_its_steps() {
        let json = r#"{"id":7,"name":"patch","owner":"ann","org":"default","description":"","shared":true,"step_count":2,
            "created":"2026-11-15T19:56:31.867751+00:00","changed":"2026-11-15T19:56:31.867751+00:00","version":3,
            "steps":[{"type":"function","params":{"fun":"test.ping","arg":[1,"a",{"b":null}]},"target":{"group":"web"},"limit":1800},
                     {"type":"reboot","barrier":"80%","budget":"10%","after":"always"}]}"#;
        let detail: ChainDetail = serde_json::from_str(json).unwrap();
        let written = serde_json::to_value(&detail).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(json).unwrap());
    }

    #[test]
    fn a_step_that_is_none_is_refused() {
        for bad in [
            r#"{"typ": "reboot"}"#,
            r#"{"type": "reboot", "barrier": "most"}"#,
            r#"{"type": "reboot", "limit": "long"}"#,
        ] {
            assert!(serde_json::from_str::<NewStep>(&format!(r#"{{"step": {bad}}}"#)).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_so_many_minions_are_cleared_at_once() {
        let clear = |minions: Vec<String>| ChainClear { minions, force: true }.read();
        assert_eq!(clear(vec!["web1".into()]).unwrap().0, [MinionId::new("web1").unwrap()]);
        assert!(clear(vec!["../x".into()]).is_err());
        assert!(clear(vec!["web1".into(); MOST_MINIONS + 1]).is_err());
    }
}
