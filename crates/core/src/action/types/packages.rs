//! What the types that change packages share: reading package names, and knowing the agent's own.

use super::params::{cut, names, operand};
use super::{BadParams, Kind, Param};
use crate::value::{Map, Value};

/// Packages whose change restarts an agent: the agents, and the library that stock ones are made of.
const AGENTS: [&str; 5] = ["salt-minion", "venv-salt-minion", "salt", "saltern", "saltern-minion"];

pub(super) const REFRESH: Param =
    Param::optional("refresh", Kind::Flag, "whether the lists of packages are fetched first; yes if nothing is said");

/// The packages as Salt's `pkgs` takes them: a name, or a name with its version, written `name=version`.
pub(super) fn packages(params: &Map) -> Result<Vec<Value>, BadParams> {
    let package = |word: String| {
        operand("packages", &word)?;
        match word.split_once('=') {
            None => Ok(Value::from(word)),
            Some((name, version)) => {
                operand("packages", name)?;
                operand("packages", version)?;
                Ok(Value::map([(name, version)]))
            }
        }
    };
    names(params, "packages").into_iter().map(package).collect()
}

/// Whether one of them is an agent.
pub(super) fn have_an_agent(params: &Map) -> bool {
    names(params, "packages").iter().any(|word| is_agent(word.split('=').next().unwrap_or_default()))
}

/// Whether it is the package or the service of an agent.
pub(super) fn is_agent(name: &str) -> bool {
    AGENTS.contains(&name)
}

/// The names, for a line.
pub(super) fn listed(params: &Map) -> String {
    cut(&names(params, "packages").join(", "), 80)
}

#[cfg(test)]
mod tests {
    use super::super::tests::params;
    use super::*;

    #[test]
    fn a_package_may_have_a_version() {
        let read = packages(&params(r#"{"packages": "vim, git=1:2.39"}"#)).unwrap();
        assert_eq!(read, [Value::from("vim"), Value::map([("git", "1:2.39")])]);
    }

    #[test]
    fn what_a_package_manager_would_take_for_an_option_is_refused() {
        for bad in ["--force", "a b", "vim=", "=1", "vim=-1", &"x".repeat(256)] {
            let asked = params(&format!(r#"{{"packages": ["{bad}"]}}"#));
            assert!(packages(&asked).is_err(), "{bad}");
        }
    }
}
