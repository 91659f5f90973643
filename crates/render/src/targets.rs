//! Whether a minion is meant, asked from top files and templates.
//!
//! The same few targets are asked for every minion, so each is compiled once and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use saltern_core::target::{Facts, Matcher, Nodegroups, Target, TargetType};
use saltern_core::value::Value;

/// Whether a target expression of a type (`glob`, `grain`, `compound` …) means the minion in question, or why that cannot
/// be said.
pub type Matches = Arc<dyn Fn(&str, &str) -> Result<bool, String> + Send + Sync>;

/// How many compiled targets are kept before the memory starts anew; templates may make them up.
const MAX_COMPILED: usize = 10_000;

/// Compiled targets, shared by all minions.
#[derive(Debug, Default)]
pub struct Targets {
    nodegroups: Nodegroups,
    /// By expression and type; what cannot be compiled is remembered too.
    compiled: Mutex<HashMap<(String, String), Compiled>>,
}

type Compiled = Result<Arc<Matcher>, String>;

impl Targets {
    /// An empty memory that knows these nodegroups.
    pub fn new(nodegroups: Nodegroups) -> Arc<Self> {
        Arc::new(Self { nodegroups, compiled: Mutex::default() })
    }

    /// What to ask about one minion. Pillar targets match nobody while there is no pillar.
    pub fn of_minion(self: &Arc<Self>, id: &str, grains: Value, pillar: Option<Value>) -> Matches {
        let (targets, minion) = (Arc::clone(self), Minion { id: id.to_owned(), grains, pillar });
        Arc::new(move |target, kind| targets.compiled(target, kind).map(|matcher| matcher.matches(&minion)))
    }

    fn compiled(&self, target: &str, kind: &str) -> Compiled {
        let key = (target.to_owned(), kind.to_owned());
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(&key) {
            return known.clone();
        }
        let matcher = TargetType::parse(kind)
            .and_then(|kind| Target::new(kind, target).compile(&self.nodegroups))
            .map(Arc::new)
            .map_err(|err| err.to_string());
        if compiled.len() >= MAX_COMPILED {
            compiled.clear();
        }
        compiled.insert(key, matcher.clone());
        matcher
    }
}

struct Minion {
    id: String,
    grains: Value,
    pillar: Option<Value>,
}

impl Facts for Minion {
    fn id(&self) -> &str {
        &self.id
    }

    fn grains(&self) -> Option<&Value> {
        Some(&self.grains)
    }

    fn pillar(&self) -> Option<&Value> {
        self.pillar.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_asked_in_their_type() {
        let grains = Value::map([("os", "Debian")]);
        let matches = Targets::new(Nodegroups::default()).of_minion("web1", grains, None);
        assert_eq!(matches("web*", "glob"), Ok(true));
        assert_eq!(matches("os:Debian", "grain"), Ok(true));
        assert_eq!(matches("G@os:RedHat or web1", "compound"), Ok(true));
        assert_eq!(matches("key:value", "pillar"), Ok(false));
        assert!(matches("web1", "bogus").is_err());
        assert!(matches("(", "pcre").is_err());
    }
}
