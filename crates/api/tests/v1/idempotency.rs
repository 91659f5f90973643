//! A request that is sent again is carried out once.

use super::{House, nobody};
use saltern_core::access::Rights;
use saltern_server::app::Caller;
use serde_json::json;
use sha2::{Digest, Sha256};

const KEY: &str = "idempotency-key";

#[tokio::test]
async fn the_same_request_gets_the_same_answer_and_is_carried_out_once() {
    let house = House::open().await;
    let make = || house.ask("POST /api/v1/organisations").json(&json!({ "name": "acme" })).with(KEY, "k1");
    let first = make().answer().await;
    let second = make().answer().await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (201, None), "{first:?}");
    assert_eq!((second.status, second.header("idempotency-replayed")), (201, Some("true")), "{second:?}");
    assert_eq!(first.text, second.text);
    for name in ["etag", "content-type"] {
        assert_eq!(first.header(name), second.header(name));
    }
    let listed = house.ask("GET /api/v1/audit?what=organisation.create").answer().await.ok();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 1);
    house.close().await;
}

#[tokio::test]
async fn a_key_is_for_one_request() {
    let house = House::open().await;
    let make = |name: &str| house.ask("POST /api/v1/organisations").json(&json!({ "name": name })).with(KEY, "k1");
    assert_eq!(make("acme").answer().await.status, 201);
    assert_eq!(make("other").answer().await.problem(), (422, "key_reused".into()));
    let elsewhere = house.ask("POST /api/v1/groups").json(&json!({ "name": "acme" })).with(KEY, "k1");
    assert_eq!(elsewhere.answer().await.problem().0, 422);
    house.close().await;
}

#[tokio::test]
async fn a_request_that_came_to_nothing_may_be_tried_again() {
    let house = House::open().await;
    let make = || {
        house
            .ask("POST /api/v1/users")
            .json(&json!({ "name": "ann", "roles": ["reader:web"], "password": "correct horse battery" }))
    };
    assert_eq!(make().with(KEY, "k1").answer().await.problem().0, 404);
    house.ask("POST /api/v1/groups").json(&json!({ "name": "web" })).answer().await.ok();
    let again = make().with(KEY, "k1").answer().await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (201, None), "{again:?}");
    house.close().await;
}

#[tokio::test]
async fn keys_of_others_are_other_keys() {
    let house = House::open().await;
    let other = house.asked_by(Some(Caller::with_rights("test", Rights::administrator("bob"))));
    let body = json!({ "name": "acme" });
    assert_eq!(house.ask("POST /api/v1/organisations").json(&body).with(KEY, "k").answer().await.status, 201);
    let theirs = other.ask("POST /api/v1/organisations").json(&body).with(KEY, "k").answer().await;
    assert_eq!(theirs.problem(), (409, "conflict".into()));
    // A replay is not a way around rights: there is no caller without a request of his own.
    let eve = house.asked_by(nobody());
    assert_eq!(eve.ask("POST /api/v1/organisations").json(&body).with(KEY, "k").answer().await.problem().0, 403);
    let stranger = house.asked_by(None);
    assert_eq!(stranger.ask("POST /api/v1/organisations").json(&body).with(KEY, "k").answer().await.problem().0, 401);
    house.close().await;
}

#[tokio::test]
async fn answers_that_tell_a_secret_are_not_kept() {
    let house = House::open().await;
    let answer = house.ask("POST /api/v1/tokens").json(&json!({})).with(KEY, "k1").answer().await;
    assert_eq!(answer.problem().0, 400);
    assert!(answer.text.contains("Idempotency-Key"), "{answer:?}");
    house.close().await;
}

#[tokio::test]
async fn a_key_is_a_word() {
    let house = House::open().await;
    for bad in ["", "two words", &"x".repeat(256)] {
        let answer =
            house.ask("POST /api/v1/organisations").json(&json!({ "name": "x" })).with(KEY, bad).answer().await;
        assert_eq!(answer.problem().0, 400, "{bad:?}");
    }
    let twice = house.ask("POST /api/v1/organisations").json(&json!({ "name": "x" })).with(KEY, "a").with(KEY, "b");
    assert_eq!(twice.answer().await.problem().0, 400);
    house.close().await;
}

#[tokio::test]
async fn what_was_begun_and_never_ended_is_not_done_again() {
    let house = House::open().await;
    let body = json!({ "name": "acme" });
    // As a server leaves it that died between doing what was asked and keeping the answer.
    let mut hash = Sha256::new();
    for field in ["POST", "/api/v1/organisations", "all"] {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    hash.update(body.to_string());
    let root = house.caller.clone().unwrap();
    house.server.app().begin_request(&root, "k1", hash.finalize().into()).await.unwrap();
    let answer = house.ask("POST /api/v1/organisations").json(&body).with(KEY, "k1").answer().await;
    assert_eq!(answer.problem(), (409, "in_progress".into()));
    assert_eq!(house.ask("GET /api/v1/organisations/acme").answer().await.status, 404);
    house.close().await;
}

#[tokio::test]
async fn of_many_at_once_one_is_carried_out() {
    let house = House::open().await;
    let ask = || house.ask("POST /api/v1/organisations").json(&json!({ "name": "acme" })).with(KEY, "k1").answer();
    let answers = futures_util::future::join_all((0..20).map(|_| ask())).await;
    for answer in &answers {
        assert!(matches!(answer.status, 201 | 409), "{answer:?}");
        if answer.status == 409 {
            assert_eq!(answer.problem().1, "in_progress");
        }
    }
    let carried_out =
        answers.iter().filter(|answer| answer.status == 201 && answer.header("idempotency-replayed").is_none());
    assert_eq!(carried_out.count(), 1);
    house.close().await;
}
