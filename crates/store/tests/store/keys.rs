//! Keys: two slots for each id, changed together with what tells of it.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{all_audit, all_tags, at, audit, event, minion};
use saltern_store::{Key, KeySlot};

on_both_databases! {
    a_key_is_written_replaced_and_removed,
    the_two_keys_of_an_id_do_not_touch_each_other,
    events_and_audit_are_written_with_the_keys,
}

async fn a_key_is_written_replaced_and_removed(database: Database) {
    let store = database.open().await;
    let put = key("web1", KeySlot::Current, "unaccepted");
    store.change_keys(vec![put.clone()], vec![], vec![], vec![]).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), std::slice::from_ref(&put));

    let accepted = Key { state: "accepted".into(), pem: "other".into(), fingerprint: "ff".into(), since: at(9), ..put };
    store.change_keys(vec![accepted.clone()], vec![], vec![], vec![]).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), [accepted]);

    store.change_keys(vec![], vec![(minion("web1"), KeySlot::Current)], vec![], vec![]).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), []);
}

async fn the_two_keys_of_an_id_do_not_touch_each_other(database: Database) {
    let store = database.open().await;
    let (own, foreign) = (key("web1", KeySlot::Current, "accepted"), key("web1", KeySlot::Denied, "denied"));
    let other = key("db1", KeySlot::Current, "accepted");
    store.change_keys(vec![foreign.clone(), own.clone(), other.clone()], vec![], vec![], vec![]).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), [other.clone(), own, foreign.clone()], "by id, the own key first");

    store.change_keys(vec![], vec![(minion("web1"), KeySlot::Current)], vec![], vec![]).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), [other, foreign]);
}

async fn events_and_audit_are_written_with_the_keys(database: Database) {
    let store = database.open().await;
    let put = vec![key("web1", KeySlot::Current, "accepted")];
    let (events, entries) = (vec![event("salt/key"), event("salt/auth")], vec![audit("key.accept"), audit("key.list")]);
    store.change_keys(put, vec![], events, entries).await.unwrap();
    assert_eq!(all_tags(&store).await, ["salt/key", "salt/auth"]);
    let newest_first = all_audit(&store).await;
    assert_eq!(newest_first, [(2, audit("key.list")), (1, audit("key.accept"))]);
}

fn key(id: &str, slot: KeySlot, state: &str) -> Key {
    Key {
        minion: minion(id),
        slot,
        state: state.into(),
        pem: format!("-----BEGIN PUBLIC KEY-----\n{id}\n-----END PUBLIC KEY-----"),
        fingerprint: "aa:bb".into(),
        since: at(3),
    }
}
