//! What people do to launches: a cancel is final and done once, an approval is given once.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    at, audit, audited, jid, launch, launched, minion, minions, moving, standing, stored, transition,
};
use saltern_core::ids::LaunchId;
use saltern_core::run::{Input, RunState};
use saltern_store::{Approval, ChunkClaim, Counts, LaunchCancelled, LaunchCounts, MinionState};

on_both_databases! {
    a_cancel_ends_what_has_not_begun,
    a_launch_on_which_nothing_is_under_way_ends_with_its_cancel,
    who_cancels_again_changes_nothing,
    a_stop_after_a_cancel_is_news,
    what_has_ended_cannot_be_cancelled,
    an_approval_is_kept_with_who_gave_it,
    a_launch_that_was_cancelled_needs_no_approval,
}

async fn a_cancel_ends_what_has_not_begun(database: Database) {
    let store = database.open().await;
    let (id, actions) = store.create_launch(launch(1, 2, &["a", "b", "c"])).await.unwrap();
    let claim = ChunkClaim { launch: id, chunk: 1, minions: minions(&["b"]), at: at(2) };
    store.claim_chunk(claim).await.unwrap();
    store.transit(vec![transition(3, actions[0], "b", Input::Ack(jid(101)))]).await.unwrap();

    let said = Some("cancelled by ann".to_owned());
    let done = store.cancel_launch(id, at(5), "ann".into(), false, Some(audit("chain.cancel")), said).await.unwrap();
    let run = |step: usize, id| (actions[step], minion(id));
    let wanted = LaunchCancelled {
        news: true,
        runs: vec![run(0, "a"), run(0, "c"), run(1, "a"), run(1, "c")],
        minions: minions(&["a", "c"]),
    };
    assert_eq!(done, Some(wanted));

    let now = launched(&store, id).await;
    assert_eq!((now.cancelled, now.stopped, now.ended), (Some((at(5), "ann".into())), false, None));
    assert_eq!(now.counts, LaunchCounts { total: 3, open: 1, cancelled: 2, ..LaunchCounts::default() });
    let over = standing(&store, id, "a").await;
    assert_eq!((over.state, over.outcome.as_deref(), over.since), (MinionState::Ended, Some("cancelled"), at(5)));
    assert_eq!(over.message.as_deref(), Some("cancelled by ann"));
    assert_eq!(standing(&store, id, "b").await.state, MinionState::Sent, "it is under way");
    let run = store.run(actions[1], &minion("b")).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::Queued, "whether it begins before it is told is for the minion to say");
    let counts = stored(&store, actions[0]).await.counts;
    assert_eq!(counts, Counts { total: 3, running: 1, cancelled: 2, ..Counts::default() });
    assert_eq!(audited(&store).await, ["chain.cancel"]);
}

async fn a_launch_on_which_nothing_is_under_way_ends_with_its_cancel(database: Database) {
    let store = database.open().await;
    let (id, actions) = store.create_launch(launch(1, 1, &["a", "b"])).await.unwrap();
    store.cancel_launch(id, at(5), "ann".into(), false, None, None).await.unwrap().unwrap();
    let over = launched(&store, id).await;
    assert_eq!((over.ended, over.counts.cancelled, over.counts.open), (Some(at(5)), 2, 0));
    assert_eq!(stored(&store, actions[0]).await.ended, Some(at(5)));
}

async fn who_cancels_again_changes_nothing(database: Database) {
    let store = database.open().await;
    let (id, _) = store.create_launch(launch(1, 1, &["a", "b"])).await.unwrap();
    let claim = ChunkClaim { launch: id, chunk: 1, minions: minions(&["b"]), at: at(2) };
    store.claim_chunk(claim).await.unwrap();
    let cancel = async |n, by: &str| {
        store.cancel_launch(id, at(n), by.into(), false, Some(audit(by)), None).await.unwrap().unwrap()
    };
    assert!(cancel(5, "ann").await.news);
    let before = launched(&store, id).await;
    let nothing = LaunchCancelled { news: false, runs: Vec::new(), minions: Vec::new() };
    assert_eq!(cancel(6, "bob").await, nothing);
    assert_eq!(launched(&store, id).await, before);
    assert_eq!(audited(&store).await, ["ann"]);
}

async fn a_stop_after_a_cancel_is_news(database: Database) {
    let store = database.open().await;
    let (id, _) = store.create_launch(launch(1, 1, &["a"])).await.unwrap();
    let claim = ChunkClaim { launch: id, chunk: 1, minions: minions(&["a"]), at: at(2) };
    store.claim_chunk(claim).await.unwrap();
    let cancel = async |n, by: &str, stop| {
        store.cancel_launch(id, at(n), by.into(), stop, Some(audit(by)), None).await.unwrap().unwrap().news
    };
    assert!(cancel(5, "ann", false).await && cancel(6, "bob", true).await);
    assert!(!cancel(7, "eve", true).await && !cancel(8, "eve", false).await);
    let now = launched(&store, id).await;
    assert_eq!((now.cancelled, now.stopped), (Some((at(5), "ann".into())), true));
    assert_eq!(audited(&store).await, ["ann", "bob"]);
}

async fn what_has_ended_cannot_be_cancelled(database: Database) {
    let store = database.open().await;
    let (id, _) = store.create_launch(launch(1, 1, &["a"])).await.unwrap();
    store.move_minions(vec![moving(2, id, "a", MinionState::Waiting, MinionState::Ended)]).await.unwrap();
    for id in [id, LaunchId(404)] {
        let done = store.cancel_launch(id, at(5), "ann".into(), true, Some(audit("x")), None).await.unwrap();
        assert_eq!(done, None);
    }
    assert_eq!(launched(&store, id).await.cancelled, None);
    assert_eq!(audited(&store).await, [""; 0]);
}

async fn an_approval_is_kept_with_who_gave_it(database: Database) {
    let store = database.open().await;
    let (id, _) = store.create_launch(launch(1, 3, &["a"])).await.unwrap();
    assert!(store.approve(id, 3, "ann".into(), at(5), audit("first")).await.unwrap());
    assert!(!store.approve(id, 3, "bob".into(), at(6), audit("second")).await.unwrap());
    assert!(store.approve(id, 2, "b\"ob\0".into(), at(7), audit("third")).await.unwrap());
    let approval = |step, by: &str, n| Approval { step, by: by.into(), at: at(n) };
    assert_eq!(launched(&store, id).await.approvals, [approval(3, "ann", 5), approval(2, "b\"ob\0", 7)]);
    assert_eq!(audited(&store).await, ["first", "third"]);
}

async fn a_launch_that_was_cancelled_needs_no_approval(database: Database) {
    let store = database.open().await;
    let (id, _) = store.create_launch(launch(1, 1, &["a", "b"])).await.unwrap();
    let claim = ChunkClaim { launch: id, chunk: 1, minions: minions(&["a"]), at: at(2) };
    store.claim_chunk(claim).await.unwrap();
    store.cancel_launch(id, at(5), "ann".into(), false, None, None).await.unwrap();
    for id in [id, LaunchId(404)] {
        assert!(!store.approve(id, 1, "ann".into(), at(6), audit("x")).await.unwrap());
    }
}
