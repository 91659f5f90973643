//! Chains: made, found, changed, copied and shared.

use super::{Answer, House};
use saltern_core::access::{Grant, Rights, Role, Sight};
use saltern_server::app::Caller;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn ping(name: &str) -> Value {
    json!({ "type": "function", "params": { "fun": "test.ping" }, "name": name, "target": "web*" })
}

impl House {
    async fn make_chain(&self, draft: &Value) -> Answer {
        self.ask("POST /api/v1/chains").json(draft).answer().await
    }
}

fn detail(answer: &Answer) -> String {
    answer.json()["detail"].as_str().unwrap().to_owned()
}

fn names(chain: &Value) -> Vec<&str> {
    chain["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect()
}

/// Somebody else of the same organisation, with this role on no minion.
fn colleague(role: Role) -> Option<Caller> {
    let mut rights = Rights::nobody("bob");
    rights.take_grant(&Grant { role, group: None }, Sight::none());
    Some(Caller::with_rights("test", rights))
}

#[tokio::test]
async fn a_chain_is_what_was_sent() {
    let house = House::open().await;
    let steps = json!([
        ping("first"),
        { "type": "reboot", "barrier": "80%", "budget": "10%", "after": "always", "approval": "now?", "limit": 1800 },
    ]);
    let draft = json!({ "name": "patch", "description": "Every month", "shared": true, "steps": steps });
    let made = house.make_chain(&draft).await;
    assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")), "{made:?}");
    let made = made.ok();
    for (name, expected) in [
        ("name", json!("patch")),
        ("owner", json!("root")),
        ("description", json!("Every month")),
        ("shared", json!(true)),
        ("step_count", json!(2)),
        ("version", json!(1)),
        ("steps", steps),
    ] {
        assert_eq!(made[name], expected, "{name}");
    }
    assert_eq!(house.ask(&format!("GET /api/v1/chains/{}", made["id"])).answer().await.ok(), made);
    house.close().await;
}

#[tokio::test]
async fn a_chain_is_changed_and_removed_at_the_version_that_is_meant() {
    let house = House::open().await;
    house.make_chain(&json!({ "name": "patch" })).await.ok();
    let change =
        |text: &str| house.ask("PUT /api/v1/chains/patch").json(&json!({ "name": "patch", "description": text }));
    assert_eq!(change("a").answer().await.problem(), (428, "precondition_required".into()));
    let changed = change("b").with("if-match", "\"1\"").answer().await;
    assert_eq!((changed.status, changed.header("etag")), (200, Some("\"2\"")), "{changed:?}");
    assert_eq!(change("c").with("if-match", "\"1\"").answer().await.problem(), (412, "stale".into()));
    assert_eq!(change("d").with("if-match", "*").answer().await.ok()["description"], "d");
    let read = house.ask("GET /api/v1/chains/patch").with("if-none-match", "\"3\"").answer().await;
    assert_eq!(read.status, 304);
    let remove = || house.ask("DELETE /api/v1/chains/patch");
    assert_eq!(remove().answer().await.problem().0, 428);
    assert_eq!(remove().with("if-match", "\"2\"").answer().await.problem().0, 412);
    assert_eq!(remove().with("if-match", "\"3\"").answer().await.status, 204);
    assert_eq!(remove().with("if-match", "*").answer().await.problem().0, 404);
    house.close().await;
}

#[tokio::test]
async fn a_name_is_taken_once() {
    let house = House::open().await;
    house.make_chain(&json!({ "name": "patch" })).await.ok();
    house.make_chain(&json!({ "name": "other" })).await.ok();
    let again = house.make_chain(&json!({ "name": "patch" })).await;
    assert_eq!(again.problem(), (409, "conflict".into()));
    assert!(detail(&again).contains("\"patch\""), "{again:?}");
    let rename = |name: &str| {
        house.ask("PUT /api/v1/chains/other").json(&json!({ "name": name })).with("if-match", "*").answer()
    };
    assert_eq!(rename("patch").await.problem().0, 409);
    assert_eq!(rename("other").await.ok()["name"], "other");
    let copy = house.ask("POST /api/v1/chains/other/copy").json(&json!({ "name": "patch" })).answer().await;
    assert_eq!(copy.problem().0, 409);
    assert_eq!(rename("third").await.ok()["name"], "third");
    assert_eq!(house.ask("GET /api/v1/chains/other").answer().await.problem().0, 404);
    house.close().await;
}

#[tokio::test]
async fn a_name_is_one_line_of_at_most_255_characters() {
    let house = House::open().await;
    assert_eq!(house.make_chain(&json!({ "name": "ü".repeat(255) })).await.status, 201);
    for bad in ["", " ", " x", "x ", "a\nb", &"x".repeat(256)] {
        let answer = house.make_chain(&json!({ "name": bad })).await;
        assert_eq!(answer.problem(), (400, "invalid".into()), "{bad:?}");
        assert!(detail(&answer).contains("255"), "{answer:?}");
    }
    house.close().await;
}

#[tokio::test]
async fn a_step_that_cannot_be_is_refused_with_its_number() {
    let house = House::open().await;
    for (bad, says) in [
        (json!({ "type": "dance" }), "dance"),
        (json!({ "type": "function" }), "fun"),
        (json!({ "type": "function", "params": { "fun": "saltern_chain.start" } }), "saltern_chain.start"),
        (json!({ "type": "reboot", "limit": "8d" }), "7 days"),
        (json!({ "type": "reboot", "target": { "type": "compound", "expression": "web and and" } }), "target"),
    ] {
        let answer = house.make_chain(&json!({ "name": "bad", "steps": [ping("a"), bad] })).await;
        assert_eq!(answer.problem(), (400, "invalid".into()), "{bad}");
        let detail = detail(&answer);
        assert!(detail.contains("step 2") && detail.contains(says), "{detail}");
    }
    let first = json!([{ "type": "reboot", "after": "failed" }]);
    assert_eq!(house.make_chain(&json!({ "name": "bad", "steps": first })).await.problem().0, 400);
    let many: Vec<Value> = (0..201).map(|_| ping("a")).collect();
    assert_eq!(house.make_chain(&json!({ "name": "bad", "steps": many })).await.problem().0, 400);
    house.close().await;
}

#[tokio::test]
async fn what_is_no_step_at_all_is_refused() {
    let house = House::open().await;
    for bad in
        [json!({}), json!({ "type": "reboot", "barier": "all" }), json!({ "type": "reboot", "budget": -1 }), json!([])]
    {
        let answer = house.make_chain(&json!({ "name": "bad", "steps": [bad] })).await;
        assert_eq!(answer.problem(), (400, "invalid".into()), "{bad}");
    }
    house.close().await;
}

#[tokio::test]
async fn a_step_is_added_where_it_is_wanted() {
    let house = House::open().await;
    house.make_chain(&json!({ "name": "patch", "steps": [ping("a")] })).await.ok();
    let add = |name: &str, position: Value| {
        let body = json!({ "step": ping(name), "position": position });
        house.ask("POST /api/v1/chains/patch/steps").json(&body).answer()
    };
    add("last", Value::Null).await.ok();
    add("first", json!(1)).await.ok();
    let changed = add("third", json!(3)).await;
    assert_eq!(changed.header("etag"), Some("\"4\""));
    assert_eq!(names(&changed.ok()), ["first", "a", "third", "last"]);
    for bad in [json!(0), json!(6), json!(-1)] {
        assert_eq!(add("x", bad.clone()).await.problem().0, 400, "{bad}");
    }
    house.close().await;
}

#[tokio::test]
async fn steps_that_are_added_at_the_same_time_are_all_there() {
    let house = House::open().await;
    house.make_chain(&json!({ "name": "patch" })).await.ok();
    let add = |number: usize| {
        let body = json!({ "step": ping(&format!("step {number}")) });
        house.ask("POST /api/v1/chains/patch/steps").json(&body).answer()
    };
    for answer in futures_util::future::join_all((0..6).map(add)).await {
        answer.ok();
    }
    let chain = house.ask("GET /api/v1/chains/patch").answer().await.ok();
    let expected: BTreeSet<String> = (0..6).map(|number| format!("step {number}")).collect();
    assert_eq!(names(&chain).into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    house.close().await;
}

#[tokio::test]
async fn a_chain_is_found_by_its_number_and_by_its_name() {
    let house = House::open().await;
    for (name, path) in
        [("Patch web/db, 100%", "Patch%20web%2Fdb,%20100%25"), ("clear", "clear"), ("Über", "%C3%9Cber")]
    {
        let made = house.make_chain(&json!({ "name": name })).await.ok();
        let by_name = house.ask(&format!("GET /api/v1/chains/{path}")).answer().await.ok();
        assert_eq!(by_name["id"], made["id"]);
    }
    assert_eq!(house.ask("GET /api/v1/chains/none").answer().await.problem(), (404, "not_found".into()));
    assert_eq!(house.ask("GET /api/v1/chains/4711").answer().await.problem().0, 404);
    house.close().await;
}

#[tokio::test]
async fn a_chain_is_made_once_however_often_it_is_asked_for() {
    let house = House::open().await;
    let make = || house.ask("POST /api/v1/chains").json(&json!({ "name": "patch" })).with("idempotency-key", "k1");
    let (first, second) = (make().answer().await, make().answer().await);
    assert_eq!((second.status, second.header("idempotency-replayed")), (201, Some("true")), "{second:?}");
    assert_eq!((&first.text, first.header("etag")), (&second.text, second.header("etag")));
    let listed = house.ask("GET /api/v1/chains").answer().await.ok();
    assert_eq!(listed["chains"].as_array().unwrap().len(), 1);
    house.close().await;
}

#[tokio::test]
async fn chains_come_in_pages_without_their_steps() {
    let house = House::open().await;
    for name in ["c", "a", "b"] {
        house.make_chain(&json!({ "name": name, "steps": [ping("x")] })).await.ok();
    }
    let first = house.ask("GET /api/v1/chains?limit=2&fields=name,step_count").answer().await.ok();
    assert_eq!(first["chains"], json!([{ "name": "c", "step_count": 1 }, { "name": "a", "step_count": 1 }]));
    let rest = house.ask(&format!("GET /api/v1/chains?limit=2&after={}", first["next"])).answer().await.ok();
    assert_eq!((&rest["chains"][0]["name"], &rest["next"]), (&json!("b"), &json!(null)));
    assert!(rest["chains"][0].get("steps").is_none(), "{rest}");
    assert_eq!(house.ask("GET /api/v1/chains?fields=steps").answer().await.problem().0, 400);
    let one = house.ask("GET /api/v1/chains/a?fields=steps.type").answer().await.ok();
    assert_eq!(one, json!({ "steps": [{ "type": "function" }] }));
    house.close().await;
}

#[tokio::test]
async fn others_see_what_is_shared_and_change_nothing() {
    let house = House::open().await;
    let own = house.make_chain(&json!({ "name": "own", "steps": [ping("a")] })).await.ok();
    let shared = house.make_chain(&json!({ "name": "ours", "shared": true, "steps": [ping("a")] })).await.ok();
    let bob = house.asked_by(colleague(Role::Operator));
    let listed = bob.ask("GET /api/v1/chains?fields=name").answer().await.ok();
    assert_eq!(listed["chains"], json!([{ "name": "ours" }]));
    for which in ["own".to_owned(), own["id"].to_string()] {
        assert_eq!(bob.ask(&format!("GET /api/v1/chains/{which}")).answer().await.problem().0, 404, "{which}");
    }
    assert_eq!(bob.ask("GET /api/v1/chains/ours").answer().await.ok()["id"], shared["id"]);
    let draft = json!({ "name": "mine" });
    let change =
        |which: &str| bob.ask(&format!("PUT /api/v1/chains/{which}")).json(&draft).with("if-match", "*").answer();
    assert_eq!(change("ours").await.problem().0, 403);
    assert_eq!(change("own").await.problem().0, 404);
    let remove = bob.ask("DELETE /api/v1/chains/ours").with("if-match", "*").answer().await;
    assert_eq!(remove.problem().0, 403);
    let add = bob.ask("POST /api/v1/chains/ours/steps").json(&json!({ "step": ping("b") })).answer().await;
    assert_eq!(add.problem().0, 403);
    house.close().await;
}

#[tokio::test]
async fn a_copy_belongs_to_whoever_made_it() {
    let house = House::open().await;
    let ours = json!({ "name": "ours", "description": "x", "shared": true, "steps": [ping("a")] });
    let original = house.make_chain(&ours).await.ok();
    let bob = house.asked_by(colleague(Role::Operator));
    let copy = bob.ask("POST /api/v1/chains/ours/copy").json(&json!({ "name": "ours" })).answer().await;
    assert_eq!((copy.status, copy.header("etag")), (201, Some("\"1\"")), "{copy:?}");
    let copy = copy.ok();
    assert_eq!((&copy["owner"], &copy["shared"]), (&json!("bob"), &json!(false)));
    assert_eq!((&copy["description"], &copy["steps"]), (&original["description"], &original["steps"]));
    // Now there are two of that name: he means his own, and a third who sees both has to say which.
    assert_eq!(bob.ask("GET /api/v1/chains/ours").answer().await.ok()["id"], copy["id"]);
    let third = house.asked_by(Some(Caller::administrator("carol", "test")));
    let answer = third.ask("GET /api/v1/chains/ours").answer().await;
    assert_eq!(answer.problem(), (409, "conflict".into()));
    assert!(detail(&answer).contains(&copy["id"].to_string()), "{answer:?}");
    house.close().await;
}

#[tokio::test]
async fn what_is_cleared_is_named() {
    let house = House::open().await;
    let clear = |body: Value| house.ask("POST /api/v1/chains/clear").json(&body).answer();
    assert_eq!(clear(json!({ "minions": [] })).await.problem().0, 400);
    assert_eq!(clear(json!({ "minions": ["../x"] })).await.problem().0, 400);
    assert_eq!(clear(json!({ "force": true })).await.problem().0, 400);
    let other = house.ask("POST /api/v1/chains/dance").json(&json!({ "minions": ["web1"] })).answer().await;
    assert_eq!(other.problem().0, 404);
    house.close().await;
}
