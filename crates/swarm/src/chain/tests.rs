//! The contract of `saltern_chain`, without a master: the same cases as those of the agents that keep it.

use super::*;
use serde_json::{Value as Json, json};

/// A minion, and what is counted of it.
struct Machine {
    chain: Chain,
    tally: Tally,
    /// How many jobs it was given
    jobs: usize,
}

impl Machine {
    fn new() -> Self {
        Self { chain: Chain::new(&MinionId::new("m").unwrap()), tally: Tally::new(100), jobs: 0 }
    }

    fn order(&self, fun: &str, arg: Json) -> Order {
        let (fun, arg) = (format!("saltern_chain.{fun}"), serde_json::from_value(arg).unwrap());
        let record = |launch: &_, chunk, step: &_| self.tally.step(launch, chunk, step, 1);
        Order::read(&fun.as_str().into(), &arg, &ByteString::new(), &record).unwrap()
    }

    fn give(&mut self, fun: &str, arg: Json, is_alive: bool) -> Reply {
        self.jobs += 1;
        let (order, jid) = (self.order(fun, arg), format!("{}", self.jobs).into());
        self.chain.take(&order, &jid, is_alive)
    }

    /// Gives a job while nobody works on the chunk, and lets it come to its end.
    fn call(&mut self, fun: &str, arg: Json) -> Json {
        let outcome = match self.give(fun, arg, false) {
            Reply::Answer(outcome) => outcome,
            Reply::Work => loop {
                if let Turn::Over { outcome, .. } = self.turn() {
                    break outcome;
                }
            },
        };
        serde_json::to_value(outcome.value).unwrap()
    }

    fn turn(&mut self) -> Turn {
        self.chain.turn(false, &self.tally, 0)
    }

    fn start(&mut self, launch: &str, chunk: i64, steps: Json) -> Json {
        self.call("start", json!([launch, chunk, steps]))
    }

    /// How often which step was begun.
    fn begun(&self) -> Vec<(String, u64)> {
        let ids = [MinionId::new("m").unwrap()];
        let entries = crate::steps::entries(self.tally.step_records(), &ids);
        entries.map(|entry| (format!("{}/{}/{}", entry.launch, entry.chunk, entry.step), entry.executed)).collect()
    }
}

fn step(id: &str) -> Json {
    json!({ "id": id, "fun": "test.ping" })
}

fn failing(id: &str) -> Json {
    json!({ "id": id, "fun": "test.false" })
}

fn with(mut step: Json, key: &str, value: Json) -> Json {
    step[key] = value;
    step
}

/// The states of the chunk and of its steps.
fn states(answer: &Json) -> String {
    let mut words = vec![answer["state"].as_str().unwrap_or("?").to_owned()];
    let steps = answer["steps"].as_object().into_iter().flatten();
    words.extend(steps.map(|(id, step)| format!("{id}:{}", step["state"].as_str().unwrap())));
    words.join(" ")
}

#[test]
fn steps_run_in_order_and_answer_under_their_ids() {
    let mut machine = Machine::new();
    let echo = json!({ "id": "c", "fun": "test.echo", "arg": ["x"] });
    let answer = machine.start("7", 1, json!([step("a"), step("b"), echo]));
    assert_eq!(states(&answer), "done a:done b:done c:done");
    assert_eq!((&answer["launch"], &answer["chunk"], &answer["alive"]), (&json!("7"), &json!(1), &json!(false)));
    let last = &answer["steps"]["c"];
    assert_eq!((&last["ret"], &last["retcode"]), (&json!("x"), &json!(0)));
    assert!(last["started"].as_str().unwrap() <= last["ended"].as_str().unwrap());
    assert_eq!(machine.begun(), [("7/1/a".into(), 1), ("7/1/b".into(), 1), ("7/1/c".into(), 1)]);
}

#[test]
fn a_failure_skips_what_needs_success_and_runs_what_waits_for_it() {
    let mut machine = Machine::new();
    let steps = json!([
        with(step("0"), "after", json!("failed")),
        failing("a"),
        step("b"),
        with(step("c"), "after", json!("failed")),
        with(step("d"), "after", json!("always")),
    ]);
    let answer = machine.start("7", 1, steps);
    assert_eq!(states(&answer), "failed 0:skipped a:failed b:skipped c:done d:done");
    assert_eq!(answer["steps"]["a"]["retcode"], 1);
    // It reaches into the next chunk.
    assert_eq!(states(&machine.start("7", 2, json!([step("e")]))), "failed e:skipped");
    assert_eq!(states(&machine.call("start", json!(["8", 2, [step("f")], { "failed": true }]))), "failed f:skipped");
    assert_eq!((machine.tally.steps.get(), machine.tally.steps_failed.get()), (3, 1));
}

#[test]
fn the_same_start_runs_nothing_again() {
    let mut machine = Machine::new();
    let first = machine.start("7", 1, json!([step("a")]));
    assert_eq!(machine.start("7", 1, json!([step("a")])), first);
    assert_eq!(machine.start("7", 2, json!([step("b")]))["state"], "done");
    assert_eq!(machine.start("7", 1, json!([step("a")]))["error"], "past");
    assert_eq!(machine.begun(), [("7/1/a".into(), 1), ("7/2/b".into(), 1)]);
    assert_eq!(machine.tally.step_doubles.get(), 0);
}

#[test]
fn a_step_that_a_master_sends_in_two_chunks_is_seen() {
    let mut machine = Machine::new();
    machine.start("7", 1, json!([step("a")]));
    machine.start("7", 2, json!([step("a")]));
    assert_eq!((machine.begun(), machine.tally.step_doubles.get()), (vec![("7/1/a".into(), 2)], 1));
}

#[test]
fn a_reboot_is_over_when_the_boot_id_differs() {
    let mut machine = Machine::new();
    let reboot = with(step("r"), "kind", json!("reboot"));
    let answer = machine.start("7", 1, json!([step("a"), reboot]));
    assert_eq!(states(&answer), "rebooting a:done r:started");
    assert_eq!(answer["steps"]["r"]["boot_id"], answer["boot_id"]);
    // The agent alone was restarted.
    assert_eq!(states(&machine.call("resume", json!([]))), "rebooting a:done r:started");
    let refused = machine.start("7", 2, json!([step("b")]));
    assert_eq!((&refused["error"], &refused["state"]), (&json!("not_yet"), &json!("rebooting")));
    let refused = machine.start("8", 1, json!([step("x")]));
    assert_eq!((&refused["error"], &refused["launch"]), (&json!("busy"), &json!("7")));
    machine.chain.boot();
    let seen = machine.call("status", json!([]));
    assert_eq!(states(&seen), "done a:done r:done");
    assert_ne!(seen["boot_id"], answer["boot_id"]);
    assert_eq!(states(&machine.start("7", 2, json!([step("b")]))), "done b:done");
}

#[test]
fn after_an_update_that_killed_the_agent_the_next_chunk_checks() {
    let mut machine = Machine::new();
    machine.give("start", json!(["7", 1, [with(step("u"), "kind", json!("update"))]]), false);
    assert!(matches!(machine.turn(), Turn::Begun(Kind::Update, _)));
    assert_eq!(states(&machine.call("resume", json!([]))), "updating u:started");
    assert_eq!(machine.start("8", 1, json!([step("x")]))["error"], "busy");
    let check = json!({ "id": "u.check", "kind": "check", "fun": "pkg.version", "expect": "3008.3" });
    let answer = machine.start("7", 2, json!([check]));
    assert_eq!((states(&answer).as_str(), &answer["steps"]["u.check"]["ret"]), ("done u.check:done", &json!("3008.3")));
}

#[test]
fn an_interrupted_step_ends_the_chain_unless_it_may_be_repeated() {
    let mut machine = Machine::new();
    machine.give("start", json!(["7", 1, [step("a"), step("b")]]), false);
    machine.turn();
    assert_eq!(states(&machine.call("resume", json!([]))), "stopped a:interrupted b:skipped");
    machine.give("start", json!(["8", 1, [with(step("a"), "repeatable", json!(true)), step("b")]]), false);
    machine.turn();
    assert_eq!(states(&machine.call("resume", json!([]))), "done a:done b:done");
    let begun: Vec<_> = machine.begun().into_iter().filter(|(step, _)| step.starts_with('8')).collect();
    assert_eq!(begun, [("8/1/a".into(), 2), ("8/1/b".into(), 1)]);
    assert_eq!(machine.tally.step_doubles.get(), 0);
}

#[test]
fn a_cancel_lets_the_running_step_finish_and_begins_nothing_more() {
    let mut machine = Machine::new();
    machine.give("start", json!(["7", 1, [step("a"), step("b")]]), false);
    machine.turn();
    let Reply::Answer(answer) = machine.give("cancel", json!(["7"]), true) else { panic!("no answer") };
    let answer = serde_json::to_value(answer.value).unwrap();
    assert_eq!((states(&answer).as_str(), &answer["alive"]), ("running a:started b:waiting", &json!(true)));
    assert!(matches!(machine.turn(), Turn::Ended(Some(_))));
    let Turn::Over { outcome, reboots: false } = machine.turn() else { panic!("not over") };
    assert_eq!(states(&serde_json::to_value(outcome.value).unwrap()), "cancelled a:done b:cancelled");
    assert_eq!(machine.start("7", 2, json!([step("c")]))["error"], "cancelled");
    assert_eq!(machine.call("cancel", json!(["9"]))["state"], "cancelled");
    assert_eq!(machine.start("9", 1, json!([step("c")]))["error"], "cancelled");
}

#[test]
fn what_has_ended_is_cleared_and_what_has_not_only_by_force() {
    let mut machine = Machine::new();
    assert_eq!(machine.call("clear", json!([]))["cleared"], Json::Null);
    machine.give("start", json!(["7", 1, [step("a")]]), false);
    assert_eq!(machine.call("clear", json!(["7"]))["error"], "open");
    assert_eq!(machine.call("clear", json!(["8", true]))["error"], "other");
    assert_eq!(machine.call("clear", json!(["7", true]))["cleared"], "7");
    assert_eq!(machine.call("status", json!([]))["state"], "none");
    machine.start("8", 1, json!([step("a")]));
    assert_eq!(machine.call("clear", json!([]))["cleared"], "8");
}
