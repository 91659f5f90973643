//! Who hears what is nobody's in particular: events of the server itself, and keys that belong to no minion yet.

use super::{Entry, Invocation, Rights};
use crate::value::Map;

impl Rights {
    /// Whether he hears events that are about the server and not about minions: hooks, other people's runner calls.
    pub fn hears_server(&self) -> bool {
        self.server_admin || self.rules.iter().any(|rule| matches!(rule.entry, Entry::AllRunner))
    }

    /// Whether he sees the keys of machines that are not accepted.
    pub fn sees_keys(&self) -> bool {
        let list = Invocation { fun: "key.list_all", arg: &[], kwarg: &Map::new() };
        self.server_admin || self.rules.iter().any(|rule| rule.entry.allows_wheel(&list))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RawRules;
    use super::*;
    use crate::access::{Rule, Sight};
    use crate::value::Value;

    fn with(entry: &str) -> Rights {
        let rules = Value::map([("pam", Value::map([("ann", Value::list([entry]))]))]);
        let entries = RawRules::read(&rules).unwrap().entries("pam", "ann", &[]);
        let mut rights = Rights::nobody("ann");
        rights.take_rules(entries.into_iter().map(|entry| Rule { entry, minions: Sight::All }).collect());
        rights
    }

    #[test]
    fn the_server_is_heard_by_those_who_may_run_all_of_it() {
        assert!(Rights::administrator("root").hears_server());
        assert!(with("@runner").hears_server());
        for less in ["@jobs", "test.*", "@wheel"] {
            assert!(!with(less).hears_server(), "{less}");
        }
    }

    #[test]
    fn keys_are_seen_by_those_who_may_list_them() {
        assert!(with("@wheel").sees_keys() && with("@key").sees_keys());
        assert!(!with("@runner").sees_keys() && !with(".*").sees_keys());
    }
}
