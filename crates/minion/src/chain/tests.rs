//! Chunks on a minion without a master.

mod power_loss;

use super::record::{StepState, read_steps};
use super::*;
use crate::functions::testing::{Bench, map};
use serde_json::{Value as Json, json};

/// A minion whose boot id is a file of its own.
struct Machine(Bench);

impl Machine {
    fn new() -> Self {
        let mut bench = Bench::new();
        let file = bench.at("boot_id");
        bench.context.opts = map([("saltern_boot_id_file", file.into())]).into();
        let machine = Self(bench);
        machine.boot("1");
        machine
    }

    fn boot(&self, id: &str) {
        std::fs::write(self.0.at("boot_id"), id).unwrap();
    }

    async fn call(&self, name: &str, args: Json, kwargs: &[(&str, Json)]) -> Json {
        let args: Vec<Value> = serde_json::from_value(args).unwrap();
        let kwargs: Vec<_> = kwargs.iter().map(|(k, v)| (*k, serde_json::from_value(v.clone()).unwrap())).collect();
        let answer = self.0.call(&format!("saltern_chain.{name}"), &args, &kwargs).await;
        serde_json::to_value(answer).unwrap()
    }

    async fn start(&self, launch: &str, chunk: u64, steps: Json) -> Json {
        self.call("start", json!([launch, chunk, steps]), &[]).await
    }

    /// A step that notes that it was run.
    fn note(&self, id: &str) -> Json {
        json!({ "id": id, "fun": "cmd.run", "arg": [format!("echo {id} >> {}", self.0.at("notes"))] })
    }

    /// The steps that were run, in order.
    fn notes(&self) -> String {
        std::fs::read_to_string(self.0.at("notes")).unwrap_or_default().replace('\n', "")
    }

    /// Leaves a chunk as an agent does that died at work.
    fn left_behind(&self, steps: Json, started: usize) {
        let steps = read_steps(&serde_json::from_value(steps).unwrap()).unwrap();
        let mut chunk = Chunk::new("7", 1, None, steps, false);
        for step in chunk.steps.iter_mut().take(started) {
            (step.record.state, step.record.tries) = (StepState::Started, 1);
        }
        self.chain().folder.lock_now();
        self.chain().folder.write(&chunk).unwrap();
    }

    fn chain(&self) -> Chain {
        Chain::of(&self.0.context)
    }
}

impl Folder {
    /// Makes the folder, as whoever works in it has.
    fn lock_now(&self) {
        let lock = futures_util::FutureExt::now_or_never(self.lock(Hold::Alone, Duration::ZERO));
        drop(lock.unwrap().unwrap().unwrap());
    }
}

/// The states of the chunk and of its steps.
fn states(answer: &Json) -> String {
    let mut words = vec![answer["state"].as_str().unwrap_or("?").to_owned()];
    let steps = answer["steps"].as_object().unwrap().iter();
    words.extend(steps.map(|(id, step)| format!("{id}:{}", step["state"].as_str().unwrap())));
    words.join(" ")
}

fn failing(id: &str) -> Json {
    json!({ "id": id, "fun": "test.assertion", "arg": [false] })
}

fn with(step: Json, key: &str, value: Json) -> Json {
    let mut step = step;
    step[key] = value;
    step
}

#[tokio::test]
async fn steps_run_in_order_and_answer_under_their_ids() {
    let machine = Machine::new();
    let echo = json!({ "id": "e", "fun": "test.arg", "arg": [1, "a=b"], "kwarg": { "x": [2] } });
    let answer = machine.start("7", 1, json!([machine.note("b"), machine.note("a"), echo])).await;
    assert_eq!(states(&answer), "done b:done a:done e:done");
    assert_eq!(machine.notes(), "ba");
    assert_eq!((&answer["launch"], &answer["chunk"], &answer["boot_id"]), (&json!("7"), &json!(1), &json!("1")));
    let echoed = &answer["steps"]["e"];
    assert_eq!(echoed["ret"], json!({ "args": [1, "a=b"], "kwargs": { "x": [2] } }));
    assert_eq!(echoed["retcode"], 0);
    assert!(echoed["started"].as_str().unwrap() <= echoed["ended"].as_str().unwrap());
}

#[tokio::test]
async fn a_failure_skips_what_needs_success_and_runs_what_waits_for_it() {
    let machine = Machine::new();
    let steps = json!([
        with(machine.note("0"), "after", json!("failed")),
        failing("a"),
        machine.note("b"),
        with(machine.note("c"), "after", json!("failed")),
        with(machine.note("d"), "after", json!("always")),
    ]);
    let answer = machine.start("7", 1, steps).await;
    assert_eq!(states(&answer), "failed 0:skipped a:failed b:skipped c:done d:done");
    assert_eq!(machine.notes(), "cd");
    assert_eq!(answer["steps"]["a"]["retcode"], 1);
}

#[tokio::test]
async fn an_exit_code_fails_a_step_and_an_unknown_function_too() {
    let machine = Machine::new();
    let answer = machine.start("7", 1, json!([{ "id": "a", "fun": "cmd.run", "arg": ["exit 3"] }])).await;
    assert_eq!(answer["steps"]["a"]["retcode"], 3);
    let answer = machine.start("8", 1, json!([{ "id": "a", "fun": "state.apply" }])).await;
    assert_eq!(answer["steps"]["a"]["ret"], "'state.apply' is not available.");
    assert_eq!(states(&answer), "failed a:failed");
}

#[tokio::test]
async fn a_failure_reaches_into_the_next_chunk() {
    let machine = Machine::new();
    machine.start("7", 1, json!([failing("a")])).await;
    let steps = json!([machine.note("b"), with(machine.note("c"), "after", json!("failed"))]);
    assert_eq!(states(&machine.start("7", 2, steps).await), "failed b:skipped c:done");
    let told = [("options", json!({ "failed": true }))];
    let answer = machine.call("start", json!(["8", 2, [machine.note("d")]]), &told).await;
    assert_eq!(states(&answer), "failed d:skipped");
}

#[tokio::test]
async fn the_same_start_runs_nothing_again() {
    let machine = Machine::new();
    let first = machine.start("7", 1, json!([machine.note("a")])).await;
    assert_eq!(machine.start("7", 1, json!([machine.note("a")])).await, first);
    assert_eq!(machine.start("7", 2, json!([machine.note("b")])).await["state"], "done");
    assert_eq!(machine.start("7", 1, json!([machine.note("a")])).await["error"], "past");
    assert_eq!(machine.notes(), "ab");
}

#[tokio::test]
async fn a_reboot_is_over_when_the_boot_id_differs() {
    let machine = Machine::new();
    let reboot = json!({ "id": "r", "kind": "reboot", "fun": "test.ping" });
    let answer = machine.start("7", 1, json!([machine.note("a"), reboot])).await;
    assert_eq!(states(&answer), "rebooting a:done r:started");
    assert_eq!(answer["steps"]["r"]["boot_id"], "1");
    // The agent alone was restarted.
    assert_eq!(states(&machine.call("resume", json!([]), &[]).await), "rebooting a:done r:started");
    let refused = machine.start("7", 2, json!([machine.note("b")])).await;
    assert_eq!((&refused["error"], &refused["state"]), (&json!("not_yet"), &json!("rebooting")));
    let refused = machine.start("8", 1, json!([machine.note("x")])).await;
    assert_eq!((&refused["error"], &refused["launch"]), (&json!("busy"), &json!("7")));
    machine.boot("2");
    assert_eq!(states(&machine.call("status", json!([]), &[]).await), "done a:done r:done");
    assert_eq!(states(&machine.start("7", 2, json!([machine.note("b")])).await), "done b:done");
    assert_eq!(machine.notes(), "ab");
}

#[tokio::test]
async fn a_reboot_that_is_refused_fails() {
    let machine = Machine::new();
    let reboot = with(failing("r"), "kind", json!("reboot"));
    assert_eq!(states(&machine.start("7", 1, json!([reboot])).await), "failed r:failed");
    std::fs::remove_file(machine.0.at("boot_id")).unwrap();
    let reboot = with(machine.note("r"), "kind", json!("reboot"));
    let answer = machine.start("8", 1, json!([reboot])).await;
    assert!(answer["steps"]["r"]["ret"].as_str().unwrap().contains("no boot id"));
    assert_eq!(machine.notes(), "");
}

#[tokio::test]
async fn after_an_update_that_killed_the_agent_the_next_chunk_checks() {
    let machine = Machine::new();
    machine.left_behind(json!([{ "id": "u", "kind": "update", "fun": "test.ping" }]), 1);
    assert_eq!(states(&machine.call("resume", json!([]), &[]).await), "updating u:started");
    assert_eq!(machine.start("8", 1, json!([machine.note("x")])).await["error"], "busy");
    let steps = json!([with(failing("c"), "kind", json!("check")), machine.note("b")]);
    assert_eq!(states(&machine.start("7", 2, steps).await), "failed c:failed b:skipped");
}

#[tokio::test]
async fn a_check_fails_if_it_does_not_return_what_is_expected() {
    let machine = Machine::new();
    let check = |gives: Json, wants: Json| json!([{ "id": "c", "kind": "check", "fun": "test.echo", "arg": [gives], "expect": wants }]);
    let cases = [
        (json!("3008.3"), json!("3008.3"), None),
        (json!({ "b": [1], "a": null }), json!({ "a": null, "b": [1] }), None),
        (json!("3006.1"), json!("3008.3"), Some("not updated: test.echo gave \"3006.1\", wanted \"3008.3\"")),
        (json!(1), json!(true), Some("not updated: test.echo gave 1, wanted true")),
        (json!("anything"), Json::Null, None),
    ];
    for (launch, (gives, wants, differs)) in cases.into_iter().enumerate() {
        let answer = machine.start(&launch.to_string(), 1, check(gives.clone(), wants)).await;
        let step = &answer["steps"]["c"];
        let expected = match differs {
            Some(text) => (json!("failed"), json!(text), json!(1)),
            None => (json!("done"), gives, json!(0)),
        };
        assert_eq!((step["state"].clone(), step["ret"].clone(), step["retcode"].clone()), expected);
    }
    let long = machine.start("long", 1, check(json!("ä".repeat(300)), json!(""))).await;
    let text = long["steps"]["c"]["ret"].as_str().unwrap();
    assert_eq!(text, format!("not updated: test.echo gave \"{}..., wanted \"\"", "ä".repeat(199)));
}

#[tokio::test]
async fn a_check_that_fails_by_itself_says_why() {
    let machine = Machine::new();
    let check = with(with(failing("c"), "kind", json!("check")), "expect", json!(true));
    let answer = machine.start("7", 1, json!([check, machine.note("b")])).await;
    assert_eq!(states(&answer), "failed c:failed b:skipped");
    assert!(!answer["steps"]["c"]["ret"].as_str().unwrap().contains("not updated"), "{answer}");
}

#[tokio::test]
async fn an_interrupted_step_ends_the_chain_unless_it_may_be_repeated() {
    let machine = Machine::new();
    machine.left_behind(json!([machine.note("a"), machine.note("b")]), 1);
    assert_eq!(states(&machine.call("status", json!([]), &[]).await), "stopped a:interrupted b:skipped");
    assert_eq!(states(&machine.call("resume", json!([]), &[]).await), "stopped a:interrupted b:skipped");
    assert_eq!(machine.notes(), "");
    machine.left_behind(json!([with(machine.note("a"), "repeatable", json!(true)), machine.note("b")]), 1);
    assert_eq!(states(&machine.call("resume", json!([]), &[]).await), "done a:done b:done");
    assert_eq!(machine.notes(), "ab");
}

#[tokio::test]
async fn two_resumes_at_once_run_once() {
    let machine = Machine::new();
    machine.left_behind(json!([machine.note("a"), { "id": "s", "fun": "test.sleep", "arg": [2] }]), 0);
    let resume = || machine.call("resume", json!([]), &[]);
    let (one, other) = tokio::join!(resume(), resume());
    let mut seen = [states(&one), states(&other)];
    seen.sort();
    assert_eq!(seen, ["done a:done s:done", "running a:done s:started"]);
    assert_eq!(machine.notes(), "a");
}

#[tokio::test]
async fn a_cancel_lets_the_running_step_finish_and_begins_nothing_more() {
    let machine = Machine::new();
    let go = machine.0.at("go");
    let wait = format!("while [ ! -e {go} ]; do sleep 0.02; done; echo a >> {}", machine.0.at("notes"));
    let steps = json!([{ "id": "a", "fun": "cmd.run", "arg": [wait] }, machine.note("b")]);
    let cancel = async {
        while machine.call("status", json!([]), &[]).await["steps"]["a"]["state"] != "started" {}
        let answer = machine.call("cancel", json!(["7"]), &[]).await;
        std::fs::write(&go, "").unwrap();
        answer
    };
    let (ended, cancelled) = tokio::join!(machine.start("7", 1, steps), cancel);
    assert_eq!((states(&cancelled).as_str(), &cancelled["alive"]), ("running a:started b:waiting", &json!(true)));
    assert_eq!(states(&ended), "cancelled a:done b:cancelled");
    assert_eq!(machine.start("7", 2, json!([machine.note("c")])).await["error"], "cancelled");
    assert_eq!(machine.notes(), "a");
}

#[tokio::test]
async fn a_cancel_holds_after_the_reboot_and_before_the_first_chunk() {
    let machine = Machine::new();
    machine.start("7", 1, json!([{ "id": "r", "kind": "reboot", "fun": "test.ping" }])).await;
    assert_eq!(machine.call("cancel", json!(["7"]), &[]).await["state"], "rebooting");
    machine.boot("2");
    let answer = machine.call("resume", json!([]), &[]).await;
    assert_eq!((states(&answer).as_str(), &answer["cancelled"]), ("done r:done", &json!(true)));
    assert_eq!(machine.start("7", 2, json!([machine.note("b")])).await["error"], "cancelled");
    assert_eq!(machine.call("cancel", json!(["9"]), &[]).await["state"], "cancelled");
    assert_eq!(machine.start("9", 1, json!([machine.note("b")])).await["error"], "cancelled");
    assert_eq!(machine.notes(), "");
}

#[tokio::test]
async fn what_is_left_of_a_chunk_is_cancelled_where_nobody_works_on_it() {
    let machine = Machine::new();
    machine.left_behind(json!([machine.note("a"), machine.note("b")]), 0);
    assert_eq!(states(&machine.call("cancel", json!(["7"]), &[]).await), "cancelled a:cancelled b:cancelled");
    machine.left_behind(json!([with(machine.note("a"), "repeatable", json!(true)), machine.note("b")]), 1);
    assert_eq!(states(&machine.call("stop", json!(["7"]), &[]).await), "stopped a:interrupted b:cancelled");
}

#[tokio::test]
async fn what_has_ended_is_cleared_and_what_has_not_only_by_force() {
    let machine = Machine::new();
    assert_eq!(machine.call("clear", json!([]), &[]).await["cleared"], Json::Null);
    machine.left_behind(json!([machine.note("a")]), 0);
    assert_eq!(machine.call("clear", json!(["7"]), &[]).await["error"], "open");
    assert_eq!(machine.call("clear", json!(["8"]), &[("force", json!(true))]).await["error"], "other");
    assert_eq!(machine.call("clear", json!(["7"]), &[("force", json!(true))]).await["cleared"], "7");
    assert_eq!(machine.call("status", json!([]), &[]).await["state"], "none");
    machine.start("8", 1, json!([machine.note("a")])).await;
    assert_eq!(machine.call("clear", json!([]), &[]).await["cleared"], "8");
}

#[tokio::test]
async fn a_damaged_store_is_told_and_kept_until_it_is_set_aside() {
    let machine = Machine::new();
    machine.start("7", 1, json!([machine.note("a")])).await;
    let store = machine.0.path().join("data/chain/store.json");
    std::fs::write(&store, "{\"version\":1,").unwrap();
    for name in ["status", "resume", "clear"] {
        assert_eq!(machine.call(name, json!([]), &[]).await["error"], "damaged", "{name}");
    }
    assert_eq!(machine.start("8", 1, json!([machine.note("b")])).await["error"], "damaged");
    let cleared = machine.call("clear", json!([]), &[("force", json!(true))]).await;
    assert_eq!(std::fs::read_to_string(cleared["kept"].as_str().unwrap()).unwrap(), "{\"version\":1,");
    assert_eq!(machine.start("8", 1, json!([machine.note("b")])).await["state"], "done");
    assert_eq!(machine.notes(), "ab");
}

#[tokio::test]
async fn what_a_full_disk_cannot_keep_is_told_at_once() {
    let machine = Machine::new();
    let spoil = format!("mkdir {}/chain/store.json.new", machine.0.at("data"));
    let steps = json!([{ "id": "a", "fun": "cmd.run", "arg": [spoil] }, machine.note("b")]);
    let answer = machine.start("7", 1, steps).await;
    assert_eq!((states(&answer).as_str(), &answer["error"]), ("running a:done b:waiting", &json!("store")));
    assert_eq!(states(&machine.call("status", json!([]), &[]).await), "stopped a:interrupted b:skipped");
    assert_eq!(machine.notes(), "");
}

#[tokio::test]
async fn launches_that_are_cancelled_at_once_are_all_remembered() {
    let machine = Machine::new();
    let cancel = |launch: u32| machine.call("cancel", json!([launch]), &[]);
    futures_util::future::join_all((0..20).map(cancel)).await;
    for launch in 0..20 {
        let refused = machine.start(&launch.to_string(), 1, json!([machine.note("a")])).await;
        assert_eq!(refused["error"], "cancelled", "{launch}");
    }
}

#[tokio::test]
async fn a_start_that_makes_no_sense_is_refused() {
    let machine = Machine::new();
    for (chunk, steps) in [(0, json!([machine.note("a")])), (1, json!([])), (1, json!([{ "id": "a" }]))] {
        let args: Vec<Value> = serde_json::from_value(json!(["7", chunk, steps])).unwrap();
        let text = machine.0.fail("saltern_chain.start", &args, &[]).await;
        assert!(text.starts_with("ERROR executing 'saltern_chain.start'"), "{text}");
    }
}
