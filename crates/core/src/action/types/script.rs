//! `script`: run a text with an interpreter. No file of the master's is needed, so any minion can be given any script.
//!
//! It becomes `cmd.exec_code_all`, which stock minions since 3006 and native ones have alike: the body goes into a file that
//! only its user can read. On standard input instead, the script's own commands would eat what is left of it.

use super::params::{cut, number, number_between, operand, text};
use super::{ActionType, BadParams, Call, Kind, Param, judging};
use crate::run::Verdict;
use crate::value::{Map, Value};

#[derive(Debug)]
pub(super) struct Script;

/// A body is sent to every minion of its action: what is larger belongs into a file that they fetch.
const MOST_BYTES: usize = 1 << 20;

const MOST_SECONDS: i64 = 7 * 24 * 3600;

impl ActionType for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn title(&self) -> &'static str {
        "Run a script"
    }

    fn help(&self) -> &'static str {
        "Run a script that is given here, and keep its output and exit code"
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("body", Kind::Body, "the script"),
                Param::optional("user", Kind::Text, "as whom it runs; the agent's user otherwise"),
                Param::optional("group", Kind::Text, "in which group it runs; stock minions need sudo for that"),
                Param::optional("cwd", Kind::Text, "the directory it runs in; the home of its user otherwise"),
                Param::optional("timeout", Kind::Number, "seconds after which it is killed"),
                Param::optional(
                    "interpreter",
                    Kind::Text,
                    "the program that reads it; as its #! line says, or /bin/sh",
                ),
            ]
        }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        // Browsers send lines that end in CR LF, and no shell understands those.
        let mut body = text(params, "body").ok_or(BadParams::Missing("body"))?.replace("\r\n", "\n");
        if body.len() > MOST_BYTES {
            return Err(BadParams::Bad { name: "body", why: format!("must have at most {MOST_BYTES} bytes") });
        }
        if !body.ends_with('\n') {
            body.push('\n');
        }
        let interpreter = match text(params, "interpreter") {
            Some(given) => {
                operand("interpreter", given)?;
                given.to_owned()
            }
            None => interpreter_of(&body)?,
        };
        let mut kwarg = vec![("lang", Value::from(interpreter)), ("code", body.into())];
        for (name, theirs) in [("user", "runas"), ("group", "group")] {
            if let Some(given) = text(params, name) {
                operand(name, given)?;
                kwarg.push((theirs, given.into()));
            }
        }
        if let Some(cwd) = text(params, "cwd") {
            if !cwd.starts_with('/') {
                return Err(BadParams::Bad { name: "cwd", why: "must be a path that begins with /".into() });
            }
            kwarg.push(("cwd", cwd.into()));
        }
        if let Some(timeout) = number_between(params, "timeout", 1, MOST_SECONDS)? {
            kwarg.push(("timeout", timeout.into()));
        }
        Ok(Call::named("cmd.exec_code_all", kwarg))
    }

    fn describe(&self, params: &Map) -> String {
        let user = text(params, "user").map(|user| format!(" as {}", cut(user, 32))).unwrap_or_default();
        let limit = number(params, "timeout").map(|seconds| format!(" for at most {seconds} s")).unwrap_or_default();
        format!("run a script{user}{limit}: {}", cut(text(params, "body").unwrap_or_default(), 60))
    }

    fn judge(&self, _params: &Map, returned: &Value) -> Verdict {
        judging::and(judging::job(returned), judging::command(judging::value(returned)))
    }
}

/// The program that the first line names. Options there cannot be kept, and leaving out a `-e` would change what happens.
fn interpreter_of(body: &str) -> Result<String, BadParams> {
    let Some(line) = body.lines().next().and_then(|line| line.strip_prefix("#!")) else { return Ok("/bin/sh".into()) };
    let words: Vec<&str> = line.split_whitespace().collect();
    let program = match words.as_slice() {
        [env, program] if env.ends_with("/env") => program,
        [program] if !program.ends_with("/env") => program,
        _ => {
            let why = "has a #! line with options: say what they mean in the script (set -e), or name the interpreter";
            return Err(BadParams::Bad { name: "body", why: why.into() });
        }
    };
    operand("body", program)?;
    Ok((*program).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compiled, params, refused, returned};
    use super::*;

    #[test]
    fn the_body_is_given_to_its_interpreter_by_name() {
        let asked = r#"{"body": "A=1\r\necho $A", "user": "web", "group": "www", "cwd": "/srv", "timeout": 60}"#;
        let call = compiled("script", asked);
        assert_eq!((call.funs.as_slice(), call.arg.as_slice()), (&["cmd.exec_code_all".to_owned()][..], &[][..]));
        let wanted = r#"{"lang": "/bin/sh", "code": "A=1\necho $A\n", "runas": "web", "group": "www", "cwd": "/srv", "timeout": 60}"#;
        assert_eq!(call.kwarg, params(wanted));
    }

    #[test]
    fn the_first_line_names_the_interpreter_unless_somebody_does() {
        let lang = |asked: &str| compiled("script", asked).kwarg.get("lang").and_then(Value::as_str).map(str::to_owned);
        assert_eq!(lang(r##"{"body": "#!/bin/bash\ntrue"}"##).as_deref(), Some("/bin/bash"));
        assert_eq!(lang(r##"{"body": "#! /usr/bin/env python3\nprint()"}"##).as_deref(), Some("python3"));
        assert_eq!(lang(r##"{"body": "#!/usr/bin/perl -w\n1", "interpreter": "perl"}"##).as_deref(), Some("perl"));
        assert_eq!(lang(r##"{"body": "# a comment\ntrue"}"##).as_deref(), Some("/bin/sh"));
    }

    #[test]
    fn what_cannot_run_as_written_is_refused() {
        for bad in [
            r##"{"body": "  \n"}"##,
            r##"{"body": "#!/bin/bash -e\ntrue"}"##,
            r##"{"body": "#!/usr/bin/env\ntrue"}"##,
            r##"{"body": "#!/usr/bin/env -S perl -w\ntrue"}"##,
            r##"{"body": "#!\ntrue"}"##,
            r##"{"body": "true", "interpreter": "bash -e"}"##,
            r##"{"body": "true", "cwd": "srv"}"##,
            r##"{"body": "true", "user": "-u root"}"##,
            r##"{"body": "true", "timeout": 0}"##,
            r##"{"body": "a\u0000b"}"##,
        ] {
            refused("script", bad);
        }
        let huge = format!(r#"{{"body": "{}"}}"#, "x".repeat(MOST_BYTES + 1));
        refused("script", &huge);
    }

    #[test]
    fn the_scripts_own_exit_code_counts() {
        let judge = |answer: &str| Script.judge(&Map::new(), &returned(answer));
        assert!(judge(r#"{"return": {"retcode": 0}, "retcode": 0, "success": true}"#).success);
        let bad = judge(r#"{"return": {"retcode": 3}, "retcode": 0, "success": true}"#);
        assert_eq!(bad, Verdict { success: false, retcode: 3 });
    }

    #[test]
    fn the_line_is_cut() {
        let asked = params(&format!(r##"{{"user": "root", "body": "#!/bin/sh\n{}"}}"##, "word ".repeat(40)));
        let line = Script.describe(&asked);
        assert!(line.starts_with("run a script as root: #!/bin/sh word word"), "{line}");
        assert!(line.ends_with('…') && line.chars().count() == "run a script as root: ".len() + 60, "{line}");
    }
}
