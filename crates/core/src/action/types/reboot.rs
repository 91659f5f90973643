//! `reboot`: restart the machine. It is done when the machine has another boot id, not when it has said that it will.

use super::params::number_between;
use super::{ActionType, BadParams, Call, Kind, Param, Restarts};
use crate::value::Map;

#[derive(Debug)]
pub(super) struct Reboot;

/// Minutes. Stock minions take 0 for at once, and then the return does not get out.
const LEAST_DELAY: i64 = 1;
const MOST_DELAY: i64 = 24 * 60;

impl ActionType for Reboot {
    fn name(&self) -> &'static str {
        "reboot"
    }

    fn title(&self) -> &'static str {
        "Reboot"
    }

    fn help(&self) -> &'static str {
        "Restart the machine, and wait until it is back"
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::optional("delay", Kind::Number, "minutes until the machine goes down; 1 if nothing is said")] }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let delay = number_between(params, "delay", LEAST_DELAY, MOST_DELAY)?.unwrap_or(LEAST_DELAY);
        Ok(Call::named("system.reboot", [("at_time", delay.into())]))
    }

    fn describe(&self, params: &Map) -> String {
        match number_between(params, "delay", LEAST_DELAY + 1, MOST_DELAY) {
            Ok(Some(delay)) => format!("reboot in {delay} minutes"),
            _ => "reboot".into(),
        }
    }

    fn restarts(&self, _params: &Map) -> Restarts {
        Restarts::Machine
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compiled, params, refused};
    use super::super::{ActionType as _, Ends};
    use super::*;

    #[test]
    fn the_return_is_given_time_to_get_out() {
        let call = compiled("reboot", "{}");
        assert_eq!((call.funs[0].as_str(), call.kwarg), ("system.reboot", params(r#"{"at_time": 1}"#)));
        assert_eq!(compiled("reboot", r#"{"delay": 3}"#).kwarg, params(r#"{"at_time": 3}"#));
        for bad in [r#"{"delay": 0}"#, r#"{"delay": -1}"#, r#"{"delay": 1441}"#, r#"{"delay": "now"}"#] {
            refused("reboot", bad);
        }
    }

    #[test]
    fn another_boot_ends_it() {
        assert_eq!((Reboot.ends(&Map::new()), Reboot.is_repeatable(&Map::new())), (Ends::ByBoot, false));
        assert_eq!(Reboot.restarts(&Map::new()), Restarts::Machine);
    }

    #[test]
    fn the_line_tells_a_delay_that_was_asked_for() {
        assert_eq!(Reboot.describe(&Map::new()), "reboot");
        assert_eq!(Reboot.describe(&params(r#"{"delay": 5}"#)), "reboot in 5 minutes");
    }
}
