//! What cannot be processed is set aside, told of, and holds nothing up.

use crate::house::House;
use crate::ward::{Hands, minion, ping};
use saltern_core::action::Policy;
use saltern_core::run::RunState;

#[tokio::test]
async fn scenario_26_a_return_that_cannot_be_stored_is_set_aside_and_the_next_one_is_processed() {
    let house = House::open().await;
    let mut a = minion(&house, "a").await;
    // The database refuses this one, and this one only.
    let database = rusqlite::Connection::open(house.dir.path().join("data/saltern.db")).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON returns WHEN NEW.fun = 'test.poison' \
                  BEGIN SELECT RAISE(ABORT, 'it does not like it'); END";
    database.execute_batch(refuse).unwrap();
    let poisoned = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    let mut fields = a.return_fields(&job, true);
    fields.insert("fun", "test.poison");
    let before = house.last_event().await;
    // It is answered, or the minion would send it for ever.
    a.request("_return", fields).await;
    let letters = house.app().dead_letters(&crate::house::caller(), None, 10).await.unwrap();
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert_eq!(letters[0].1.minion.as_ref().map(|minion| minion.as_str()), Some("a"));
    assert!(house.tags_after(before).await.contains(&"saltern/notification/dead_letter".to_owned()));
    let next = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    house.becomes(next, "a", RunState::Completed, None).await;
    assert_eq!(house.state(poisoned, "a").await.state, RunState::Sent);
}

#[tokio::test]
async fn scenario_25_a_large_return_is_cut_and_says_so() {
    let house = House::with([("auto_accept", true.into()), ("max_return_size", 1_000_000.into())]).await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let action = house.submit(ping(&["a", "b"], Policy::default())).await.action;
    let (large, small) = (a.job("test.ping").await, b.job("test.ping").await);
    let text = "x".repeat(50_000_000);
    let (_, ()) = tokio::join!(a.return_for(&large, text), b.return_for(&small, true));
    for id in ["a", "b"] {
        house.becomes(action, id, RunState::Completed, None).await;
    }
    let detail = house.app().job(&crate::house::caller(), large.jid).await.unwrap();
    let kept = detail.returns.iter().find(|returned| returned.minion.as_str() == "a").unwrap();
    assert!(serde_json::to_string(&kept.value).unwrap().len() < 2_000_000);
}
