//! Whoever is not signed in gets nothing and changes nothing, whatever it calls.

use crate::house::House;
use crate::methods::{METHODS, fields};
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::{FakeMinion, Forgery, SignIn, clear};
use saltern_wire::crypto::KeyString;
use saltern_wire::envelope;
use saltern_wire::limits::Decode;
use saltern_wire::msgpack;

#[tokio::test]
async fn every_method_in_clear_is_answered_with_an_empty_map_and_does_nothing() {
    let house = House::open().await;
    let known = FakeMinion::accepted(house.requests, "a").await;
    let stranger = FakeMinion::connect(house.requests, "stranger").await;
    let before = house.rows();
    for cmd in METHODS {
        let mut load = fields(cmd);
        load.insert("cmd", cmd);
        load.insert("id", "a");
        load.insert("tok", known.key.token().unwrap());
        let answer = stranger.raw_request(clear(load, 3)).await;
        assert_eq!(answer, envelope::plain_reply(&Value::Map(Map::new())), "{cmd}");
    }
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn every_method_under_a_made_up_session_is_refused_and_does_nothing() {
    let house = House::open().await;
    // It knows a's id, token and even the shared key, and lacks only the session.
    let known = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    for session in [KeyString::generate(), known.access().shared.clone()] {
        for cmd in METHODS {
            let forgery = Forgery { session: Some(session.clone()), ..Forgery::default() };
            let answer = known.forged_request(cmd, fields(cmd), &forgery).await;
            assert_eq!(answer.unwrap_err(), envelope::Error::BadLoad, "{cmd}");
        }
    }
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn administration_is_not_offered_in_clear() {
    let house = House::open().await;
    let stranger = FakeMinion::connect(house.requests, "stranger").await;
    let before = house.rows();
    for cmd in ["publish", "runner", "wheel", "mk_token", "get_token", "_prep_auth_info", "__init__", "", "_auth\0"] {
        let load = Value::map([("cmd", cmd), ("fun", "test.ping"), ("tgt", "*"), ("key", "x"), ("eauth", "pam")]);
        let answer = stranger.raw_request(clear(load, 3)).await;
        assert_eq!(answer, envelope::plain_reply(&Value::Map(Map::new())), "{cmd}");
    }
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn commands_that_do_not_exist_are_answered_with_an_empty_map() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    for cmd in ["", "_auth", "publish", "wheel", "run_func", "__class__", "_Return", "_return "] {
        assert_eq!(minion.request(cmd, ()).await, Value::Map(Map::new()), "{cmd}");
    }
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn a_ping_is_echoed_and_does_nothing() {
    let house = House::open().await;
    let stranger = FakeMinion::connect(house.requests, "stranger").await;
    let before = house.rows();
    let load = Value::map([("cmd", "ping")]);
    let answer = stranger.raw_request(clear(load.clone(), 3)).await;
    assert_eq!(msgpack::decode(answer, &Decode::before_auth()).unwrap(), load);
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn a_minion_that_waits_for_its_key_can_call_nothing() {
    let house = House::with([]).await;
    let mut minion = FakeMinion::connect(house.requests, "a").await;
    assert_eq!(minion.auth().await, SignIn::Pending);
    let before = house.rows();
    let envelope = Value::map([
        ("enc", Value::from("aes")),
        ("load", Value::from(vec![7_u8; 128])),
        ("version", 3.into()),
        ("id", "a".into()),
    ]);
    assert_eq!(minion.raw_request(msgpack::encode(&envelope)).await, envelope::bad_load());
    assert_eq!(house.rows(), before);
}
