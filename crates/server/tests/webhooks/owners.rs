//! A webhook gets what its owner may see at that moment, and nothing while he is away.

use crate::house::caller;
use crate::people::house;
use crate::receiver::{Answer, LONG, OK, Receiver};
use saltern_server::app::{UserChange, WebhookChange};
use saltern_store::ANY_VERSION;
use saltern_testkit::fake_minion::FakeMinion;
use saltern_testkit::wait;

#[tokio::test]
async fn an_owner_is_told_of_his_minions_only() {
    let (house, mut his, mut all) = (house(3).await, Receiver::start().await, Receiver::start().await);
    let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
    house.group("mine", &["a"]).await;
    let (bob, ann) = (house.person("bob", &["reader:mine"]).await, house.person("ann", &["server-admin"]).await);
    house.webhook(&bob, &his).await;
    house.webhook(&ann, &all).await;
    b.event("from/b", 1).await;
    house.fire("from/server").await;
    a.event("from/a", 1).await;
    assert_eq!(all.tags(3).await, ["from/b", "from/server", "from/a"]);
    assert_eq!(his.next().await.tag(), "from/a");
    // A job on both names both; he is told of his own.
    house.ping(&["a", "b"]).await;
    let named = loop {
        let received = his.next().await;
        if received.tag().ends_with("/new") {
            break received.json()["data"]["minions"].clone();
        }
    };
    assert_eq!(named, serde_json::json!(["a"]));
}

#[tokio::test]
async fn what_the_owner_may_no_longer_see_is_not_repeated() {
    let (house, mut receiver) = (house(100).await, Receiver::answering(|_| Answer::Status(500)).await);
    let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
    house.group("first", &["a"]).await;
    house.group("then", &["b"]).await;
    let bob = house.person("bob", &["reader:first"]).await;
    house.webhook(&bob, &receiver).await;
    a.event("from/a", 1).await;
    assert_eq!(receiver.next().await.tag(), "from/a");
    b.event("from/b", 1).await;
    let roles = Some(vec!["reader:then".to_owned()]);
    house.change_user("bob", UserChange { roles, ..UserChange::default() }).await;
    receiver.change_mind(|_| OK);
    assert_eq!(receiver.next().await.tag(), "from/b");
}

#[tokio::test]
async fn a_disabled_owner_suspends_his_webhook_until_he_is_back() {
    let (house, mut his, mut all) = (house(3).await, Receiver::start().await, Receiver::start().await);
    let (bob, ann) = (house.person("bob", &["server-admin"]).await, house.person("ann", &["server-admin"]).await);
    let id = house.webhook(&bob, &his).await.id;
    house.webhook(&ann, &all).await;
    house.change_user("bob", UserChange { disabled: Some(true), ..UserChange::default() }).await;
    house.fire("n/1").await;
    assert_eq!(all.next().await.tag(), "n/1");
    let suspended = house.app().webhook(&caller(), id).await.unwrap();
    assert!(suspended.active);
    assert_eq!(suspended.suspended.as_deref(), Some("its owner \"bob\" is disabled"));
    assert!(his.is_idle());
    house.change_user("bob", UserChange { disabled: Some(false), ..UserChange::default() }).await;
    assert_eq!(his.next().await.tag(), "n/1");
    assert_eq!(house.app().webhook(&caller(), id).await.unwrap().suspended, None);
}

#[tokio::test]
async fn the_webhook_of_a_deleted_owner_stops_until_somebody_else_takes_it() {
    let (house, mut his, mut all) = (house(3).await, Receiver::start().await, Receiver::start().await);
    let (bob, ann) = (house.person("bob", &["server-admin"]).await, house.person("ann", &["server-admin"]).await);
    let id = house.webhook(&bob, &his).await.id;
    house.webhook(&ann, &all).await;
    house.app().delete_user(&caller(), "bob", ANY_VERSION).await.unwrap();
    house.fire("n/1").await;
    assert_eq!(all.next().await.tag(), "n/1");
    let stopped = house.app().webhook(&caller(), id).await.unwrap();
    assert!(!stopped.active);
    assert_eq!(stopped.suspended.as_deref(), Some("its owner \"bob\" is not a user any more"));
    assert!(his.is_idle());
    // Somebody else of that name does not come into it.
    house.person("bob", &["server-admin"]).await;
    house.fire("n/2").await;
    assert_eq!(all.next().await.tag(), "n/2");
    assert!(!house.app().webhook(&caller(), id).await.unwrap().active && his.is_idle());
    let taken = WebhookChange { owner: Some("ann".into()), active: Some(true), ..WebhookChange::default() };
    house.change(id, taken).await;
    assert_eq!(his.tags(2).await, ["n/1", "n/2"]);
    wait::until("it to be noted", LONG, || async {
        house.app().webhook(&ann, id).await.unwrap().cursor == house.last_event().await
    })
    .await;
}
