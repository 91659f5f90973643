//! The real `pepper` at work: every use that was recorded against salt-api, and what it prints and exits with here.

use crate::capture;
use crate::compare::{How, differences};
use crate::dialect;
use crate::stand::Stand;
use saltern_testkit::pepper::Pepper;
use serde::Deserialize;
use serde_json::{Value, json};

/// A recorded use: the command, and what it asked and was answered.
#[derive(Debug, Deserialize)]
struct Use {
    #[serde(rename = "use")]
    name: String,
    command: String,
    calls: Vec<Call>,
}

#[derive(Debug, Deserialize)]
struct Call {
    status: u16,
    reply: Value,
}

/// What a use comes to here, where it is not what was recorded: its exit code and what it prints.
#[derive(Clone, Copy)]
enum Here {
    /// The recorded answer in its form
    Form,
    /// This instead
    Prints(&'static str),
    /// It fails, says this on its standard error, and exits with 1
    Fails(&'static str),
    /// It prints this and exits with another code than 0
    Exits(&'static str),
    /// A test of its own has it
    Elsewhere,
}

use Here::{Elsewhere, Exits, Fails, Form, Prints};

/// Uses that come to something else, and why.
const HERE: &[(&str, Here, &str)] = &[
    ("arg", Prints(ARGUMENTS), "keyword arguments are told apart here, not by the minion"),
    ("batch", Prints(BATCH), "full_return counts in batches, too"),
    ("batch2", Prints(BATCH), "full_return counts in batches, too"),
    ("runner", Prints(JOBS), "the record was cut off"),
    ("runner-arg", Elsewhere, "its job is another one each time"),
    ("wheel", Form, "other keys are there"),
    ("runuri-wheel", Form, "other keys are there"),
    ("wheel-pos", Prints(KEYS), "arguments may stand in arg, too"),
    ("fail-incomplete-ok", Prints(r#"[{"web1":true}]"#), "it prints each answer by itself"),
    ("fail-incomplete-ghost", Elsewhere, "it prints two documents"),
    ("fail-any", Prints(FAILED), "a code is a number; pepper looks at it only beside an installed Salt"),
    ("fail-any-none", Exits(PING), "pepper finds no codes unless Salt is installed beside it"),
    ("mktoken", Elsewhere, "it keeps a file"),
    ("mktoken2", Elsewhere, "it reads a file"),
    ("ssh", Fails(""), "salt-ssh is not offered"),
    ("badpw", Fails("Authentication denied"), "the password is wrong"),
    ("denied", Fails("Authentication denied"), "he may not"),
    ("runner-unknown", Fails(""), "there is no such function"),
];

const ARGUMENTS: &str = r#"{"return":[{"web1":{"ret":{"args":["one","2"],"kwargs":{"k":"v","__pub_fun":"test.arg",
    "__pub_arg":["one","2",{"__kwarg__":true,"k":"v"}],"__pub_tgt":"web1","__pub_jid":"20261115193251216422","__pub_ret":"","__pub_tgt_type":"glob",
    "__pub_user":"admin"}},"retcode":0,"jid":"20261115193251216422"}}]}"#;
const PING: &str = r#"{"return":[{"web1":{"ret":true,"retcode":0,"jid":"20261115193325428273"}}]}"#;
const FAILED: &str = r#"{"return":[{"web1":{"ret":true,"retcode":"<any>","jid":"20261115193325428273"}}]}"#;
const BATCH: &str = r#"{"return":[{"web1":{"ret":true,"retcode":0,"jid":"20261115193325428273"}}]}"#;
const JOBS: &str = r#"{"return":[{"tag":"salt/run/20261115193305513285/ret","data":{"fun":"runner.jobs.list_jobs",
    "jid":"20261115193305513285","user":"admin","fun_args":[{"search_function":"test.arg"}],
    "_stamp":"2026-11-15T19:33:06.115569","return":"<any>","success":true}}]}"#;
const KEYS: &str = r#"{"return":[{"tag":"salt/wheel/20261115193310884802","data":{"fun":"wheel.key.list",
    "jid":"20261115193310884802","tag":"salt/wheel/20261115193310884802","user":"admin","_stamp":"2026-11-15T19:33:06.115569",
    "return":{"minions":"<any>","minions_pre":"<any>","minions_rejected":"<any>","minions_denied":"<any>","local":"<any>"},
    "success":true}}]}"#;

#[tokio::test]
async fn every_recorded_use_comes_to_the_same() {
    let Some(stand) = Stand::shared().await else { return };
    let Some(pepper) = Pepper::find(stand.http, "admin", "adminpw") else { return };
    let _turn = stand.turn().await;
    let mut failed = Vec::new();
    let uses: Vec<Use> = capture::lines("pepper.jsonl");
    let idle: Vec<_> = HERE
        .iter()
        .filter(|(name, _, _)| !uses.iter().any(|used| used.name == *name))
        .map(|(name, _, why)| (name, why))
        .collect();
    assert!(idle.is_empty(), "no such uses: {idle:?}");
    for used in uses {
        let here = HERE.iter().find(|(name, _, _)| *name == used.name).map(|(_, here, _)| *here);
        if !matches!(here, Some(Elsewhere)) {
            failed.extend(
                try_out(&pepper, &used, here).await.err().map(|complaint| format!("{}: {complaint}", used.name)),
            );
        }
    }
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

async fn try_out(pepper: &Pepper, used: &Use, here: Option<Here>) -> Result<(), String> {
    let (mut user, words) = words(&used.command);
    let mut password = format!("{user}pw");
    if used.name == "badpw" {
        // Not that of everybody else's user: who errs too often is locked out for a while.
        (user, password) = ("jobsonly".into(), "wrong".into());
    }
    let pepper = pepper.used_by(&user, &password);
    let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(Fails(complaint)) = here {
        let output = pepper.run(&arguments).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let as_expected = output.status.code() == Some(1) && said.contains(complaint) && !said.contains("Traceback");
        return if as_expected { Ok(()) } else { Err(format!("{}: {said}", output.status)) };
    }
    let (code, mut printed) = pepper.printed(&arguments).await;
    printed.iter_mut().for_each(dialect::without_additions);
    let [printed] = printed.as_slice() else { return Err(format!("it printed {printed:?}")) };
    let last = used.calls.last().ok_or("nothing was recorded")?;
    let (mut expected, how) = match here {
        Some(Prints(text) | Exits(text)) => {
            (serde_json::from_str(text).expect("what is expected is JSON"), How::default())
        }
        Some(Form) => (last.reply.clone(), How { shape: true, ..How::default() }),
        _ => (last.reply.clone(), How::default()),
    };
    dialect::older(&mut expected);
    let mut found = differences(&expected, printed, how);
    let exits = matches!(here, Some(Exits(_)));
    if (code == 0) == exits || last.status != 200 {
        found.push(format!("it exited with {code}"));
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
}

/// The user and the arguments of a recorded command: words between blanks, or between single quotes.
fn words(command: &str) -> (String, Vec<String>) {
    let mut words: Vec<String> = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        if index % 2 == 1 {
            // A quote may begin in the middle of a word, as in `tgt='web*'`.
            match words.last_mut().filter(|word| word.ends_with('=')) {
                Some(word) => word.push_str(part),
                None => words.push(part.to_owned()),
            }
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words.remove(0);
    if words.first().is_some_and(|word| word == "(user") {
        let user = words[1].trim_end_matches(')').to_owned();
        return (user, words.split_off(2));
    }
    ("admin".into(), words)
}

#[test]
fn recorded_commands_are_split_as_a_shell_does() {
    let split = |command: &str| words(command).1.join("|");
    assert_eq!(split("pepper -C 'G@roles:web1 or db1' test.ping"), "-C|G@roles:web1 or db1|test.ping");
    assert_eq!(split("pepper --client=runner manage.up tgt='web*'"), "--client=runner|manage.up|tgt=web*");
    assert_eq!(
        words("pepper (user tester) web1 cmd.run id"),
        ("tester".into(), vec!["web1".into(), "cmd.run".into(), "id".into()])
    );
}

#[tokio::test]
async fn a_jobs_answers_are_looked_up_by_its_id() {
    let Some(stand) = Stand::shared().await else { return };
    let Some(pepper) = Pepper::find(stand.http, "admin", "adminpw") else { return };
    let _turn = stand.turn().await;
    let (code, started) = pepper.printed(&["--client=local_async", "-L", "web1,db1", "test.echo", "hello"]).await;
    assert_eq!(code, 0, "{started:?}");
    let jid = started[0]["return"][0]["jid"].as_str().unwrap().to_owned();
    stand.wait_for_job(&jid, &["web1", "db1"]).await;
    let (code, found) = pepper.printed(&["--client=runner", "jobs.lookup_jid", &jid]).await;
    let data = &found[0]["return"][0]["data"];
    assert_eq!((code, &data["return"]), (0, &json!({ "web1": "hello", "db1": "hello" })), "{found:?}");
    assert_eq!(data["fun_args"], json!([jid]));
}

#[tokio::test]
async fn an_incomplete_job_fails_when_that_was_asked_for() {
    let Some(stand) = Stand::shared().await else { return };
    let Some(pepper) = Pepper::find(stand.http, "admin", "adminpw") else { return };
    let _turn = stand.turn().await;
    let (code, printed) = pepper.printed(&["--fail-if-incomplete", "-t", "5", "-L", "web1,ghost1", "test.ping"]).await;
    assert_eq!((code, printed), (1, vec![json!([{ "web1": true }]), json!([{ "Failed": ["ghost1"] }])]));
}

#[tokio::test]
async fn a_token_is_kept_and_used_again() {
    let Some(stand) = Stand::shared().await else { return };
    let Some(pepper) = Pepper::find(stand.http, "admin", "adminpw") else { return };
    let _turn = stand.turn().await;
    let cache = pepper.file("tokens");
    let arguments = ["-T", "-x", &cache, "web1", "test.ping"];
    assert_eq!(pepper.printed(&arguments).await.0, 0);
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&cache).unwrap()).unwrap();
    assert!(kept["token"].is_string() && kept["expire"].is_number(), "{kept}");
    // Whoever has a token needs no password.
    let output = pepper.run(&["--password", "forgotten", "-T", "-x", &cache, "web1", "test.ping"]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_missing_minion_costs_no_time() {
    let Some(stand) = Stand::shared().await else { return };
    let Some(pepper) = Pepper::find(stand.http, "admin", "adminpw") else { return };
    let _turn = stand.turn().await;
    let begin = std::time::Instant::now();
    let low = r#"[{"client":"local","tgt":"*","fun":"test.ping","timeout":60,"gather_job_timeout":60}]"#;
    let (code, printed) = pepper.printed(&["--json", low]).await;
    let took = begin.elapsed();
    let minions = &printed[0]["return"][0];
    assert_eq!((code, &minions["ghost1"], &minions["web1"]["ret"]), (0, &json!(false), &json!(true)), "{printed:?}");
    assert!(took.as_secs() < 60, "it took {took:?}");
}

#[tokio::test]
async fn commands_go_through_the_run_url_with_a_token() {
    let Some(stand) = Stand::shared().await else { return };
    let Some(pepper) = Pepper::find(stand.http, "tester", "testerpw") else { return };
    let _turn = stand.turn().await;
    // Who has no right to any runner gets a token all the same.
    let (code, printed) = pepper.printed(&["-r", "web1", "test.ping"]).await;
    assert_eq!((code, &printed[0]["return"][0]["web1"]["ret"]), (0, &json!(true)), "{printed:?}");
    let pepper = pepper.used_by("admin", "adminpw");
    let (code, printed) = pepper.printed(&["-r", "--client=runner", "test.arg", "1", "a=b"]).await;
    let data = &printed[0]["return"][0]["data"];
    assert_eq!((code, &data["return"]), (0, &json!({ "args": ["1"], "kwargs": { "a": "b" } })), "{printed:?}");
}
