//! What `cmd.*` answers, compared with what stock Salt answers.

use crate::functions::testing::{Bench, call, map};
use crate::functions::{Failure, Outcome};
use saltern_core::value::{Map, Value};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::OpenOptions;

async fn outcome(name: &str, args: &[Value], kwargs: &[(&str, Value)]) -> Outcome {
    Bench::new().try_call(name, args, kwargs).await.unwrap()
}

async fn fail(line: &str, kwargs: &[(&str, Value)]) -> String {
    Bench::new().fail("cmd.run", &[line.into()], kwargs).await
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test]
async fn run_merges_both_streams_and_tells_the_exit_code() {
    let done = outcome("cmd.run", &["echo out; echo err >&2; exit 3".into()], &[]).await;
    assert_eq!(done, Outcome { value: "out\nerr".into(), retcode: 3 });
    let done = outcome("cmd.run", &["echo out; echo err >&2".into()], &[("redirect_stderr", false.into())]).await;
    assert_eq!(done, Outcome { value: "out".into(), retcode: 0 });
}

#[tokio::test]
async fn run_all_keeps_streams_apart() {
    let done = outcome("cmd.run_all", &["echo out; echo err >&2; exit 3".into()], &[]).await;
    assert_eq!(done.retcode, 3);
    let Value::Map(mut value) = done.value else { panic!("not a map") };
    assert!(value.remove("pid").and_then(|pid| pid.as_i64()).is_some_and(|pid| pid > 1));
    assert_eq!(
        value.iter().map(|(key, _)| key.key_text().into_owned()).collect::<Vec<_>>(),
        ["retcode", "stdout", "stderr"]
    );
    assert_eq!(
        Value::Map(value),
        map([("retcode", 3.into()), ("stdout", "out".into()), ("stderr", "err".into())]).into()
    );
}

#[tokio::test]
async fn one_stream_can_be_asked_for() {
    let line = [Value::from("echo out; echo err >&2")];
    assert_eq!(call("cmd.run_stdout", &line, &[]).await, "out".into());
    assert_eq!(call("cmd.run_stderr", &line, &[]).await, "err".into());
    assert_eq!(outcome("cmd.retcode", &["exit 4".into()], &[]).await, Outcome { value: 4.into(), retcode: 4 });
    assert_eq!(call("cmd.shell", &["echo a | tr a b".into()], &[]).await, "b".into());
}

#[tokio::test]
async fn a_killed_command_has_the_negative_signal_as_exit_code() {
    assert_eq!(call("cmd.retcode", &["kill -9 $$".into()], &[]).await, (-9).into());
}

#[tokio::test]
async fn without_a_shell_the_line_is_split_into_words() {
    let no_shell = [("python_shell", Value::from(false))];
    assert_eq!(call("cmd.run", &["echo 'a  b' $HOME | cat".into()], &no_shell).await, "a  b $HOME | cat".into());
    assert_eq!(call("cmd.run", &[Value::list(["echo", "a  b"])], &[]).await, "a  b".into());
    let text = fail("no-such-program a b", &no_shell).await;
    assert!(
        text.starts_with("ERROR: Unable to run command '['no-such-program', 'a', 'b']' with the context"),
        "{text}"
    );
    assert!(text.ends_with("reason: [Errno 2] No such file or directory: 'no-such-program'"), "{text}");
    let text = fail("echo 'open", &no_shell).await;
    assert!(text.contains("No closing quotation"), "{text}");
}

#[tokio::test]
async fn numbers_are_commands_too() {
    assert_eq!(outcome("cmd.retcode", &[3.into()], &[]).await.retcode, 127);
}

/// Waits for what must come; a test that fails must not hang.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.unwrap()
}

fn fifo(bench: &Bench) -> String {
    let path = bench.at("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[tokio::test]
async fn time_limits_end_the_whole_group() {
    let bench = Bench::new();
    let fifo = fifo(&bench);
    let mut reader = OpenOptions::new().open_receiver(&fifo).unwrap();
    // Both processes hold the pipe; reading it ends only when both have ended.
    let line = format!("exec 3<>{fifo}; echo up >&3; sleep 1000 & wait");
    let done = bench.try_call("cmd.run", &[line.as_str().into()], &[("timeout", 1.into())]).await.unwrap();
    assert_eq!(done, Outcome { value: format!("{line} : Timed out after 1 seconds").into(), retcode: 1 });
    let mut said = String::new();
    soon(reader.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "up\n");
}

#[tokio::test]
async fn time_limits_show_words_as_python_does() {
    let kwargs = [("timeout", Value::from(0.2)), ("python_shell", false.into())];
    let done = outcome("cmd.run_all", &["sleep 1000".into()], &kwargs).await;
    assert_eq!(done.value.get("stdout"), Some(&"['sleep', '1000'] : Timed out after 0.2 seconds".into()));
    assert_eq!(done.value.get("retcode"), Some(&1.into()));
    assert_eq!(done.value.get("stderr"), Some(&"".into()));
}

#[tokio::test]
async fn input_has_real_line_breaks() {
    assert_eq!(call("cmd.run", &["cat".into()], &[("stdin", "a\\nb".into())]).await, "a\nb".into());
    let raw = [("stdin", Value::from("a\\nb")), ("stdin_raw_newlines", true.into())];
    assert_eq!(call("cmd.run", &["cat".into()], &raw).await, "a\\nb".into());
}

#[tokio::test]
async fn the_environment_is_a_map_or_a_list_over_ours_or_alone() {
    let env = Value::map([("A", Value::from(1)), ("B", true.into()), ("C", Value::Nil)]);
    let line = [Value::from("echo $A-$B-$C-${PATH:+path}-$LC_ALL-$LC_TIME")];
    assert_eq!(call("cmd.run", &line, &[("env", env.clone())]).await, "1-True--path--C".into());
    let list = Value::list([Value::map([("A", 1)]), Value::map([("B", "x")])]);
    assert_eq!(call("cmd.run", &line, &[("env", list)]).await, "1-x--path--C".into());
    let clean = [("env", env), ("clean_env", true.into())];
    let shown = call("cmd.run", &["/usr/bin/env | grep -v ^LC_ | sort".into()], &clean).await;
    let shown = shown.as_str().unwrap().to_owned();
    assert!(shown.contains("A=1\nB=True\nC=") && !shown.contains("HOME="), "{shown}");
}

#[tokio::test]
async fn where_it_runs_can_be_chosen() {
    assert_eq!(call("cmd.run", &["pwd".into()], &[("cwd", "/usr".into())]).await, "/usr".into());
    let text = fail("pwd", &[("cwd", "/nonexist".into())]).await;
    assert_eq!(text, "ERROR: Specified cwd '/nonexist' either not absolute or does not exist");
}

#[tokio::test]
async fn the_shell_must_be_there() {
    assert_eq!(fail("x", &[("shell", "/bin/nosh".into())]).await, "ERROR: The shell /bin/nosh is not available");
}

#[tokio::test]
async fn the_umask_is_the_commands_alone() {
    assert_eq!(call("cmd.run", &["umask".into()], &[("umask", "077".into())]).await, "0077".into());
    assert_eq!(fail("x", &[("umask", "0".into())]).await, "ERROR: Zero umask is not allowed.");
    assert_eq!(fail("x", &[("umask", "9".into())]).await, "ERROR: Invalid umask: '9'");
}

#[tokio::test]
async fn who_runs_it_must_be_there() {
    assert_eq!(fail("x", &[("runas", "nosuch".into())]).await, "ERROR: User 'nosuch' is not available");
    assert_eq!(fail("x", &[("group", "nosuch".into())]).await, "ERROR: Group 'nosuch' is not available");
}

#[tokio::test]
async fn another_user_runs_it_with_their_own_groups() {
    if !is_root() {
        let text = fail("id", &[("runas", "nobody".into())]).await;
        assert!(text.ends_with("reason: [Errno 1] Operation not permitted"), "{text}");
        return;
    }
    let line = [Value::from("id -un; id -Gn; echo $HOME $USER; umask")];
    let shown = call("cmd.run", &line, &[("runas", "nobody".into()), ("umask", "027".into())]).await;
    let expected = std::process::Command::new("sh").args(["-c", "id -un nobody; id -Gn nobody"]).output().unwrap();
    let expected = String::from_utf8(expected.stdout).unwrap();
    let shown = shown.as_str().unwrap();
    assert!(shown.starts_with(&expected) && shown.ends_with(" nobody\n0027"), "{shown}");
}

#[tokio::test]
async fn what_counts_as_success_can_be_said() {
    let codes = [("success_retcodes", Value::list([3]))];
    assert_eq!(outcome("cmd.run", &["exit 3".into()], &codes).await.retcode, 0);
    assert_eq!(outcome("cmd.run", &["exit 4".into()], &codes).await.retcode, 4);
    assert_eq!(outcome("cmd.run", &["exit 3".into()], &[("success_retcodes", "2, 3".into())]).await.retcode, 0);
    assert_eq!(outcome("cmd.run", &["echo ok; exit 1".into()], &[("success_stdout", "ok".into())]).await.retcode, 0);
    let ignored = outcome("cmd.run_all", &["exit 3".into()], &[("ignore_retcode", true.into())]).await;
    assert_eq!((ignored.retcode, ignored.value.get("retcode")), (0, Some(&3.into())));
    assert_eq!(fail("echo sorry; exit 1", &[("raise_err", true.into())]).await, "ERROR: sorry");
}

#[tokio::test]
async fn output_can_be_hidden_kept_as_it_is_or_read_otherwise() {
    assert_eq!(call("cmd.run", &["echo x".into()], &[("hide_output", true.into())]).await, "".into());
    assert_eq!(call("cmd.run", &["echo x".into()], &[("rstrip", false.into())]).await, "x\n".into());
    assert_eq!(call("cmd.run", &["printf 'a\\377b'".into()], &[]).await, "a\u{fffd}b".into());
    let latin = [("output_encoding", Value::from("latin-1"))];
    assert_eq!(call("cmd.run", &["printf 'a\\377b'".into()], &latin).await, "aÿb".into());
}

#[tokio::test]
async fn the_configuration_can_forbid_commands() {
    let opts = |key: &'static str| Bench::with(map([(key, Value::list(["rm *"]))]), Map::new(), Map::new());
    let text = opts("cmd_blacklist_glob").fail("cmd.run", &["rm -rf x".into()], &[]).await;
    assert_eq!(text, "ERROR: The shell command \"rm -rf x\" is not permitted");
    let bench = opts("cmd_whitelist_glob");
    assert!(matches!(bench.try_call("cmd.run", &["echo".into()], &[]).await, Err(Failure::Command(_))));
    assert!(bench.try_call("cmd.run", &["rm --version".into()], &[]).await.is_ok());
}

#[tokio::test]
async fn a_command_in_the_background_is_left_alone() {
    let bench = Bench::new();
    let fifo = fifo(&bench);
    // Held open for writing as well, so that reading waits for the command.
    let mut reader = OpenOptions::new().read_write(true).open_receiver(&fifo).unwrap();
    let started = bench.call("cmd.run_bg", &[format!("echo done >{fifo}").into()], &[]).await;
    assert!(started.get("pid").and_then(Value::as_i64).is_some_and(|pid| pid > 1));
    let mut said = [0; 5];
    soon(reader.read_exact(&mut said)).await.unwrap();
    assert_eq!(&said, b"done\n");
}

#[tokio::test]
async fn scripts_run_with_arguments_and_are_removed() {
    let bench = Bench::new();
    std::fs::write(bench.at("s.sh"), "#!/bin/sh\necho \"$0|$1|$2|$(stat -c %a \"$0\")\"; exit 5\n").unwrap();
    std::fs::set_permissions(bench.at("s.sh"), PermissionsExt::from_mode(0o600)).unwrap();
    let args = [bench.at("s.sh").into(), "one 'two three'".into()];
    let done = bench.try_call("cmd.script", &args, &[]).await.unwrap();
    assert_eq!((done.retcode, done.value.get("retcode")), (5, Some(&5.into())));
    let stdout = done.value.get("stdout").unwrap().as_str().unwrap();
    let (path, rest) = stdout.split_once('|').unwrap();
    assert_eq!(rest, "one|two three|500");
    assert!(path.ends_with(".sh") && !std::path::Path::new(path).exists(), "{path}");
    assert_eq!(bench.call("cmd.script_retcode", &args, &[]).await, 5.into());
}

#[tokio::test]
async fn a_script_that_is_not_there_is_a_failure() {
    let done = outcome("cmd.script", &["/nonexist".into()], &[]).await;
    let expected = [
        ("pid", Value::from(0)),
        ("retcode", 1.into()),
        ("stdout", "".into()),
        ("stderr", "".into()),
        ("cache_error", true.into()),
    ];
    assert_eq!(done, Outcome { value: map(expected).into(), retcode: 1 });
}

#[tokio::test]
async fn code_runs_with_its_interpreter() {
    let args = ["sh".into(), "echo hi $1".into(), Value::Nil, "there you".into()];
    assert_eq!(call("cmd.exec_code", &args, &[]).await, "hi there you".into());
}

#[tokio::test]
async fn programs_can_be_looked_for() {
    assert_eq!(call("cmd.has_exec", &["sh".into()], &[]).await, true.into());
    assert_eq!(call("cmd.which", &["no-such-program".into()], &[]).await, Value::Nil);
    assert_eq!(call("cmd.which_bin", &[Value::list(["no-such-program"])], &[]).await, Value::Nil);
    let sh = call("cmd.which", &["sh".into()], &[]).await;
    assert_eq!(call("cmd.which_bin", &[Value::list(["no-such-program", "sh"])], &[]).await, sh);
}
