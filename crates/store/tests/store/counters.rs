//! Counters: what was given out once is never given out again.

use crate::database::{Database, on_both_databases};
use crate::fixtures::work;
use saltern_core::ids::ActionId;
use saltern_store::Counter;
use std::collections::BTreeSet;

on_both_databases! {
    numbers_start_at_one_and_go_on,
    counters_do_not_touch_each_other,
    ranges_reserved_at_once_do_not_overlap,
    reserved_numbers_are_not_given_to_others,
}

async fn numbers_start_at_one_and_go_on(database: Database) {
    let store = database.open().await;
    assert_eq!(store.reserve(Counter::Serial, 1).await.unwrap(), 1);
    assert_eq!(store.reserve(Counter::Serial, 10).await.unwrap(), 2);
    assert_eq!(store.reserve(Counter::Serial, 1).await.unwrap(), 12);
}

async fn counters_do_not_touch_each_other(database: Database) {
    let store = database.open().await;
    for counter in [Counter::Event, Counter::Action, Counter::Serial, Counter::Webhook] {
        assert_eq!(store.reserve(counter, 5).await.unwrap(), 1);
    }
}

async fn ranges_reserved_at_once_do_not_overlap(database: Database) {
    // Two stores, as two servers on one database would have.
    let stores = [database.open().await, database.open().await];
    let mut reserving = tokio::task::JoinSet::new();
    for n in 0..200 {
        let (store, size) = (stores[n % 2].clone(), n % 7 + 1);
        reserving.spawn(async move { (store.reserve(Counter::Serial, size).await.unwrap(), size) });
    }
    let mut given = BTreeSet::new();
    let mut total = 0;
    for (first, size) in reserving.join_all().await {
        given.extend((first..).take(size));
        total += size;
    }
    assert_eq!(given.len(), total, "no number twice");
    assert_eq!(given.last().copied(), i64::try_from(total).ok(), "and none left out");
}

async fn reserved_numbers_are_not_given_to_others(database: Database) {
    let store = database.open().await;
    store.reserve(Counter::Action, 41).await.unwrap();
    assert_eq!(store.create(work(1, &["web1"])).await.unwrap(), ActionId(42));
}
