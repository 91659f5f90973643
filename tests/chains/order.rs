//! Scenarios about what is done in which order, where, and how its end is told.

use crate::town::{NATIVE, PATIENCE, held, note, on, reboot, script, shared, with};
use saltern_testkit::wait;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

#[tokio::test]
async fn scenario_37_seven_steps_run_in_their_order_and_the_script_after_the_reboot() {
    let Some((_turn, mut town)) = shared().await else { return };
    let stock: Vec<String> = town.stock().into_iter().map(str::to_owned).collect();
    let stock: Vec<&str> = stock.iter().map(String::as_str).collect();
    let launch = town
        .launched(
            "thirty-seven",
            &stock,
            json!([
                { "type": "package_update", "params": { "packages": "bash", "refresh": false } },
                { "type": "package_remove", "params": { "packages": "vim" } },
                { "type": "package_install", "params": { "packages": "git", "refresh": false } },
                { "type": "function", "params": { "fun": "cp.cache_file", "arg": ["salt://good.sls"] } },
                { "type": "states" },
                reboot(),
                note("7"),
            ]),
        )
        .await;
    for id in &stock {
        town.part_is(launch, id, "restarting").await;
        let before = town.steps_on(launch, id).await;
        assert!(before.ends_with("5 completed, 6 picked_up, 7 queued"), "{id}: {before}");
        let machine = town.machine_mut(id);
        assert_eq!((machine.notes().as_str(), machine.shutdowns()), ("", 1), "{id}");
        machine.reboot();
    }
    let detail = town.completes(launch).await;
    assert_eq!(detail["steps"].as_array().unwrap().len(), 7);
    for id in &stock {
        let machine = town.machine(id);
        assert_eq!(machine.lines("packages"), ["install bash as known", "remove vim", "install git as known"], "{id}");
        assert_eq!((machine.notes().as_str(), machine.shutdowns()), ("7", 1), "{id}");
        let mut last = String::new();
        for step in 1..=7 {
            let run = town.run(launch, step, id).await;
            let (began, ended) = (run["picked_up"].as_str().unwrap(), run["ended"].as_str().unwrap());
            assert!(last.as_str() <= began && began <= ended, "{id}: step {step} is out of order: {run}");
            last = ended.to_owned();
        }
        let states = &town.returned(launch, 5, id).await["return"];
        assert_eq!(states["test_|-fine_|-fine_|-succeed_without_changes"]["result"], true, "{id}: {states}");
        assert_eq!(town.run(launch, 6, id).await["message"], "Reboot completed.");
    }
}

#[tokio::test]
async fn scenario_39_a_step_on_two_systems_is_one_action_with_two_runs() {
    let Some((_turn, town)) = shared().await else { return };
    let launch = town.launched("thirty-nine", &["m3008", NATIVE], json!([note("1"), note("2")])).await;
    let detail = town.completes(launch).await;
    for step in detail["steps"].as_array().unwrap() {
        assert_eq!((&step["counts"]["total"], &step["counts"]["completed"]), (&json!(2), &json!(2)), "{step}");
        let action = town.get(&format!("/actions/{}", step["action"])).await;
        assert_eq!((&action["launch"], &action["step"]), (&json!(launch), &step["step"]));
    }
}

#[tokio::test]
async fn scenario_41_three_scripts_append_and_the_fourth_touches_a_file() {
    let Some((_turn, town)) = shared().await else { return };
    let steps = json!([
        script("printf 1 >> \"$NOTES\""),
        script("printf 2 >> \"$NOTES\""),
        script("printf 3 >> \"$NOTES\""),
        script("touch \"$FOLDER/touched\""),
    ]);
    let launch = town.launched("forty-one", &town.ids(), steps).await;
    town.completes(launch).await;
    for machine in &town.machines {
        assert_eq!((machine.notes().as_str(), machine.file("touched").exists()), ("123", true), "{}", machine.id());
        machine.remove("touched");
    }
}

#[tokio::test]
async fn scenario_42_each_minion_runs_only_its_own_steps_at_its_own_pace() {
    let Some((_turn, mut town)) = shared().await else { return };
    // A1 → M1, A2 (restart) → M1, A3 → M1..M4, A4 → M2..M4
    let (all, rest) = ([NATIVE, "m3006", "m3007", "m3008"], ["m3006", "m3007", "m3008"]);
    let steps = json!([on(&[NATIVE], note("1")), on(&[NATIVE], reboot()), on(&all, note("3")), on(&rest, note("4"))]);
    let chain = town.chain("forty-two", steps).await;
    let launch = town.launch(chain, json!({})).await;

    // The first machine waits for its boot; that holds nobody else up.
    town.part_is(launch, NATIVE, "restarting").await;
    for id in rest {
        town.part_is(launch, id, "ended").await;
        assert_eq!(town.steps_on(launch, id).await, "3 completed, 4 completed", "{id}");
        assert_eq!(town.machine(id).notes(), "34", "{id}");
    }
    assert_eq!(town.steps_on(launch, NATIVE).await, "1 completed, 2 picked_up, 3 queued");
    assert_eq!(town.detail(launch).await["state"], "running");
    town.machine_mut(NATIVE).reboot();
    town.completes(launch).await;
    assert_eq!(town.machine(NATIVE).notes(), "13");

    let plan = async |id: &str| {
        let plan = town.server.cli_json(&["chain", "plan", &launch.to_string(), id]).await;
        let chunk = |chunk: &Value| {
            let ids = chunk["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap());
            ids.collect::<Vec<_>>().join(" ")
        };
        let chunks: Vec<String> = plan["chunks"].as_array().unwrap().iter().map(chunk).collect();
        (chunks, plan["hash"].as_str().unwrap().to_owned())
    };
    assert_eq!(plan(NATIVE).await.0, ["1 2", "3"]);
    let mut hashes = Vec::new();
    for id in rest {
        let (chunks, hash) = plan(id).await;
        assert_eq!(chunks, ["3 4"], "{id}");
        hashes.push(hash);
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1, "those who do the same have the same plan");
    let sls = town.server.cli(&["chain", "plan", &launch.to_string(), NATIVE]).await;
    let sls = String::from_utf8_lossy(&sls.stdout).into_owned();
    assert!(sls.contains("system.reboot") && sls.contains("module.run"), "{sls}");
}

#[tokio::test]
async fn scenario_43_a_failure_ends_the_rest_there_and_nowhere_else() {
    let Some((_turn, town)) = shared().await else { return };
    // Fails where there is a file.
    let second = script("test ! -e \"$FOLDER/fail\" && echo 2 >> \"$NOTES\"");
    for id in ["m3006", NATIVE] {
        town.machine(id).write("fail", "");
    }
    let launch = town.launched("forty-three", &town.ids(), json!([note("1"), second, note("3"), note("4")])).await;
    let detail = town.ended(launch).await;
    assert_eq!((&detail["counts"]["completed"], &detail["counts"]["failed"]), (&json!(2), &json!(2)));
    for id in ["m3006", NATIVE] {
        let there = town.steps_on(launch, id).await;
        assert_eq!(
            there, "1 completed, 2 failed(returned_error), 3 failed(prerequisite), 4 failed(prerequisite)",
            "{id}"
        );
        let why = town.run(launch, 4, id).await["message"].clone();
        assert!(why.as_str().is_some_and(|why| why.contains("step 2")), "{id}: {why}");
        assert_eq!(town.machine(id).notes(), "1", "{id}");
        town.machine(id).remove("fail");
    }
    for id in ["m3007", "m3008"] {
        assert_eq!(town.machine(id).notes(), "1234", "{id}");
    }
    town.nothing_is_left().await;
}

#[tokio::test]
async fn scenario_44_after_a_change_of_order_the_later_steps_fail_and_only_those() {
    let Some((_turn, town)) = shared().await else { return };
    let bad = with(script("exit 3"), "name", "the bad one");
    town.chain("forty-four", json!([note("a"), note("b"), bad, note("c")])).await;
    // c, bad, a, b
    for (from, to) in [("4", "1"), ("4", "2")] {
        assert!(town.server.cli(&["chain", "move", "forty-four", from, to]).await.status.success());
    }
    let chain = town.get("/chains/forty-four").await;
    assert_eq!(chain["steps"][1]["name"], "the bad one", "{chain}");
    let request = json!({ "target": ["m3007", NATIVE], "tgt_type": "list" });
    let launch = town.launch(chain["id"].as_i64().unwrap(), request).await;
    town.ended(launch).await;
    for id in ["m3007", NATIVE] {
        let there = town.steps_on(launch, id).await;
        let wanted = "1 completed, 2 failed(returned_error), 3 failed(prerequisite), 4 failed(prerequisite)";
        assert_eq!(there, wanted, "{id}");
        assert_eq!(town.run(launch, 2, id).await["retcode"], 3, "{id}");
        assert_eq!(town.machine(id).notes(), "c", "{id}");
    }
}

#[tokio::test]
async fn scenario_55_what_does_not_render_fails_with_its_error_within_seconds() {
    let Some((_turn, town)) = shared().await else { return };
    let broken = json!({ "type": "states", "params": { "mods": ["broken"] } });
    let stock = town.stock();
    let began = Instant::now();
    let launch = town.launched("fifty-five", &stock, json!([broken, note("2")])).await;
    town.ended(launch).await;
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    for id in stock {
        assert_eq!(town.steps_on(launch, id).await, "1 failed(returned_error), 2 failed(prerequisite)", "{id}");
        let said = town.returned(launch, 1, id).await["return"].to_string();
        assert!(said.contains("broken"), "{id}: {said}");
        assert_eq!(town.machine(id).notes(), "");
    }
}

#[tokio::test]
async fn scenario_65_five_package_steps_make_no_work_beside_them() {
    let Some((_turn, town)) = shared().await else { return };
    let newest = async || {
        let jobs = town.get("/jobs?internal=true&limit=1").await;
        jobs["jobs"][0]["jid"].as_str().unwrap().to_owned()
    };
    let before = newest().await;
    let install = |refresh: bool, name: &str| json!({ "type": "package_install", "params": { "packages": name, "refresh": refresh } });
    let steps = json!([
        install(true, "a"),
        install(false, "b"),
        { "type": "package_remove", "params": { "packages": "c" } },
        install(false, "d"),
        { "type": "package_update", "params": { "packages": "e", "refresh": false } },
    ]);
    let launch = town.launched("sixty-five", &["m3008"], steps).await;
    town.completes(launch).await;
    town.nothing_is_left().await;
    let packages = town.machine("m3008").lines("packages");
    assert_eq!(packages.len(), 5, "{packages:?}");
    assert_eq!(packages.iter().filter(|line| line.ends_with("fresh")).count(), 1, "{packages:?}");
    let jobs = town.get("/jobs?internal=true&limit=1000").await;
    let since = jobs["jobs"].as_array().unwrap().iter().filter(|job| job["jid"].as_str().unwrap() > before.as_str());
    let functions: Vec<&str> = since.filter_map(|job| job["fun"].as_str()).collect();
    assert_eq!(functions.iter().filter(|fun| **fun == "saltern_chain.start").count(), 1, "{functions:?}");
    let other = functions.iter().filter(|fun| fun.starts_with("pkg.") || fun.contains("refresh")).count();
    // The steps themselves are jobs: nothing else asks about packages.
    assert_eq!(other, 5, "{functions:?}");
}

#[tokio::test]
async fn scenario_69_times_are_right_in_another_zone_and_while_the_server_was_away() {
    let Some((_turn, mut town)) = shared().await else { return };
    let machines = ["m3006", "m3008", NATIVE];
    let launch = town.launched("sixty-nine", &machines, json!([note("1"), held("2"), note("3")])).await;
    for id in machines {
        town.step_is(launch, 2, id, "picked_up").await;
        town.appears(id, "begun").await;
    }
    town.server.kill9();
    for id in machines {
        town.machine(id).write("go", "");
    }
    let changed = |path: &std::path::Path| path.metadata().and_then(|metadata| metadata.modified()).unwrap();
    let mut done = Vec::new();
    for id in machines {
        let machine = town.machine(id);
        wait::until(&format!("{id} to go on without a server"), PATIENCE, async || machine.notes() == "123").await;
        done.push((id, changed(&machine.file("notes"))));
    }
    // What was heard at once could have any time: here it is long past when the server hears of it.
    wait::until("some time to pass", PATIENCE, async || {
        done.iter().all(|(_, at)| at.elapsed().is_ok_and(|past| past > Duration::from_secs(12)))
    })
    .await;
    town.server.launch().await;
    town.completes(launch).await;
    for (id, at) in done {
        let run = town.run(launch, 3, id).await;
        let told = seconds(run["ended"].as_str().unwrap());
        let real = at.duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(told.abs_diff(real) <= 3, "{id}: it ended at {real}, and {told} is told: {run}");
        assert!(seconds(run["picked_up"].as_str().unwrap()) <= told, "{run}");
    }
}

/// A time in seconds since 1970, as the system reads it.
fn seconds(time: &str) -> u64 {
    let output = Command::new("date").args(["-d", time, "+%s"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    text.parse().unwrap_or_else(|error| panic!("{time}: {error}"))
}
