//! One stock minion of each supported line at once, doing what operators do every day.
//!
//! The fleet is shared: each test is one behaviour, and none of them leaves the minions in another state than it found
//! them in.

use saltern_e2e::Fleet;
use saltern_e2e::tree::{LARGE, Tree};
use saltern_testkit::wait;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The shared fleet and its tree.
async fn fleet() -> Option<&'static (Fleet, Tree)> {
    static FLEET: OnceCell<Option<(Fleet, Tree)>> = OnceCell::const_new();
    let start = async || {
        let tree = Tree::default();
        let fleet = Fleet::start(&tree.config(), &[]).await?;
        Some((fleet, tree))
    };
    FLEET.get_or_init(start).await.as_ref()
}

macro_rules! fleet_or_skip {
    () => {
        match fleet().await {
            Some((fleet, tree)) => (fleet, tree),
            None => return,
        }
    };
}

/// The same answer from every minion.
#[track_caller]
fn all_say(fleet: &Fleet, answers: &Value, expected: &Value) {
    for id in fleet.ids() {
        assert_eq!(&answers[id], expected, "{id}");
    }
}

/// Runs a job and gives `job show` of it: what was returned and how it was judged.
async fn shown(fleet: &Fleet, arguments: &[&str]) -> Value {
    let mut command = vec!["run", "--async"];
    command.extend(arguments);
    let accepted = fleet.server.cli_json(&command).await;
    let jid = accepted["jid"].as_str().expect("an accepted job has an id").to_owned();
    let expected = accepted["minions"].as_array().expect("an accepted job has minions").len();
    wait::until_ok("every return of the job", Duration::from_secs(120), async || {
        let job = fleet.server.cli_json(&["job", "show", &jid]).await;
        let returned = job["returns"].as_object().map_or(0, |returns| returns.len());
        if returned == expected { Ok(job) } else { Err(format!("{returned} of {expected} returned")) }
    })
    .await
}

#[tokio::test]
async fn every_line_answers_a_ping() {
    let (fleet, _) = fleet_or_skip!();
    let answers = fleet.run("*", "test.ping", &[]).await;
    assert_eq!(answers.as_object().unwrap().len(), fleet.ids().len());
    all_say(fleet, &answers, &json!(true));
}

#[tokio::test]
async fn text_comes_back_as_it_was_sent() {
    let (fleet, _) = fleet_or_skip!();
    for (argument, text) in [
        ("grüße, Γειά, 日本語, 🧂", "grüße, Γειά, 日本語, 🧂"),
        ("\u{1}\u{7f}\u{fffd} \\x00\\xff %s {0}", "\u{1}\u{7f}\u{fffd} \\x00\\xff %s {0}"),
        ("deadbeef00ff", "deadbeef00ff"),
        ("text='  blanks, and a=b  '", "  blanks, and a=b  "),
    ] {
        let answers = fleet.run("*", "test.echo", &[argument]).await;
        all_say(fleet, &answers, &json!(text));
    }
}

#[tokio::test]
async fn exit_codes_are_kept_and_make_the_command_fail() {
    let (fleet, _) = fleet_or_skip!();
    let job = shown(fleet, &["*", "cmd.run", "echo out; exit 3"]).await;
    for id in fleet.ids() {
        let returned = &job["returns"][id];
        assert_eq!(
            (&returned["return"], &returned["retcode"], &returned["success"]),
            (&json!("out"), &json!(3), &json!(false))
        );
    }
    let output = fleet.server.cli(&["run", "*", "cmd.run", "exit 3"]).await;
    assert_eq!(output.status.code(), Some(1));
    let output = fleet.server.cli(&["run", "*", "cmd.run", "echo fine"]).await;
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test]
async fn an_unknown_function_is_told_as_salt_tells_it() {
    let (fleet, _) = fleet_or_skip!();
    let job = shown(fleet, &["*", "no_such.function"]).await;
    for id in fleet.ids() {
        assert_eq!(job["returns"][id]["return"], json!("'no_such.function' is not available."));
        assert_eq!(job["returns"][id]["success"], json!(false));
    }
}

#[tokio::test]
async fn grains_come_in_and_can_be_targeted() {
    let (fleet, _) = fleet_or_skip!();
    let answers = fleet.run("*", "grains.items", &[]).await;
    for id in fleet.ids() {
        assert_eq!(answers[id]["id"], json!(id));
        assert_eq!(answers[id]["kernel"], json!("Linux"));
    }
    let answers = fleet.server.cli_json(&["run", "-C", "G@kernel:Linux and m300*", "test.ping"]).await;
    all_say(fleet, &answers, &json!(true));
    let answers = fleet.server.cli_json(&["run", "-G", "id:m3006", "test.ping"]).await;
    assert_eq!(answers, json!({ "m3006": true }));
    let answers = fleet.server.cli_json(&["run", "-I", "nested:deep:other:merged", "test.ping"]).await;
    all_say(fleet, &answers, &json!(true));
}

#[tokio::test]
async fn pillar_is_rendered_here_with_top_file_includes_and_grains() {
    let (fleet, _) = fleet_or_skip!();
    let items = fleet.run("*", "pillar.items", &[]).await;
    for id in fleet.ids() {
        for key in ["greeting", "numbers", "nested", "matched_by", "mode"] {
            assert!(items[id].get(key).is_some(), "{id} lacks {key}: {}", items[id]);
        }
    }
    // 3008 hides pillar values in returns; there the state test reads them, out of a file that a template made of them.
    for (key, value) in [("nested:deep:key", None), ("mode", Some(json!(644))), ("matched_by", Some(json!("Linux")))] {
        let answers = fleet.run("*", "pillar.get", &[key]).await;
        for id in fleet.ids().into_iter().filter(|id| *id != "m3008") {
            assert_eq!(answers[id], value.clone().unwrap_or_else(|| json!(format!("value for {id}"))), "{key}");
        }
    }
}

#[tokio::test]
async fn a_state_tree_is_applied_with_templates_pillar_and_requisites() {
    let (fleet, tree) = fleet_or_skip!();
    let job = shown(fleet, &["*", "state.highstate", "test=True"]).await;
    for id in fleet.ids() {
        let states = job["returns"][id]["return"].as_object().unwrap_or_else(|| panic!("{id}: {job}"));
        assert!(states.values().all(|state| state["result"] != json!(false)), "{id}: {states:?}");
    }
    let job = shown(fleet, &["*", "state.apply"]).await;
    for id in fleet.ids() {
        let states = job["returns"][id]["return"].as_object().unwrap_or_else(|| panic!("{id}: {job}"));
        assert_eq!(states.len(), 4, "{id}: {states:?}");
        assert!(states.values().all(|state| state["result"] == json!(true)), "{id}: {states:?}");
        let order = |name: &str| {
            states.values().find(|state| state["__id__"] == name).and_then(|state| state["__run_num__"].as_i64())
        };
        assert!(
            order("outdir") < order("config") && order("config") < order("reload") && order("reload") < order("last")
        );
        let config = std::fs::read_to_string(tree.out(id, "app.conf")).expect("the state wrote the file");
        assert_eq!(config, format!("# grüß dich\nid = {id}\nport = 8080\ndeep = value for {id}\n"));
    }
    let job = shown(fleet, &["*", "state.apply", "broken"]).await;
    for id in fleet.ids() {
        assert_eq!(
            (&job["returns"][id]["retcode"], &job["returns"][id]["success"]),
            (&json!(2), &json!(false)),
            "{id}"
        );
    }
}

#[tokio::test]
async fn custom_modules_are_synced_and_called_and_their_errors_told() {
    let (fleet, _) = fleet_or_skip!();
    let synced = fleet.run("*", "saltutil.sync_all", &[]).await;
    for id in fleet.ids() {
        assert!(synced[id].get("modules").is_some(), "{id}: {}", synced[id]);
    }
    let answers = fleet.run("*", "fixture.answer", &[]).await;
    for id in fleet.ids() {
        assert_eq!(answers[id], json!({ "answer": 42, "id": id }));
    }
    let job = shown(fleet, &["*", "fixture.fails"]).await;
    for id in fleet.ids() {
        let text = job["returns"][id]["return"].as_str().unwrap_or_default();
        assert!(
            text.starts_with("The minion function caused an exception: Traceback") && text.contains("on purpose"),
            "{id}: {text}"
        );
    }
    // What fits a stock minion's event bus arrives whole; what does not is trimmed by the minion itself.
    let job = shown(fleet, &["*", "fixture.big", "900000"]).await;
    for id in fleet.ids() {
        assert_eq!(job["returns"][id]["return"].as_str().map(str::len), Some(900_000), "{id}");
    }
    let job = shown(fleet, &["*", "fixture.big", "2000000"]).await;
    for id in fleet.ids() {
        assert_eq!(job["returns"][id]["return"], json!("VALUE_TRIMMED"), "{id}");
    }
}

#[tokio::test]
async fn minions_share_values_through_the_mine() {
    let (fleet, _) = fleet_or_skip!();
    all_say(fleet, &fleet.run("*", "mine.send", &["test.echo", "mined"]).await, &json!(true));
    let answers = fleet.run("*", "mine.get", &["*", "test.echo"]).await;
    for asker in fleet.ids() {
        all_say(fleet, &answers[asker], &json!("mined"));
    }
    fleet.run("*", "mine.update", &[]).await;
    fleet.run("m3006", "mine.delete", &["test.echo"]).await;
    let answers = fleet.run("m3007", "mine.get", &["*", "test.echo"]).await;
    assert!(answers["m3007"].get("m3006").is_none() && answers["m3007"].get("m3008").is_some(), "{answers}");
}

#[tokio::test]
async fn an_event_of_a_minion_reaches_the_log() {
    let (fleet, _) = fleet_or_skip!();
    all_say(fleet, &fleet.run("*", "event.send", &["my/deploy/done", "{version: 7}"]).await, &json!(true));
    wait::until_ok("the events of all minions", Duration::from_secs(30), async || {
        let events = fleet.events_with_tag("my/deploy/done").await;
        let from =
            |id: &str| events.iter().any(|event| event["data"]["id"] == id && event["data"]["data"]["version"] == 7);
        if fleet.ids().into_iter().all(from) { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_large_file_arrives_whole() {
    let (fleet, tree) = fleet_or_skip!();
    let expected =
        fleet.run("m3006", "hashutil.digest_file", &[&tree.large().display().to_string(), "sha256"]).await["m3006"]
            .clone();
    for id in fleet.ids() {
        let path = tree.out(id, "large.bin");
        let path = path.to_str().unwrap();
        let got = fleet.run(id, "cp.get_file", &["salt://large.bin", path, "makedirs=True"]).await;
        assert_eq!(got[id], json!(path));
        assert_eq!(std::fs::metadata(path).unwrap().len(), LARGE as u64);
        let digest = fleet.run(id, "hashutil.digest_file", &[path, "sha256"]).await;
        assert_eq!(digest[id], expected, "{id}");
    }
}

#[tokio::test]
async fn every_line_acknowledges_before_it_returns() {
    let (fleet, _) = fleet_or_skip!();
    wait::until_ok("every minion to be able to acknowledge", Duration::from_secs(60), async || {
        let minions = fleet.server.cli_json(&["minion", "list"]).await;
        let ready = minions.as_array().is_some_and(|list| list.iter().all(|minion| minion["ack_method"] != "none"));
        if ready { Ok(()) } else { Err(minions.to_string()) }
    })
    .await;
    let job = shown(fleet, &["*", "test.ping"]).await;
    let jid = job["jid"].as_str().unwrap().to_owned();
    for id in fleet.ids() {
        let events = fleet.events_with_tag(&format!("salt/job/{jid}/ack/{id}")).await;
        let [ack] = events.as_slice() else { panic!("{id}: {events:?}") };
        for field in ["_stamp", "cmd", "data", "id", "pretag", "tag"] {
            assert!(ack["data"].get(field).is_some(), "{id} lacks {field}: {ack}");
        }
        assert_eq!(
            (&ack["data"]["id"], &ack["data"]["cmd"], &ack["data"]["pretag"]),
            (&json!(id), &json!("_minion_event"), &Value::Null)
        );
        let returned = fleet.events_with_tag(&format!("salt/job/{jid}/ret/{id}")).await;
        assert!(
            ack["number"].as_i64() < returned[0]["number"].as_i64(),
            "{id}: the acknowledgement came after the return"
        );
    }
    // Off for one job: no acknowledgement, and the job still runs.
    let job = shown(fleet, &["--no-ack", "*", "test.ping"]).await;
    let jid = job["jid"].as_str().unwrap().to_owned();
    assert_eq!(fleet.events_with_tag(&format!("salt/job/{jid}/ack/*")).await, Vec::<Value>::new());
}
