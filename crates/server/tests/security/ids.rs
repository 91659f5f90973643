//! Ids that could be paths, tags or options never become a key.

use crate::house::House;
use saltern_core::value::Value;
use saltern_testkit::fake_minion::{FakeMinion, clear};
use saltern_wire::envelope::{self, AuthReply, Verdict};
use saltern_wire::{limits::Decode, msgpack};

#[tokio::test]
async fn an_impossible_id_is_rejected_and_leaves_no_trace() {
    let house = House::with([("auto_accept", true.into()), ("auth_events", true.into())]).await;
    let minion = FakeMinion::connect(house.requests, "a").await;
    let before = house.rows();
    let (long, wide) = ("x".repeat(300), "x".repeat(60_000));
    for id in [
        "",
        ".",
        "..",
        "../x",
        "../../etc/passwd",
        "/etc/passwd",
        "a/b",
        "a/../b",
        "a\\b",
        "a\0b",
        "a\nb",
        "-rf",
        ".hidden",
        "a b",
        "*",
        "ä",
        "salt:x",
        "${x}",
        "a%2fb",
        &long,
        &wide,
    ] {
        let mut load = minion.auth_load();
        load.insert("id", id);
        let told = minion.auth_with(load, None).await.unwrap();
        assert!(matches!(told, AuthReply::Verdict { verdict: Verdict::Rejected, .. }), "{id:?}");
    }
    assert_eq!(house.rows(), before);
    let parts: Vec<_> = std::fs::read_dir(house.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(parts.len(), 3, "{parts:?}");
}

#[tokio::test]
async fn an_id_that_is_no_text_is_refused() {
    let house = House::open().await;
    let minion = FakeMinion::connect(house.requests, "a").await;
    let before = house.rows();
    for id in
        [Value::Nil, 7.into(), true.into(), Value::list(["a"]), Value::map([("a", "b")]), Value::from(&b"\xff\xfe"[..])]
    {
        let mut load = minion.auth_load();
        load.insert("id", id);
        assert_eq!(minion.raw_request(clear(load, 3)).await, envelope::bad_load());
    }
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn an_impossible_id_beside_a_sealed_request_is_refused() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let honest = minion.sealed("_file_envs", (), &Default::default());
    for id in [Value::from("../a"), "a/".into(), "".into(), "a\0".into(), Value::Nil, 1.into(), "x".repeat(300).into()]
    {
        let Value::Map(mut envelope) = msgpack::decode(honest.clone(), &Decode::envelope()).unwrap() else {
            panic!("a map")
        };
        envelope.insert("id", id);
        assert_eq!(minion.raw_request(msgpack::encode(&Value::Map(envelope))).await, envelope::bad_load());
    }
    minion.raw_request(honest).await;
}
