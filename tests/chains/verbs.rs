//! Scenarios about what people do while a chain is under way, and about what is left behind.

use crate::town::{NATIVE, PATIENCE, end, held, note, reboot, shared};
use saltern_testkit::wait;
use serde_json::json;

#[tokio::test]
async fn scenario_53_after_a_cancel_the_running_step_ends_and_nothing_more_runs() {
    let Some((_turn, mut town)) = shared().await else { return };
    let ids: Vec<String> = town.ids().into_iter().map(str::to_owned).collect();
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    let launch = town.launched("fifty-three", &all, json!([held("1"), note("2"), reboot(), note("4")])).await;
    for id in &all {
        town.step_is(launch, 1, id, "picked_up").await;
        town.appears(id, "begun").await;
    }
    let done = town.server.cli(&["chain", "cancel", &launch.to_string()]).await;
    assert!(done.status.success(), "{done:?}");
    wait::until_ok("all machines to know of the cancel", PATIENCE, async || {
        let answers = town.server.cli_json(&["run", "*", "saltern_chain.status"]).await;
        if all.iter().all(|id| answers[id]["cancelled"] == true) { Ok(()) } else { Err(answers.to_string()) }
    })
    .await;
    for id in &all {
        town.machine(id).write("go", "");
    }
    let detail = town.ended(launch).await;
    assert_eq!(detail["counts"]["cancelled"], all.len(), "{detail}");
    for id in &all {
        let there = town.steps_on(launch, id).await;
        let wanted = "1 completed, 2 cancelled(cancelled), 3 cancelled(cancelled), 4 cancelled(cancelled)";
        assert_eq!(there, wanted, "{id}");
        assert_eq!((town.machine(id).take_notes().as_str(), town.machine(id).shutdowns()), ("1", 0), "{id}");
    }
    town.nothing_is_left().await;

    // While the reboot is waited for: after it nothing more runs.
    let some = ["m3006", NATIVE];
    let launch = town.launched("fifty-three, later", &some, json!([note("1"), reboot(), note("3")])).await;
    for id in some {
        town.part_is(launch, id, "restarting").await;
    }
    town.post(&format!("/launches/{launch}/cancel"), json!(null)).await;
    for id in some {
        town.machine_mut(id).reboot();
    }
    town.ended(launch).await;
    for id in some {
        town.answers(id).await;
        let there = town.steps_on(launch, id).await;
        assert!(there.ends_with("3 cancelled(cancelled)"), "{id}: {there}");
        assert!(!there.contains("queued") && !there.contains("picked_up"), "{id}: {there}");
    }
    town.nothing_is_left().await;
    for id in some {
        assert_eq!(town.machine(id).notes(), "1", "{id}");
    }
}

#[tokio::test]
async fn scenario_53_what_ran_before_the_cancel_arrived_is_told_as_run() {
    let Some((_turn, town)) = shared().await else { return };
    let all = town.ids();
    let launch = town.launched("fifty-three, race", &all, json!([held("1"), note("2"), note("3")])).await;
    for id in &all {
        town.step_is(launch, 1, id, "picked_up").await;
        town.appears(id, "begun").await;
    }
    town.post(&format!("/launches/{launch}/cancel"), json!(null)).await;
    for id in &all {
        town.machine(id).write("go", "");
    }
    town.ended(launch).await;
    town.nothing_is_left().await;
    for id in &all {
        let notes = town.machine(id).notes();
        for step in 1..=3 {
            let state = end(&town.run(launch, step, id).await);
            let wanted = if notes.contains(&step.to_string()) { "completed" } else { "cancelled(cancelled)" };
            assert_eq!(state, wanted, "step {step} on {id}, where {notes} was done");
        }
    }
}

#[tokio::test]
async fn scenario_53_a_stop_kills_what_runs() {
    let Some((_turn, town)) = shared().await else { return };
    let all = town.ids();
    let launch = town.launched("fifty-three, stopped", &all, json!([held("1"), note("2")])).await;
    for id in &all {
        town.step_is(launch, 1, id, "picked_up").await;
        town.appears(id, "begun").await;
    }
    town.post(&format!("/launches/{launch}/stop"), json!(null)).await;
    town.ended(launch).await;
    for id in &all {
        let there = town.steps_on(launch, id).await;
        assert_eq!(there, "1 failed(stopped), 2 cancelled(cancelled)", "{id}");
        town.machine(id).write("go", "");
    }
    town.nothing_is_left().await;
    for id in &all {
        assert_eq!(town.machine(id).notes(), "", "{id}");
    }
}

#[tokio::test]
async fn scenario_53_a_stop_while_a_reboot_is_waited_for_ends_the_launch() {
    let Some((_turn, mut town)) = shared().await else { return };
    let machines = ["m3007", NATIVE];
    let launch = town.launched("fifty-three, waiting", &machines, json!([note("1"), reboot(), note("3")])).await;
    for id in machines {
        town.part_is(launch, id, "restarting").await;
    }
    town.post(&format!("/launches/{launch}/stop"), json!(null)).await;
    town.ended(launch).await;
    for id in machines {
        let there = town.steps_on(launch, id).await;
        assert!(
            there.starts_with("1 completed, 2 failed(") && there.ends_with("3 cancelled(cancelled)"),
            "{id}: {there}"
        );
        town.machine_mut(id).reboot();
    }
    let next = town.launched("fifty-three, next", &machines, json!([note("4")])).await;
    town.completes(next).await;
    town.nothing_is_left().await;
    for id in machines {
        assert_eq!(town.machine(id).notes(), "14", "{id}");
    }
}

#[tokio::test]
async fn scenario_54_a_second_chain_waits_for_the_first_and_says_so() {
    let Some((_turn, town)) = shared().await else { return };
    let machines = ["m3008", NATIVE];
    let first = town.launched("fifty-four", &machines, json!([held("1"), note("2")])).await;
    for id in machines {
        town.appears(id, "begun").await;
    }
    let second = town.launched("fifty-four, second", &machines, json!([note("3")])).await;
    for id in machines {
        town.step_waits(second, 1, id, "chain").await;
        let why = town.server.cli(&["chain", "explain", &second.to_string(), id]).await;
        let why = String::from_utf8_lossy(&why.stdout).into_owned();
        assert!(why.contains(&format!("launch {first}")), "{id}: {why}");
    }
    for id in machines {
        town.machine(id).write("go", "");
    }
    town.completes(first).await;
    town.completes(second).await;
    for id in machines {
        assert_eq!(town.machine(id).notes(), "123", "{id}");
    }
}

#[tokio::test]
async fn scenario_61_a_stale_store_is_told_and_cleared_and_the_next_chain_runs() {
    let Some((_turn, town)) = shared().await else { return };
    let machines = ["m3006", "m3007", "m3008", NATIVE];
    // Something that this server does not know is under way there.
    let steps = json!([{ "id": "r", "kind": "reboot", "fun": "test.ping" }]).to_string();
    let first = town.launched("sixty-one, before", &machines, json!([note("0")])).await;
    town.completes(first).await;
    town.nothing_is_left().await;
    let answers = town.server.cli_json(&["run", "*", "saltern_chain.start", "99", "1", &steps]).await;
    for id in machines {
        assert_eq!(answers[id]["state"], "rebooting", "{id}: {answers}");
    }
    let launch = town.launched("sixty-one", &machines, json!([note("1")])).await;
    for id in machines {
        wait::until_ok(&format!("the stale store of {id} to be told"), PATIENCE, async || {
            let part = town.part(launch, id).await;
            let told = part["message"].as_str().is_some_and(|text| text.contains("99") && text.contains("chain clear"));
            if told { Ok(()) } else { Err(part.to_string()) }
        })
        .await;
    }
    let refused = town.server.cli_json(&["chain", "clear", "m3006", NATIVE]).await;
    for id in ["m3006", NATIVE] {
        assert!(refused["minions"][id].as_str().is_some_and(|said| said.contains("under way")), "{refused}");
    }
    let words = ["chain", "clear", "--force", "m3006", "m3007", "m3008", NATIVE];
    let cleared = town.server.cli_json(&words).await;
    for id in machines {
        assert_eq!(cleared["minions"][id], "cleared launch 99", "{cleared}");
    }
    town.completes(launch).await;
    for id in machines {
        assert_eq!(town.machine(id).notes(), "01", "{id}");
    }
    town.nothing_is_left().await;
}

#[tokio::test]
async fn scenario_63_a_step_alone_cannot_be_cancelled_and_the_launch_is_named() {
    let Some((_turn, town)) = shared().await else { return };
    let launch = town.launched("sixty-three", &[NATIVE], json!([held("1"), note("2")])).await;
    town.appears(NATIVE, "begun").await;
    let action = town.action(launch, 2).await;
    for verb in ["cancel", "stop", "delete"] {
        let (status, said) = town.refused(&format!("/actions/{action}/{verb}"), json!({})).await;
        assert!(status == 409 && said.contains(&format!("launch {launch}")), "{verb}: {status} {said}");
    }
    let output = town.server.cli(&["action", "cancel", &action.to_string()]).await;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success() && said.contains(&format!("launch {launch}")), "{said}");
    town.machine(NATIVE).write("go", "");
    town.completes(launch).await;
    assert_eq!(town.machine(NATIVE).notes(), "12");
}

#[tokio::test]
async fn scenario_68_nothing_is_left_after_success_failure_and_cancel() {
    let Some((_turn, town)) = shared().await else { return };
    let all = town.ids();
    let good = town.launched("sixty-eight, good", &all, json!([note("1"), note("2")])).await;
    town.completes(good).await;
    town.nothing_is_left().await;
    let bad = town.launched("sixty-eight, bad", &all, json!([crate::town::script("exit 1"), note("2")])).await;
    town.ended(bad).await;
    town.nothing_is_left().await;
    let cancelled = town.launched("sixty-eight, cancelled", &all, json!([held("1"), note("2")])).await;
    for id in &all {
        town.appears(id, "begun").await;
    }
    town.post(&format!("/launches/{cancelled}/cancel"), json!(null)).await;
    for id in &all {
        town.machine(id).write("go", "");
    }
    town.ended(cancelled).await;
    town.nothing_is_left().await;
    // Those who look at actions see none of what carried them.
    let shown = town.get("/actions?limit=1000").await;
    let actions = shown["actions"].as_array().unwrap();
    assert!(actions.iter().all(|action| action["type"] != "chain"), "{shown}");
}
