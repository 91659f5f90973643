//! Scenarios about chains that have not been launched: who sees them, and how they are put together.

use crate::town::{NATIVE, held, note, on, shared, with};
use saltern_testkit::http::Request;
use serde_json::{Value, json};

#[tokio::test]
async fn scenario_38_a_chain_reads_as_numbered_sentences_and_is_nobody_elses() {
    let Some((_turn, town)) = shared().await else { return };
    let bob = town.person("bob", "operator").await;
    let steps = json!([
        { "type": "package_update", "target": "m*" },
        { "type": "package_remove", "params": { "packages": "vim" }, "target": "m*" },
        { "type": "package_install", "params": { "packages": "git" }, "target": "m*" },
        { "type": "function", "params": { "fun": "cp.cache_file", "arg": ["salt://good.sls"] }, "target": "m*" },
        { "type": "states", "target": "m*" },
        { "type": "reboot", "target": "m*" },
        with(note("seven"), "target", "m*"),
    ]);
    let chain = town.chain("thirty-eight", steps).await;
    let shown = town.server.cli(&["chain", "show", "thirty-eight"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let sentences = [
        "1. update all packages on glob m*",
        "2. remove vim on glob m*",
        "3. install git on glob m*",
        "4. cp.cache_file",
        "5. apply the highstate on glob m*",
        "6. reboot on glob m*",
        "7. run a script: echo seven",
    ];
    for sentence in sentences {
        assert!(shown.lines().any(|line| line.trim_start().starts_with(sentence)), "{sentence}: {shown}");
    }
    let listed = town.ask_as(&bob, Request::get("/api/v1/chains")).await.json();
    assert_eq!(listed["chains"], json!([]));
    for which in [chain.to_string(), "thirty-eight".into()] {
        assert_eq!(town.ask_as(&bob, Request::get(&format!("/api/v1/chains/{which}"))).await.status, 404);
        let launch = Request::post(&format!("/api/v1/chains/{which}/launch"), &json!({}));
        assert_eq!(town.ask_as(&bob, launch).await.status, 404);
    }
    // Shared, it can be seen and launched, but not changed.
    assert!(town.server.cli(&["chain", "share", "thirty-eight"]).await.status.success());
    let seen = town.ask_as(&bob, Request::get(&format!("/api/v1/chains/{chain}"))).await;
    assert_eq!((seen.status, seen.json()["step_count"].clone()), (200, json!(7)));
    let step = json!({ "step": note("eight") });
    let change = Request::post(&format!("/api/v1/chains/{chain}/steps"), &step);
    assert_eq!(town.ask_as(&bob, change).await.status, 403);
}

#[tokio::test]
async fn scenario_40_steps_are_added_and_removed_until_the_chain_is_empty_and_deleted() {
    let Some((_turn, town)) = shared().await else { return };
    let chain = async |words: &[&str]| {
        let mut all = vec!["chain"];
        all.extend(words);
        let output = town.server.cli(&all).await;
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    chain(&["create", "forty"]).await;
    chain(&["add", "forty", "package_install", "packages=git", "--target", "m*"]).await;
    chain(&["add", "forty", "package_remove", "packages=vim", "--target", "m*"]).await;
    chain(&["add", "forty", "package_update", "--target", "m*"]).await;
    chain(&["add", "forty", "script", "body=true", "--target", "*"]).await;
    chain(&["add", "forty", "reboot", "--target", "*"]).await;
    let types = async || {
        let shown = town.server.cli_json(&["chain", "show", "forty"]).await;
        let types: Vec<String> =
            shown["steps"].as_array().unwrap().iter().filter_map(|step| Some(step["type"].as_str()?.into())).collect();
        types.join(" ")
    };
    assert_eq!(types().await, "package_install package_remove package_update script reboot");
    chain(&["remove", "forty", "2"]).await;
    assert_eq!(types().await, "package_install package_update script reboot");
    chain(&["remove", "forty", "1", "4"]).await;
    assert_eq!(types().await, "package_update script");
    chain(&["remove", "forty", "1"]).await;
    chain(&["remove", "forty", "1"]).await;
    assert_eq!(types().await, "");
    let refused = town.server.cli(&["chain", "launch", "forty", "--target", "*"]).await;
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no steps"), "{refused:?}");
    chain(&["delete", "forty"]).await;
    assert!(!town.server.cli(&["chain", "show", "forty"]).await.status.success());
}

#[tokio::test]
async fn scenario_62_an_empty_draft_outlives_a_reboot() {
    let Some((_turn, mut town)) = shared().await else { return };
    let draft = town.chain("sixty-two", json!([])).await;
    town.machine_mut(NATIVE).reboot();
    town.answers(NATIVE).await;
    assert_eq!(town.get(&format!("/chains/{draft}")).await["step_count"], 0);
}

#[tokio::test]
async fn scenario_70_names_that_are_taken_or_too_long_are_refused_with_the_reason() {
    let Some((_turn, town)) = shared().await else { return };
    let first = town.chain("seventy", json!([])).await;
    let (status, said) = town.refused("/chains", json!({ "name": "seventy" })).await;
    assert!(status == 409 && said.contains("already"), "{status} {said}");
    town.chain("seventy-one", json!([])).await;
    let renamed = town.server.cli(&["chain", "rename", "seventy-one", "seventy"]).await;
    assert!(!renamed.status.success());
    let put = Request::new("PUT", &format!("/api/v1/chains/{first}"))
        .header("Content-Type", "application/json")
        .header("If-Match", "\"1\"")
        .body(json!({ "name": "seventy-one" }).to_string());
    let reply = town.ask(put).await;
    assert!(reply.status == 409 && reply.text().contains("already"), "{} {}", reply.status, reply.text());
    for name in ["x".repeat(256), String::new(), " x".into(), "two\nlines".into()] {
        let (status, said) = town.refused("/chains", json!({ "name": name })).await;
        assert!(status == 422 || status == 400, "{status} {said}");
        assert!(said.contains("255"), "{said}");
    }
    town.chain(&"x".repeat(255), json!([])).await;
}

#[tokio::test]
async fn scenario_56_states_for_a_native_minion_are_refused_when_it_is_named_and_fail_only_there_otherwise() {
    let Some((_turn, town)) = shared().await else { return };
    let states = json!({ "type": "states", "params": { "mods": ["good"] } });
    let chain = town.chain("fifty-six", json!([])).await;
    let step = json!({ "step": on(&["m3006", NATIVE], states.clone()) });
    let (status, said) = town.refused(&format!("/chains/{chain}/steps"), step).await;
    assert!((400..500).contains(&status) && said.contains("state engine") && said.contains(NATIVE), "{status} {said}");
    let (_, said) = town.refused("/chains", json!({ "name": "x", "steps": [{ "type": "fly" }] })).await;
    assert!(said.contains("no action type"), "{said}");

    // Whom a pattern means is known when it is launched.
    for step in [note("1"), states, note("3")] {
        town.post(&format!("/chains/{chain}/steps"), json!({ "step": with(step, "target", "*") })).await;
    }
    let preview = town.post(&format!("/chains/{chain}/preview"), json!({})).await;
    assert_eq!((&preview["refused"][0]["minion"], &preview["refused"][0]["step"]), (&json!(NATIVE), &json!(2)));
    let launch = town.launch(chain, json!({})).await;
    town.ended(launch).await;
    for machine in town.stock() {
        assert_eq!(town.steps_on(launch, machine).await, "1 completed, 2 completed, 3 completed", "{machine}");
        assert_eq!(town.machine(machine).notes(), "13");
    }
    let there = town.steps_on(launch, NATIVE).await;
    assert_eq!(there, "1 failed(prerequisite), 2 failed(refused), 3 failed(prerequisite)");
    let why = town.run(launch, 2, NATIVE).await["message"].clone();
    assert!(why.as_str().is_some_and(|why| why.contains("state engine")), "{why}");
    assert_eq!(town.machine(NATIVE).notes(), "");
}

#[tokio::test]
async fn scenario_66_a_template_is_launched_again_for_others_and_with_other_parameters() {
    let Some((_turn, town)) = shared().await else { return };
    let chain = town.chain("sixty-six", json!([note("1"), note("2")])).await;
    let before = town.get(&format!("/chains/{chain}")).await;
    let first = town.launch(chain, json!({ "target": "m3006" })).await;
    let other = json!({ "2": { "body": "echo other >> \"$NOTES\"" } });
    let second = town.launch(chain, json!({ "target": [NATIVE], "tgt_type": "list", "params": other })).await;
    town.completes(first).await;
    town.completes(second).await;
    assert_eq!((town.machine("m3006").notes().as_str(), town.machine(NATIVE).notes().as_str()), ("12", "1other"));
    assert_eq!(town.get(&format!("/chains/{chain}")).await, before, "a launch leaves its template as it is");
    let launches: Vec<Value> =
        town.get(&format!("/launches?chain={chain}")).await["launches"].as_array().unwrap().clone();
    assert_eq!(launches.iter().map(|launch| launch["id"].as_i64().unwrap()).collect::<Vec<_>>(), [second, first]);
    let (status, said) = town.refused(&format!("/chains/{chain}/launch"), json!({})).await;
    assert!(status < 500 && said.contains("no target"), "{status} {said}");
    // A launch of a chain that is gone goes on.
    let chain = town.chain("sixty-six, gone", json!([held("3"), note("4")])).await;
    let last = town.launch(chain, json!({ "target": "m3007" })).await;
    town.appears("m3007", "begun").await;
    assert!(town.server.cli(&["chain", "delete", &chain.to_string()]).await.status.success());
    town.machine("m3007").write("go", "");
    town.completes(last).await;
    assert_eq!(town.machine("m3007").notes(), "34");
}
