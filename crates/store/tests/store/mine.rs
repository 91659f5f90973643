//! The mine.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{at, body, minion};
use saltern_store::{Body, MineEntry, Store};

on_both_databases! {
    a_value_is_offered_under_its_function,
    what_one_minion_offers_is_listed_by_function,
    a_new_value_replaces_the_old_one_and_leaves_the_others,
    clearing_removes_what_is_not_offered_again,
    one_value_or_all_of_them_can_be_removed,
    writes_that_follow_each_other_closely_keep_their_order,
}

async fn a_value_is_offered_under_its_function(database: Database) {
    let store = database.open().await;
    put(&store, "web2", &[("ip", "2"), ("uptime", "9")], false).await;
    put(&store, "web1", &[("ip", "1")], false).await;
    let entry = |id: &str, text: &str| MineEntry { minion: minion(id), fun: "ip".into(), body: body(text) };
    assert_eq!(store.mine_of("ip").await.unwrap(), [entry("web1", "1"), entry("web2", "2")]);
    assert_eq!(store.mine_of("nothing").await.unwrap(), []);
}

async fn what_one_minion_offers_is_listed_by_function(database: Database) {
    let store = database.open().await;
    put(&store, "web1", &[("uptime", "9"), ("ip", "1")], false).await;
    put(&store, "web2", &[("ip", "2")], false).await;
    let entry = |fun: &str, text: &str| MineEntry { minion: minion("web1"), fun: fun.into(), body: body(text) };
    assert_eq!(store.mine_by(&minion("web1")).await.unwrap(), [entry("ip", "1"), entry("uptime", "9")]);
    assert_eq!(store.mine_by(&minion("web3")).await.unwrap(), []);
}

async fn a_new_value_replaces_the_old_one_and_leaves_the_others(database: Database) {
    let store = database.open().await;
    put(&store, "web1", &[("ip", "1"), ("uptime", "9")], false).await;
    put(&store, "web1", &[("ip", "2")], false).await;
    assert_eq!(offered(&store).await, ["ip=2", "uptime=9"]);
}

async fn clearing_removes_what_is_not_offered_again(database: Database) {
    let store = database.open().await;
    put(&store, "web1", &[("ip", "1"), ("uptime", "9")], false).await;
    put(&store, "web1", &[("ip", "2")], true).await;
    assert_eq!(offered(&store).await, ["ip=2"]);
}

async fn one_value_or_all_of_them_can_be_removed(database: Database) {
    let store = database.open().await;
    put(&store, "web1", &[("ip", "1"), ("uptime", "9"), ("load", "0")], false).await;
    store.remove_mine(minion("web1"), Some("ip".into())).await.unwrap();
    assert_eq!(offered(&store).await, ["load=0", "uptime=9"]);
    store.remove_mine(minion("web1"), None).await.unwrap();
    assert_eq!(offered(&store).await, [""; 0]);
}

/// Several statements make one such write, and a group of them shares one transaction: they must not get mixed up.
async fn writes_that_follow_each_other_closely_keep_their_order(database: Database) {
    let store = database.open().await;
    let funs = ["ip", "load", "uptime"];
    for round in 0..20 {
        let value = round.to_string();
        // Handed over in this order, without waiting for the commits in between.
        let offers = funs.map(|fun| [(fun, value.as_str())]);
        futures_util::future::join_all(offers.iter().map(|offer| put(&store, "web1", offer, true))).await;
        assert_eq!(offered(&store).await, [format!("uptime={value}")], "only what the last one left");
    }
}

async fn put(store: &Store, id: &str, entries: &[(&str, &str)], clear: bool) {
    let entries: Vec<(String, Body)> = entries.iter().map(|(fun, text)| ((*fun).to_owned(), body(text))).collect();
    store.put_mine(minion(id), at(5), entries, clear).await.unwrap();
}

/// Everything in the mine, as `function=value`.
async fn offered(store: &Store) -> Vec<String> {
    let mut found = Vec::new();
    for fun in ["ip", "load", "uptime"] {
        for entry in store.mine_of(fun).await.unwrap() {
            found.push(format!("{fun}={}", String::from_utf8(entry.body.bytes).unwrap()));
        }
    }
    found
}
