//! `function`: call a Salt function, or several, as `salt TARGET FUN ARG…` does.

use super::params::{cut, names};
use super::{ActionType, BadParams, Call, Ends, Kind, Param, Restarts, judging};
use crate::run::Verdict;
use crate::target::python_text;
use crate::value::{Map, Value};

#[derive(Debug)]
pub(super) struct Function;

/// Functions that only look; `x.*` is all of a module. What is not here is taken to change something.
const LOOKING: &[&str] = &[
    "test.arg",
    "test.arg_clean",
    "test.arg_repr",
    "test.arg_type",
    "test.assertion",
    "test.attr_call",
    "test.collatz",
    "test.echo",
    "test.exception",
    "test.false",
    "test.false_",
    "test.fib",
    "test.get_opts",
    "test.kwarg",
    "test.missing_func",
    "test.module_report",
    "test.not_loaded",
    "test.opts_pkg",
    "test.outputter",
    "test.ping",
    "test.provider",
    "test.providers",
    "test.raise_exception",
    "test.rand_sleep",
    "test.rand_str",
    "test.random_hash",
    "test.retcode",
    "test.sleep",
    "test.stack",
    "test.true",
    "test.true_",
    "test.tty",
    "test.version",
    "test.versions",
    "test.versions_information",
    "test.versions_report",
    "sys.*",
    "pillar.*",
    "status.*",
    "config.get",
    "disk.usage",
    "disk.inodeusage",
    "grains.equals",
    "grains.fetch",
    "grains.get",
    "grains.has_value",
    "grains.item",
    "grains.items",
    "grains.ls",
    "network.interfaces",
    "network.ip_addrs",
    "network.ip_addrs6",
    "network.ping",
    "pkg.info_installed",
    "pkg.latest_version",
    "pkg.list_pkgs",
    "pkg.list_repos",
    "pkg.list_upgrades",
    "pkg.upgrade_available",
    "pkg.version",
    "ps.top",
    "saltutil.find_job",
    "saltutil.is_running",
    "saltutil.running",
    "service.available",
    "service.enabled",
    "service.get_all",
    "service.get_running",
    "service.status",
    "state.show_highstate",
    "state.show_low_sls",
    "state.show_lowstate",
    "state.show_sls",
    "state.show_states",
    "state.show_top",
];

/// Functions that give back states and their results.
const STATES: &[&str] = &[
    "state.apply",
    "state.high",
    "state.highstate",
    "state.low",
    "state.pkg",
    "state.request",
    "state.run_request",
    "state.single",
    "state.sls",
    "state.sls_id",
    "state.template",
    "state.template_str",
    "state.test",
    "state.top",
];

/// Functions that give back a command's exit code among other things.
const COMMANDS: &[&str] = &["cmd.exec_code_all", "cmd.run_all", "cmd.script"];

impl ActionType for Function {
    fn name(&self) -> &'static str {
        "function"
    }

    fn title(&self) -> &'static str {
        "Run a function"
    }

    fn help(&self) -> &'static str {
        "Call one Salt function with its arguments, or several in one job"
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("fun", Kind::Names, "the function, as module.function; or several"),
                Param::optional("arg", Kind::List, "its arguments by position; of several functions a list for each"),
                Param::optional("kwarg", Kind::Map, "its arguments by name; only where there is one function"),
            ]
        }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let funs = names(params, "fun");
        if funs.is_empty() {
            return Err(BadParams::Missing("fun"));
        }
        if let Some(bad) = funs.iter().find(|fun| !is_function(fun)) {
            let bad = cut(bad, 60);
            return Err(BadParams::Bad { name: "fun", why: format!("must be like test.ping, which {bad:?} is not") });
        }
        let call = Call { arg: args(params).to_vec(), kwarg: kwargs(params).cloned().unwrap_or_default(), funs };
        if call.funs.len() == 1 {
            return Ok(call);
        }
        if !call.kwarg.is_empty() {
            return Err(BadParams::Bad { name: "kwarg", why: "can be given to one function only".into() });
        }
        // Left out, it is nothing for each.
        let arg = if call.arg.is_empty() { vec![Value::List(Vec::new()); call.funs.len()] } else { call.arg };
        if arg.len() != call.funs.len() || arg.iter().any(|arg| arg.as_list().is_none()) {
            return Err(BadParams::Bad { name: "arg", why: "must be one list for each of several functions".into() });
        }
        Ok(Call { arg, ..call })
    }

    fn describe(&self, params: &Map) -> String {
        let funs = names(params, "fun");
        let words = match funs.as_slice() {
            [one] => {
                let args = args(params).iter().map(|arg| python_text(arg).into_owned());
                let named = kwargs(params).into_iter().flatten().map(|(name, value)| shown(name, value));
                std::iter::once(one.clone()).chain(args).chain(named).collect::<Vec<_>>().join(" ")
            }
            many => many.join(", "),
        };
        cut(&words, 80)
    }

    fn is_restricted(&self, params: &Map) -> bool {
        !only_looks(params)
    }

    fn is_repeatable(&self, params: &Map) -> bool {
        only_looks(params)
    }

    fn restarts(&self, params: &Map) -> Restarts {
        let reboots = |fun: &String| matches!(fun.as_str(), "system.reboot" | "transactional_update.reboot");
        if names(params, "fun").iter().any(reboots) { Restarts::Machine } else { Restarts::Nothing }
    }

    /// Whoever calls a function wants to see what it gives back, whatever happens to the machine then.
    fn ends(&self, _params: &Map) -> Ends {
        Ends::ByReturn
    }

    fn judge(&self, params: &Map, returned: &Value) -> Verdict {
        let verdict = judging::job(returned);
        let value = judging::value(returned);
        let funs = names(params, "fun");
        if let [one] = funs.as_slice() {
            return judging::and(verdict, further(one, &Arguments::of(args(params), kwargs(params)), value));
        }
        let codes = funs.iter().enumerate().map(|(at, fun)| {
            // In order where the minion has `multifunc_ordered`, by name where not.
            let value = match value {
                Value::List(values) => values.get(at),
                other => other.get(fun),
            };
            let args = args(params).get(at).and_then(Value::as_list).unwrap_or_default();
            further(fun, &Arguments::of(args, None), value.unwrap_or(&Value::Nil))
        });
        codes.fold(verdict, judging::and)
    }
}

/// What a function's value says beyond the exit code of its job.
fn further(fun: &str, arguments: &Arguments<'_>, value: &Value) -> i64 {
    if STATES.contains(&fun) {
        let is_test = matches!(fun, "state.test" | "state.request") || arguments.is_set("test");
        return judging::states(value, is_test);
    }
    if COMMANDS.contains(&fun) && !arguments.is_set("ignore_retcode") { judging::command(value) } else { 0 }
}

/// The arguments of one function, as a minion reads them.
struct Arguments<'p> {
    args: &'p [Value],
    kwargs: Option<&'p Map>,
}

impl<'p> Arguments<'p> {
    fn of(args: &'p [Value], kwargs: Option<&'p Map>) -> Self {
        Self { args, kwargs }
    }

    /// Whether a flag was given, in any of the ways a minion takes: by name, in a marked map, as `name=True`.
    fn is_set(&self, name: &str) -> bool {
        let is_it = |key: &str| key.eq_ignore_ascii_case(name);
        let is_in = |map: &Map| map.iter().any(|(key, value)| key.as_str().is_some_and(is_it) && is_true(value));
        let by_position = |arg: &Value| match arg {
            Value::Map(map) => map.get("__kwarg__").is_some_and(Value::is_truthy) && is_in(map),
            Value::Text(text) => {
                text.split_once('=').is_some_and(|(key, value)| is_it(key) && value.eq_ignore_ascii_case("true"))
            }
            _ => false,
        };
        self.kwargs.is_some_and(is_in) || self.args.iter().any(by_position)
    }
}

fn is_true(value: &Value) -> bool {
    match value.as_str() {
        Some(text) => text.eq_ignore_ascii_case("true"),
        None => value.is_truthy(),
    }
}

fn args(params: &Map) -> &[Value] {
    params.get("arg").and_then(Value::as_list).unwrap_or_default()
}

fn kwargs(params: &Map) -> Option<&Map> {
    params.get("kwarg").and_then(Value::as_map)
}

fn is_function(name: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    name.len() <= 255 && name.contains('.') && name.split('.').all(is_part)
}

fn only_looks(params: &Map) -> bool {
    let looks = |fun: &String| {
        LOOKING.iter().any(|known| match known.strip_suffix('*') {
            Some(module) => fun.starts_with(module),
            None => fun == known,
        })
    };
    let funs = names(params, "fun");
    !funs.is_empty() && funs.iter().all(looks)
}

/// Lists are read by many, so what looks like a secret is not in them.
fn shown(name: &Value, value: &Value) -> String {
    let name = python_text(name);
    let lower = name.to_ascii_lowercase();
    let is_secret = ["passw", "secret", "token", "private"].iter().any(|word| lower.contains(word));
    if is_secret { format!("{name}=***") } else { format!("{name}={}", python_text(value)) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compiled, params, refused, returned};
    use super::*;

    #[test]
    fn one_function_keeps_its_arguments() {
        let call = compiled("function", r#"{"fun": "cmd.run", "arg": ["ls"], "kwarg": {"cwd": "/"}}"#);
        assert_eq!(call.funs, ["cmd.run"]);
        assert_eq!((call.arg, call.kwarg), (vec!["ls".into()], params(r#"{"cwd": "/"}"#)));
    }

    #[test]
    fn several_functions_have_a_list_each() {
        let call = compiled("function", r#"{"fun": "test.ping, cmd.run", "arg": [[], ["ls"]]}"#);
        assert_eq!(call.funs, ["test.ping", "cmd.run"]);
        assert_eq!(call.arg, [Value::List(Vec::new()), Value::list(["ls"])]);
        assert_eq!(compiled("function", r#"{"fun": ["test.ping", "test.version"]}"#).arg.len(), 2);
    }

    #[test]
    fn what_cannot_be_called_is_refused() {
        for bad in [
            r#"{"fun": "ping"}"#,
            r#"{"fun": ".ping"}"#,
            r#"{"fun": "te st.ping"}"#,
            r#"{"fun": ","}"#,
            r#"{"fun": ["test.ping", "cmd.run"], "arg": ["ls"]}"#,
            r#"{"fun": ["test.ping", "cmd.run"], "arg": [[]]}"#,
            r#"{"fun": ["test.ping", "cmd.run"], "kwarg": {"cwd": "/"}}"#,
        ] {
            refused("function", bad);
        }
    }

    #[test]
    fn state_functions_are_judged_by_their_states() {
        let judge = |asked: &str, answer: &str| Function.judge(&params(asked), &returned(answer)).success;
        let failed = r#"{"return": {"a": {"result": false}}, "retcode": 0, "success": true}"#;
        let would = r#"{"return": {"a": {"result": null}}, "retcode": 0, "success": true}"#;
        let errors = r#"{"return": ["Rendering failed"], "retcode": 0, "success": true}"#;
        for fun in STATES {
            assert!(
                !judge(&format!(r#"{{"fun": "{fun}"}}"#), failed) || matches!(*fun, "state.test" | "state.request")
            );
            assert!(!judge(&format!(r#"{{"fun": "{fun}"}}"#), errors), "{fun}");
        }
        assert!(judge(r#"{"fun": "test.arg"}"#, failed), "not a state function");
        assert!(!judge(r#"{"fun": "state.apply"}"#, would));
        for test in [
            r#""kwarg": {"test": true}"#,
            r#""arg": ["web", "test=True"]"#,
            r#""arg": [{"__kwarg__": true, "test": "True"}]"#,
        ] {
            assert!(judge(&format!(r#"{{"fun": "state.apply", {test}}}"#), would), "{test}");
        }
        assert!(!judge(r#"{"fun": "state.apply", "kwarg": {"test": false}}"#, would));
    }

    #[test]
    fn each_of_several_functions_is_judged() {
        let asked = params(r#"{"fun": ["test.ping", "state.apply"], "arg": [[], ["web"]]}"#);
        let by_name = r#"{"return": {"test.ping": true, "state.apply": {"a": {"result": false}}},
            "retcode": {"test.ping": 0, "state.apply": 0}, "success": {"test.ping": true, "state.apply": true}}"#;
        let in_order = r#"{"return": [true, {"a": {"result": true}}], "retcode": [0, 0], "success": [true, true]}"#;
        assert_eq!(Function.judge(&asked, &returned(by_name)), Verdict { success: false, retcode: 2 });
        assert!(Function.judge(&asked, &returned(in_order)).success);
    }

    #[test]
    fn a_script_that_could_not_be_fetched_has_failed_although_its_job_has_not() {
        let answer = returned(r#"{"return": {"retcode": 1, "cache_error": true}, "retcode": 0, "success": true}"#);
        assert!(!Function.judge(&params(r#"{"fun": "cmd.script"}"#), &answer).success);
        let ignored = params(r#"{"fun": "cmd.script", "kwarg": {"ignore_retcode": true}}"#);
        assert!(Function.judge(&ignored, &answer).success);
    }

    #[test]
    fn only_what_looks_is_free_of_windows_and_repeatable() {
        for (fun, looks) in [
            // It calls whatever it is given.
            ("test.try", false),
            ("test.ping", true),
            ("grains.items", true),
            ("grains.setval", false),
            ("cmd.run", false),
            ("testing.x", false),
            ("test.ping,cmd.run", false),
            ("", false),
        ] {
            let asked = params(&format!(r#"{{"fun": "{fun}"}}"#));
            assert_eq!((Function.is_restricted(&asked), Function.is_repeatable(&asked)), (!looks, looks), "{fun}");
        }
    }

    #[test]
    fn the_line_shows_arguments_but_no_secrets() {
        let asked =
            params(r#"{"fun": "mysql.user", "arg": ["bob", 3], "kwarg": {"password": "hunter2", "host": "db"}}"#);
        assert_eq!(Function.describe(&asked), "mysql.user bob 3 password=*** host=db");
    }

    #[test]
    fn a_reboot_ends_the_chunk_but_the_return_ends_the_run() {
        let asked = params(r#"{"fun": "system.reboot"}"#);
        assert_eq!((Function.restarts(&asked), Function.ends(&asked)), (Restarts::Machine, Ends::ByReturn));
    }
}
