//! Runs: every change names the state it may leave.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ack, all_tags, at, minion, minions, returned, run, work};
use saltern_core::ids::ActionId;
use saltern_core::run::RunState;
use saltern_store::Ack;

on_both_databases! {
    an_ack_picks_the_run_up,
    a_second_ack_is_no_news,
    an_ack_after_the_return_changes_nothing,
    an_ack_for_another_job_of_the_action_changes_nothing,
    an_ack_from_a_stranger_changes_nothing,
    an_acks_events_are_logged_even_when_it_is_no_news,
    of_many_acks_at_once_one_is_news,
    runs_come_in_pages_by_minion,
}

async fn an_ack_picks_the_run_up(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    assert!(store.record_ack(ack(1, action, "web1")).await.unwrap());
    let after = run(&store, action).await;
    assert_eq!((after.state, after.picked_up, after.ended), (RunState::PickedUp, Some(at(11)), None));
}

async fn a_second_ack_is_no_news(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.record_ack(ack(1, action, "web1")).await.unwrap();
    let first = run(&store, action).await;
    let later = Ack { at: at(99), ..ack(1, action, "web1") };
    assert!(!store.record_ack(later).await.unwrap());
    assert_eq!(run(&store, action).await, first);
}

async fn an_ack_after_the_return_changes_nothing(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    let ended = run(&store, action).await;
    assert!(!store.record_ack(ack(1, action, "web1")).await.unwrap());
    assert_eq!(run(&store, action).await, ended);
}

async fn an_ack_for_another_job_of_the_action_changes_nothing(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    assert!(!store.record_ack(ack(2, action, "web1")).await.unwrap());
    assert_eq!(run(&store, action).await.state, RunState::Sent);
}

async fn an_ack_from_a_stranger_changes_nothing(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    assert!(!store.record_ack(ack(1, action, "db1")).await.unwrap());
    assert!(!store.record_ack(ack(1, ActionId(404), "web1")).await.unwrap());
    let only = run(&store, action).await;
    assert_eq!((only.minion, only.state), (minion("web1"), RunState::Sent));
}

async fn an_acks_events_are_logged_even_when_it_is_no_news(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.record_ack(ack(1, action, "web1")).await.unwrap();
    store.record_ack(ack(1, action, "web1")).await.unwrap();
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/1/ack/web1", "job/1/ack/web1"]);
}

async fn of_many_acks_at_once_one_is_news(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let acks = (0..40).map(|n| store.record_ack(Ack { at: at(n), ..ack(1, action, "web1") }));
    let news = futures_util::future::try_join_all(acks).await.unwrap();
    assert_eq!(news.iter().filter(|news| **news).count(), 1);
}

async fn runs_come_in_pages_by_minion(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["d", "b", "a", "E", "c"])).await.unwrap();
    store.create(work(2, &["a", "z"])).await.unwrap();
    let page = async |after| {
        let runs = store.runs(action, after, 2).await.unwrap();
        runs.into_iter().map(|run| run.minion).collect::<Vec<_>>()
    };
    assert_eq!(page("").await, minions(&["E", "a"]));
    assert_eq!(page("a").await, minions(&["b", "c"]));
    assert_eq!(page("c").await, minions(&["d"]));
    assert_eq!(page("d").await, []);
}
