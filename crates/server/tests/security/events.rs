//! Tags that minions may not send, alone or in a batch.

use crate::house::House;
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::FakeMinion;

const RESERVED: [&str; 24] = [
    "salt/auth",
    "salt/key",
    "key",
    "salt/job/20261115200427443183/new",
    "salt/job/20261115200427443183/publish",
    "salt/job/20261115200427443183/ret/a",
    "salt/job/20261115200427443183/ret/b",
    "salt/job/20261115200427443183/return",
    "salt/job/20261115200427443183/ack/b",
    "salt/job/20261115200427443183/start/b",
    "salt/job/20261115200427443183/prog/b/1",
    "20261115200427443183",
    "salt/run/20261115200427443183/ret",
    "salt/wheel/20261115200427443183/new",
    "salt/cloud/vm/created",
    "salt/cluster/peers",
    "salt/presence/present",
    "salt/minion/b/start",
    "salt/beacon/b/load/",
    "minion/refresh/b",
    "saltern/run/1/completed",
    "syndic/a/salt/auth",
    "with\nnewline",
    "",
];

fn batch(tags: &[&str]) -> Map {
    let entry = |tag: &&str| Value::map([("tag", Value::from(*tag)), ("data", Value::map([("n", 1)]))]);
    Value::map([("events", Value::list(tags.iter().map(entry)))]).as_map().unwrap().clone()
}

#[tokio::test]
async fn reserved_tags_are_refused_one_by_one() {
    let house = House::open().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let last = house.last_event().await;
    for tag in RESERVED {
        a.event(tag, Value::map([("id", "b"), ("act", "accept")])).await;
    }
    assert_eq!(house.tags_after(last).await, Vec::<String>::new());
}

#[tokio::test]
async fn reserved_tags_are_refused_in_a_batch_and_the_others_are_kept() {
    let house = House::open().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let last = house.last_event().await;
    let mut tags = vec!["first"];
    tags.extend(RESERVED);
    tags.push("last");
    a.request("_minion_event", batch(&tags)).await;
    assert_eq!(house.tags_after(last).await, ["first", "last"]);
}

#[tokio::test]
async fn a_prefix_for_tags_is_refused() {
    let house = House::open().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let last = house.last_event().await;
    for prefix in ["salt/auth", "syndic/a", "x"] {
        let fields = [("tag", Value::from("custom")), ("data", "x".into()), ("pretag", prefix.into())];
        a.request("_minion_event", fields).await;
        let mut fields = batch(&["custom"]);
        fields.push("pretag", prefix);
        a.request("_minion_event", fields).await;
    }
    assert_eq!(house.tags_after(last).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_event_says_who_sent_it_whatever_it_says_itself() {
    let house = House::open().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let last = house.last_event().await;
    let lies = Value::map([("id", "b"), ("minion", "b"), ("_stamp", "1970-01-01T00:00:00.000000")]);
    a.event("custom/single", lies.clone()).await;
    let mut fields = Map::new();
    fields.push("events", Value::list([Value::map([("tag", Value::from("custom/batched")), ("data", lies)])]));
    a.request("_minion_event", fields).await;
    let told = house.events_after(last).await;
    assert_eq!(told.len(), 2);
    for event in &told {
        assert_eq!(event.minion.as_ref().unwrap().as_str(), "a", "{}", event.tag);
        assert_ne!(event.data.get("_stamp").unwrap().as_str(), Some("1970-01-01T00:00:00.000000"));
    }
    assert_eq!(told[0].data.get("id").unwrap().as_str(), Some("a"));
}

#[tokio::test]
async fn events_carry_neither_token_nor_nonce() {
    let house = House::open().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let last = house.last_event().await;
    a.event("custom", "x").await;
    let told = house.events_after(last).await;
    assert!(told[0].data.get("tok").is_none() && told[0].data.get("nonce").is_none());
    assert!(told[0].data.get("data").is_some());
}

#[tokio::test]
async fn events_of_a_wrong_shape_are_answered_and_forgotten() {
    let house = House::open().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    for (field, value) in [
        ("tag", Value::from(7)),
        ("tag", Value::from(&b"\xff\xfe"[..])),
        ("events", Value::from("x")),
        ("events", Value::list([1, 2])),
        ("events", Value::list([Value::map([("data", 1)])])),
        ("pretag", Value::from(true)),
    ] {
        assert_eq!(a.request("_minion_event", [(field, value)]).await, Value::Nil);
    }
    assert_eq!(house.rows(), before);
}
