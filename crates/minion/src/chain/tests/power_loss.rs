//! The power is cut at every instant between two writes: the account stays true, and nothing is run twice.
//!
//! This test program starts itself again as the agent that dies.

use super::*;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

/// Set in the process that plays the agent: the machine's folder, and what to call.
const FOLDER: &str = "SALTERN_CHAIN_TEST_FOLDER";
const CALL: &str = "SALTERN_CHAIN_TEST_CALL";

/// More points than there are: a chunk that is never through would be tried for ever.
const TOO_MANY: u64 = 200;

/// The agent: one call on the machine in that folder. Does nothing in a run of the tests themselves.
#[tokio::test]
async fn agent() {
    let (Ok(folder), Ok(call)) = (std::env::var(FOLDER), std::env::var(CALL)) else { return };
    let mut machine = Machine::new();
    let folder = Path::new(&folder);
    machine.0.context.data_dir = Arc::new(folder.join("data"));
    machine.0.context.opts = map([("saltern_boot_id_file", at(folder, "boot_id").into())]).into();
    let note = |id| json!({ "id": id, "fun": "cmd.run", "arg": [format!("echo {id} >> {}", at(folder, "notes"))] });
    let answer = match call.as_str() {
        "start" => machine.start("7", 1, json!([note("a"), note("b"), with(note("r"), "kind", json!("reboot"))])).await,
        "repeat" => {
            machine.start("7", 1, json!([note("a"), with(note("b"), "repeatable", json!(true)), note("c")])).await
        }
        call => machine.call(call, json!([]), &[]).await,
    };
    std::fs::write(folder.join("answer"), answer.to_string()).unwrap();
}

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// Runs the agent for one call, with a power cut at a point, or none.
fn agent_calls(folder: &Path, call: &str, cut_at: Option<u64>) -> ExitStatus {
    let mut agent = Command::new(std::env::current_exe().unwrap());
    agent.args(["--exact", "chain::tests::power_loss::agent"]).env(FOLDER, folder).env(CALL, call);
    match cut_at {
        Some(point) => agent.env("SALTERN_CHAIN_CRASH_AT", point.to_string()),
        None => agent.env_remove("SALTERN_CHAIN_CRASH_AT"),
    };
    agent.output().unwrap().status
}

fn answer(folder: &Path, call: &str) -> Json {
    assert!(agent_calls(folder, call, None).success());
    serde_json::from_str(&std::fs::read_to_string(folder.join("answer")).unwrap()).unwrap()
}

fn fresh() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("boot_id"), "1").unwrap();
    folder
}

fn notes(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("notes")).unwrap_or_default().replace('\n', "")
}

/// What the account says of each step has to fit how often it was run.
#[track_caller]
fn assert_true(answer: &Json, notes: &str, point: u64, repeatable: &str) {
    assert!(answer["error"].is_null(), "point {point}: {answer}");
    for id in ["a", "b", "c", "r"] {
        let times = notes.matches(id).count();
        let fits = match answer["steps"][id]["state"].as_str() {
            Some("done") if id == repeatable => (1..=2).contains(&times),
            // A machine that came up again was rebooted, by whomever.
            Some("done") if id == "r" => times <= 1,
            Some("done") => times == 1,
            // Whether it was run cannot be known.
            Some("interrupted" | "started") => times <= 1,
            Some("skipped" | "waiting") | None => times == 0,
            Some(_) => false,
        };
        assert!(fits, "point {point}: {id} was run {times} times: {answer}");
    }
}

/// Cuts the power at each point of a start; `seen` looks at the machine after each. Tells how many points there are.
fn at_each_point(call: &str, mut seen: impl FnMut(&Path, u64)) -> u64 {
    for point in 1..TOO_MANY {
        let folder = fresh();
        let status = agent_calls(folder.path(), call, Some(point));
        if status.success() {
            return point - 1;
        }
        assert_eq!(status.signal(), Some(9), "point {point}");
        seen(folder.path(), point);
    }
    panic!("the chunk is never through");
}

#[test]
fn the_account_is_true_after_a_power_cut_at_any_instant() {
    let mut ends = std::collections::BTreeSet::new();
    let points = at_each_point("start", |folder, point| {
        // Power is back: another boot, another agent.
        let before = answer(folder, "status");
        assert_true(&before, &notes(folder), point, "");
        std::fs::write(folder.join("boot_id"), "2").unwrap();
        let resumed = answer(folder, "resume");
        assert_true(&resumed, &notes(folder), point, "");
        let ran = notes(folder);
        assert_eq!(answer(folder, "resume")["state"], resumed["state"], "point {point}");
        assert_eq!(notes(folder), ran, "point {point}: a second resume ran something");
        ends.insert(resumed["state"].as_str().unwrap().to_owned());
        // What was begun has ended; a reboot that had been resumed into the new boot is under way in that one.
        assert!(["none", "done", "stopped", "rebooting"].contains(&resumed["state"].as_str().unwrap()), "{resumed}");
    });
    // Eight writes of four points each, and two around each of three calls.
    assert_eq!(points, 8 * 4 + 3 * 2);
    assert!(ends.contains("done") && ends.contains("stopped"), "{ends:?}");
}

#[test]
fn a_repeatable_step_is_run_again_after_a_power_cut_and_nothing_else_is() {
    at_each_point("repeat", |folder, point| {
        let resumed = answer(folder, "resume");
        assert_true(&resumed, &notes(folder), point, "b");
        assert_ne!(resumed["steps"]["b"]["state"], "interrupted", "point {point}");
    });
}

#[test]
fn a_power_cut_while_resuming_is_as_harmless() {
    // The chunk is written down whole, and nothing of it was begun.
    let begin = |folder: &Path| assert_eq!(agent_calls(folder, "start", Some(4)).signal(), Some(9));
    for point in 1..TOO_MANY {
        let folder = fresh();
        begin(folder.path());
        let status = agent_calls(folder.path(), "resume", Some(point));
        if status.success() {
            assert!(point > 30, "only {point} points");
            return;
        }
        let resumed = answer(folder.path(), "resume");
        assert_true(&resumed, &notes(folder.path()), point, "");
    }
    panic!("the chunk is never through");
}
