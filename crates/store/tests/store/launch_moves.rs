//! Minions of a launch: each is taken by one launch at a time, moves once from where it stands, and the last one ends it.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    all_tags, at, event, jid, launch, launched, minion, minions, moving, standing, stored, transition,
};
use saltern_core::ids::{ActionId, Jid, LaunchId};
use saltern_core::run::{Input, RunState, Verdict};
use saltern_core::time::Timestamp;
use saltern_store::MinionState::{Asking, Ended, Restarting, Sent, Waiting};
use saltern_store::{
    ChunkClaim, Counts, Error, LaunchCounts, MinionMove, NewEvent, Options, RunChanged, Store, Teller,
};
use std::sync::Arc;

on_both_databases! {
    a_claimed_minion_is_sent_and_held,
    only_who_waits_for_the_chunk_is_claimed,
    nothing_of_a_launch_that_was_cancelled_is_claimed,
    a_minion_is_held_by_one_launch_at_a_time,
    a_minion_that_is_held_waits_between_chunks,
    a_carrier_is_noted_while_it_is_under_way,
    a_move_happens_once,
    a_move_says_all_about_a_minion,
    a_minion_may_move_twice_in_one_write,
    what_belongs_to_a_move_happens_with_it_or_not_at_all,
    the_last_minion_ends_the_launch,
    the_end_of_a_launch_is_told_last,
    who_has_ended_moves_no_more,
    open_launches_of_a_minion_are_found,
}

fn chunk(n: i64, launch: LaunchId, chunk: i64, ids: &[&str]) -> ChunkClaim {
    ChunkClaim { launch, chunk, minions: minions(ids), at: at(n) }
}

/// Puts the ends into tags.
struct Words;

impl Teller for Words {
    fn run_changed(&self, _change: &RunChanged<'_>) -> Option<NewEvent> {
        None
    }

    fn action_ended(&self, action: ActionId, _jid: Option<Jid>, _counts: &Counts, _at: Timestamp) -> Vec<NewEvent> {
        vec![event(&format!("action/{action}/ended"))]
    }

    fn launch_ended(
        &self,
        launch: LaunchId,
        head: Option<ActionId>,
        counts: &LaunchCounts,
        _at: Timestamp,
    ) -> Vec<NewEvent> {
        let LaunchCounts { total, open, completed, failed, cancelled } = counts;
        let head = head.map_or_else(|| "-".into(), |head| head.to_string());
        vec![event(&format!("launch/{launch}/{head}/{total}/{open}/{completed}/{failed}/{cancelled}"))]
    }
}

async fn create(store: &Store, n: i64, ids: &[&str]) -> LaunchId {
    store.create_launch(launch(n, 2, ids)).await.unwrap().0
}

async fn a_claimed_minion_is_sent_and_held(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["a", "b"]).await;
    assert_eq!(store.claim_chunk(chunk(5, id, 1, &["b", "a", "b"])).await.unwrap(), minions(&["a", "b"]));
    let now = standing(&store, id, "a").await;
    assert_eq!((now.state, now.holds, now.since, now.carrier), (Sent, true, at(5), None));
    assert_eq!(store.claim_chunk(chunk(6, id, 1, &["a", "b"])).await.unwrap(), [], "and only once");
}

async fn only_who_waits_for_the_chunk_is_claimed(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["a", "b", "c"]).await;
    let on = MinionMove { chunk: 2, ..moving(2, id, "b", Waiting, Waiting) };
    let over = moving(2, id, "c", Waiting, Ended);
    assert_eq!(store.move_minions(vec![on, over]).await.unwrap(), [true, true]);
    assert_eq!(store.claim_chunk(chunk(5, id, 1, &["a", "b", "c", "z"])).await.unwrap(), minions(&["a"]));
    assert_eq!(store.claim_chunk(chunk(6, id, 2, &["a", "b", "c", "z"])).await.unwrap(), minions(&["b"]));
}

async fn nothing_of_a_launch_that_was_cancelled_is_claimed(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["a", "b"]).await;
    store.claim_chunk(chunk(2, id, 1, &["a"])).await.unwrap();
    store.cancel_launch(id, at(3), "ann".into(), false, None, None).await.unwrap();
    let back = MinionMove { chunk: 2, ..moving(4, id, "a", Sent, Waiting) };
    store.move_minions(vec![back]).await.unwrap();
    assert_eq!(store.claim_chunk(chunk(5, id, 2, &["a"])).await.unwrap(), []);
    assert_eq!(store.claim_chunk(chunk(5, LaunchId(404), 1, &["a"])).await.unwrap(), []);
}

async fn a_minion_is_held_by_one_launch_at_a_time(database: Database) {
    let store = database.open().await;
    let (one, other) = (create(&store, 1, &["a", "b"]).await, create(&store, 2, &["a", "c"]).await);
    assert_eq!(store.claim_chunk(chunk(5, one, 1, &["a", "b"])).await.unwrap(), minions(&["a", "b"]));
    assert_eq!(store.claim_chunk(chunk(6, other, 1, &["a", "c"])).await.unwrap(), minions(&["c"]));
    let held = store.holders(&minions(&["c", "a", "z"])).await.unwrap();
    assert_eq!(held, [(minion("a"), one), (minion("c"), other)], "and not those that nobody asked about");
    assert_eq!(store.holders(&[]).await.unwrap(), []);

    store.move_minions(vec![moving(7, one, "a", Sent, Ended)]).await.unwrap();
    assert!(!standing(&store, one, "a").await.holds);
    assert_eq!(store.claim_chunk(chunk(8, other, 1, &["a"])).await.unwrap(), minions(&["a"]), "it is free again");
}

async fn a_minion_that_is_held_waits_between_chunks(database: Database) {
    let store = database.open().await;
    let (one, other) = (create(&store, 1, &["a"]).await, create(&store, 2, &["a"]).await);
    store.claim_chunk(chunk(5, one, 1, &["a"])).await.unwrap();
    let next = MinionMove { chunk: 2, ..moving(6, one, "a", Sent, Waiting) };
    store.move_minions(vec![next]).await.unwrap();
    assert!(standing(&store, one, "a").await.holds);
    assert_eq!(store.claim_chunk(chunk(7, other, 1, &["a"])).await.unwrap(), []);
    assert_eq!(store.claim_chunk(chunk(8, one, 2, &["a"])).await.unwrap(), minions(&["a"]));
}

async fn a_carrier_is_noted_while_it_is_under_way(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["a", "b"]).await;
    store.claim_chunk(chunk(5, id, 1, &["a"])).await.unwrap();
    store.set_carrier(id, minions(&["a", "b", "z"]), ActionId(9)).await.unwrap();
    assert_eq!(standing(&store, id, "a").await.carrier, Some(ActionId(9)));
    assert_eq!(standing(&store, id, "b").await.carrier, None, "nothing was sent to it");
    let next = MinionMove { chunk: 2, ..moving(6, id, "a", Sent, Waiting) };
    store.move_minions(vec![next]).await.unwrap();
    store.claim_chunk(chunk(7, id, 2, &["a"])).await.unwrap();
    assert_eq!(standing(&store, id, "a").await.carrier, None, "another chunk has another one");
}

async fn a_move_happens_once(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["a"]).await;
    store.claim_chunk(chunk(5, id, 1, &["a"])).await.unwrap();
    let restarting = moving(6, id, "a", Sent, Restarting);
    assert_eq!(store.move_minions(vec![restarting.clone()]).await.unwrap(), [true]);
    assert_eq!(store.move_minions(vec![restarting]).await.unwrap(), [false], "it does not stand there any more");
    let wrong_chunk = MinionMove { from_chunk: 2, ..moving(7, id, "a", Restarting, Asking) };
    let nobody = moving(7, id, "z", Restarting, Asking);
    assert_eq!(store.move_minions(vec![wrong_chunk, nobody]).await.unwrap(), [false, false]);
    let now = standing(&store, id, "a").await;
    assert_eq!((now.state, now.since), (Restarting, at(6)));
    let ends = vec![moving(8, id, "a", Restarting, Ended), moving(9, id, "a", Restarting, Ended)];
    assert_eq!(store.move_minions(ends).await.unwrap(), [true, false]);
    assert_eq!(launched(&store, id).await.counts.completed, 1, "it is counted once");
}

async fn a_move_says_all_about_a_minion(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["a"]).await;
    store.claim_chunk(chunk(5, id, 1, &["a"])).await.unwrap();
    let full = MinionMove {
        chunk: 2,
        failed: true,
        boot_id: Some("b-1".into()),
        asked: 3,
        message: Some("it restarts".into()),
        ..moving(6, id, "a", Sent, Restarting)
    };
    store.move_minions(vec![full]).await.unwrap();
    let now = standing(&store, id, "a").await;
    assert_eq!((now.chunk, now.failed, now.boot_id.as_deref(), now.asked), (2, true, Some("b-1"), 3));
    assert_eq!((now.message.as_deref(), now.outcome, now.holds), (Some("it restarts"), None, true));
    let end = MinionMove { from_chunk: 2, chunk: 2, outcome: Some("failed"), ..moving(7, id, "a", Restarting, Ended) };
    store.move_minions(vec![end]).await.unwrap();
    let now = standing(&store, id, "a").await;
    assert_eq!((now.outcome.as_deref(), now.holds, now.message), (Some("failed"), false, None));
}

async fn a_minion_may_move_twice_in_one_write(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["b", "a"]).await;
    store.claim_chunk(chunk(5, id, 1, &["a", "b"])).await.unwrap();
    let moves = vec![
        moving(6, id, "b", Sent, Asking),
        moving(6, id, "a", Sent, Asking),
        moving(7, id, "b", Asking, Sent),
        moving(8, id, "a", Restarting, Sent),
    ];
    assert_eq!(store.move_minions(moves).await.unwrap(), [true, true, true, false]);
    assert_eq!((standing(&store, id, "a").await.state, standing(&store, id, "b").await.state), (Asking, Sent));
}

async fn what_belongs_to_a_move_happens_with_it_or_not_at_all(database: Database) {
    let store = database.open().await;
    let (id, actions) = store.create_launch(launch(1, 2, &["a", "b"])).await.unwrap();
    store.claim_chunk(chunk(5, id, 1, &["a", "b"])).await.unwrap();
    let good = Verdict { success: true, retcode: 0 };
    let ended = |id_: &str, from| MinionMove {
        transitions: vec![
            transition(6, actions[0], id_, Input::Return(jid(101), good)),
            transition(6, actions[1], id_, Input::Prerequisite),
        ],
        event: Some(event(&format!("moved/{id_}"))),
        ..moving(6, id, id_, from, Ended)
    };
    assert_eq!(store.move_minions(vec![ended("a", Sent), ended("b", Asking)]).await.unwrap(), [true, false]);
    let state = async |step: usize, id| store.run(actions[step], &minion(id)).await.unwrap().unwrap().state;
    assert_eq!((state(0, "a").await, state(1, "a").await), (RunState::Completed, RunState::Failed));
    assert_eq!((state(0, "b").await, state(1, "b").await), (RunState::Queued, RunState::Queued));
    let counts = stored(&store, actions[0]).await.counts;
    assert_eq!(counts, Counts { total: 2, queued: 1, completed: 1, ..Counts::default() });
    assert_eq!(all_tags(&store).await, ["moved/a"]);
}

async fn the_last_minion_ends_the_launch(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["a", "b", "c"]).await;
    let ending = |n, minion, outcome| MinionMove { outcome: Some(outcome), ..moving(n, id, minion, Waiting, Ended) };
    store.move_minions(vec![ending(7, "a", "completed"), ending(6, "b", "failed")]).await.unwrap();
    let half = launched(&store, id).await;
    let counts = LaunchCounts { total: 3, open: 1, completed: 1, failed: 1, cancelled: 0 };
    assert_eq!((half.counts, half.ended), (counts, None));
    store.move_minions(vec![ending(9, "c", "cancelled")]).await.unwrap();
    let over = launched(&store, id).await;
    let counts = LaunchCounts { total: 3, open: 0, completed: 1, failed: 1, cancelled: 1 };
    assert_eq!((over.counts, over.ended), (counts, Some(at(9))));
    assert_eq!(store.open_launches(LaunchId(0), 10).await.unwrap(), []);
}

async fn the_end_of_a_launch_is_told_last(database: Database) {
    let store = database.open_with(&Options { teller: Some(Arc::new(Words)), ..Options::default() }).await;
    let (id, actions) = store.create_launch(launch(1, 1, &["a", "b"])).await.unwrap();
    let end = |name: &str| MinionMove {
        transitions: vec![transition(6, actions[0], name, Input::Prerequisite)],
        event: Some(event(&format!("moved/{name}"))),
        outcome: Some("failed"),
        ..moving(6, id, name, Waiting, Ended)
    };
    store.move_minions(vec![end("a")]).await.unwrap();
    assert_eq!(all_tags(&store).await, ["moved/a"]);
    store.move_minions(vec![end("b")]).await.unwrap();
    let head = actions[0];
    let wanted =
        ["moved/a".into(), "moved/b".into(), format!("action/{head}/ended"), format!("launch/{id}/{head}/2/0/0/2/0")];
    assert_eq!(all_tags(&store).await, wanted);
}

async fn who_has_ended_moves_no_more(database: Database) {
    let store = database.open().await;
    let id = create(&store, 1, &["a"]).await;
    let without_outcome = MinionMove { outcome: None, ..moving(2, id, "a", Waiting, Ended) };
    let outcome_too_early = MinionMove { outcome: Some("failed"), ..moving(2, id, "a", Waiting, Sent) };
    let after_the_end = moving(2, id, "a", Ended, Waiting);
    for nonsense in [without_outcome, outcome_too_early, after_the_end] {
        let refused = store.move_minions(vec![nonsense]).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    assert_eq!(standing(&store, id, "a").await.state, Waiting);
}

async fn open_launches_of_a_minion_are_found(database: Database) {
    let store = database.open().await;
    let (one, two, three) =
        (create(&store, 1, &["a"]).await, create(&store, 2, &["a", "b"]).await, create(&store, 3, &["a"]).await);
    store.move_minions(vec![moving(5, two, "a", Waiting, Ended)]).await.unwrap();
    let open = store.open_launch_minions_of(&minion("a")).await.unwrap();
    assert_eq!(open.into_iter().map(|one| one.launch).collect::<Vec<_>>(), [one, three]);
}
