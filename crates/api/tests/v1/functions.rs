//! What minions say about their functions.

use super::House;
use saltern_core::value::Value as SaltValue;
use saltern_testkit::fake_minion::FakeMinion;
use serde_json::json;

#[tokio::test]
async fn one_minion_of_each_kind_is_asked_and_what_it_says_can_be_searched() {
    let house = House::open().await;
    let mut web = FakeMinion::start(house.server.return_address, "web1").await;
    let _same_kind = FakeMinion::start(house.server.return_address, "web2").await;
    let refresh = house.ask("POST /api/v1/functions/refresh").json(&json!({ "target": "web*" })).answer();
    let said: SaltValue = serde_json::from_value(json!({
        "sys.doc": { "test.ping": "Used to make sure the minion is up", "pkg.install": "Install a package", "x": "no" },
        "sys.argspec": { "pkg.install": { "args": ["name"] } },
    }))
    .unwrap();
    let answer = async {
        let job = web.next_job().await;
        web.return_for(&job, said).await;
    };
    let (refreshed, ()) = tokio::join!(refresh, answer);
    let refreshed = refreshed.ok();
    assert_eq!(refreshed["kinds"].as_array().unwrap().len(), 1, "{refreshed}");
    assert_eq!((&refreshed["kinds"][0]["minion"], &refreshed["kinds"][0]["functions"]), (&json!("web1"), &json!(2)));
    let found = house.ask("GET /api/v1/functions?search=PACKAGE&fields=name,argspec").answer().await.ok();
    let expected = json!([{ "name": "pkg.install", "argspec": { "args": ["name"] } }]);
    assert_eq!((&found["functions"], &found["next"]), (&expected, &json!(null)));
    let first = house.ask("GET /api/v1/functions?limit=1").answer().await.ok();
    assert_eq!(first["next"], "pkg.install");
    let shown = house.ask("GET /api/v1/functions/test.ping").answer().await.ok();
    assert_eq!(shown["kinds"][0]["doc"], "Used to make sure the minion is up");
    assert_eq!(house.ask("GET /api/v1/functions/test.none").answer().await.problem().0, 404);
    assert_eq!(house.ask("GET /api/v1/functions/test%20none").answer().await.problem().0, 400);
    house.close().await;
}

#[tokio::test]
async fn nobody_there_is_nobody_to_ask() {
    let house = House::open().await;
    let answer = house.ask("POST /api/v1/functions/refresh").json(&json!({ "target": "*" })).answer().await;
    assert_eq!(answer.problem(), (404, "not_found".into()));
    house.close().await;
}
