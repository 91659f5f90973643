//! `states`: apply states, those that are assigned, or the highstate.

use super::params::{cut, flag, names, operand, text};
use super::{ActionType, BadParams, Call, Kind, Param, judging};
use crate::run::Verdict;
use crate::value::{Map, Value};

#[derive(Debug)]
pub(super) struct States;

/// The state that includes what is assigned to the minion that applies it; the server makes it anew for each.
const ASSIGNED: &str = "saltern.assigned";

impl ActionType for States {
    fn name(&self) -> &'static str {
        "states"
    }

    fn title(&self) -> &'static str {
        "Apply states"
    }

    fn help(&self) -> &'static str {
        "Apply the states named, those assigned to each machine, or all that the top file gives it (its highstate)"
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::optional("mods", Kind::Names, "the states; none: the highstate"),
                Param::optional("assigned", Kind::Flag, "what is assigned to each machine then, in place of `mods`"),
                Param::optional("test", Kind::Flag, "only tell what would change"),
                Param::optional("pillar", Kind::Map, "pillar values for this time only"),
                Param::optional("saltenv", Kind::Text, "the environment the states are taken from"),
            ]
        }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let mut mods = names(params, "mods");
        mods.iter().try_for_each(|name| operand("mods", name))?;
        if flag(params, "assigned", false) {
            if !mods.is_empty() {
                let why = "applies what is assigned, not the states named".into();
                return Err(BadParams::Bad { name: "assigned", why });
            }
            mods.push(ASSIGNED.into());
        }
        // A machine does one state run at a time: without `queue` the second would fail instead of waiting.
        let mut kwarg = vec![("queue", Value::from(true))];
        if flag(params, "test", false) {
            kwarg.push(("test", true.into()));
        }
        if let Some(pillar) = params.get("pillar").filter(|pillar| pillar.is_truthy()) {
            kwarg.push(("pillar", pillar.clone()));
        }
        if let Some(saltenv) = text(params, "saltenv") {
            operand("saltenv", saltenv)?;
            kwarg.push(("saltenv", saltenv.into()));
        }
        if mods.is_empty() {
            return Ok(Call::named("state.highstate", kwarg));
        }
        kwarg.insert(0, ("mods", Value::list(mods)));
        Ok(Call::named("state.apply", kwarg))
    }

    fn describe(&self, params: &Map) -> String {
        let mods = names(params, "mods");
        let what = match mods.is_empty() {
            true if flag(params, "assigned", false) => "the assigned states".into(),
            true => "the highstate".into(),
            false => mods.join(", "),
        };
        let how = if flag(params, "test", false) { "test" } else { "apply" };
        cut(&format!("{how} {what}"), 80)
    }

    /// That is what states are for: they say how things are to be, not what is to be done.
    fn is_repeatable(&self, _params: &Map) -> bool {
        true
    }

    fn judge(&self, params: &Map, returned: &Value) -> Verdict {
        let results = judging::states(judging::value(returned), flag(params, "test", false));
        judging::and(judging::job(returned), results)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compiled, params, refused, returned};
    use super::*;

    #[test]
    fn named_states_are_applied_in_a_queue() {
        let call =
            compiled("states", r#"{"mods": "web, db.master", "test": true, "pillar": {"a": 1}, "saltenv": "dev"}"#);
        assert_eq!(call.funs, ["state.apply"]);
        let wanted =
            r#"{"mods": ["web", "db.master"], "queue": true, "test": true, "pillar": {"a": 1}, "saltenv": "dev"}"#;
        assert_eq!(call.kwarg, params(wanted));
    }

    #[test]
    fn no_names_are_the_highstate() {
        for asked in ["{}", r#"{"mods": [], "test": false, "pillar": {}}"#, r#"{"mods": null}"#] {
            let call = compiled("states", asked);
            assert_eq!(
                (call.funs[0].as_str(), call.kwarg),
                ("state.highstate", params(r#"{"queue": true}"#)),
                "{asked}"
            );
        }
    }

    #[test]
    fn what_is_assigned_is_one_state_that_each_machine_has_its_own_of() {
        let call = compiled("states", r#"{"assigned": true, "test": true}"#);
        assert_eq!(call.funs, ["state.apply"]);
        assert_eq!(call.kwarg, params(r#"{"mods": ["saltern.assigned"], "queue": true, "test": true}"#));
        assert_eq!(compiled("states", r#"{"assigned": false}"#).funs, ["state.highstate"]);
        refused("states", r#"{"assigned": true, "mods": ["web"]}"#);
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for bad in [r#"{"mods": ["a b"]}"#, r#"{"mods": ["-x"]}"#, r#"{"mods": [1]}"#, r#"{"pillar": [1]}"#] {
            refused("states", bad);
        }
    }

    #[test]
    fn a_run_is_as_good_as_its_states_and_its_job() {
        let judge = |asked: &str, answer: &str| States.judge(&params(asked), &returned(answer)).success;
        let of = |result: &str, retcode: i64| {
            format!(
                r#"{{"return": {{"a": {{"result": {result}}}}}, "retcode": {retcode}, "success": {}}}"#,
                retcode == 0
            )
        };
        assert!(judge("{}", &of("true", 0)));
        assert!(!judge("{}", &of("true", 2)));
        assert!(!judge("{}", &of("false", 0)));
        assert!(!judge("{}", &of("null", 0)), "a dry run that nobody asked for changed nothing");
        assert!(judge(r#"{"test": true}"#, &of("null", 0)));
        assert!(!judge(r#"{"test": true}"#, &of("false", 2)), "the job itself failed");
        assert!(!judge("{}", r#"{"return": ["No matching sls found"], "retcode": 0, "success": true}"#));
    }

    #[test]
    fn the_line_names_the_states() {
        assert_eq!(States.describe(&params(r#"{"mods": ["web", "db"]}"#)), "apply web, db");
        assert_eq!(States.describe(&params(r#"{"test": true}"#)), "test the highstate");
        assert_eq!(States.describe(&params(r#"{"assigned": true}"#)), "apply the assigned states");
    }
}
