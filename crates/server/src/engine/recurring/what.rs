//! What is done each time: an action of some type, or a chain.

use crate::Error;
use saltern_core::action::types::{self, ActionType};
use saltern_core::ids::ChainId;
use saltern_core::value::{Map, Value};
use std::collections::BTreeMap;

/// What is done each time.
#[derive(Clone, Debug, PartialEq)]
pub enum RecurringWhat {
    /// An action of this type with these parameters
    Action {
        /// The type's name
        kind: String,
        /// Its parameters
        params: Map,
    },
    /// A launch of this chain
    Chain {
        /// Which one
        chain: ChainId,
        /// Other parameters, by step
        params: BTreeMap<usize, Map>,
    },
}

/// Longest name that an action gets, in characters.
const LONGEST_NAME: usize = 200;

impl RecurringWhat {
    /// Reads its JSON: `{"type": "states", "params": {…}}` or `{"chain": 12, "params": {"2": {…}}}`.
    pub fn read(json: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::Invalid(format!("what is to be done: {why}"));
        let value: Value = serde_json::from_str(json).map_err(|error| invalid(&error.to_string()))?;
        let map = value.as_map().ok_or_else(|| invalid("write {\"type\": …, \"params\": {…}} or {\"chain\": …}"))?;
        if let Some((key, _)) = map.iter().find(|(key, _)| !matches!(key.as_str(), Some("type" | "chain" | "params"))) {
            let key = key.as_str().unwrap_or("?");
            return Err(invalid(&format!("{key:?} is not known; there are type, chain and params")));
        }
        let none = Value::Map(Map::new());
        let params = map.get("params").filter(|params| !params.is_nil()).unwrap_or(&none);
        let params = params.as_map().ok_or_else(|| invalid("its params are not a mapping"))?;
        match (map.get("type"), map.get("chain")) {
            (Some(kind), None) => {
                let kind = kind.as_str().ok_or_else(|| invalid("its type is not a name"))?;
                Ok(Self::Action { kind: kind.to_owned(), params: params.clone() })
            }
            (None, Some(chain)) => {
                let chain = chain.as_i64().ok_or_else(|| invalid("a chain is given by its number"))?;
                let mut steps = BTreeMap::new();
                for (step, params) in params {
                    let step = step.as_str().and_then(|step| step.parse().ok()).filter(|step| *step > 0);
                    let step = step.ok_or_else(|| invalid("the params of a chain are by step, from 1 on"))?;
                    let params = params.as_map().ok_or_else(|| invalid("the params of a step are a mapping"))?;
                    steps.insert(step, params.clone());
                }
                Ok(Self::Chain { chain: ChainId(chain), params: steps })
            }
            _ => Err(invalid("give it a type, or a chain")),
        }
    }

    /// Its JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(&self.value()).unwrap_or_default()
    }

    /// The same as a value.
    pub fn value(&self) -> Value {
        match self {
            Self::Action { kind, params } => {
                Value::map([("type", Value::from(kind.as_str())), ("params", Value::Map(params.clone()))])
            }
            Self::Chain { chain, params } => {
                let steps = params.iter().map(|(step, params)| (step.to_string(), Value::Map(params.clone())));
                Value::map([("chain", Value::from(chain.0)), ("params", Value::map(steps))])
            }
        }
    }

    /// The same without its parameters, for whoever may only know that there is something.
    #[must_use]
    pub fn without_params(&self) -> Self {
        match self {
            Self::Action { kind, .. } => Self::Action { kind: kind.clone(), params: Map::new() },
            Self::Chain { chain, .. } => Self::Chain { chain: *chain, params: BTreeMap::new() },
        }
    }
}

/// The action type of this name, or which there are.
pub(super) fn action_type(kind: &str) -> Result<&'static dyn ActionType, Error> {
    let known = || types::ALL.map(ActionType::name).join(", ");
    types::find(kind).ok_or_else(|| Error::Invalid(format!("there is no action type {kind:?}; there are {}", known())))
}

/// What an action is called that a definition of this name makes.
pub(super) fn action_name(definition: &str, kind: &dyn ActionType, params: &Map) -> String {
    let flag = |name: &str| params.get(name).is_some_and(Value::is_truthy);
    let name = if kind.name() == "states" {
        let mods = match params.get("mods") {
            Some(Value::List(mods)) => mods.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            Some(mods) => mods.as_str().unwrap_or_default().to_owned(),
            None => String::new(),
        };
        let what = match (mods.as_str(), flag("assigned")) {
            ("", true) => "states [assigned]".to_owned(),
            ("", false) => "highstate".to_owned(),
            (mods, _) => format!("states [{mods}]"),
        };
        format!("Apply recurring {what}{}", if flag("test") { " (test)" } else { "" })
    } else {
        format!("{definition}: {}", kind.describe(params))
    };
    name.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(json: &str) -> String {
        let RecurringWhat::Action { kind, params } = RecurringWhat::read(json).unwrap() else { unreachable!() };
        action_name("nightly", action_type(&kind).unwrap(), &params)
    }

    #[test]
    fn what_was_read_is_written_as_it_was() {
        for json in [
            r#"{"type":"states","params":{"mods":["web"],"test":true}}"#,
            r#"{"chain":12,"params":{"2":{"fun":"test.ping"}}}"#,
        ] {
            assert_eq!(RecurringWhat::read(json).unwrap().json(), json);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write() {
        for (json, word) in [
            ("[]", "\"type\""),
            ("{}", "a type, or a chain"),
            (r#"{"type":"states","chain":1}"#, "a type, or a chain"),
            (r#"{"chain":"x"}"#, "its number"),
            (r#"{"chain":1,"params":{"0":{}}}"#, "from 1 on"),
            (r#"{"type":"states","parms":{}}"#, "parms"),
            (r#"{"type":"states","params":3}"#, "mapping"),
        ] {
            let error = RecurringWhat::read(json).unwrap_err().to_string();
            assert!(error.contains(word), "{json}: {error}");
        }
    }

    #[test]
    fn scenario_71_states_are_named_in_brackets() {
        assert_eq!(name(r#"{"type":"states","params":{"mods":["a","b"]}}"#), "Apply recurring states [a, b]");
        assert_eq!(name(r#"{"type":"states","params":{"mods":"a","test":true}}"#), "Apply recurring states [a] (test)");
        assert_eq!(name(r#"{"type":"states","params":{"assigned":true}}"#), "Apply recurring states [assigned]");
        assert_eq!(name(r#"{"type":"states"}"#), "Apply recurring highstate");
        assert!(name(r#"{"type":"function","params":{"fun":"test.ping"}}"#).starts_with("nightly: "));
    }
}
