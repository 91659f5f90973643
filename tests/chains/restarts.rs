//! Scenarios about machines and agents that go down and come back, or do not.

use crate::town::{NATIVE, PATIENCE, Town, held, note, reboot, shared, with};
use saltern_testkit::wait;
use serde_json::json;

/// An update of the agent, of which the machine's package manager makes what the test wants.
fn update() -> serde_json::Value {
    json!({ "type": "agent_update" })
}

/// Says which agent a machine has, which is the newest, and what an update does.
fn agent(town: &Town, id: &str, version: &str, newest: &str, update: &str) {
    let machine = town.machine(id);
    machine.write("version", version);
    machine.write("newest", newest);
    machine.write("update", update);
}

#[tokio::test]
async fn scenario_45_an_agent_that_is_replaced_on_the_way_is_checked_and_the_rest_runs() {
    let Some((_turn, mut town)) = shared().await else { return };
    let ids: Vec<String> = town.ids().into_iter().map(str::to_owned).collect();
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    for id in &all {
        agent(&town, id, "1", "2", "kills");
    }
    let launch = town.launched("forty-five", &all, json!([note("1"), update(), note("3")])).await;
    let plan = town.get(&format!("/launches/{launch}/minions/m3006/plan")).await;
    assert_eq!(plan["chunks"][1]["steps"][0]["id"], "2.check", "{plan}");
    for id in &all {
        let machine = town.machine_mut(id);
        wait::until(&format!("the agent of {id} to go"), PATIENCE, async || !machine.is_up()).await;
        assert_eq!(machine.notes(), "1", "{id}");
        machine.start();
    }
    town.completes(launch).await;
    for id in &all {
        assert_eq!(town.machine(id).notes(), "13", "{id}");
        assert_eq!(town.machine(id).lines("packages").len(), 1, "{id}: it is updated once");
    }
}

#[tokio::test]
async fn scenario_46_an_agent_that_is_the_newest_already_holds_nothing_up() {
    let Some((_turn, town)) = shared().await else { return };
    let all = town.ids();
    for id in &all {
        agent(&town, id, "2", "2", "works");
    }
    let launch = town.launched("forty-six", &all, json!([note("1"), update(), note("3")])).await;
    town.completes(launch).await;
    for id in all {
        assert_eq!(town.machine(id).notes(), "13", "{id}");
    }
}

#[tokio::test]
async fn scenario_47_an_update_without_effect_ends_the_chain_and_says_so() {
    let Some((_turn, mut town)) = shared().await else { return };
    for (id, how) in [("m3006", "nothing"), ("m3007", "works"), (NATIVE, "nothing")] {
        agent(&town, id, "1", "2", how);
    }
    let version = json!({ "type": "agent_update", "params": { "version": "2" } });
    let steps = json!([update(), version, note("3")]);
    let launch = town.launched("forty-seven", &["m3006", "m3007", NATIVE], steps).await;
    town.ended(launch).await;
    for id in ["m3006", NATIVE] {
        let there = town.steps_on(launch, id).await;
        assert_eq!(there, "1 failed(returned_error), 2 failed(prerequisite), 3 failed(prerequisite)", "{id}");
        let why = town.run(launch, 1, id).await["message"].clone();
        assert!(why.as_str().is_some_and(|why| why.contains("not updated")), "{id}: {why}");
        assert_eq!(town.machine(id).notes(), "", "{id}");
    }
    assert_eq!(town.steps_on(launch, "m3007").await, "1 completed, 2 completed, 3 completed");

    // Killed, too, and still not updated.
    agent(&town, "m3008", "1", "2", "kills");
    town.machine("m3008").remove("newest");
    let version = json!({ "type": "agent_update", "params": { "version": "3" } });
    let launch = town.launched("forty-seven, killed", &["m3008"], json!([version, note("2")])).await;
    let machine = town.machine_mut("m3008");
    wait::until("the agent to go", PATIENCE, async || !machine.is_up()).await;
    machine.start();
    town.ended(launch).await;
    assert_eq!(town.steps_on(launch, "m3008").await, "1 failed(returned_error), 2 failed(prerequisite)");
    town.nothing_is_left().await;
}

#[tokio::test]
async fn scenario_48_an_agent_restarted_before_the_reboot_resumes_nothing() {
    let Some((_turn, mut town)) = shared().await else { return };
    let machines = ["m3007", "m3008", NATIVE];
    let launch = town.launched("forty-eight", &machines, json!([note("1"), reboot(), note("3")])).await;
    for id in machines {
        let part = town.part_is(launch, id, "restarting").await;
        town.machine_mut(id).restart_agent();
        // It was asked, and has said that the machine is still the same.
        wait::until_ok(&format!("{id} to be asked"), PATIENCE, async || {
            let now = town.part(launch, id).await;
            let is_later = now["since"].as_str() > part["since"].as_str();
            if is_later && now["state"] == "restarting" { Ok(()) } else { Err(now.to_string()) }
        })
        .await;
        assert_eq!(town.steps_on(launch, id).await, "1 completed, 2 picked_up, 3 queued", "{id}");
        assert_eq!(town.machine(id).notes(), "1", "{id}");
    }
    for id in machines {
        town.machine_mut(id).reboot();
    }
    town.completes(launch).await;
    for id in machines {
        assert_eq!((town.machine(id).notes().as_str(), town.machine(id).shutdowns()), ("13", 1), "{id}");
    }
}

#[tokio::test]
async fn scenario_49_a_power_cut_in_the_middle_of_a_step_loses_it_and_the_rest_does_not_run() {
    let Some((_turn, mut town)) = shared().await else { return };
    let machines = ["m3006", "m3008", NATIVE];
    let launch = town.launched("forty-nine", &machines, json!([note("1"), held("2"), note("3")])).await;
    for id in machines {
        town.step_is(launch, 2, id, "picked_up").await;
        town.appears(id, "begun").await;
        town.machine_mut(id).go_down();
        town.machine(id).write("go", "");
        town.machine_mut(id).start();
    }
    town.ended(launch).await;
    for id in machines {
        let there = town.steps_on(launch, id).await;
        assert_eq!(there, "1 completed, 2 failed(lost), 3 failed(prerequisite)", "{id}");
        assert_eq!(town.machine(id).take_notes(), "1", "{id}");
    }
    town.nothing_is_left().await;

    // What may be done twice is done again.
    let again = with(held("2"), "repeatable", true);
    let launch = town.launched("forty-nine, again", &machines, json!([note("1"), again, note("3")])).await;
    for id in machines {
        town.step_is(launch, 2, id, "picked_up").await;
        town.appears(id, "begun").await;
        town.machine_mut(id).go_down();
        town.machine(id).write("go", "");
        town.machine_mut(id).start();
    }
    town.completes(launch).await;
    for id in machines {
        assert_eq!(town.machine(id).notes(), "123", "{id}");
    }
}

#[tokio::test]
async fn scenario_50_several_start_events_begin_the_next_chunk_once() {
    let Some((_turn, mut town)) = shared().await else { return };
    let machines = ["m3007", NATIVE];
    let launch = town.launched("fifty", &machines, json!([note("1"), reboot(), held("3"), note("4")])).await;
    for id in machines {
        town.part_is(launch, id, "restarting").await;
        town.machine_mut(id).reboot();
    }
    for id in machines {
        town.appears(id, "begun").await;
        // Again, while the chunk is under way.
        for _ in 0..2 {
            let tag = format!("salt/minion/{id}/start");
            let sent = town.server.cli_json(&["run", id, "event.send", &tag]).await;
            assert_eq!(sent[id], true, "{sent}");
        }
    }
    for id in machines {
        town.machine(id).write("go", "");
    }
    town.completes(launch).await;
    for id in machines {
        assert_eq!(town.machine(id).notes(), "134", "{id}");
    }
}

#[tokio::test]
async fn scenario_51_a_machine_that_comes_back_while_the_server_is_down_goes_on_without_help() {
    let Some((_turn, mut town)) = shared().await else { return };
    let machines = ["m3006", "m3008", NATIVE];
    let launch = town.launched("fifty-one", &machines, json!([note("1"), reboot(), note("3")])).await;
    for id in machines {
        town.part_is(launch, id, "restarting").await;
    }
    town.server.kill9();
    for id in machines {
        town.machine_mut(id).reboot();
    }
    town.server.launch().await;
    town.completes(launch).await;
    for id in machines {
        assert_eq!(town.machine(id).notes(), "13", "{id}");
    }
    town.nothing_is_left().await;
}

#[tokio::test]
async fn scenario_52_a_machine_that_does_not_come_back_ends_at_the_limit() {
    let Some((_turn, mut town)) = shared().await else { return };
    let machines = ["m3008", NATIVE];
    let steps = json!([note("1"), with(reboot(), "limit", "3s"), note("3")]);
    let launch = town.launched("fifty-two", &machines, steps).await;
    for id in machines {
        // Whether it is waited for or ended already, it is down from now on.
        town.step_is(launch, 1, id, "completed").await;
        let machine = town.machine(id);
        wait::until(&format!("{id} to be told to go down"), PATIENCE, async || machine.shutdowns() == 1).await;
        town.machine_mut(id).go_down();
    }
    town.ended(launch).await;
    for id in machines {
        assert_eq!(town.steps_on(launch, id).await, "1 completed, 2 failed(timed_out), 3 failed(prerequisite)", "{id}");
        assert_eq!(town.machine(id).take_notes(), "1", "{id}");
        town.machine_mut(id).start();
    }
    // What it kept is in nobody's way.
    let next = town.launched("fifty-two, next", &machines, json!([note("4")])).await;
    town.completes(next).await;
    for id in machines {
        assert_eq!(town.machine(id).notes(), "4", "{id}");
    }
    town.nothing_is_left().await;
}
