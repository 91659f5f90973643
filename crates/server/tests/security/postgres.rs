//! The rules that lean on the database, on PostgreSQL.

use crate::house::House;
use crate::methods::fields;
use saltern_core::keys::KeyState;
use saltern_core::value::Value;
use saltern_server::app::KeyVerb;
use saltern_testkit::fake_minion::{FakeMinion, Forgery, SignIn, key_named};
use saltern_testkit::postgres;
use saltern_wire::envelope;

async fn house(auto_accept: bool) -> Option<House> {
    let url = tokio::task::spawn_blocking(postgres::fresh_database).await.unwrap()?;
    Some(House::with([("database", url.into()), ("auto_accept", auto_accept.into())]).await)
}

#[tokio::test]
async fn a_replay_is_refused_before_and_after_a_crash() {
    let Some(mut house) = house(true).await else { return };
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let bytes = minion.sealed("_minion_event", fields("_minion_event"), &Forgery::default());
    assert_ne!(minion.raw_request(bytes.clone()).await, envelope::bad_load());
    let last = house.last_event().await;
    assert_eq!(minion.raw_request(bytes.clone()).await, envelope::bad_load());
    house.crash().await;
    assert_eq!(minion.raw_request(bytes).await, envelope::bad_load());
    assert_eq!(house.last_event().await, last);
    minion.request("_file_envs", ()).await;
}

#[tokio::test]
async fn returns_count_once_and_from_their_minion_only() {
    let Some(house) = house(true).await else { return };
    let mut a = FakeMinion::accepted(house.requests, "a").await;
    let b = FakeMinion::accepted(house.requests, "b").await;
    a.subscribe().await;
    house.subscribed().await;
    house.ping(&["a"]).await;
    let job = a.next_job().await;
    let last = house.last_event().await;
    b.return_for(&job, "forged").await;
    a.return_for(&job, "first").await;
    a.return_for(&job, "second").await;
    // The action ends with its only run, and ends once.
    assert_eq!(
        house.tags_after(last).await,
        [format!("salt/job/{}/ret/a", job.jid), "saltern/action/1/ended".to_owned()]
    );
    let returns = house.app().job(&crate::house::caller(), job.jid).await.unwrap().returns;
    assert_eq!(returns.iter().map(|returned| returned.value.clone()).collect::<Vec<_>>(), [Value::from("first")]);
}

#[tokio::test]
async fn a_changed_key_is_denied_and_decisions_survive_a_crash() {
    let Some(mut house) = house(false).await else { return };
    let mut minion = FakeMinion::connect(house.requests, "a").await;
    assert_eq!(minion.auth().await, SignIn::Pending);
    house.decide(KeyVerb::Accept, "a", &[]).await;
    assert_eq!(minion.auth().await, SignIn::Accepted);
    let mut thief = FakeMinion::connect_with(house.requests, "a", key_named("thief")).await;
    assert_eq!(thief.auth().await, SignIn::Pending);
    house.crash().await;
    let mut states: Vec<_> = house.keys_of("a").into_iter().map(|(state, _)| state).collect();
    states.sort();
    assert_eq!(states, [KeyState::Accepted, KeyState::Denied]);
    minion.request("_file_envs", ()).await;
}

#[tokio::test]
async fn an_honest_minion_is_served() {
    let Some(house) = house(true).await else { return };
    house.serves().await;
}
