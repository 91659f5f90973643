//! Servers that share a database: places among them, and who is whose neighbour.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{at, minion};
use saltern_store::{AckMethod, Minion};

on_both_databases! {
    a_server_takes_the_first_place_that_is_free,
    neighbours_are_those_that_live,
    the_minions_of_a_neighbour_are_known_while_it_lives,
}

async fn a_server_takes_the_first_place_that_is_free(database: Database) {
    let store = database.open().await;
    let join = async |now, dead| store.join_servers("s".into(), at(now), at(dead)).await.unwrap();
    assert_eq!([join(10, 0).await, join(11, 0).await, join(12, 0).await], [0, 1, 2]);
    store.leave_servers(1).await.unwrap();
    assert_eq!(join(13, 0).await, 1);
    assert_eq!(join(20, 11).await, 0, "whoever has not shown itself for long has lost its place");
}

async fn neighbours_are_those_that_live(database: Database) {
    let store = database.open().await;
    for now in [10, 20, 30] {
        store.join_servers("s".into(), at(now), at(0)).await.unwrap();
    }
    let seen = async |place, dead| {
        let neighbours = store.beat(place, at(40), at(dead)).await.unwrap();
        (neighbours.servers, neighbours.lower)
    };
    assert_eq!(seen(2, 0).await, (2, 2));
    assert_eq!(seen(2, 15).await, (1, 1), "the first has died");
    assert_eq!(seen(1, 35).await, (1, 0), "the last has shown itself meanwhile");
}

async fn the_minions_of_a_neighbour_are_known_while_it_lives(database: Database) {
    let store = database.open().await;
    for now in [10, 20] {
        store.join_servers("s".into(), at(now), at(0)).await.unwrap();
    }
    store.record_minions(["web1", "web2"].map(known).into()).await.unwrap();
    store.own_minions(0, &[minion("web1")]).await.unwrap();
    store.own_minions(1, &[minion("web2")]).await.unwrap();
    let theirs = async |place, dead| store.beat(place, at(30), at(dead)).await.unwrap().minions;
    assert_eq!(theirs(1, 0).await, [minion("web1")]);
    assert_eq!(theirs(1, 15).await, []);
    assert_eq!(theirs(0, 15).await, [minion("web2")]);
}

fn known(id: &str) -> Minion {
    Minion {
        id: minion(id),
        first_seen: at(0),
        last_seen: at(0),
        started: None,
        address: None,
        version: None,
        ack_method: AckMethod::None,
        ack_setting: None,
        boot_id: None,
        reboot_needed: None,
    }
}
