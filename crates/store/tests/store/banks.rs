//! Banks: what is kept under a key is there until it is replaced or flushed.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, audit};
use saltern_store::Body;

on_both_databases! {
    a_value_is_kept_replaced_and_flushed,
    banks_do_not_mix,
}

fn body(byte: u8) -> Body {
    Body { encoding: 1, bytes: vec![byte] }
}

async fn a_value_is_kept_replaced_and_flushed(database: Database) {
    let store = database.open().await;
    for byte in [1, 2] {
        store.put_in_bank("b".into(), "k".into(), body(byte), audit("cache.store")).await.unwrap();
        assert_eq!(store.from_bank("b", "k").await.unwrap(), Some(body(byte)));
    }
    store.flush_bank("b".into(), Some("k".into()), audit("cache.flush")).await.unwrap();
    assert_eq!(store.from_bank("b", "k").await.unwrap(), None);
    assert_eq!(store.audit_page(i64::MAX, ALL, &Default::default()).await.unwrap().len(), 3);
}

async fn banks_do_not_mix(database: Database) {
    let store = database.open().await;
    for (bank, key) in [("a", "z"), ("a", "B"), ("b", "k")] {
        store.put_in_bank(bank.into(), key.into(), body(0), audit("cache.store")).await.unwrap();
    }
    assert_eq!(store.keys_of_bank("a", ALL).await.unwrap(), ["B", "z"]);
    assert_eq!(store.keys_of_bank("a", 1).await.unwrap(), ["B"]);
    store.flush_bank("a".into(), None, audit("cache.flush")).await.unwrap();
    assert_eq!(store.keys_of_bank("a", ALL).await.unwrap(), [""; 0]);
    assert_eq!(store.keys_of_bank("b", ALL).await.unwrap(), ["k"]);
}
