//! Light minions and action chains: what they tell, what they return, and how they come back from a restart.

use super::*;
use crate::StepEntry;
use serde_json::{Value as Json, json};

const NEXT: &str = "20261115200427443184";
const THIRD: &str = "20261115200427443185";

fn publish(master: &FakeMaster, jid: &str, fun: &str, arg: Json) {
    master.publish_with(jid, &format!("saltern_chain.{fun}"), serde_json::from_value(arg).unwrap());
}

/// Publishes a job and waits for its answer.
async fn call(master: &FakeMaster, jid: &str, fun: &str, arg: Json) -> Json {
    publish(master, jid, fun, arg);
    serde_json::to_value(master.returned(jid).await).unwrap()
}

fn told(master: &FakeMaster, jid: &str) -> Vec<String> {
    let told = master.progress(jid, "swarm-1").into_iter().map(|(number, data)| {
        let data = serde_json::to_value(data).unwrap();
        let end = data.get("retcode").map(|code| format!(" {code} {}", data["ret"])).unwrap_or_default();
        format!("{number} {} {} {} {}{end}", data["launch"], data["chunk"], data["step"], data["state"])
    });
    told.map(|line| line.replace('"', "")).collect()
}

fn begun(swarm: &Swarm) -> Vec<String> {
    swarm.steps().map(|StepEntry { launch, chunk, step, .. }| format!("{launch}/{chunk}/{step}")).collect()
}

fn two_steps() -> Json {
    json!([{ "id": "1", "fun": "test.ping" }, { "id": "2", "fun": "test.false" }])
}

#[tokio::test]
async fn every_step_is_told_when_it_begins_and_when_it_ends_and_all_of_them_are_returned() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, alone()).await;
    let answer = call(&master, JID, "start", json!(["7", 1, two_steps()])).await;
    assert_eq!((&answer["state"], &answer["steps"]["1"]["state"]), (&json!("failed"), &json!("done")));
    let expected = ["1 7 1 1 started", "2 7 1 1 done 0 true", "3 7 1 2 started", "4 7 1 2 failed 1 false"];
    assert_eq!(told(&master, JID), expected);
    let returned = &master.returns(JID)[0];
    assert_eq!((returned.get("retcode"), returned.get("success")), (Some(&1.into()), Some(&false.into())));
    assert!(swarm.job_finished(JID, LONG).await && entry(&swarm).failed);
    assert_eq!(begun(&swarm), ["7/1/1", "7/1/2"]);
    let steps = swarm.stop().await.steps;
    assert_eq!((steps.executed, steps.failed, steps.double_executions), (2, 1, 0));
}

#[tokio::test]
async fn a_reboot_takes_the_minion_away_and_it_comes_back_as_one_that_was_started() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { restart: Duration::from_millis(50), ..alone() }).await;
    let steps = json!([{ "id": "1", "fun": "test.ping" }, { "id": "2", "kind": "reboot", "fun": "system.reboot" }]);
    let before = call(&master, JID, "start", json!(["7", 1, steps])).await;
    assert_eq!((&before["state"], &before["steps"]["2"]["state"]), (&json!("rebooting"), &json!("started")));
    until("the minion to be back", || master.events("minion/swarm-1/start") == 2).await;
    master.subscribed(1).await;
    let after = call(&master, NEXT, "resume", json!([])).await;
    assert_eq!((&after["state"], &after["steps"]["2"]["state"]), (&json!("done"), &json!("done")));
    assert_ne!(before["boot_id"], after["boot_id"]);
    // The same job again, which a minion that was started again does not know: nothing is done, and no job was done twice.
    publish(&master, JID, "start", json!(["7", 1, steps]));
    until("another answer", || master.returns(JID).len() == 2).await;
    let answer = call(&master, THIRD, "start", json!(["7", 2, [{ "id": "3", "fun": "test.ping" }]])).await;
    assert_eq!(answer["state"], "done");
    assert_eq!(begun(&swarm), ["7/1/1", "7/1/2", "7/2/3"]);
    let report = swarm.stop().await;
    assert_eq!((report.steps.restarts, report.steps.double_executions, report.jobs.double_executions), (1, 0, 0));
    assert_eq!((report.sign_in.minions, report.sign_in.ready, master.sign_ins()), (1, 1, 2));
}

#[tokio::test]
async fn an_update_kills_the_agent_if_it_is_told_to() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { update_restarts: true, ..alone() }).await;
    let steps = json!([{ "id": "1", "kind": "update", "fun": "pkg.install" }]);
    publish(&master, JID, "start", json!(["7", 1, steps]));
    until("the minion to be back", || master.events("minion/swarm-1/start") == 2).await;
    master.subscribed(1).await;
    let seen = call(&master, NEXT, "resume", json!([])).await;
    assert_eq!((&seen["state"], &seen["alive"]), (&json!("updating"), &json!(false)));
    let check = json!([{ "id": "1.check", "kind": "check", "fun": "pkg.version", "expect": "3008.3" }]);
    assert_eq!(call(&master, THIRD, "start", json!(["7", 2, check])).await["state"], "done");
    assert_eq!(told(&master, JID), ["1 7 1 1 started"]);
    assert!(master.returns(JID).is_empty() && entry(&swarm).killed);
}

#[tokio::test]
async fn an_update_that_kills_nobody_is_a_step_like_any_other() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, alone()).await;
    let steps = json!([{ "id": "1", "kind": "update", "fun": "pkg.install" }]);
    assert_eq!(call(&master, JID, "start", json!(["7", 1, steps])).await["state"], "done");
    assert_eq!(swarm.stop().await.steps.restarts, 0);
}

#[tokio::test]
async fn a_chunk_goes_on_while_the_master_is_away_and_is_returned_when_it_is_back() {
    let mut master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { step_work: Duration::from_millis(300), ..alone() }).await;
    publish(&master, JID, "start", json!(["7", 1, two_steps()]));
    until("the first step", || !master.progress(JID, "swarm-1").is_empty()).await;
    master.stop().await;
    until("the chunk to end", || swarm.progress().unconfirmed == 1).await;
    master.come_back().await;
    assert!(swarm.job_finished(JID, LONG).await, "{:?}", swarm.report());
    let answer = serde_json::to_value(master.returned(JID).await).unwrap();
    assert_eq!((&answer["steps"]["1"]["state"], &answer["steps"]["2"]["state"]), (&json!("done"), &json!("failed")));
    assert_eq!(begun(&swarm), ["7/1/1", "7/1/2"]);
}

#[tokio::test]
async fn a_step_that_hangs_is_asked_about_and_stopped() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { hang: 1, ..alone() }).await;
    publish(&master, JID, "start", json!(["7", 1, two_steps()]));
    until("the first step", || !master.progress(JID, "swarm-1").is_empty()).await;
    let seen = call(&master, NEXT, "status", json!([])).await;
    assert_eq!(
        (&seen["state"], &seen["alive"], &seen["steps"]["1"]["state"]),
        (&json!("running"), &json!(true), &json!("started"),)
    );
    let stopped = call(&master, THIRD, "stop", json!(["7"])).await;
    assert_eq!(
        (&stopped["state"], &stopped["steps"]["1"]["state"], &stopped["steps"]["2"]["state"]),
        (&json!("stopped"), &json!("interrupted"), &json!("cancelled"),)
    );
    assert!(master.returns(JID).is_empty() && entry(&swarm).killed);
    assert_eq!((swarm.progress().running, swarm.report().steps.executed), (0, 1));
}

#[tokio::test]
async fn steps_fail_by_chance_and_the_ledger_says_which() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { count: 20, fail_rate: 0.5, ..Options::default() }).await;
    publish(&master, JID, "start", json!(["7", 1, [{ "id": "1", "fun": "cmd.run" }]]));
    assert!(swarm.job_finished(JID, LONG).await);
    swarm.halt().await;
    let returns = master.returns(JID);
    for step in swarm.steps() {
        let sent = returns.iter().find(|load| load.get("id").and_then(Value::as_str) == Some(&step.minion)).unwrap();
        assert_eq!(sent.get("success"), Some(&(!step.failed).into()), "{step:?}");
    }
    let failed = swarm.steps().filter(|step| step.failed).count();
    assert!((1..20).contains(&failed) && swarm.steps().count() == 20, "{failed}");
    assert_eq!(swarm.report().steps.failed, failed as u64);
}

#[tokio::test]
async fn a_job_that_makes_no_sense_is_answered_with_what_is_wrong() {
    let master = FakeMaster::start().await;
    let _swarm = swarm(&master, alone()).await;
    let answer = call(&master, JID, "start", json!(["7", 1, []])).await;
    assert_eq!(answer, "ERROR executing 'saltern_chain.start': steps must be a list of maps");
    assert_eq!(master.returns(JID)[0].get("retcode"), Some(&1.into()));
}
