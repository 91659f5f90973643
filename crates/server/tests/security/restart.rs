//! What minions hold on to outlives the server: nobody has to sign in again.

use crate::house::House;
use saltern_core::value::Value;
use saltern_testkit::fake_minion::{FakeMinion, SignIn};

#[tokio::test]
async fn sessions_and_the_shared_key_survive_a_stop() {
    let mut house = House::open().await;
    let mut minion = FakeMinion::start(house.requests, "a").await;
    let (session, shared) = (minion.access().session.clone(), minion.access().shared.clone());
    house.restart().await;
    assert_eq!(minion.request("_file_envs", ()).await, Value::list(["base"]));
    minion.subscribe().await;
    house.subscribed().await;
    let jid = house.ping(&["a"]).await;
    // Opened without another sign-in, so under the same shared key and with a serial that has risen.
    assert_eq!(minion.next_job().await.jid, jid);
    assert_eq!(minion.access().shared, shared);
    assert_eq!(minion.auth().await, SignIn::Accepted);
    assert_eq!((&minion.access().session, &minion.access().shared), (&session, &shared));
}

#[tokio::test]
async fn a_job_goes_on_over_a_crash() {
    let mut house = House::open().await;
    let mut minion = FakeMinion::start(house.requests, "a").await;
    house.subscribed().await;
    let jid = house.ping(&["a"]).await;
    let job = minion.next_job().await;
    house.crash().await;
    minion.return_for(&job, "pong").await;
    let detail = house.app().job(&crate::house::caller(), jid).await.unwrap();
    assert_eq!(detail.returns[0].value, Value::from("pong"));
}

#[tokio::test]
async fn publications_after_a_crash_open_with_the_old_keys() {
    let mut house = House::open().await;
    let mut minion = FakeMinion::start(house.requests, "a").await;
    house.subscribed().await;
    for _ in 0..3 {
        house.ping(&["a"]).await;
        minion.next_job().await;
    }
    house.crash().await;
    minion.subscribe().await;
    house.subscribed().await;
    house.ping(&["a"]).await;
    let frame = minion.next_frame().await;
    assert!(minion.open_publication(frame).is_ok());
}

#[tokio::test]
async fn decisions_about_keys_survive_a_crash() {
    let mut house = House::with([]).await;
    let mut minions = Vec::new();
    for id in ["a", "b", "c"] {
        let mut minion = FakeMinion::connect(house.requests, id).await;
        assert_eq!(minion.auth().await, SignIn::Pending);
        minions.push(minion);
    }
    house.decide(saltern_server::app::KeyVerb::Accept, "a", &[]).await;
    house.decide(saltern_server::app::KeyVerb::Reject, "b", &[]).await;
    house.crash().await;
    for (minion, told) in minions.iter_mut().zip([SignIn::Accepted, SignIn::Rejected, SignIn::Pending]) {
        assert_eq!(minion.auth().await, told, "{}", minion.id);
    }
}
