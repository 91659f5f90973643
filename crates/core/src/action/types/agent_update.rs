//! `agent_update`: bring the agent itself to another version. The package restarts it, so the return may never come; the agent
//! that is back is the answer then.

use super::params::{cut, operand, text};
use super::{ActionType, BadParams, Call, Expected, Kind, Param, Restarts};
use crate::value::{Map, Value};

#[derive(Debug)]
pub(super) struct AgentUpdate;

const PACKAGE: &str = "salt-minion";

impl ActionType for AgentUpdate {
    fn name(&self) -> &'static str {
        "agent_update"
    }

    fn title(&self) -> &'static str {
        "Update the agent"
    }

    fn help(&self) -> &'static str {
        "Bring the agent to its newest version, or to the one given, and wait until it is back"
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::optional("package", Kind::Text, "the agent's package; salt-minion if nothing is said"),
                Param::optional("version", Kind::Text, "the version; the newest otherwise"),
            ]
        }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let package = package(params);
        operand("package", package)?;
        let wanted = match text(params, "version").map(str::trim) {
            None => Value::from(package),
            Some(version) => {
                operand("version", version)?;
                Value::map([(package, version)])
            }
        };
        // A machine with another agent must not get a second one.
        let kwarg = [("pkgs", Value::List(vec![wanted])), ("only_upgrade", true.into()), ("refresh", true.into())];
        Ok(Call::named("pkg.install", kwarg))
    }

    fn describe(&self, params: &Map) -> String {
        let version = text(params, "version").map(|version| format!(" to {}", cut(version, 40))).unwrap_or_default();
        let package = text(params, "package").map(|package| format!(" ({})", cut(package, 40))).unwrap_or_default();
        format!("update the agent{version}{package}")
    }

    fn is_repeatable(&self, _params: &Map) -> bool {
        true
    }

    fn restarts(&self, _params: &Map) -> Restarts {
        Restarts::Agent
    }

    /// The version that was asked for, or that there is none newer: a package manager tells that as no text.
    fn check_after(&self, params: &Map) -> Option<Expected> {
        let asked = |fun: &str, refresh: Option<bool>| {
            let refresh = refresh.map(|refresh| (Value::from("refresh"), Value::from(refresh)));
            Call { funs: vec![fun.into()], arg: vec![package(params).into()], kwarg: refresh.into_iter().collect() }
        };
        Some(match text(params, "version").map(str::trim) {
            Some(version) => Expected { call: asked("pkg.version", None), expect: version.into() },
            None => Expected { call: asked("pkg.latest_version", Some(false)), expect: "".into() },
        })
    }
}

fn package(params: &Map) -> &str {
    text(params, "package").unwrap_or(PACKAGE).trim()
}

#[cfg(test)]
mod tests {
    use super::super::Ends;
    use super::super::tests::{compiled, params, refused};
    use super::*;

    #[test]
    fn the_agents_package_is_installed_from_fresh_lists() {
        let call = compiled("agent_update", "{}");
        assert_eq!(call.funs, ["pkg.install"]);
        assert_eq!(call.kwarg, params(r#"{"pkgs": ["salt-minion"], "only_upgrade": true, "refresh": true}"#));
        let call = compiled("agent_update", r#"{"package": "venv-salt-minion", "version": "3008.3"}"#);
        assert_eq!(call.kwarg.get("pkgs"), Some(&Value::List(vec![Value::map([("venv-salt-minion", "3008.3")])])));
        for bad in [r#"{"package": "a b"}"#, r#"{"version": "-x"}"#] {
            refused("agent_update", bad);
        }
    }

    #[test]
    fn it_ends_the_chunk_and_may_end_without_a_return() {
        assert_eq!(AgentUpdate.restarts(&Map::new()), Restarts::Agent);
        assert_eq!(AgentUpdate.ends(&Map::new()), Ends::ByReturnOrAgentStart);
    }

    #[test]
    fn the_version_tells_afterwards_whether_it_took_effect() {
        let wanted = AgentUpdate.check_after(&params(r#"{"version": "3008.3"}"#)).unwrap();
        assert_eq!((wanted.call.funs[0].as_str(), wanted.expect), ("pkg.version", "3008.3".into()));
        assert_eq!(wanted.call.arg, ["salt-minion".into()]);
        let newest = AgentUpdate.check_after(&params(r#"{"package": "venv-salt-minion"}"#)).unwrap();
        assert_eq!((newest.call.funs[0].as_str(), newest.expect), ("pkg.latest_version", "".into()));
        assert_eq!(newest.call.arg, ["venv-salt-minion".into()]);
        assert_eq!(newest.call.kwarg, params(r#"{"refresh": false}"#));
    }

    #[test]
    fn the_line_tells_the_version() {
        assert_eq!(AgentUpdate.describe(&params(r#"{"version": "3008.3"}"#)), "update the agent to 3008.3");
    }
}
