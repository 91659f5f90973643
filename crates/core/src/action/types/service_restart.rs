//! `service_restart`: restart a service.

use super::packages::is_agent;
use super::params::{cut, operand, text};
use super::{ActionType, BadParams, Call, Kind, Param, Restarts, judging};
use crate::run::Verdict;
use crate::value::{Map, Value};

#[derive(Debug)]
pub(super) struct ServiceRestart;

impl ActionType for ServiceRestart {
    fn name(&self) -> &'static str {
        "service_restart"
    }

    fn title(&self) -> &'static str {
        "Restart a service"
    }

    fn help(&self) -> &'static str {
        "Restart a service, or start it where it does not run"
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("service", Kind::Text, "the service")] }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let service = text(params, "service").ok_or(BadParams::Missing("service"))?.trim();
        operand("service", service)?;
        Ok(Call::named("service.restart", [("name", service.into())]))
    }

    fn describe(&self, params: &Map) -> String {
        format!("restart {}", cut(text(params, "service").unwrap_or_default(), 80))
    }

    fn restarts(&self, params: &Map) -> Restarts {
        let service = text(params, "service").unwrap_or_default().trim();
        if is_agent(service.strip_suffix(".service").unwrap_or(service)) { Restarts::Agent } else { Restarts::Nothing }
    }

    /// Where there is no systemd, a service that did not start is a `False` and an exit code of 0.
    fn judge(&self, _params: &Map, returned: &Value) -> Verdict {
        let is_refused = *judging::value(returned) == Value::Bool(false);
        judging::and(judging::job(returned), is_refused.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compiled, params, refused, returned};
    use super::*;

    #[test]
    fn a_service_is_restarted_by_name() {
        let call = compiled("service_restart", r#"{"service": "nginx"}"#);
        assert_eq!((call.funs[0].as_str(), call.kwarg), ("service.restart", params(r#"{"name": "nginx"}"#)));
        for bad in ["{}", r#"{"service": ""}"#, r#"{"service": "a b"}"#, r#"{"service": "--now"}"#] {
            refused("service_restart", bad);
        }
    }

    #[test]
    fn false_is_a_failure_whatever_the_exit_code() {
        let judge = |answer: &str| ServiceRestart.judge(&Map::new(), &returned(answer)).success;
        assert!(judge(r#"{"return": true, "retcode": 0, "success": true}"#));
        assert!(!judge(r#"{"return": false, "retcode": 0, "success": true}"#));
        assert!(!judge(r#"{"return": "ERROR", "retcode": 1, "success": false}"#));
    }

    #[test]
    fn the_agents_own_service_restarts_it() {
        assert_eq!(ServiceRestart.restarts(&params(r#"{"service": "salt-minion.service"}"#)), Restarts::Agent);
        assert_eq!(ServiceRestart.restarts(&params(r#"{"service": "nginx"}"#)), Restarts::Nothing);
    }
}
