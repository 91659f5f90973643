//! Launches: previewed, accepted, looked at, approved and cancelled. They are due later, so that nothing happens by itself.

use super::House;
use saltern_core::time::Timestamp;
use saltern_server::clock;
use saltern_testkit::fake_minion::FakeMinion;
use serde_json::{Value, json};

/// When nobody waits for it any more.
fn later() -> String {
    Timestamp(clock::now().0 + 3_600_000_000).rfc3339()
}

/// A house with web1, web2 and a chain of three steps.
async fn house_with_chain() -> (House, Vec<FakeMinion>) {
    let house = House::open().await;
    let mut minions = Vec::new();
    for name in ["web1", "web2"] {
        minions.push(FakeMinion::start(house.server.return_address, name).await);
    }
    let steps = json!([
        { "type": "function", "params": { "fun": "test.echo", "arg": ["a"] }, "target": "web*" },
        { "type": "reboot", "name": "Boot", "target": { "minions": ["web1"] } },
        { "type": "function", "params": { "fun": "test.ping" }, "target": "web1", "approval": "go on?", "barrier": "all" },
    ]);
    house.ask("POST /api/v1/chains").json(&json!({ "name": "patch", "steps": steps })).answer().await.ok();
    (house, minions)
}

impl House {
    async fn launch(&self, body: Value) -> Value {
        self.ask("POST /api/v1/chains/patch/launch").json(&body).answer().await.ok()
    }
}

#[tokio::test]
async fn a_preview_tells_whom_each_step_is_for_and_stores_nothing() {
    let (house, _minions) = house_with_chain().await;
    let preview = |body: Value| house.ask("POST /api/v1/chains/patch/preview").json(&body).answer();
    let expected = json!([
        { "step": 1, "minions": ["web1", "web2"] }, { "step": 2, "minions": ["web1"] }, { "step": 3, "minions": ["web1"] },
    ]);
    assert_eq!(preview(json!({})).await.ok(), json!({ "steps": expected, "refused": [] }));
    let elsewhere = preview(json!({ "target": "web2" })).await.ok();
    assert_eq!(elsewhere["steps"][1]["minions"], json!(["web2"]));
    assert_eq!(house.ask("GET /api/v1/launches").answer().await.ok()["launches"], json!([]));
    house.close().await;
}

#[tokio::test]
async fn a_launch_has_an_action_for_each_step() {
    let (house, _minions) = house_with_chain().await;
    let launch =
        house.launch(json!({ "name": "patch in december", "due": later(), "params": { "1": { "arg": ["b"] } } })).await;
    assert_eq!(
        (&launch["name"], &launch["state"], &launch["user"]),
        (&json!("patch in december"), &json!("waiting"), &json!("root"))
    );
    assert_eq!(launch["counts"], json!({ "total": 2, "open": 2, "completed": 0, "failed": 0, "cancelled": 0 }));
    let shown = house.ask(&format!("GET /api/v1/launches/{}", launch["id"])).answer().await.ok();
    let steps = shown["steps"].as_array().unwrap();
    let told: Vec<_> = steps
        .iter()
        .map(|step| (step["step"].as_i64(), step["type"].as_str(), step["counts"]["queued"].as_i64()))
        .collect();
    let expected = [(1, "function", 2), (2, "reboot", 1), (3, "function", 1)];
    assert_eq!(told, expected.map(|(step, kind, runs)| (Some(step), Some(kind), Some(runs))));
    assert_eq!((&steps[0]["params"]["arg"], &steps[1]["name"]), (&json!(["b"]), &json!("Boot")));
    assert_eq!(
        (&steps[2]["barrier"], &steps[2]["approval"], &steps[2]["approved"]),
        (&json!("all"), &json!("go on?"), &json!(null))
    );
    for (number, step) in (1..).zip(steps) {
        let action = house.ask(&format!("GET /api/v1/actions/{}", step["action"])).answer().await.ok();
        assert_eq!((&action["launch"], &action["step"], &action["jid"]), (&launch["id"], &json!(number), &step["jid"]));
    }
    house.close().await;
}

#[tokio::test]
async fn a_launch_tells_of_its_minions_and_their_plans() {
    let (house, _minions) = house_with_chain().await;
    let launch = house.launch(json!({ "due": later() })).await;
    let at = |rest: &str| format!("GET /api/v1/launches/{}/{rest}", launch["id"]);
    let first = house.ask(&at("minions?limit=1")).answer().await.ok();
    assert_eq!((&first["minions"][0]["minion"], &first["minions"][0]["state"]), (&json!("web1"), &json!("waiting")));
    let rest = house.ask(&at("minions?limit=2&after=web1")).answer().await.ok();
    assert_eq!((&rest["minions"][0]["minion"], &rest["next"]), (&json!("web2"), &json!(null)));
    let plan = house.ask(&at("minions/web1/plan")).answer().await.ok();
    let chunks = plan["chunks"].as_array().unwrap();
    let funs =
        |chunk: &Value| chunk["steps"].as_array().unwrap().iter().map(|step| step["step"].clone()).collect::<Vec<_>>();
    // The reboot ends a chunk, and what waits for a yes begins one.
    assert_eq!(chunks.iter().map(funs).collect::<Vec<_>>(), [vec![json!(1), json!(2)], vec![json!(3)]]);
    assert_eq!((&chunks[1]["gate"], plan["hash"].as_str().unwrap().len()), (&json!(3), 64));
    assert!(plan["sls"].as_str().unwrap().contains("test.echo"), "{plan}");
    let why = house.ask(&at("minions/web1/explain")).answer().await.ok();
    assert_eq!((&why["minion"], &why["state"]), (&json!("web1"), &json!("queued")));
    for missing in ["minions/db1/plan", "minions/db1/explain"] {
        assert_eq!(house.ask(&at(missing)).answer().await.problem().0, 404, "{missing}");
    }
    house.close().await;
}

#[tokio::test]
async fn launches_come_newest_first_and_of_one_chain() {
    let (house, _minions) = house_with_chain().await;
    let other = json!({ "name": "other", "steps": [{ "type": "reboot", "target": "web2" }] });
    let other = house.ask("POST /api/v1/chains").json(&other).answer().await.ok();
    let mut ids = Vec::new();
    for chain in ["patch", "other", "patch"] {
        let launch = house.ask(&format!("POST /api/v1/chains/{chain}/launch")).json(&json!({ "due": later() }));
        ids.push(launch.answer().await.ok()["id"].as_i64().unwrap());
    }
    let list = async |query: &str| {
        let listed = house.ask(&format!("GET /api/v1/launches?{query}")).answer().await.ok();
        let ids = listed["launches"].as_array().unwrap().iter().map(|launch| launch["id"].as_i64().unwrap());
        (ids.collect::<Vec<_>>(), listed["next"].as_i64())
    };
    assert_eq!(list("limit=2").await, (vec![ids[2], ids[1]], Some(ids[1])));
    assert_eq!(list(&format!("limit=2&before={}", ids[1])).await, (vec![ids[0]], None));
    assert_eq!(list("chain=patch").await.0, [ids[2], ids[0]]);
    house.ask(&format!("DELETE /api/v1/chains/{}", other["id"])).with("if-match", "*").answer().await;
    assert_eq!(list(&format!("chain={}", other["id"])).await.0, [ids[1]]);
    house.ask(&format!("POST /api/v1/launches/{}/cancel", ids[2])).answer().await.ok();
    assert_eq!(list("open=true").await.0, [ids[1], ids[0]]);
    assert_eq!(house.ask("GET /api/v1/launches?chain=other").answer().await.problem().0, 404);
    house.close().await;
}

#[tokio::test]
async fn a_launch_is_accepted_once_however_often_it_is_asked_for() {
    let (house, _minions) = house_with_chain().await;
    let launch = || {
        house
            .ask("POST /api/v1/chains/patch/launch")
            .json(&json!({ "due": later() }))
            .with("idempotency-key", "k1")
            .answer()
    };
    let (first, second) = (launch().await, launch().await);
    assert_eq!((first.status, second.header("idempotency-replayed")), (201, Some("true")));
    assert_eq!(first.text, second.text);
    assert_eq!(house.ask("GET /api/v1/launches").answer().await.ok()["launches"].as_array().unwrap().len(), 1);
    house.close().await;
}

#[tokio::test]
async fn a_yes_is_for_a_step_that_asks() {
    let (house, _minions) = house_with_chain().await;
    let id = house.launch(json!({ "due": later() })).await["id"].clone();
    let approve = |body: Value| house.ask(&format!("POST /api/v1/launches/{id}/approve")).json(&body).answer();
    assert_eq!(approve(json!({ "step": 1 })).await.problem().0, 400);
    assert_eq!(approve(json!({ "step": 9 })).await.problem().0, 404);
    assert_eq!(approve(json!({})).await.problem().0, 400);
    assert_eq!(approve(json!({ "step": 3 })).await.ok()["launch"], id);
    let shown = house.ask(&format!("GET /api/v1/launches/{id}")).answer().await.ok();
    assert_eq!((&shown["steps"][2]["approved"]["by"], &shown["approvals"][0]["step"]), (&json!("root"), &json!(3)));
    house.close().await;
}

#[tokio::test]
async fn a_launch_that_was_cancelled_has_ended() {
    let (house, _minions) = house_with_chain().await;
    let id = house.launch(json!({ "due": later() })).await["id"].clone();
    let cancel = || house.ask(&format!("POST /api/v1/launches/{id}/cancel")).answer();
    assert_eq!(cancel().await.ok()["launch"], id);
    let shown = house.ask(&format!("GET /api/v1/launches/{id}")).answer().await.ok();
    assert_eq!(
        (&shown["state"], &shown["cancelled"]["by"], &shown["stopped"]),
        (&json!("ended"), &json!("root"), &json!(false))
    );
    assert_eq!((&shown["counts"]["cancelled"], &shown["steps"][0]["state"]), (&json!(2), &json!("cancelled")));
    assert_eq!(cancel().await.problem(), (409, "conflict".into()));
    let id = house.launch(json!({ "due": later() })).await["id"].clone();
    house.ask(&format!("POST /api/v1/launches/{id}/stop")).answer().await.ok();
    let shown = house.ask(&format!("GET /api/v1/launches/{id}?fields=stopped")).answer().await.ok();
    assert_eq!(shown, json!({ "stopped": true }));
    house.close().await;
}

#[tokio::test]
async fn what_cannot_be_launched_is_refused() {
    let (house, _minions) = house_with_chain().await;
    house.ask("POST /api/v1/chains").json(&json!({ "name": "empty" })).answer().await.ok();
    let launch =
        |chain: &str, body: Value| house.ask(&format!("POST /api/v1/chains/{chain}/launch")).json(&body).answer();
    assert_eq!(launch("empty", json!({})).await.problem().0, 400);
    assert_eq!(launch("none", json!({})).await.problem().0, 404);
    for bad in [
        json!({ "params": { "4": {} } }),
        json!({ "params": { "0": {} } }),
        json!({ "params": { "1": { "fun": 7 } } }),
        json!({ "tgt_type": "glob" }),
        json!({ "name": "x".repeat(256) }),
        json!({ "at": later() }),
    ] {
        assert_eq!(launch("patch", bad.clone()).await.problem().0, 400, "{bad}");
    }
    assert_eq!(house.ask("GET /api/v1/launches/4711").answer().await.problem().0, 404);
    assert_eq!(house.ask("GET /api/v1/launches/x").answer().await.problem().0, 400);
    assert_eq!(house.ask("GET /api/v1/launches").answer().await.ok()["launches"], json!([]));
    house.close().await;
}
