//! The scenarios of the action engine with real minions of every kind, each named by its number.
//!
//! What needs no process is tested beside the engine, with minions that are told what to do. One fleet serves all of a test:
//! starting it takes longer than most scenarios, and they leave it as they found it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a scenario that meets the unexpected fails")]

use saltern_e2e::field::{Field, NATIVE, PATIENCE, is_running};
use saltern_testkit::wait;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const NODEGROUPS: &str = "nodegroups:\n  web: L@m3006,m3007\n";

#[tokio::test]
async fn what_is_asked_for_is_done_and_told() {
    let Some(mut field) = Field::start(NODEGROUPS).await else { return };
    scenario_1_a_highstate_is_queued_picked_up_and_completed(&field).await;
    scenario_2_a_group_is_one_action(&field).await;
    scenario_13_without_acknowledgement_sent_becomes_completed(&field).await;
    scenario_16_what_runs_is_not_cancelled_but_can_be_stopped(&field).await;
    scenario_16_and_17_what_is_failed_by_hand_stays_so_when_its_return_comes(&field).await;
    scenario_20_only_what_failed_is_done_again(&field).await;
    a_script_runs_as_its_user_in_its_directory(&field).await;
    packages_and_services_that_do_not_exist_are_failures_with_a_reason(&field).await;
    scenarios_6_14_and_8_a_minion_that_is_off(&mut field).await;
}

#[tokio::test]
async fn nothing_is_lost_and_nothing_runs_twice() {
    let Some(mut field) = Field::start("").await else { return };
    scenario_9_what_was_not_heard_of_is_sent_again_and_runs_once(&field).await;
    scenario_9_what_died_with_its_connection_is_sent_again(&mut field).await;
    scenario_10_what_died_on_the_way_is_lost_and_not_sent_again(&mut field).await;
    what_is_asked_of_a_server_that_has_just_come_up_reaches_everybody_once(&mut field).await;
    scenarios_3_4_and_5_the_server_is_down_when_work_falls_due(&mut field).await;
}

#[tokio::test]
async fn a_reboot_is_proven_by_another_boot() {
    let Some(mut field) = Field::with_own_machine().await else { return };
    scenario_33_a_reboot_is_completed_when_the_machine_is_up_again(&mut field).await;
    scenario_33_a_second_reboot_needs_a_second_boot(&mut field).await;
    scenario_34_a_machine_that_does_not_go_down_fails_after_the_limit(&mut field).await;
}

async fn scenario_1_a_highstate_is_queued_picked_up_and_completed(field: &Field) {
    let id = field.create(&["states", "m3007", "--at", "+3s"]).await;
    let run = field.run(&id, "m3007").await;
    assert_eq!((&run["state"], &run["waiting_for"]), (&json!("queued"), &json!("due")));
    let run = field.ends(&id, "m3007", "completed", None).await;
    let jid = run["jid"].as_str().unwrap();
    let events = field.fleet.events_with_tag(&format!("salt/job/{jid}/*")).await;
    let what: Vec<&str> = events.iter().filter_map(|event| event["tag"].as_str()?.split('/').nth(3)).collect();
    let milestones: Vec<&str> = what.into_iter().filter(|what| ["new", "ack", "ret"].contains(what)).collect();
    assert_eq!(milestones, ["new", "ack", "ret"]);
    let action = field.action(&id).await;
    assert_eq!((&action["user"], &action["fun"]), (&json!("root"), &json!("state.highstate")));
    let times = [&action["due"], &run["sent"], &run["picked_up"], &run["ended"]].map(|time| time.as_str());
    assert!(times.iter().all(Option::is_some) && times.is_sorted(), "{times:?}");
    let returned = field.returned(&run).await;
    let states = returned["return"].as_object().unwrap_or_else(|| panic!("no states: {returned}"));
    assert!(states.len() == 4 && states.values().all(|state| state["result"] == true), "{returned}");
    assert!(field.tree.out("m3007", "app.conf").exists());
}

async fn scenario_2_a_group_is_one_action(field: &Field) {
    let id = field.create(&["states", "-N", "web"]).await;
    let waited = field.fleet.server.cli(&["action", "wait", &id]).await;
    assert_eq!(waited.status.code(), Some(0));
    let action = field.action(&id).await;
    let counts = &action["counts"];
    assert_eq!((&counts["total"], &counts["completed"]), (&json!(2), &json!(2)), "{action}");
    assert_eq!(action["jobs"].as_array().map(Vec::len), Some(1), "{action}");
}

async fn scenario_13_without_acknowledgement_sent_becomes_completed(field: &Field) {
    let silent = ["m3008", NATIVE];
    for minion in silent {
        field.fleet.server.cli_json(&["minion", "set", minion, "--ack", "off"]).await;
    }
    let id = field.command(&silent, "echo done", &[]).await;
    for minion in silent {
        let run = field.ends(&id, minion, "completed", None).await;
        assert_eq!(run["picked_up"], Value::Null, "{run}");
        let jid = run["jid"].as_str().unwrap();
        assert_eq!(field.fleet.events_with_tag(&format!("salt/job/{jid}/ack/*")).await, Vec::<Value>::new());
        field.fleet.server.cli_json(&["minion", "set", minion, "--ack", "default"]).await;
    }
}

async fn scenario_16_what_runs_is_not_cancelled_but_can_be_stopped(field: &Field) {
    // A number that no other process on this machine has for an argument.
    let sleep = "31716.16";
    let everybody = field.everybody();
    let id = field.command(&everybody, &format!("sleep {sleep}"), &[]).await;
    for minion in &everybody {
        field.becomes(&id, minion, "picked_up").await;
    }
    wait::until_blocking("the command to be under way", PATIENCE, || is_running(sleep));
    let (said, code) = field.act(&["cancel", &id]).await;
    assert_eq!(code, Some(1));
    for minion in &everybody {
        assert_eq!(said[minion], json!({ "done": false, "outcome": "too late: it was sent" }));
    }
    let (said, _) = field.act(&["stop", &id]).await;
    for minion in &everybody {
        assert_eq!(said[minion]["outcome"], "told to stop", "{minion}");
        field.ends(&id, minion, "failed", Some("stopped")).await;
    }
    wait::until_blocking("the command to be gone", PATIENCE, || !is_running(sleep));
}

async fn scenario_16_and_17_what_is_failed_by_hand_stays_so_when_its_return_comes(field: &Field) {
    let everybody = field.everybody();
    let gate = field.witness("gate");
    let line = format!("while ! test -e {}; do sleep 0.2; done; echo done", gate.display());
    let id = field.command(&everybody, &line, &[]).await;
    for minion in &everybody {
        field.becomes(&id, minion, "picked_up").await;
    }
    let (_, code) = field.act(&["fail", &id, "--message", "nobody waits for it"]).await;
    assert_eq!(code, Some(0));
    std::fs::write(&gate, "").unwrap();
    for minion in &everybody {
        let run = field.until(&id, minion, "told as late", |run| run["late"] == true).await;
        assert_eq!(
            (&run["state"], &run["reason"], &run["message"]),
            (&json!("failed"), &json!("failed_by_hand"), &json!("nobody waits for it"))
        );
        assert_eq!(field.returned(&run).await["return"], "done");
    }
}

async fn scenario_20_only_what_failed_is_done_again(field: &Field) {
    let flag = field.witness("flag");
    let line = format!("echo {{{{ grains.id }}}}; test {{{{ grains.id }}}} = m3006 -o -e {}", flag.display());
    let (arg, kwarg) = (format!("arg={}", json!([line])), "kwarg={template: jinja}");
    let id = field.create(&["function", "-L", "m3006,m3007", "fun=cmd.run", &arg, kwarg]).await;
    field.ends(&id, "m3006", "completed", None).await;
    let first = field.ends(&id, "m3007", "failed", Some("returned_error")).await;
    assert_eq!(first["retcode"], 1);
    std::fs::write(&flag, "").unwrap();
    let (said, code) = field.act(&["retry", &id]).await;
    assert_eq!((said, code), (json!({ "m3007": { "done": true, "outcome": "queued" } }), Some(0)));
    let again = field.ends(&id, "m3007", "completed", None).await;
    assert_eq!(again["attempt"], 2);
    assert_eq!(field.run(&id, "m3006").await["attempt"], 1);
    // The first attempt and what it returned are still there.
    assert_eq!(field.action(&id).await["jobs"], json!([first["jid"], again["jid"]]));
    let earlier = field.returned(&first).await;
    assert_eq!((&earlier["return"], &earlier["retcode"]), (&json!("m3007"), &json!(1)));
}

async fn a_script_runs_as_its_user_in_its_directory(field: &Field) {
    let script = "#!/bin/sh\nid -un\npwd\nread line || echo no input\nexit 3\n";
    let file = field.witness("script.sh");
    std::fs::write(&file, script).unwrap();
    let body = format!("body=@{}", file.display());
    let id = field.create(&["script", "*", &body, "user=nobody", "cwd=/usr", "timeout=60"]).await;
    for minion in field.everybody() {
        let run = field.ends(&id, minion, "failed", Some("returned_error")).await;
        let returned = field.returned(&run).await;
        assert_eq!(returned["return"]["stdout"], "nobody\n/usr\nno input", "{minion}: {returned}");
        assert_eq!((&run["retcode"], &returned["return"]["retcode"]), (&json!(3), &json!(3)), "{minion}");
    }
}

async fn packages_and_services_that_do_not_exist_are_failures_with_a_reason(field: &Field) {
    for words in [
        ["package_install", "*", "packages=no-such-package-of-saltern", "refresh=false"],
        ["service_restart", "*", "service=no-such-service-of-saltern", "--deadline=5m"],
    ] {
        let id = field.create(&words).await;
        for minion in field.everybody() {
            let run = field.ends(&id, minion, "failed", Some("returned_error")).await;
            let returned = field.returned(&run).await;
            assert!(!returned["return"].is_null() && run["retcode"] != 0, "{minion}: {words:?} {returned}");
        }
    }
}

/// One stop and one start of a minion serve all three.
async fn scenarios_6_14_and_8_a_minion_that_is_off(field: &mut Field) {
    let off = "m3006";
    field.stock(off).stop().await;

    let begun = Instant::now();
    let id = field.witnessed(&[off, "m3008"], "fails", "", &["--offline", "fail"]).await;
    field.ends(&id, off, "failed", Some("offline")).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    field.ends(&id, "m3008", "completed", None).await;

    let cancelled = field.witnessed(&[off], "cancelled", "", &["--when-back"]).await;
    let held = field.witnessed(&[off], "held", "", &["--when-back"]).await;
    for id in [&cancelled, &held] {
        let waits = |run: &Value| run["state"] == "queued" && run["waiting_for"] == "offline";
        field.until(id, off, "waiting for its minion", waits).await;
    }
    let (said, code) = field.act(&["cancel", &cancelled]).await;
    assert_eq!((&said[off]["outcome"], code), (&json!("cancelled"), Some(0)));

    field.stock(off).launch();
    field.ends(&held, off, "completed", None).await;
    field.answers(off).await;
    assert_eq!(field.lines("held"), ["ran"]);
    // Whatever was to be done for a minion that is back has been done: this was not.
    let run = field.ends(&cancelled, off, "cancelled", Some("cancelled")).await;
    assert_eq!((&run["message"], &run["late"]), (&json!("cancelled by root"), &json!(false)));
    assert_eq!(field.lines("cancelled"), Vec::<String>::new());
    assert_eq!(field.lines("fails"), ["ran"], "on the other minion alone");
}

async fn scenario_9_what_was_not_heard_of_is_sent_again_and_runs_once(field: &Field) {
    field.fleet.minions.iter().for_each(|minion| minion.suspend());
    field.native.suspend();
    let everybody = field.everybody();
    let id = field.witnessed(&everybody, "deaf", "", &[]).await;
    let mut jids = Vec::new();
    for minion in &everybody {
        let twice = |run: &Value| run["deliveries"].as_i64() >= Some(2);
        jids.push(field.until(&id, minion, "sent twice", twice).await["jid"].clone());
    }
    field.fleet.minions.iter().for_each(|minion| minion.resume());
    field.native.resume();
    for (minion, jid) in everybody.iter().zip(&jids) {
        let run = field.ends(&id, minion, "completed", None).await;
        assert_eq!((&run["jid"], &run["attempt"]), (jid, &json!(1)), "{minion}: the same job");
    }
    for minion in &everybody {
        field.answers(minion).await;
    }
    assert_eq!(field.lines("deaf").len(), everybody.len());
}

/// What was in a socket that nobody read is gone with it. The native minion's ledger tells that it never began.
async fn scenario_9_what_died_with_its_connection_is_sent_again(field: &mut Field) {
    field.native.suspend();
    let id = field.witnessed(&[NATIVE], "cut", "", &["--when-back"]).await;
    let sent = field.becomes(&id, NATIVE, "sent").await;
    field.native.kill();
    field.native.launch();
    let run = field.ends(&id, NATIVE, "completed", None).await;
    assert_eq!((&run["jid"], &run["attempt"]), (&sent["jid"], &json!(1)));
    assert!(run["deliveries"].as_i64() >= Some(2), "{run}");
    assert_eq!(field.lines("cut"), ["ran"]);
}

async fn scenario_10_what_died_on_the_way_is_lost_and_not_sent_again(field: &mut Field) {
    let (job_dies, agent_dies) = ("m3006", "m3007");
    let rules = ["--retry", "3"];
    let one = field.witnessed(&[job_dies], "job-dies", "; sleep 300", &rules).await;
    let other = field.witnessed(&[agent_dies, NATIVE], "agent-dies", "; sleep 300", &rules).await;
    let run = field.becomes(&one, job_dies, "picked_up").await;
    for minion in [agent_dies, NATIVE] {
        field.becomes(&other, minion, "picked_up").await;
    }
    wait::until_blocking("the jobs to be under way", PATIENCE, || {
        (field.lines("job-dies").len(), field.lines("agent-dies").len()) == (1, 2)
    });
    let jid = run["jid"].as_str().unwrap();
    let found = field.fleet.run(job_dies, "saltutil.find_job", &[jid]).await;
    let pid = found[job_dies]["pid"].as_i64().unwrap_or_else(|| panic!("{found}"));
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    field.stock(agent_dies).kill();
    field.stock(agent_dies).launch();
    field.native.kill();
    field.native.launch();
    // Our own minion keeps a ledger and says what has become of its job; of the others nobody knows.
    field.ends(&other, NATIVE, "failed", Some("returned_error")).await;
    for (id, minion) in [(&one, job_dies), (&other, agent_dies)] {
        let run = field.ends(id, minion, "failed", Some("lost")).await;
        assert_eq!((&run["attempt"], &run["deliveries"]), (&json!(1), &json!(1)), "{minion}: {run}");
    }
    for minion in [job_dies, agent_dies, NATIVE] {
        field.answers(minion).await;
    }
    assert_eq!((field.lines("job-dies").len(), field.lines("agent-dies").len()), (1, 2));
}

/// Stock minions need seconds to subscribe again, and can be heard before they have: what is sent meanwhile would miss them.
async fn what_is_asked_of_a_server_that_has_just_come_up_reaches_everybody_once(field: &mut Field) {
    field.fleet.server.kill9();
    field.fleet.server.launch().await;
    let everybody = field.everybody();
    let id = field.witnessed(&everybody, "early", "", &[]).await;
    for minion in &everybody {
        let run = field.ends(&id, minion, "completed", None).await;
        assert_eq!(run["attempt"], 1, "{minion}: {run}");
    }
    for minion in &everybody {
        field.answers(minion).await;
    }
    assert_eq!(field.lines("early").len(), everybody.len());
}

/// One time without a server serves all three.
async fn scenarios_3_4_and_5_the_server_is_down_when_work_falls_due(field: &mut Field) {
    // Marked as late is what is begun more than a minute after it was due.
    let down = Duration::from_secs(66);
    let everybody: Vec<String> = field.everybody().into_iter().map(str::to_owned).collect();
    let ids: Vec<&str> = everybody.iter().map(String::as_str).collect();
    let begun = Instant::now();
    let overdue = field.witnessed(&ids, "overdue", "", &["--at", "+3s"]).await;
    let expired = field.witnessed(&ids, "expired", "", &["--at", "+3s", "--deadline", "30"]).await;
    let later = field.witnessed(&ids, "later", "", &["--at", "+110s"]).await;
    field.fleet.server.kill9();
    assert!(begun.elapsed() < Duration::from_secs(3), "too slow to be down in time");
    wait::until("work to be overdue", down * 2, || std::future::ready(begun.elapsed() > down)).await;
    field.fleet.server.launch().await;
    for minion in &ids {
        field.ends(&overdue, minion, "completed", None).await;
        field.ends(&expired, minion, "failed", Some("expired")).await;
    }
    let action = field.action(&overdue).await;
    assert_eq!(action["late"], true, "{action}");
    assert_eq!(field.run(&later, ids[0]).await["state"], "queued");
    for minion in &ids {
        let run = field.ends(&later, minion, "completed", None).await;
        let action = field.action(&later).await;
        assert!(run["sent"].as_str() >= action["due"].as_str(), "{run}");
        assert_eq!(action["late"], false);
    }
    assert_eq!(field.lines("overdue").len(), ids.len());
    assert_eq!(field.lines("later").len(), ids.len());
    assert_eq!(field.lines("expired"), Vec::<String>::new());
}

async fn scenario_33_a_reboot_is_completed_when_the_machine_is_up_again(field: &mut Field) {
    let id = field.create(&["reboot", NATIVE]).await;
    let run = is_going_down(field, &id).await;
    assert_eq!(field.native.shutdowns(), ["-r 1"]);
    // The agent alone is restarted: that is no reboot.
    restart(field).await;
    assert_eq!(field.run(&id, NATIVE).await["state"], "picked_up");
    field.native.next_boot();
    restart(field).await;
    let ended = field.ends(&id, NATIVE, "completed", None).await;
    assert_eq!(ended["message"], "Reboot completed.");
    assert_eq!((&ended["picked_up"], &ended["deliveries"]), (&run["picked_up"], &json!(1)));
    assert_eq!(field.native.shutdowns().len(), 1);
}

/// By now the boot id is known, and the job is sent at once.
async fn scenario_33_a_second_reboot_needs_a_second_boot(field: &mut Field) {
    let id = field.create(&["reboot", NATIVE, "delay=5"]).await;
    is_going_down(field, &id).await;
    restart(field).await;
    assert_eq!(field.run(&id, NATIVE).await["state"], "picked_up");
    field.native.next_boot();
    restart(field).await;
    field.ends(&id, NATIVE, "completed", None).await;
    assert_eq!(field.native.shutdowns(), ["-r 1", "-r 5"]);
}

async fn scenario_34_a_machine_that_does_not_go_down_fails_after_the_limit(field: &mut Field) {
    let id = field.create(&["reboot", NATIVE, "--job-timeout", "10"]).await;
    is_going_down(field, &id).await;
    restart(field).await;
    field.ends(&id, NATIVE, "failed", Some("timed_out")).await;
}

/// Waits until the minion has said that its machine will go down.
async fn is_going_down(field: &Field, id: &str) -> Value {
    let run = field.becomes(id, NATIVE, "picked_up").await;
    wait::until_ok("the return of the reboot", PATIENCE, async || match field.returned(&run).await {
        Value::Null => Err("it has not returned"),
        _ => Ok(run.clone()),
    })
    .await
}

async fn restart(field: &mut Field) {
    field.native.kill();
    field.native.launch();
    field.answers(NATIVE).await;
}
