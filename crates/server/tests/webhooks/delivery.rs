//! What is delivered: whole, signed, in order, once more rather than not at all.

use crate::house::caller;
use crate::people::{SECRET, house, wanted};
use crate::receiver::{Answer, LONG, OK, Receiver};
use hmac::{Hmac, KeyInit, Mac};
use saltern_server::app::{NewWebhook, WebhookChange, WebhookFilter};
use saltern_testkit::fake_minion::FakeMinion;
use saltern_testkit::wait;
use sha2::Sha256;

#[tokio::test]
async fn an_event_is_told_whole_and_signed() {
    let (house, mut receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    house.webhook(&ann, &receiver).await;
    let minion = FakeMinion::accepted(house.requests, "web1").await;
    minion.event("my/tag", saltern_core::value::Value::map([("load", 7)])).await;
    let received = receiver.next().await;
    let (told, stored) = (received.json(), house.events_after(0).await.pop().unwrap());
    assert_eq!(received.path, "/in");
    assert_eq!(told["number"], stored.number);
    assert_eq!(told["at"], stored.at.stamp());
    assert_eq!(
        (&told["tag"], &told["minion"], &told["jid"]),
        (&"my/tag".into(), &"web1".into(), &None::<String>.into())
    );
    assert_eq!(told["data"], serde_json::to_value(&stored.data).unwrap());
    assert_eq!(received.number(), stored.number);
    assert_eq!(received.header("content-type"), "application/json");
    assert!(received.header("user-agent").starts_with("saltern/"));

    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("{}.", received.header("saltern-timestamp")).as_bytes());
    mac.update(&received.body);
    let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(received.header("saltern-signature"), format!("v1={expected}"));
    let age = saltern_server::clock::now().secs() - received.header("saltern-timestamp").parse::<i64>().unwrap();
    assert!((0..60).contains(&age), "{age}");
}

#[tokio::test]
async fn events_arrive_in_their_order_each_under_a_name_of_its_own() {
    let (house, mut receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    house.webhook(&ann, &receiver).await;
    for n in 0..20 {
        house.app().fire(&caller(), &format!("n/{n}"), 1.into()).await.unwrap();
    }
    let (mut tags, mut names) = (Vec::new(), std::collections::BTreeSet::new());
    for _ in 0..20 {
        let received = receiver.next().await;
        tags.push(received.tag());
        names.insert(received.header("saltern-delivery").to_owned());
    }
    assert_eq!(tags, (0..20).map(|n| format!("n/{n}")).collect::<Vec<_>>());
    assert_eq!(names.len(), 20);
}

#[tokio::test]
async fn only_what_the_filter_wants_is_sent() {
    let house = house(3).await;
    let ann = house.person("ann", &["server-admin"]).await;
    let mut receivers = Vec::new();
    for filter in [
        WebhookFilter { tag: Some("app/*".into()), ..WebhookFilter::default() },
        WebhookFilter { minion: Some("web*".into()), ..WebhookFilter::default() },
        WebhookFilter { tag: Some("app/*".into()), minion: Some("web*".into()), ..WebhookFilter::default() },
    ] {
        let receiver = Receiver::start().await;
        house.app().create_webhook(&ann, NewWebhook { filter, ..wanted(&receiver) }).await.unwrap();
        receivers.push(receiver);
    }
    let (web, db) =
        (FakeMinion::accepted(house.requests, "web1").await, FakeMinion::accepted(house.requests, "db1").await);
    for (minion, tag) in [(&web, "app/1"), (&db, "app/2"), (&web, "other/3"), (&db, "other/4"), (&web, "app/5")] {
        minion.event(tag, 1).await;
    }
    assert_eq!(receivers[0].tags(3).await, ["app/1", "app/2", "app/5"]);
    assert_eq!(receivers[1].tags(3).await, ["app/1", "other/3", "app/5"]);
    assert_eq!(receivers[2].tags(2).await, ["app/1", "app/5"]);
}

#[tokio::test]
async fn a_crash_means_a_double_and_never_a_gap() {
    let (mut house, mut receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    house.fire("n/1").await;
    assert_eq!(receiver.next().await.tag(), "n/1");
    wait::until("the first one to be noted", LONG, || async {
        house.app().webhook(&caller(), id).await.unwrap().cursor > 0
    })
    .await;
    // It is under way when the server dies; whether it has arrived is not known there.
    receiver.change_mind(|_| Answer::Silence);
    house.fire("n/2").await;
    let lost = receiver.next().await;
    house.fire("n/3").await;
    receiver.change_mind(|_| OK);
    house.crash().await;
    let again = receiver.next().await;
    assert_eq!((lost.tag(), again.tag()), ("n/2".into(), "n/2".into()));
    assert_eq!(lost.header("saltern-delivery"), again.header("saltern-delivery"));
    house.fire("n/4").await;
    assert_eq!(receiver.tags(2).await, ["n/3", "n/4"]);
}

#[tokio::test]
async fn a_restart_in_order_goes_on_with_the_next_event() {
    let (mut house, mut receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    let first = house.fire("n/1").await;
    assert_eq!(receiver.next().await.tag(), "n/1");
    wait::until("the first one to be noted", LONG, || async {
        house.app().webhook(&caller(), id).await.unwrap().cursor >= first
    })
    .await;
    house.restart().await;
    house.fire("n/2").await;
    assert_eq!(receiver.next().await.tag(), "n/2");
}

#[tokio::test]
async fn a_webhook_that_was_off_goes_on_where_it_stopped() {
    let (house, mut receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    house.fire("n/1").await;
    assert_eq!(receiver.next().await.tag(), "n/1");
    house.change(id, WebhookChange { active: Some(false), ..WebhookChange::default() }).await;
    house.fire("n/2").await;
    house.fire("n/3").await;
    house.change(id, WebhookChange { active: Some(true), ..WebhookChange::default() }).await;
    // One that was under way when the webhook was changed may come twice: nobody says whether it was noted before.
    let mut tags = vec!["n/1".to_owned()];
    while tags.last().is_none_or(|tag| tag != "n/3") {
        tags.push(receiver.next().await.tag());
    }
    tags.dedup();
    assert_eq!(tags, ["n/1", "n/2", "n/3"]);
}

#[tokio::test]
async fn what_was_removed_from_the_log_meanwhile_is_said() {
    let settings = [("auto_accept", true.into()), ("keep_events", 3.into())];
    let (house, mut receiver) = (crate::house::House::with(settings).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    house.fire("before").await;
    let off = NewWebhook { active: false, ..wanted(&receiver) };
    let webhook = house.app().create_webhook(&ann, off).await.unwrap().0;
    for n in 0..10 {
        house.fire(&format!("n/{n}")).await;
    }
    house.app().forget_old().await.unwrap();
    house.change(webhook.id, WebhookChange { active: Some(true), ..WebhookChange::default() }).await;
    assert_eq!(receiver.tags(3).await, ["n/7", "n/8", "n/9"]);
    let dead = house.dead(webhook.id).await;
    let (from, to) = (webhook.cursor + 1, webhook.cursor + 7);
    assert_eq!((dead.len(), dead[0].number, dead[0].attempts), (1, to, 0));
    assert!(dead[0].error.contains(&format!("events {from} to {to} were removed")), "{}", dead[0].error);
}

#[tokio::test]
async fn a_replay_sends_again_what_was_sent_under_the_same_names() {
    let (house, mut receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    let mut sent = Vec::new();
    for n in 0..3 {
        house.fire(&format!("n/{n}")).await;
        sent.push(receiver.next().await);
    }
    house.app().replay(&ann, id, sent[1].number()).await.unwrap();
    let mut again = Vec::new();
    // The last one may come once more before: nobody says whether it was noted.
    while again.len() < 2 {
        let received = receiver.next().await;
        if !again.is_empty() || received.tag() == "n/1" {
            again.push(received);
        }
    }
    for (before, after) in sent[1..].iter().zip(&again) {
        assert_eq!(before.header("saltern-delivery"), after.header("saltern-delivery"));
        assert_eq!(before.body, after.body);
    }
    let newest = house.last_event().await;
    for from in [0, newest + 2] {
        assert!(house.app().replay(&ann, id, from).await.is_err(), "{from}");
    }
    assert_eq!(house.app().replay(&ann, id, newest + 1).await.unwrap().cursor, newest);
}
