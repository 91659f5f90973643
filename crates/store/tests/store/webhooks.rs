//! Webhooks: what they are for, how far they have got, what could not be delivered.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, at, audit, audited, webhook};
use saltern_store::{ANY_VERSION, DeadDelivery, Store, Webhook, Written};

on_both_databases! {
    a_webhook_reads_back_as_it_was_made,
    a_webhook_is_changed_by_who_has_seen_it,
    progress_does_not_change_the_version,
    progress_of_what_was_changed_meanwhile_is_not_noted,
    a_webhook_is_moved_to_another_place_of_the_log,
    a_change_keeps_the_place_and_forgets_failures,
    dead_deliveries_come_in_the_order_of_events,
    a_dead_delivery_is_taken_once,
    dead_deliveries_go_with_their_webhook,
    old_dead_deliveries_are_purged,
}

async fn a_webhook_reads_back_as_it_was_made(database: Database) {
    let store = database.open().await;
    let plain = Webhook { jid: None, action: None, minion: None, active: false, ..webhook("plain", "bob") };
    let (one, other) = (create(&store, webhook("full", "alice")).await, create(&store, plain.clone()).await);
    assert_eq!((one, other), (1, 2));
    let made = [Webhook { id: 1, ..webhook("full", "alice") }, Webhook { id: 2, ..plain }];
    assert_eq!(store.webhooks().await.unwrap(), made);
    assert_eq!(store.webhook(2).await.unwrap().as_ref(), Some(&made[1]));
    assert_eq!(store.webhook(3).await.unwrap(), None);
}

async fn a_webhook_is_changed_by_who_has_seen_it(database: Database) {
    let store = database.open().await;
    let id = create(&store, webhook("w", "alice")).await;
    let put = async |webhook: &Webhook, expected| {
        store.put_webhook(webhook.clone(), expected, audit("webhook.change")).await.unwrap()
    };
    let change = Webhook { id, name: "new".into(), url: "https://b/".into(), active: false, ..webhook("w", "bob") };
    assert_eq!(put(&change, Some(9)).await, Written::Stale(1));
    assert_eq!(put(&change, Some(1)).await, Written::Done(2));
    assert_eq!(store.webhook(id).await.unwrap(), Some(Webhook { version: 2, ..change.clone() }));
    assert_eq!(put(&change, Some(ANY_VERSION)).await, Written::Done(3));
    assert_eq!(put(&change, None).await, Written::Done(4), "it has an id, so nobody makes it");
    assert_eq!(put(&Webhook { id: 404, ..change }, None).await, Written::Missing);

    let delete = async |expected| store.delete_webhook(id, expected, audit("webhook.delete")).await.unwrap();
    assert_eq!(delete(Some(1)).await, Written::Stale(4));
    assert_eq!(delete(Some(4)).await, Written::Done(4));
    assert_eq!(delete(None).await, Written::Missing);
    assert_eq!(audited(&store).await.len(), 5);
    assert_eq!(create(&store, webhook("w", "alice")).await, id + 1, "ids are not used again");
}

async fn progress_does_not_change_the_version(database: Database) {
    let store = database.open().await;
    let id = create(&store, webhook("w", "alice")).await;
    store.webhook_progress(id, 1, 50, 3, Some(at(77)), Some("refused".into())).await.unwrap();
    let told = Webhook {
        id,
        cursor: 50,
        failures: 3,
        next_try: Some(at(77)),
        last_error: Some("refused".into()),
        ..webhook("w", "alice")
    };
    assert_eq!(store.webhook(id).await.unwrap(), Some(told));
    store.webhook_progress(id, 1, 51, 0, None, None).await.unwrap();
    assert_eq!(store.webhook(id).await.unwrap(), Some(Webhook { id, cursor: 51, ..webhook("w", "alice") }));
}

async fn progress_of_what_was_changed_meanwhile_is_not_noted(database: Database) {
    let store = database.open().await;
    let id = create(&store, webhook("w", "alice")).await;
    assert!(store.webhook_progress(id, 1, 50, 0, None, None).await.unwrap());
    store.put_webhook(Webhook { id, ..webhook("w", "alice") }, None, audit("x")).await.unwrap();
    assert!(!store.webhook_progress(id, 1, 60, 0, None, None).await.unwrap());
    assert!(!store.webhook_progress(404, 1, 60, 0, None, None).await.unwrap());
    assert_eq!(store.webhook(id).await.unwrap().unwrap().cursor, 50);
}

async fn a_webhook_is_moved_to_another_place_of_the_log(database: Database) {
    let store = database.open().await;
    let id = create(&store, webhook("w", "alice")).await;
    store.webhook_progress(id, 1, 50, 3, Some(at(77)), Some("refused".into())).await.unwrap();
    assert_eq!(store.move_webhook(id, 20, audit("webhook.replay")).await.unwrap(), Written::Done(2));
    let moved = Webhook { id, cursor: 20, version: 2, ..webhook("w", "alice") };
    assert_eq!(store.webhook(id).await.unwrap(), Some(moved));
    assert_eq!(store.move_webhook(404, 20, audit("x")).await.unwrap(), Written::Missing);
    assert_eq!(audited(&store).await.len(), 2);
}

async fn a_change_keeps_the_place_and_forgets_failures(database: Database) {
    let store = database.open().await;
    let id = create(&store, webhook("w", "alice")).await;
    store.webhook_progress(id, 1, 50, 3, Some(at(77)), Some("refused".into())).await.unwrap();
    let mended = Webhook { id, cursor: 1, failures: 9, created: at(99), ..webhook("mended", "alice") };
    store.put_webhook(mended, Some(1), audit("x")).await.unwrap();
    let kept = Webhook { id, cursor: 50, version: 2, ..webhook("mended", "alice") };
    assert_eq!(store.webhook(id).await.unwrap(), Some(kept));
}

async fn dead_deliveries_come_in_the_order_of_events(database: Database) {
    let store = database.open().await;
    let (one, other) = (create(&store, webhook("a", "alice")).await, create(&store, webhook("b", "alice")).await);
    for (webhook, number) in [(one, 30), (one, 10), (other, 20), (one, 20), (404, 1)] {
        store.add_dead_delivery(dead(webhook, number)).await.unwrap();
    }
    assert_eq!(numbers(&store, one, 0, ALL).await, [10, 20, 30]);
    assert_eq!(numbers(&store, one, 10, 1).await, [20]);
    assert_eq!(numbers(&store, other, 0, ALL).await, [20]);
    assert_eq!(numbers(&store, 404, 0, ALL).await, [0; 0], "there is no such webhook");
    let again = DeadDelivery { at: at(99), attempts: 12, error: "gone".into(), ..dead(one, 10) };
    store.add_dead_delivery(again.clone()).await.unwrap();
    assert_eq!(store.dead_deliveries(one, 0, 1).await.unwrap(), [again]);
}

async fn a_dead_delivery_is_taken_once(database: Database) {
    let store = database.open().await;
    let id = create(&store, webhook("a", "alice")).await;
    store.add_dead_delivery(dead(id, 10)).await.unwrap();
    assert!(!store.take_dead_delivery(id, 11).await.unwrap());
    assert!(store.take_dead_delivery(id, 10).await.unwrap());
    assert!(!store.take_dead_delivery(id, 10).await.unwrap());
}

async fn dead_deliveries_go_with_their_webhook(database: Database) {
    let store = database.open().await;
    let (one, other) = (create(&store, webhook("a", "alice")).await, create(&store, webhook("b", "alice")).await);
    store.add_dead_delivery(dead(one, 10)).await.unwrap();
    store.add_dead_delivery(dead(other, 10)).await.unwrap();
    store.delete_webhook(one, None, audit("x")).await.unwrap();
    assert_eq!(numbers(&store, one, 0, ALL).await, [0; 0]);
    assert_eq!(numbers(&store, other, 0, ALL).await, [10]);
}

async fn old_dead_deliveries_are_purged(database: Database) {
    let store = database.open().await;
    let id = create(&store, webhook("a", "alice")).await;
    for n in [3, 1, 4, 2] {
        store.add_dead_delivery(dead(id, n)).await.unwrap();
    }
    assert_eq!(store.purge_dead_deliveries(at(4), 2).await.unwrap(), 2);
    assert_eq!(numbers(&store, id, 0, ALL).await, [3, 4]);
    assert_eq!(store.purge_dead_deliveries(at(4), 2).await.unwrap(), 1);
    assert_eq!(store.purge_dead_deliveries(at(4), 2).await.unwrap(), 0, "before, not at");
}

#[test]
fn a_secret_is_never_shown() {
    let url = "https://user:hunter2@example.org/hook?token=hunter2".into();
    assert!(!format!("{:?}", Webhook { url, ..webhook("w", "alice") }).contains("hunter2"));
}

/// Event `number`, given up at the instant of that number.
fn dead(webhook: i64, number: i64) -> DeadDelivery {
    DeadDelivery { webhook, number, at: at(number), attempts: 8, error: "connection refused".into() }
}

async fn create(store: &Store, webhook: Webhook) -> i64 {
    store.create_webhook(webhook, audit("webhook.create")).await.unwrap()
}

async fn numbers(store: &Store, webhook: i64, after: i64, limit: usize) -> Vec<i64> {
    let dead = store.dead_deliveries(webhook, after, limit).await.unwrap();
    dead.into_iter().map(|dead| dead.number).collect()
}
