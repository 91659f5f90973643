//! The same request twice is never the minion: a repeated one has a new nonce.

use crate::house::House;
use crate::methods::{METHODS, fields};
use saltern_core::value::Value;
use saltern_testkit::fake_minion::{FakeMinion, Forgery};
use saltern_wire::envelope::{self, Error};
use saltern_wire::load::Nonce;

/// What does something each time it is done.
const LASTING: [&str; 8] =
    ["_return", "_minion_event", "_pillar", "_mine", "_mine_delete", "_mine_flush", "minion_pub", "minion_publish"];

fn behind(seconds: i64) -> Forgery {
    Forgery { behind: seconds, ..Forgery::default() }
}

#[tokio::test]
async fn identical_bytes_are_refused_the_second_time_whatever_they_ask() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    for cmd in METHODS {
        let bytes = minion.sealed(cmd, fields(cmd), &Forgery::default());
        assert_ne!(minion.raw_request(bytes.clone()).await, envelope::bad_load(), "{cmd}");
        let before = house.rows();
        assert_eq!(minion.raw_request(bytes).await, envelope::bad_load(), "{cmd}");
        assert_eq!(house.rows(), before, "{cmd}");
    }
}

#[tokio::test]
async fn a_replay_from_another_connection_is_refused() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let bytes = minion.sealed("_minion_event", fields("_minion_event"), &Forgery::default());
    minion.raw_request(bytes.clone()).await;
    drop(minion);
    let eavesdropper = FakeMinion::connect(house.requests, "b").await;
    assert_eq!(eavesdropper.raw_request(bytes).await, envelope::bad_load());
}

#[tokio::test]
async fn a_used_nonce_is_refused_under_another_request() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let forgery = Forgery { nonce: Some(Nonce::generate()), ..Forgery::default() };
    minion.forged_request("_file_envs", (), &forgery).await.unwrap();
    assert_eq!(minion.forged_request("_master_opts", (), &forgery).await.unwrap_err(), Error::BadLoad);
}

#[tokio::test]
async fn a_nonce_belongs_to_its_minion_alone() {
    let house = House::open().await;
    let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
    let forgery = Forgery { nonce: Some(Nonce::generate()), ..Forgery::default() };
    a.forged_request("_file_envs", (), &forgery).await.unwrap();
    b.forged_request("_file_envs", (), &forgery).await.unwrap();
}

#[tokio::test]
async fn a_request_far_from_its_time_is_refused() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    for allowed in [0, 280, -280] {
        minion.forged_request("_file_envs", (), &behind(allowed)).await.unwrap();
    }
    let before = house.rows();
    let undated = Forgery { without_ts: true, ..Forgery::default() };
    for forgery in [behind(330), behind(1_000_000), behind(-330), undated] {
        let answer = minion.forged_request("_minion_event", fields("_minion_event"), &forgery).await;
        assert_eq!(answer.unwrap_err(), Error::BadLoad, "{forgery:?}");
    }
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn without_a_time_to_live_any_age_is_served_but_only_once() {
    let house = House::with([("auto_accept", true.into()), ("request_server_ttl", 0.into())]).await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let undated = Forgery { without_ts: true, ..Forgery::default() };
    for forgery in [behind(1_000_000), behind(-1_000_000), undated] {
        let bytes = minion.sealed("_file_envs", (), &forgery);
        assert_ne!(minion.raw_request(bytes.clone()).await, envelope::bad_load());
        assert_eq!(minion.raw_request(bytes).await, envelope::bad_load());
    }
}

#[tokio::test]
async fn a_request_from_before_a_restart_is_not_done_again() {
    let mut house =
        House::with([("auto_accept", true.into()), ("peer", Value::map([(".*", Value::list([".*"]))]))]).await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let mut sent = Vec::new();
    for cmd in LASTING {
        let bytes = minion.sealed(cmd, fields(cmd), &Forgery::default());
        assert_ne!(minion.raw_request(bytes.clone()).await, envelope::bad_load(), "{cmd}");
        sent.push((cmd, bytes));
    }
    for how in ["stop", "crash", "crash again"] {
        if how == "stop" {
            house.restart().await
        } else {
            house.crash().await
        }
        let before = house.rows();
        for (cmd, bytes) in &sent {
            assert_eq!(minion.raw_request(bytes.clone()).await, envelope::bad_load(), "{cmd} after a {how}");
        }
        assert_eq!(house.rows(), before, "after a {how}");
    }
}

#[tokio::test]
async fn a_return_from_before_a_restart_is_absorbed() {
    let mut house = House::open().await;
    let mut minion = FakeMinion::accepted(house.requests, "a").await;
    minion.subscribe().await;
    house.subscribed().await;
    house.ping(&["a"]).await;
    let job = minion.next_job().await;
    let bytes = minion.sealed("_return", minion.return_fields(&job, true), &Forgery::default());
    minion.raw_request(bytes.clone()).await;
    house.crash().await;
    let before = house.rows();
    minion.raw_request(bytes).await;
    assert_eq!(house.rows(), before);
}
