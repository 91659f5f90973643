//! Launches with many minions, and several servers that go through them at once.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, at, launch, launched, minion, moving, stored, transition};
use saltern_core::ids::{LaunchId, MinionId};
use saltern_core::run::Input;
use saltern_store::MinionState::{Ended, Sent, Waiting};
use saltern_store::{ChunkClaim, Counts, LaunchCounts, MinionMove, Store};

on_both_databases! {
    two_thousand_minions_go_through_ten_steps,
    of_launches_on_several_servers_one_holds_a_minion,
    ends_on_several_servers_are_counted_once,
    a_cancel_that_races_claims_leaves_nobody_waiting,
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("m{n:04}")).collect()
}

fn claim(launch: LaunchId, minions: Vec<MinionId>) -> ChunkClaim {
    ChunkClaim { launch, chunk: 1, minions, at: at(5) }
}

async fn two_thousand_minions_go_through_ten_steps(database: Database) {
    let store = database.open().await;
    let names = names(2000);
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let (id, actions) = store.create_launch(launch(1, 10, &ids)).await.unwrap();
    let everybody: Vec<MinionId> = ids.iter().map(|id| minion(id)).collect();
    assert_eq!(store.claim_chunk(claim(id, everybody.clone())).await.unwrap(), everybody);
    assert_eq!(store.holders(&everybody).await.unwrap().len(), 2000);
    let end = |name: &&str| MinionMove {
        transitions: actions.iter().map(|step| transition(6, *step, name, Input::Prerequisite)).collect(),
        outcome: Some("failed"),
        ..moving(6, id, name, Sent, Ended)
    };
    assert_eq!(store.move_minions(ids.iter().map(end).collect()).await.unwrap(), [true; 2000]);
    let over = launched(&store, id).await;
    let counts = LaunchCounts { total: 2000, failed: 2000, ..LaunchCounts::default() };
    assert_eq!((over.counts, over.ended), (counts, Some(at(6))));
    let counts = stored(&store, actions[9]).await.counts;
    assert_eq!(counts, Counts { total: 2000, failed: 2000, ..Counts::default() });
}

async fn of_launches_on_several_servers_one_holds_a_minion(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..10 {
        let names: Vec<String> = names(60).into_iter().map(|name| format!("{name}r{round}")).collect();
        let ids: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut launches = Vec::new();
        for n in 1..=4 {
            launches.push(stores[0].create_launch(launch(round * 10 + n, 1, &ids)).await.unwrap().0);
        }
        // Two launches on each server, and each wants the minions in another order.
        let claims = launches.iter().enumerate().map(|(place, id)| {
            let mut wanted: Vec<MinionId> = ids.iter().map(|id| minion(id)).collect();
            wanted.rotate_left(place * 13);
            stores[place % 2].claim_chunk(claim(*id, wanted))
        });
        let taken = futures_util::future::try_join_all(claims).await.unwrap();
        let mut all: Vec<MinionId> = taken.iter().flatten().cloned().collect();
        all.sort();
        let everybody: Vec<MinionId> = ids.iter().map(|id| minion(id)).collect();
        assert_eq!(all, everybody, "each is taken, and once");
        let held = stores[1].holders(&everybody).await.unwrap();
        for (id, taken) in launches.iter().zip(taken) {
            let its: Vec<_> = held.iter().filter(|(_, by)| by == id).map(|(minion, _)| minion.clone()).collect();
            assert_eq!(its, taken);
        }
    }
}

async fn ends_on_several_servers_are_counted_once(database: Database) {
    let stores = [database.open().await, database.open().await];
    let names = names(100);
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let (id, actions) = stores[0].create_launch(launch(1, 1, &ids)).await.unwrap();
    let end = |name: &str| MinionMove {
        transitions: vec![transition(6, actions[0], name, Input::Prerequisite)],
        ..moving(6, id, name, Waiting, Ended)
    };
    // Both servers end everybody, one from the front and one from the back.
    let go = async |store: &Store, mut ids: Vec<&str>, backwards: bool| {
        if backwards {
            ids.reverse();
        }
        let moves = ids.chunks(7).map(|few| store.move_minions(few.iter().map(|name| end(name)).collect()));
        let moved = futures_util::future::try_join_all(moves).await.unwrap();
        moved.into_iter().flatten().filter(|moved| *moved).count()
    };
    let (one, other) = tokio::join!(go(&stores[0], ids.clone(), false), go(&stores[1], ids.clone(), true));
    assert_eq!(one + other, 100);
    let over = launched(&stores[0], id).await;
    assert_eq!((over.counts.completed, over.counts.open, over.ended), (100, 0, Some(at(6))));
    assert_eq!(stored(&stores[0], actions[0]).await.counts.failed, 100);
}

async fn a_cancel_that_races_claims_leaves_nobody_waiting(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 1..=10 {
        let names: Vec<String> = names(20).into_iter().map(|name| format!("{name}r{round}")).collect();
        let ids: Vec<&str> = names.iter().map(String::as_str).collect();
        let (id, _) = stores[0].create_launch(launch(round, 1, &ids)).await.unwrap();
        let everybody: Vec<MinionId> = ids.iter().map(|id| minion(id)).collect();
        let claims = everybody.chunks(5).map(|few| stores[0].claim_chunk(claim(id, few.to_vec())));
        let cancel = stores[1].cancel_launch(id, at(7), "ann".into(), false, None, None);
        let (taken, cancelled) = tokio::join!(futures_util::future::try_join_all(claims), cancel);
        let taken: usize = taken.unwrap().iter().map(Vec::len).sum();
        // When everything was taken before, the launch is still open, so there is always an answer.
        let cancelled = cancelled.unwrap().unwrap().minions.len();
        assert_eq!(taken + cancelled, 20);
        assert_eq!(stores[0].launch_minions(id, Some(Waiting), "", ALL).await.unwrap(), []);
    }
}
