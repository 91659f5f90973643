//! `cmd.*`: run a program, a line for the shell, or a script of the master's.
//!
//! What may be said about a command is in `params`, how it is made ready and run in `request`.

mod params;
mod request;
mod script;
#[cfg(test)]
mod tests;

use super::call::Answer;
use super::command::find_program;
use super::{Call, Failure, Function, Outcome, Param};
use futures_util::FutureExt;
use request::{Ran, line, run, start};
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cmd.exec_code",
        params: params::EXEC_CODE,
        doc: "Run a piece of code with the interpreter named by 'lang' and give what it prints.\n\n\
              CLI Example:\n\n    saltern run '*' cmd.exec_code sh 'echo $HOSTNAME'\n",
        run: |call| async move { Ok(script::exec_code(&call).await?.into_text(&call, |ran| ran.stdout)) }.boxed(),
    },
    Function {
        name: "cmd.exec_code_all",
        params: params::EXEC_CODE,
        doc: "Run a piece of code with the interpreter 'lang'; give its number, exit code and both streams.\n\n\
              \
              CLI Example:\n\n    saltern run '*' cmd.exec_code_all sh 'echo $HOSTNAME'\n",
        run: |call| async move { Ok(script::exec_code(&call).await?.into_map(&call)) }.boxed(),
    },
    Function {
        name: "cmd.has_exec",
        params: &[Param::Required("cmd")],
        doc: "Tell whether a program is installed.\n\nCLI Example:\n\n    saltern run '*' cmd.has_exec cat\n",
        run: |call| call.blocking(|call| Ok(find_program(&call.text("cmd")?).is_some().into())),
    },
    Function {
        name: "cmd.retcode",
        params: params::RETCODE,
        doc: "Run a command and give its exit code.\n\n\
              CLI Example:\n\n    saltern run '*' cmd.retcode 'test -e /etc/hosts'\n",
        run: |call| {
            async move {
                let ran = run(&call, line(&call)?, true).await?;
                Ok(Outcome { value: ran.retcode.into(), retcode: ran.job_retcode })
            }
            .boxed()
        },
    },
    Function { name: "cmd.run", params: params::RUN, doc: RUN_DOC, run: |call| cmd_run(call).boxed() },
    Function {
        name: "cmd.run_all",
        params: params::RUN_ALL,
        doc: "Run a command; give its number, exit code and both streams.\n\n\
              Takes what cmd.run takes.\n\nCLI Example:\n\n    saltern run '*' cmd.run_all 'ls -l /'\n",
        run: |call| {
            async move {
                let is_merged = call.flag("redirect_stderr", false);
                Ok(run(&call, line(&call)?, is_merged).await?.into_map(&call))
            }
            .boxed()
        },
    },
    Function {
        name: "cmd.run_bg",
        params: params::RUN_BG,
        doc: "Start a command and leave it alone; give its number. It goes on when the job has ended.\n\n\
              CLI Example:\n\n    saltern run '*' cmd.run_bg 'sleep 3600'\n",
        run: |call| async move { Ok(Value::map([("pid", start(&call, line(&call)?).await?)]).into()) }.boxed(),
    },
    Function {
        name: "cmd.run_stderr",
        params: params::RUN_ONE_STREAM,
        doc: "Run a command and give what it writes to its error output.\n\n\
              CLI Example:\n\n    saltern run '*' cmd.run_stderr 'ls /nowhere'\n",
        run: |call| {
            async move { Ok(run(&call, line(&call)?, false).await?.into_text(&call, |ran| ran.stderr)) }.boxed()
        },
    },
    Function {
        name: "cmd.run_stdout",
        params: params::RUN_ONE_STREAM,
        doc: "Run a command and give what it writes to its output, without its error output.\n\n\
              CLI Example:\n\n    saltern run '*' cmd.run_stdout 'ls -l /'\n",
        run: |call| {
            async move { Ok(run(&call, line(&call)?, false).await?.into_text(&call, |ran| ran.stdout)) }.boxed()
        },
    },
    Function {
        name: "cmd.script",
        params: params::SCRIPT,
        doc: "Fetch a script and run it; give its number, exit code and both streams.\n\n\
              source\n    salt://path on the master, or a path on the minion\n\
              args\n    arguments for the script, as one text or as a list\n\n\
              CLI Example:\n\n    saltern run '*' cmd.script salt://scripts/runme.sh 'arg1 \"arg 2\"'\n",
        run: |call| async move { script::script(&call).await }.boxed(),
    },
    Function {
        name: "cmd.script_retcode",
        params: params::SCRIPT_RETCODE,
        doc: "Fetch a script and run it; give its exit code.\n\n\
              CLI Example:\n\n    saltern run '*' cmd.script_retcode salt://scripts/runme.sh\n",
        run: |call| {
            async move {
                let Outcome { value, retcode } = script::script(&call).await?;
                Ok(Outcome { value: value.get("retcode").cloned().unwrap_or_default(), retcode })
            }
            .boxed()
        },
    },
    Function {
        name: "cmd.shell",
        params: params::SHELL_ONLY,
        doc: "Run a line in the shell; give its output, error output included.\n\n\
              CLI Example:\n\n    saltern run '*' cmd.shell 'ls | wc -l'\n",
        run: |call| cmd_run(call).boxed(),
    },
    Function {
        name: "cmd.shells",
        params: &[],
        doc: "List the shells of /etc/shells.\n\nCLI Example:\n\n    saltern run '*' cmd.shells\n",
        run: |call| call.blocking(|_| Ok(shells().into())),
    },
    Function {
        name: "cmd.which",
        params: &[Param::Required("cmd")],
        doc: "Give the path of a program, or None.\n\nCLI Example:\n\n    saltern run '*' cmd.which cat\n",
        run: |call| call.blocking(|call| Ok(path_of(&call.text("cmd")?).into())),
    },
    Function {
        name: "cmd.which_bin",
        params: &[Param::Required("cmds")],
        doc: "Give the path of the first of these programs that is installed, or None.\n\n\
              CLI Example:\n\n    saltern run '*' cmd.which_bin '[apt-get, dnf, zypper]'\n",
        run: |call| call.blocking(which_bin),
    },
];

const RUN_DOC: &str = "Run a command and give its output, error output included.

cmd
    a line for the shell, or a list of words
cwd
    the directory it runs in; the home of its user otherwise
stdin
    what it reads; '\\n' becomes a new line unless stdin_raw_newlines is set
runas, group
    as whom it runs
shell
    the shell that reads the line
python_shell
    False: no shell, the line is split into words
env, clean_env, prepend_path, reset_system_locale
    variables over those of the minion; without those; folders before PATH; whether the locale becomes C
rstrip, output_encoding, hide_output
    what is given back: white space at the end, how bytes are read, nothing at all
umask
    for the files it makes
timeout
    seconds after which it and all it has started are killed
ignore_retcode, success_retcodes, success_stdout, success_stderr, raise_err
    what counts as a success, and whether anything else is an error
bg
    True: start it and leave it alone

CLI Example:

    saltern run '*' cmd.run 'ls -l /' cwd=/ timeout=10
";

async fn cmd_run(call: Call) -> Answer {
    let line = line(&call)?;
    if call.flag("bg", false) {
        start(&call, line).await?;
        return Ok("".into());
    }
    let is_merged = !call.has_param("redirect_stderr") || call.flag("redirect_stderr", true);
    let ran = run(&call, line, is_merged).await?;
    if ran.job_retcode != 0 && call.has_param("raise_err") && call.flag("raise_err", false) {
        return Err(Failure::Command(if is_hidden(&call) { String::new() } else { ran.stdout }));
    }
    Ok(ran.into_text(&call, |ran| ran.stdout))
}

impl Ran {
    fn into_text(self, call: &Call, part: fn(Self) -> String) -> Outcome {
        let retcode = self.job_retcode;
        let value = if is_hidden(call) { "".into() } else { part(self).into() };
        Outcome { value, retcode }
    }

    fn into_map(self, call: &Call) -> Outcome {
        let (stdout, stderr) = if is_hidden(call) { Default::default() } else { (self.stdout, self.stderr) };
        let mut map = Map::with_capacity(4);
        map.push("pid", self.pid);
        map.push("retcode", self.retcode);
        map.push("stdout", stdout);
        map.push("stderr", stderr);
        Outcome { value: Value::Map(map), retcode: self.job_retcode }
    }
}

fn is_hidden(call: &Call) -> bool {
    call.has_param("hide_output") && call.flag("hide_output", false)
}

fn path_of(program: &str) -> Option<String> {
    find_program(program).map(|path| path.to_string_lossy().into_owned())
}

fn which_bin(call: &Call) -> Answer {
    let names = call.get("cmds").and_then(Value::as_list).unwrap_or_default();
    Ok(names.iter().find_map(|name| path_of(&python_text(name))).into())
}

fn shells() -> Vec<Value> {
    let text = std::fs::read_to_string("/etc/shells").unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(Value::from).collect()
}
