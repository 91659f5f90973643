//! Minions and their grains.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{all_tags, at, body, event, minion, minions};
use saltern_store::{AckMethod, GrainsRow, Minion};

on_both_databases! {
    what_is_known_of_a_minion_reads_back,
    a_minion_keeps_the_time_it_was_first_seen,
    a_forgotten_minion_takes_its_grains_and_mine_along,
    grains_are_replaced_with_the_events_that_tell_of_it,
    grains_come_in_pages_by_id,
    the_grains_of_one_minion_are_forgotten,
}

async fn what_is_known_of_a_minion_reads_back(database: Database) {
    let store = database.open().await;
    let methods = [AckMethod::None, AckMethod::StartEvent, AckMethod::Executor, AckMethod::Native];
    let settings = [None, Some(true), Some(false), None];
    let known: Vec<Minion> = methods
        .into_iter()
        .zip(settings)
        .enumerate()
        .map(|(n, (ack_method, ack_setting))| Minion { ack_method, ack_setting, ..full(&format!("m{n}")) })
        .chain([Minion {
            started: None,
            address: None,
            version: None,
            boot_id: None,
            reboot_needed: None,
            ..full("m9")
        }])
        .collect();
    store.record_minions(known.clone()).await.unwrap();
    assert_eq!(store.minions().await.unwrap(), known);
}

async fn a_minion_keeps_the_time_it_was_first_seen(database: Database) {
    let store = database.open().await;
    let first = full("web1");
    let second = Minion {
        first_seen: at(900),
        last_seen: at(901),
        started: Some(at(902)),
        address: Some("192.0.2.9".into()),
        version: Some("3008.3".into()),
        ack_method: AckMethod::Native,
        ack_setting: Some(true),
        boot_id: Some("5e1f".into()),
        reboot_needed: Some(true),
        ..first.clone()
    };
    store.record_minions(vec![first.clone()]).await.unwrap();
    store.record_minions(vec![second.clone()]).await.unwrap();
    assert_eq!(store.minions().await.unwrap(), [Minion { first_seen: first.first_seen, ..second }]);
}

async fn a_forgotten_minion_takes_its_grains_and_mine_along(database: Database) {
    let store = database.open().await;
    store.record_minions(vec![full("web1"), full("web2")]).await.unwrap();
    for id in minions(&["web1", "web2"]) {
        store.record_grains(grains(id.as_str(), "{}"), vec![]).await.unwrap();
        store.put_mine(id, at(1), vec![("network.ip".into(), body("192.0.2.1"))], false).await.unwrap();
    }
    store.forget_minion(minion("web1")).await.unwrap();
    assert_eq!(store.minions().await.unwrap(), [full("web2")]);
    assert_eq!(store.grains_after("", 10).await.unwrap(), [grains("web2", "{}")]);
    let offered = store.mine_of("network.ip").await.unwrap();
    assert_eq!(offered.into_iter().map(|entry| entry.minion).collect::<Vec<_>>(), minions(&["web2"]));
}

async fn grains_are_replaced_with_the_events_that_tell_of_it(database: Database) {
    let store = database.open().await;
    store.record_grains(grains("web1", "old"), vec![event("first")]).await.unwrap();
    let new = GrainsRow { at: at(77), ..grains("web1", "new") };
    store.record_grains(new.clone(), vec![event("second")]).await.unwrap();
    assert_eq!(store.grains_after("", 10).await.unwrap(), [new]);
    assert_eq!(all_tags(&store).await, ["first", "second"]);
}

async fn the_grains_of_one_minion_are_forgotten(database: Database) {
    let store = database.open().await;
    for id in ["web1", "web2"] {
        let grains = GrainsRow { minion: minion(id), at: at(1), body: body(id) };
        store.record_grains(grains, vec![]).await.unwrap();
    }
    store.remove_grains(minion("web1")).await.unwrap();
    let left = store.grains_after("", 9).await.unwrap();
    assert_eq!(left.into_iter().map(|grains| grains.minion).collect::<Vec<_>>(), minions(&["web2"]));
}

async fn grains_come_in_pages_by_id(database: Database) {
    let store = database.open().await;
    for id in ["c", "a", "B", "d"] {
        store.record_grains(grains(id, id), vec![]).await.unwrap();
    }
    let page = async |after| {
        let rows = store.grains_after(after, 2).await.unwrap();
        rows.into_iter().map(|row| row.minion).collect::<Vec<_>>()
    };
    assert_eq!(page("").await, minions(&["B", "a"]), "by bytes, as ids are ordered everywhere else");
    assert_eq!(page("a").await, minions(&["c", "d"]));
    assert_eq!(page("d").await, []);
}

fn full(id: &str) -> Minion {
    Minion {
        id: minion(id),
        first_seen: at(1),
        last_seen: at(2),
        started: Some(at(3)),
        address: Some("192.0.2.1".into()),
        version: Some("3006.28".into()),
        ack_method: AckMethod::Executor,
        ack_setting: None,
        boot_id: Some("b007".into()),
        reboot_needed: Some(false),
    }
}

fn grains(id: &str, text: &str) -> GrainsRow {
    GrainsRow { minion: minion(id), at: at(4), body: body(text) }
}
