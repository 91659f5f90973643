//! Whether a return says that the work was done. What a minion claims with its exit code is not always the whole truth.

use crate::run::{self, Verdict};
use crate::value::{Map, Value};

/// By the job alone: its exit code and its success flag.
pub(super) fn job(returned: &Value) -> Verdict {
    let part = |name| returned.get(name).unwrap_or(&Value::Nil);
    run::judge(part("retcode"), part("success"))
}

/// What one function gave back.
pub(super) fn value(returned: &Value) -> &Value {
    returned.get("return").unwrap_or(&Value::Nil)
}

/// The verdict with what is known beyond it: a code that is not 0 makes it a failure.
pub(super) fn and(verdict: Verdict, code: i64) -> Verdict {
    if code == 0 { verdict } else { Verdict { success: false, retcode: or(verdict.retcode, code) } }
}

fn or(first: i64, second: i64) -> i64 {
    if first == 0 { second } else { first }
}

/// A command's own exit code, where the function gives back `{pid, retcode, stdout, stderr}`; 0 where it does not.
pub(super) fn command(value: &Value) -> i64 {
    match value.get("retcode") {
        None | Some(Value::Nil) => 0,
        Some(code) => code.as_i64().unwrap_or(1),
    }
}

/// The results of states, as an exit code: 0 if every one is true. Salt's own numbers say what is wrong: 1 for states
/// that could not be compiled, 2 for one that failed.
///
/// In test mode a state that would change something has no result; whether the run as a whole was good, the job says.
pub(super) fn states(value: &Value, is_test: bool) -> i64 {
    let Value::Map(map) = value else { return NOT_STATES };
    // `state.low` gives the one state itself.
    if result(map).is_some() {
        return state(value, is_test);
    }
    map.values().map(|value| state(value, is_test)).find(|code| *code != 0).unwrap_or(0)
}

const NOT_STATES: i64 = 1;
const FAILED: i64 = 2;

fn state(value: &Value, is_test: bool) -> i64 {
    match value.as_map().and_then(result) {
        None => NOT_STATES,
        Some(result) if is_test || *result == Value::Bool(true) => 0,
        Some(_) => FAILED,
    }
}

fn result(map: &Map) -> Option<&Value> {
    map.get("result").filter(|result| matches!(result, Value::Bool(_) | Value::Nil))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(result: impl Into<Value>) -> Value {
        Value::map([("result", result.into()), ("comment", "".into())])
    }

    #[test]
    fn every_state_must_be_true() {
        let good = Value::map([("a", state(true)), ("b", state(true))]);
        assert_eq!(states(&good, false), 0);
        let bad = Value::map([("a", state(true)), ("b", state(false))]);
        assert_eq!(states(&bad, false), 2);
    }

    #[test]
    fn a_state_that_would_change_is_good_in_test_mode_only() {
        let would = Value::map([("a", state(Value::Nil))]);
        assert_eq!((states(&would, true), states(&would, false)), (0, 2));
    }

    #[test]
    fn what_is_not_a_map_of_states_is_a_failure_even_in_test_mode() {
        let errors = Value::list(["Rendering SLS 'base:web' failed"]);
        let text = Value::map([("a", "no state")]);
        for value in [errors, text, "The minion function caused an exception".into(), Value::Nil, true.into()] {
            assert_eq!((states(&value, true), states(&value, false)), (1, 1), "{value:?}");
        }
    }

    #[test]
    fn the_one_state_of_a_low_call_is_judged() {
        assert_eq!((states(&state(true), false), states(&state(false), false)), (0, 2));
    }

    #[test]
    fn a_command_tells_its_own_exit_code() {
        assert_eq!(command(&Value::map([("retcode", 3)])), 3);
        assert_eq!(command(&Value::map([("retcode", "x")])), 1);
        assert_eq!((command(&"text".into()), command(&Value::Nil)), (0, 0));
    }

    #[test]
    fn the_first_code_that_is_not_zero_is_told() {
        let good = Verdict { success: true, retcode: 0 };
        assert_eq!(and(good, 2), Verdict { success: false, retcode: 2 });
        assert_eq!(and(Verdict { success: false, retcode: 7 }, 2).retcode, 7);
        assert_eq!(and(good, 0), good);
    }
}
