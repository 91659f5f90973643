//! Receivers that do not take what they are sent.

use crate::house::{House, caller};
use crate::people::house;
use crate::receiver::{Answer, LONG, OK, Received, Receiver};
use saltern_server::app::{WebhookEntry, WhichDead};
use saltern_testkit::wait;
use std::time::Duration;

/// Answers an event with this tag like this, and takes everything else.
fn only(tag: &'static str, answer: Answer) -> impl FnMut(&Received) -> Answer + Send + 'static {
    move |received| if received.tag() == tag { answer } else { OK }
}

async fn becomes(house: &House, id: i64, is_so: impl Fn(&WebhookEntry) -> bool) -> WebhookEntry {
    wait::until_ok("the webhook to be so", LONG, async || {
        let webhook = house.app().webhook(&caller(), id).await.unwrap();
        let told = format!("{} {} {:?}", webhook.cursor, webhook.failures, webhook.last_error);
        if is_so(&webhook) { Ok(webhook) } else { Err(told) }
    })
    .await
}

#[tokio::test]
async fn what_fails_is_tried_again_later_and_later_under_the_same_name() {
    let mut left = 2;
    let receiver = Receiver::answering(move |_| {
        left -= 1;
        if left >= 0 { Answer::Status(503) } else { OK }
    });
    let (house, mut receiver) = (house(10).await, receiver.await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    house.fire("n/1").await;
    house.fire("n/2").await;
    let tries = [receiver.next().await, receiver.next().await, receiver.next().await];
    for received in &tries {
        assert_eq!(received.tag(), "n/1");
        assert_eq!(received.header("saltern-delivery"), tries[0].header("saltern-delivery"));
        assert_eq!(received.body, tries[0].body);
    }
    assert!(tries[1].at - tries[0].at >= Duration::from_millis(500));
    assert!(tries[2].at - tries[1].at >= Duration::from_secs(1));
    assert_eq!(receiver.next().await.tag(), "n/2");
    let webhook = becomes(&house, id, |webhook| webhook.failures == 0).await;
    assert_eq!((webhook.next_try, webhook.last_error), (None, None));
}

#[tokio::test]
async fn a_failure_is_told_and_outlives_a_crash() {
    let (mut house, mut receiver) = (house(100).await, Receiver::answering(|_| Answer::Status(500)).await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    house.fire("n/1").await;
    receiver.next().await;
    let failing = becomes(&house, id, |webhook| webhook.failures > 0).await;
    assert!(failing.next_try.is_some());
    assert_eq!(failing.last_error.as_deref(), Some("the receiver answered 500 Internal Server Error"));
    house.crash().await;
    assert!(house.app().webhook(&caller(), id).await.unwrap().failures >= failing.failures);
    receiver.change_mind(|_| OK);
    becomes(&house, id, |webhook| webhook.failures == 0 && webhook.cursor > failing.cursor).await;
}

#[tokio::test]
async fn what_fails_for_ever_is_put_aside_and_the_next_one_follows() {
    let (house, mut receiver) = (house(2).await, Receiver::answering(only("n/1", Answer::Status(500))).await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    let number = house.fire("n/1").await;
    house.fire("n/2").await;
    assert_eq!(receiver.tags(3).await, ["n/1", "n/1", "n/2"]);
    let dead = house.dead(id).await;
    assert_eq!((dead.len(), dead[0].number, dead[0].attempts), (1, number, 2));
    assert_eq!(dead[0].error, "the receiver answered 500 Internal Server Error");
    becomes(&house, id, |webhook| webhook.cursor > number && webhook.failures == 0).await;
}

#[tokio::test]
async fn dead_deliveries_are_sent_again_one_or_all() {
    let (house, mut receiver) = (house(1).await, Receiver::answering(|_| Answer::Status(500)).await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    let mut sent = Vec::new();
    for n in 0..4 {
        house.fire(&format!("n/{n}")).await;
        sent.push(receiver.next().await);
    }
    let app = house.app();
    let left = |count: usize| {
        let house = &house;
        wait::until("the list to be shorter", LONG, move || async move { house.dead(id).await.len() == count })
    };
    left(4).await;
    receiver.change_mind(|_| OK);
    app.redeliver(&ann, id, WhichDead::These(vec![sent[2].number()])).await.unwrap();
    let again = receiver.next().await;
    assert_eq!(again.header("saltern-delivery"), sent[2].header("saltern-delivery"));
    left(3).await;
    let unknown = app.redeliver(&ann, id, WhichDead::These(vec![sent[2].number()])).await.unwrap_err();
    assert!(unknown.to_string().contains("has no dead delivery of event"), "{unknown}");
    // The round may not have noticed yet that it is over.
    wait::until("the round to be over", LONG, || async { app.redeliver(&ann, id, WhichDead::All).await.is_ok() }).await;
    assert_eq!(receiver.tags(3).await, ["n/0", "n/1", "n/3"]);
    left(0).await;
}

#[tokio::test]
async fn a_dead_delivery_that_fails_again_stays_one() {
    let (house, mut receiver) = (house(1).await, Receiver::answering(|_| Answer::Status(500)).await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    house.fire("n/1").await;
    receiver.next().await;
    wait::until("it to be put aside", LONG, || async { house.dead(id).await.len() == 1 }).await;
    receiver.change_mind(|_| Answer::Status(404));
    house.app().redeliver(&ann, id, WhichDead::All).await.unwrap();
    receiver.next().await;
    wait::until("the failure to be noted", LONG, || async {
        let dead = house.dead(id).await;
        dead.len() == 1 && dead[0].attempts == 2 && dead[0].error == "the receiver answered 404 Not Found"
    })
    .await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_stops_its_webhook() {
    let (house, mut receiver) = (house(3).await, Receiver::answering(|_| Answer::Status(410)).await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    let number = house.fire("n/1").await;
    receiver.next().await;
    let stopped = becomes(&house, id, |webhook| !webhook.active && webhook.last_error.is_some()).await;
    assert_eq!(stopped.last_error.as_deref(), Some("stopped: the receiver answered 410 Gone"));
    assert!(stopped.cursor < number);
    assert!(house.dead(id).await.is_empty());
    let audit = house.app().audit(&caller(), &audit_query()).await.unwrap();
    assert!(audit.iter().any(|(_, entry)| entry.what == "webhook.stop" && entry.who == "saltern"));
}

fn audit_query() -> saltern_server::app::AuditQuery {
    saltern_server::app::AuditQuery { before: None, limit: 100, filter: saltern_server::app::AuditFilter::default() }
}

#[tokio::test]
async fn a_receiver_that_says_nothing_holds_nobody_else_up() {
    let patient = [("auto_accept", true.into()), ("webhook_timeout", 300.into())];
    let (mut silent, mut other) = (Receiver::answering(|_| Answer::Silence).await, Receiver::start().await);
    let house = House::with(patient).await;
    let ann = house.person("ann", &["server-admin"]).await;
    house.webhook(&ann, &silent).await;
    house.webhook(&ann, &other).await;
    house.fire("n/0").await;
    assert_eq!(silent.next().await.tag(), "n/0");
    for n in 1..5 {
        house.fire(&format!("n/{n}")).await;
    }
    assert_eq!(other.tags(5).await, ["n/0", "n/1", "n/2", "n/3", "n/4"]);
    assert!(silent.is_idle(), "nothing is sent while an answer is waited for");
}

#[tokio::test]
async fn a_receiver_that_says_nothing_is_given_up_in_time() {
    let settings = [("auto_accept", true.into()), ("webhook_timeout", 1.into()), ("webhook_tries", 1.into())];
    let (house, mut receiver) = (House::with(settings).await, Receiver::answering(only("n/1", Answer::Silence)).await);
    let ann = house.person("ann", &["server-admin"]).await;
    let id = house.webhook(&ann, &receiver).await.id;
    house.fire("n/1").await;
    house.fire("n/2").await;
    assert_eq!(receiver.tags(2).await, ["n/1", "n/2"]);
    assert_eq!(house.dead(id).await[0].error, "no answer within 1 s");
}
