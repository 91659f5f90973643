//! Old protocol versions: refused by default, served where the operator allows them.

use crate::house::House;
use saltern_core::value::Value;
use saltern_testkit::fake_minion::{FakeMinion, Forgery, SignIn, clear};
use saltern_wire::envelope;

async fn lenient() -> House {
    let settings = [("auto_accept", Value::from(true)), ("minimum_auth_version", 2.into())];
    House::furnished(settings.map(|(key, value)| (key.to_owned(), value)).into(), |dir| {
        std::fs::write(dir.join("files/hello"), "world").unwrap();
        std::fs::write(dir.join("pillar/top.sls"), "base:\n  '*': [common]\n").unwrap();
        std::fs::write(dir.join("pillar/common.sls"), "colour: blue\n").unwrap();
    })
    .await
}

#[tokio::test]
async fn old_versions_are_refused_by_default() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    for version in [0, 1, 2] {
        assert_eq!(minion.raw_request(clear(minion.auth_load(), version)).await, envelope::bad_load());
        let forgery = Forgery { version: Some(version), ..Forgery::default() };
        let answer = minion.forged_request("_file_envs", (), &forgery).await;
        assert_eq!(answer.unwrap_err(), envelope::Error::BadLoad);
    }
    let mut old = FakeMinion::connect(house.requests, "new-minion").await;
    old.version = 2;
    assert_eq!(old.try_auth().await.unwrap_err(), envelope::Error::BadLoad);
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn a_request_under_the_shared_key_is_refused_by_default() {
    let house = House::open().await;
    let mut minion = FakeMinion::accepted(house.requests, "a").await;
    minion.version = 2;
    assert_eq!(minion.try_request("_file_envs", ()).await.unwrap_err(), envelope::Error::BadLoad);
}

#[tokio::test]
async fn a_version_2_minion_works_where_it_is_allowed() {
    let house = lenient().await;
    let mut minion = FakeMinion::connect(house.requests, "a").await;
    minion.version = 2;
    assert_eq!(minion.auth().await, SignIn::Accepted);
    minion.subscribe().await;
    house.subscribed().await;
    assert_eq!(minion.pillar().await.get("colour").unwrap().as_str(), Some("blue"));
    let last = house.last_event().await;
    minion.announce().await;
    assert!(house.tags_after(last).await.contains(&"salt/minion/a/start".to_owned()));
    let served = minion.request("_serve_file", [("path", Value::from("hello")), ("loc", 0.into())]).await;
    assert_eq!(served.get("data").unwrap().as_str(), Some("world"));
    let jid = house.ping(&["a"]).await;
    let job = minion.next_job().await;
    minion.return_for(&job, true).await;
    assert_eq!(house.app().job(&crate::house::caller(), jid).await.unwrap().returns.len(), 1);
}

#[tokio::test]
async fn a_version_2_request_is_served_once() {
    let house = lenient().await;
    let mut minion = FakeMinion::connect(house.requests, "a").await;
    minion.version = 2;
    minion.auth().await;
    let fields = || [("id", Value::from("a")), ("tag", "custom".into()), ("data", "x".into())];
    let bytes = minion.sealed("_minion_event", fields(), &Forgery::default());
    assert_ne!(minion.raw_request(bytes.clone()).await, envelope::bad_load());
    let before = house.rows();
    assert_eq!(minion.raw_request(bytes).await, envelope::bad_load());
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn a_version_2_minion_is_not_locked_out_by_the_number_of_its_requests() {
    let house = lenient().await;
    let mut minion = FakeMinion::connect(house.requests, "a").await;
    minion.version = 2;
    minion.auth().await;
    // More than the window of nonces holds.
    for _ in 0..8_400 {
        minion.request("_register_resources", [("id", "a")]).await;
    }
}

#[tokio::test]
async fn a_version_2_request_without_a_name_reads_files_and_does_nothing_else() {
    let house = lenient().await;
    let mut minion = FakeMinion::connect(house.requests, "a").await;
    minion.version = 2;
    minion.auth().await;
    let before = house.rows();
    for cmd in crate::methods::METHODS {
        let answer = minion.raw_request(minion.sealed(cmd, crate::methods::fields(cmd), &Forgery::default())).await;
        assert_ne!(answer, envelope::bad_load(), "{cmd}");
    }
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn a_newer_minion_keeps_its_session_where_old_ones_are_allowed() {
    let house = lenient().await;
    let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
    a.request("_file_envs", ()).await;
    let forgery = Forgery { session: Some(b.access().shared.clone()), ..Forgery::default() };
    assert_eq!(a.forged_request("_file_envs", (), &forgery).await.unwrap_err(), envelope::Error::BadLoad);
}
