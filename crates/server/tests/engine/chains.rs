//! Chains as the server carries them on, with minions in the hands of the test: what they are sent, and what becomes of what
//! they say. Real minions are in the end-to-end tests.

use crate::house::{House, caller};
use crate::ward::{Hands, LONG, house, minion};
use saltern_core::chain::Step;
use saltern_core::ids::{LaunchId, MinionId};
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_core::value::Value;
use saltern_server::app::{ChainDraft, LaunchMinion, LaunchRequest, LaunchVerb, MinionState};
use saltern_store::{Launch, Run};
use saltern_testkit::fake_minion::{FakeMinion, Job};
use saltern_testkit::wait;

/// A chain of these steps, as JSON.
pub(crate) async fn chain(house: &House, name: &str, steps: Value) -> saltern_server::app::Chain {
    let steps: Vec<Step> = serde_json::from_str(&serde_json::to_string(&steps).unwrap()).unwrap();
    let draft = ChainDraft { name: name.into(), description: String::new(), shared: false, steps };
    house.app().create_chain(&caller(), draft).await.unwrap()
}

pub(crate) async fn launched(house: &House, name: &str, steps: Value) -> LaunchId {
    let chain = chain(house, name, steps).await;
    house.app().launch(&caller(), chain.id, LaunchRequest::default()).await.unwrap().id
}

/// One step, `test.ping` on one minion.
pub(crate) fn ping_on(minion: &str) -> Value {
    steps([call("test.ping", &[minion])])
}

/// A step that calls a function on these minions.
pub(crate) fn call(fun: &str, minions: &[&str]) -> Value {
    let target = Value::map([("minions", Value::list(minions.iter().copied()))]);
    Value::map([("type", Value::from("function")), ("params", Value::map([("fun", fun)])), ("target", target)])
}

fn typed(kind: &str, minions: &[&str]) -> Value {
    let target = Value::map([("minions", Value::list(minions.iter().copied()))]);
    Value::map([("type", Value::from(kind)), ("target", target)])
}

pub(crate) fn with(step: Value, name: &str, value: impl Into<Value>) -> Value {
    let mut step = step.as_map().cloned().unwrap();
    step.insert(name, value);
    Value::Map(step)
}

pub(crate) fn steps<const N: usize>(steps: [Value; N]) -> Value {
    Value::List(steps.into())
}

/// The arguments of a start: launch, chunk, and the ids of its steps.
fn started(job: &Job) -> (String, i64, Vec<String>) {
    let arg = job.load.get("arg").and_then(Value::as_list).unwrap();
    let ids = arg[2].as_list().unwrap().iter().map(|step| step.get("id").unwrap().as_str().unwrap().to_owned());
    (arg[0].as_str().unwrap().to_owned(), arg[1].as_i64().unwrap(), ids.collect())
}

/// An answer of the minion's module.
pub(crate) fn answer(job: (&str, i64), state: &str, steps: &[(&str, &str)]) -> Value {
    let step = |one: &(&str, &str)| {
        let (id, state) = (one.0.to_owned(), one.1);
        let mut record = vec![("state", Value::from(state))];
        if state == "done" || state == "failed" {
            record.push(("ret", Value::from(format!("{id} is {state}"))));
            record.push(("retcode", i64::from(state == "failed").into()));
        }
        (id, Value::map(record))
    };
    Value::map([
        ("launch", Value::from(job.0)),
        ("chunk", job.1.into()),
        ("state", state.into()),
        ("boot_id", "3a0cdd2c-0a41-4c9b-9a5a-36f3f6c6e0aa".into()),
        ("alive", false.into()),
        ("cancelled", false.into()),
        ("steps", Value::map(steps.iter().map(step))),
    ])
}

/// The next chunk that arrives; the module is taken on the way.
pub(crate) async fn chunk(minion: &mut FakeMinion) -> (Job, String, i64, Vec<String>) {
    let job = chain_job(minion, "saltern_chain.start").await;
    let (launch, chunk, ids) = started(&job);
    (job, launch, chunk, ids)
}

async fn chain_job(minion: &mut FakeMinion, fun: &str) -> Job {
    loop {
        let job = minion.next_job().await;
        match job.load.get("fun").and_then(Value::as_str).unwrap_or_default() {
            found if found == fun => return job,
            "saltutil.sync_modules" => minion.return_for(&job, Value::list(["modules.saltern_chain"])).await,
            "saltern_chain.clear" => minion.return_for(&job, answer(("", 0), "none", &[])).await,
            "test.ping" => minion.return_for(&job, true).await,
            other => assert!(minion.answer_house(&job).await, "{} got {other} instead of {fun}", minion.id),
        }
    }
}

/// What a minion tells of a step while it works.
async fn tells(minion: &FakeMinion, job: &Job, number: u32, launch: &str, chunk: i64, step: &str, state: &str) {
    let mut data =
        vec![("launch", Value::from(launch)), ("chunk", chunk.into()), ("step", step.into()), ("state", state.into())];
    if state == "done" {
        data.extend([("ret", Value::from("fine")), ("retcode", 0.into())]);
    }
    minion.event(&format!("salt/job/{}/prog/{}/{number}", job.jid, minion.id), Value::map(data)).await;
}

impl House {
    pub(crate) async fn step_run(&self, launch: LaunchId, step: usize, minion: &str) -> Run {
        let view = self.app().launch_of(&caller(), launch).await.unwrap();
        self.state(view.steps[step - 1].1.id, minion).await
    }

    pub(crate) async fn step_is(
        &self,
        launch: LaunchId,
        step: usize,
        minion: &str,
        state: RunState,
        reason: Option<Reason>,
    ) -> Run {
        wait::until_ok(&format!("step {step} on {minion} to be {state:?} {reason:?}"), LONG, async || {
            let run = self.step_run(launch, step, minion).await;
            if run.state == state && run.reason == reason { Ok(run) } else { Err(format!("{run:?}")) }
        })
        .await
    }

    pub(crate) async fn step_waits(&self, launch: LaunchId, step: usize, minion: &str, what: WaitingFor) {
        wait::until_ok(&format!("step {step} on {minion} to wait for {what:?}"), LONG, async || {
            let run = self.step_run(launch, step, minion).await;
            if run.waiting_for == Some(what) { Ok(()) } else { Err(format!("{run:?}")) }
        })
        .await;
    }

    async fn row(&self, launch: LaunchId, minion: &str) -> LaunchMinion {
        let rows = self.app().launch_minions(&caller(), launch, "", 100).await.unwrap();
        rows.into_iter().find(|row| row.minion.as_str() == minion).unwrap()
    }

    async fn row_is(&self, launch: LaunchId, minion: &str, state: MinionState) -> LaunchMinion {
        wait::until_ok(&format!("{minion} to be {state:?}"), LONG, async || {
            let row = self.row(launch, minion).await;
            if row.state == state { Ok(row) } else { Err(format!("{row:?}")) }
        })
        .await
    }

    pub(crate) async fn launch_ends(&self, launch: LaunchId) -> Launch {
        wait::until_ok("the launch to end", LONG, async || {
            let view = self.app().launch_of(&caller(), launch).await.unwrap();
            if view.launch.ended.is_some() { Ok(view.launch) } else { Err(format!("{:?}", view.launch)) }
        })
        .await
    }
}

#[tokio::test]
async fn steps_of_one_minion_travel_together_and_end_one_by_one() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let launch = launched(&house, "two", steps([call("test.ping", &["a"]), call("test.version", &["a"])])).await;
    let (job, key, number, ids) = chunk(&mut a).await;
    assert_eq!((number, ids.as_slice()), (1, ["1".to_owned(), "2".to_owned()].as_slice()));
    a.ack(&job).await;
    tells(&a, &job, 1, &key, 1, "1", "started").await;
    house.step_is(launch, 1, "a", RunState::PickedUp, None).await;
    tells(&a, &job, 2, &key, 1, "1", "done").await;
    house.step_is(launch, 1, "a", RunState::Completed, None).await;
    assert_eq!(house.step_run(launch, 2, "a").await.state, RunState::Queued);
    // The end tells everything again, and what got lost on the way.
    a.return_for(&job, answer((&key, 1), "done", &[("1", "done"), ("2", "done")])).await;
    house.step_is(launch, 2, "a", RunState::Completed, None).await;
    let ended = house.launch_ends(launch).await;
    assert_eq!((ended.counts.total, ended.counts.completed, ended.counts.failed), (1, 1, 0));
    // What is over is cleared from the minion.
    let cleared = a.job("saltern_chain.clear").await;
    assert_eq!(cleared.load.get("arg"), Some(&Value::list([key])));
}

#[tokio::test]
async fn a_failure_ends_the_rest_there_and_names_the_step() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let all = ["a", "b"];
    let wanted = steps([call("test.ping", &all), call("test.false", &all), call("test.version", &all)]);
    let launch = launched(&house, "three", wanted).await;
    for (minion, state, third) in [(&mut a, "failed", "skipped"), (&mut b, "done", "done")] {
        let (job, key, ..) = chunk(minion).await;
        minion.return_for(&job, answer((&key, 1), state, &[("1", "done"), ("2", state), ("3", third)])).await;
    }
    let run = house.step_is(launch, 3, "a", RunState::Failed, Some(Reason::Prerequisite)).await;
    assert!(run.message.as_deref().is_some_and(|text| text.contains("step 2")), "{run:?}");
    house.step_is(launch, 2, "a", RunState::Failed, Some(Reason::ReturnedError)).await;
    house.step_is(launch, 3, "b", RunState::Completed, None).await;
    let ended = house.launch_ends(launch).await;
    assert_eq!((ended.counts.completed, ended.counts.failed), (1, 1));
}

#[tokio::test]
async fn after_a_reboot_the_minion_is_asked_once_and_goes_on_under_a_new_boot_id() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let wanted = steps([call("test.ping", &["a"]), typed("reboot", &["a"]), call("test.version", &["a"])]);
    let launch = launched(&house, "boot", wanted).await;
    let (job, key, _, ids) = chunk(&mut a).await;
    assert_eq!(ids, ["1", "2"]);
    a.return_for(&job, answer((&key, 1), "rebooting", &[("1", "done"), ("2", "started")])).await;
    house.row_is(launch, "a", MinionState::Restarting).await;
    house.step_is(launch, 2, "a", RunState::PickedUp, None).await;
    // The agent alone is started anew: it is asked, and nothing goes on.
    a.announce().await;
    let asked = chain_job(&mut a, "saltern_chain.resume").await;
    a.return_for(&asked, answer((&key, 1), "rebooting", &[("1", "done"), ("2", "started")])).await;
    house.row_is(launch, "a", MinionState::Restarting).await;
    // Two start events, one question.
    a.announce().await;
    a.announce().await;
    let asked = chain_job(&mut a, "saltern_chain.resume").await;
    a.return_for(&asked, answer((&key, 1), "done", &[("1", "done"), ("2", "done")])).await;
    let run = house.step_is(launch, 2, "a", RunState::Completed, None).await;
    assert_eq!(run.message.as_deref(), Some("Reboot completed."));
    let (job, _, number, ids) = chunk(&mut a).await;
    assert_eq!((number, ids.as_slice()), (2, ["3".to_owned()].as_slice()));
    a.return_for(&job, answer((&key, 2), "done", &[("3", "done")])).await;
    assert_eq!(house.launch_ends(launch).await.counts.completed, 1);
}

#[tokio::test]
async fn a_step_that_was_interrupted_is_lost_and_the_rest_does_not_run() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let launch = launched(&house, "cut", steps([call("test.ping", &["a"]), call("test.version", &["a"])])).await;
    let (job, key, ..) = chunk(&mut a).await;
    a.ack(&job).await;
    tells(&a, &job, 1, &key, 1, "1", "started").await;
    house.step_is(launch, 1, "a", RunState::PickedUp, None).await;
    let mut fields = a.return_fields(&job, "ERROR: interrupted: the agent stopped while this job was running");
    fields.insert("retcode", 1);
    fields.insert("success", false);
    a.request("_return", fields).await;
    let asked = chain_job(&mut a, "saltern_chain.resume").await;
    a.return_for(&asked, answer((&key, 1), "stopped", &[("1", "interrupted"), ("2", "skipped")])).await;
    house.step_is(launch, 1, "a", RunState::Failed, Some(Reason::Lost)).await;
    house.step_is(launch, 2, "a", RunState::Failed, Some(Reason::Prerequisite)).await;
    assert_eq!(house.launch_ends(launch).await.counts.failed, 1);
}

#[tokio::test]
async fn a_second_chain_waits_for_the_first_and_says_so() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let first = launched(&house, "first", steps([call("test.ping", &["a"])])).await;
    let (job, key, ..) = chunk(&mut a).await;
    let second = launched(&house, "second", steps([call("test.version", &["a"])])).await;
    house.step_waits(second, 1, "a", WaitingFor::Chain).await;
    let why = house.app().explain_launch(&caller(), second, &MinionId::new("a").unwrap()).await.unwrap().why;
    assert!(why.contains(&format!("launch {first}")), "{why}");
    a.return_for(&job, answer((&key, 1), "done", &[("1", "done")])).await;
    let (job, other, ..) = chunk(&mut a).await;
    assert_ne!(other, key);
    a.return_for(&job, answer((&other, 1), "done", &[("1", "done")])).await;
    house.launch_ends(second).await;
}

#[tokio::test]
async fn a_barrier_waits_for_all_and_an_approval_for_somebody() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let all = ["a", "b"];
    let second = with(with(call("test.version", &all), "barrier", "all"), "approval", "Go on?");
    let launch = launched(&house, "gates", steps([call("test.ping", &all), second])).await;
    let (job, key, ..) = chunk(&mut a).await;
    a.return_for(&job, answer((&key, 1), "done", &[("1", "done")])).await;
    house.step_waits(launch, 2, "a", WaitingFor::Barrier).await;
    let (job, ..) = chunk(&mut b).await;
    b.return_for(&job, answer((&key, 1), "done", &[("1", "done")])).await;
    house.step_waits(launch, 2, "a", WaitingFor::Approval).await;
    let why = house.app().explain_launch(&caller(), launch, &MinionId::new("b").unwrap()).await.unwrap();
    assert!(why.next.contains("chain approve"), "{why:?}");
    house.app().act_on_launch(&caller(), launch, LaunchVerb::Approve { step: 2 }).await.unwrap();
    for minion in [&mut a, &mut b] {
        let (job, _, number, _) = chunk(minion).await;
        assert_eq!(number, 2);
        minion.return_for(&job, answer((&key, 2), "done", &[("2", "done")])).await;
    }
    assert_eq!(house.launch_ends(launch).await.counts.completed, 2);
}

#[tokio::test]
async fn too_many_failures_keep_a_step_from_starting_anywhere() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let all = ["a", "b"];
    let second = with(with(call("test.version", &all), "barrier", "all"), "budget", 0);
    let launch = launched(&house, "budget", steps([call("test.ping", &all), second])).await;
    for (minion, state) in [(&mut a, "failed"), (&mut b, "done")] {
        let (job, key, ..) = chunk(minion).await;
        minion.return_for(&job, answer((&key, 1), state, &[("1", state)])).await;
    }
    house.step_is(launch, 2, "a", RunState::Failed, Some(Reason::Prerequisite)).await;
    house.step_is(launch, 2, "b", RunState::Cancelled, Some(Reason::Budget)).await;
    house.launch_ends(launch).await;
}

#[tokio::test]
async fn what_is_for_failures_runs_after_one_and_is_not_needed_without() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let all = ["a", "b"];
    // The barrier puts the repair into a chunk of its own.
    let repair = with(with(call("test.version", &all), "after", "failed"), "barrier", "all");
    let launch = launched(&house, "repair", steps([call("test.ping", &all), repair])).await;
    for (minion, state) in [(&mut a, "failed"), (&mut b, "done")] {
        let (job, key, ..) = chunk(minion).await;
        minion.return_for(&job, answer((&key, 1), state, &[("1", state)])).await;
    }
    let (job, key, number, _) = chunk(&mut a).await;
    let options = job.load.get("arg").and_then(Value::as_list).unwrap()[3].clone();
    assert_eq!((number, options.get("failed")), (2, Some(&Value::Bool(true))));
    a.return_for(&job, answer((&key, 2), "failed", &[("2", "done")])).await;
    house.step_is(launch, 2, "a", RunState::Completed, None).await;
    house.step_is(launch, 2, "b", RunState::Cancelled, Some(Reason::NotNeeded)).await;
    let ended = house.launch_ends(launch).await;
    assert_eq!((ended.counts.completed, ended.counts.failed), (1, 1));
}

#[tokio::test]
async fn a_cancelled_launch_finishes_its_step_and_begins_no_other() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let wanted =
        [call("test.ping", &["a"]), call("test.version", &["a"]), typed("reboot", &["a"]), call("test.ping", &["a"])];
    let launch = launched(&house, "off", steps(wanted)).await;
    let (job, key, ..) = chunk(&mut a).await;
    a.ack(&job).await;
    tells(&a, &job, 1, &key, 1, "1", "started").await;
    house.step_is(launch, 1, "a", RunState::PickedUp, None).await;
    house.app().act_on_launch(&caller(), launch, LaunchVerb::Cancel).await.unwrap();
    let told = chain_job(&mut a, "saltern_chain.cancel").await;
    assert_eq!(told.load.get("arg"), Some(&Value::list([key.clone()])));
    // What it is at it may go on with until it is told, so it has the last word.
    assert_eq!(house.step_run(launch, 2, "a").await.state, RunState::Queued);
    house.step_is(launch, 4, "a", RunState::Cancelled, Some(Reason::Cancelled)).await;
    a.return_for(&told, answer((&key, 1), "running", &[("1", "started")])).await;
    a.return_for(&job, answer((&key, 1), "cancelled", &[("1", "done"), ("2", "cancelled"), ("3", "cancelled")])).await;
    house.step_is(launch, 1, "a", RunState::Completed, None).await;
    house.step_is(launch, 2, "a", RunState::Cancelled, Some(Reason::Cancelled)).await;
    assert_eq!(house.launch_ends(launch).await.counts.cancelled, 1);
}

#[tokio::test]
async fn a_step_alone_is_not_cancelled_and_the_answer_names_its_launch() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    let launch = launched(&house, "whole", steps([call("test.ping", &["a"])])).await;
    let action = house.app().launch_of(&caller(), launch).await.unwrap().steps[0].1.id;
    let refused = house.app().act(&caller(), &[action], None, &saltern_server::app::Verb::Cancel).await.unwrap_err();
    assert!(refused.to_string().contains(&format!("launch {launch}")), "{refused}");
}

#[tokio::test]
async fn a_step_that_takes_too_long_is_ended_and_so_is_the_rest() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let first = with(call("test.ping", &["a"]), "limit", 1);
    let launch = launched(&house, "slow", steps([first, call("test.version", &["a"])])).await;
    let (job, key, ..) = chunk(&mut a).await;
    a.ack(&job).await;
    tells(&a, &job, 1, &key, 1, "1", "started").await;
    house.step_is(launch, 1, "a", RunState::Failed, Some(Reason::TimedOut)).await;
    house.step_is(launch, 2, "a", RunState::Failed, Some(Reason::Prerequisite)).await;
    house.launch_ends(launch).await;
    // And it does not go on there.
    chain_job(&mut a, "saltern_chain.stop").await;
}

#[tokio::test]
async fn a_chunk_that_makes_no_sense_to_the_minion_fails_at_once_with_its_words() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let launch = launched(&house, "bad", steps([call("test.ping", &["a"]), call("test.version", &["a"])])).await;
    let (job, ..) = chunk(&mut a).await;
    let mut fields = a.return_fields(&job, "ERROR executing 'saltern_chain.start': steps must be a list of maps");
    fields.insert("retcode", 1);
    fields.insert("success", false);
    a.request("_return", fields).await;
    let run = house.step_is(launch, 1, "a", RunState::Failed, Some(Reason::ReturnedError)).await;
    assert!(run.message.as_deref().is_some_and(|text| text.contains("must be a list")), "{run:?}");
    house.step_is(launch, 2, "a", RunState::Failed, Some(Reason::Prerequisite)).await;
    house.launch_ends(launch).await;
}

#[tokio::test]
async fn a_launch_goes_on_after_the_server_was_away() {
    let mut house = house().await;
    let mut a = minion(&house, "a").await;
    let wanted = steps([typed("reboot", &["a"]), call("test.version", &["a"])]);
    let launch = launched(&house, "away", wanted).await;
    let (job, key, ..) = chunk(&mut a).await;
    a.return_for(&job, answer((&key, 1), "rebooting", &[("1", "started")])).await;
    house.row_is(launch, "a", MinionState::Restarting).await;
    house.restart().await;
    // It is back already, and only reconnects.
    let mut a = minion(&house, "a").await;
    let asked = chain_job(&mut a, "saltern_chain.resume").await;
    a.return_for(&asked, answer((&key, 1), "done", &[("1", "done")])).await;
    let (job, _, number, _) = chunk(&mut a).await;
    a.return_for(&job, answer((&key, number), "done", &[("2", "done")])).await;
    house.launch_ends(launch).await;
}

#[tokio::test]
async fn two_of_one_name_and_names_that_are_none_are_refused() {
    let house = house().await;
    chain(&house, "one", steps([call("test.ping", &["a"])])).await;
    let again =
        |name: &str| ChainDraft { name: name.into(), description: String::new(), shared: false, steps: Vec::new() };
    for (name, word) in [("one", "already"), ("", "name"), (&"x".repeat(256), "255")] {
        let refused = house.app().create_chain(&caller(), again(name)).await.unwrap_err();
        assert!(refused.to_string().contains(word), "{name}: {refused}");
    }
}

#[tokio::test]
async fn what_was_held_back_by_a_budget_holds_back_what_comes_after_it() {
    let house = house().await;
    let (mut a, _b, _c) = (minion(&house, "a").await, minion(&house, "b").await, minion(&house, "c").await);
    let careful = |minion: &str| with(with(call("test.ping", &[minion]), "barrier", "all"), "budget", 0);
    let launch = launched(&house, "racks", steps([call("test.false", &["a"]), careful("b"), careful("c")])).await;
    let (job, key, ..) = chunk(&mut a).await;
    a.return_for(&job, answer((&key, 1), "failed", &[("1", "failed")])).await;
    house.step_is(launch, 2, "b", RunState::Cancelled, Some(Reason::Budget)).await;
    house.step_is(launch, 3, "c", RunState::Cancelled, Some(Reason::Budget)).await;
    house.launch_ends(launch).await;
}

#[tokio::test]
async fn a_minion_that_was_started_anew_is_asked_at_once() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let launch = launched(&house, "anew", steps([call("test.ping", &["a"])])).await;
    let (_, key, ..) = chunk(&mut a).await;
    house.row_is(launch, "a", MinionState::Sent).await;
    a.announce().await;
    let asked = chain_job(&mut a, "saltern_chain.resume").await;
    // It has nothing of it: the chunk did not arrive, and is sent again.
    a.return_for(&asked, answer(("", 0), "none", &[])).await;
    let (job, again, number, _) = chunk(&mut a).await;
    assert_eq!((again.as_str(), number), (key.as_str(), 1));
    a.return_for(&job, answer((&key, 1), "done", &[("1", "done")])).await;
    house.launch_ends(launch).await;
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_a_machine_that_was_to_restart() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let launch = launched(&house, "halt", steps([typed("reboot", &["a"]), call("test.ping", &["a"])])).await;
    let (job, key, ..) = chunk(&mut a).await;
    a.return_for(&job, answer((&key, 1), "rebooting", &[("1", "started")])).await;
    house.row_is(launch, "a", MinionState::Restarting).await;
    house.app().act_on_launch(&caller(), launch, LaunchVerb::Stop).await.unwrap();
    let told = chain_job(&mut a, "saltern_chain.stop").await;
    a.return_for(&told, answer((&key, 1), "rebooting", &[("1", "started")])).await;
    house.step_is(launch, 1, "a", RunState::Failed, Some(Reason::Stopped)).await;
    house.step_is(launch, 2, "a", RunState::Cancelled, Some(Reason::Cancelled)).await;
    house.launch_ends(launch).await;
}
