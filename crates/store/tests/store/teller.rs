//! The teller: asked for the events of what is decided in the store, which are logged with it.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ack, all_tags, claim, event, minion, queued, returned, transition, verb, work};
use saltern_core::ids::{ActionId, Jid};
use saltern_core::run::{Input, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_store::{Counts, NewEvent, Options, RunChanged, Store, Teller, Transition};
use std::sync::Arc;

on_both_databases! {
    a_transition_is_told_with_what_was_said,
    a_verb_is_told_for_each_run_that_it_changed,
    what_brings_its_own_events_is_not_told,
    a_wait_that_changes_nothing_is_not_told_again,
    the_end_of_an_action_is_told_once,
    an_action_that_was_reopened_ends_again,
    without_a_teller_nothing_is_told,
}

/// Puts all it is told into the tag.
struct Words;

impl Teller for Words {
    fn run_changed(&self, change: &RunChanged<'_>) -> Option<NewEvent> {
        let RunChanged { action, minion, state, reason, waiting_for, message, .. } = change;
        let why = reason.map(|reason| reason.as_str()).or(waiting_for.map(|what| what.as_str())).unwrap_or("-");
        let tag = format!("run/{action}/{minion}/{}/{why}/{}", state.as_str(), message.unwrap_or("-"));
        Some(NewEvent { minion: Some((*minion).clone()), jid: change.jid, ..event(&tag) })
    }

    fn action_ended(&self, action: ActionId, jid: Option<Jid>, counts: &Counts, at: Timestamp) -> Vec<NewEvent> {
        let Counts { total, completed, failed, cancelled, .. } = counts;
        let tag = format!("ended/{action}/{total}/{completed}/{failed}/{cancelled}");
        vec![NewEvent { at, jid, ..event(&tag) }]
    }
}

async fn a_transition_is_told_with_what_was_said(database: Database) {
    let store = open(&database).await;
    let action = store.create(work(1, &["web1", "web2"])).await.unwrap();
    let said = Transition { message: Some("asked".into()), ..transition(5, action, "web1", Input::Redeliver) };
    store.transit(vec![said, transition(6, action, "web2", Input::Unreachable)]).await.unwrap();
    assert_eq!(told(&store).await, ["run/1/web1/queued/redelivery/asked"], "and not what changed nothing");
}

async fn a_verb_is_told_for_each_run_that_it_changed(database: Database) {
    let store = open(&database).await;
    let action = store.create(queued(1, &["a", "b", "c"])).await.unwrap();
    store.claim(claim(2, action, &["b"])).await.unwrap();
    store.apply(verb(5, action, Input::Cancel)).await.unwrap();
    assert_eq!(told(&store).await, ["run/1/a/cancelled/cancelled/-", "run/1/c/cancelled/cancelled/-"]);
}

async fn what_brings_its_own_events_is_not_told(database: Database) {
    let store = open(&database).await;
    let action = store.create(queued(1, &["a", "b"])).await.unwrap();
    store.claim(claim(2, action, &["a"])).await.unwrap();
    store.record_ack(ack(2, action, "a")).await.unwrap();
    store.record_return(returned(2, Some(action), "a")).await.unwrap();
    assert_eq!(told(&store).await, [""; 0]);
}

async fn a_wait_that_changes_nothing_is_not_told_again(database: Database) {
    let store = open(&database).await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    for n in 5..9 {
        let wait = Input::Wait(WaitingFor::Slot, Some(crate::fixtures::at(n + 100)));
        store.transit(vec![transition(n, action, "web1", wait)]).await.unwrap();
    }
    assert_eq!(told(&store).await, ["run/1/web1/queued/slot/-"]);
    let due = store.run(action, &minion("web1")).await.unwrap().unwrap().due;
    assert_eq!(due, Some(crate::fixtures::at(108)), "it waits for the newest time all the same");
}

async fn the_end_of_an_action_is_told_once(database: Database) {
    let store = open(&database).await;
    let names: Vec<String> = (0..100).map(|n| format!("m{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let action = store.create(work(1, &names)).await.unwrap();
    let returns = names.iter().map(|id| store.record_return(returned(1, Some(action), id)));
    futures_util::future::try_join_all(returns).await.unwrap();
    // Late and doubled returns of what is over.
    let again = names.iter().map(|id| store.record_return(returned(1, Some(action), id)));
    futures_util::future::try_join_all(again).await.unwrap();
    assert_eq!(told(&store).await, ["ended/1/100/100/0/0"]);
    let tags = all_tags(&store).await;
    assert_eq!(tags.last().map(String::as_str), Some("ended/1/100/100/0/0"), "after all that led to it");
}

async fn an_action_that_was_reopened_ends_again(database: Database) {
    let store = open(&database).await;
    let action = store.create(work(1, &["a"])).await.unwrap();
    store.transit(vec![transition(5, action, "a", Input::Fail)]).await.unwrap();
    store.apply(verb(6, action, Input::Retry)).await.unwrap();
    store.claim(claim(7, action, &["a"])).await.unwrap();
    store.record_return(returned(7, Some(action), "a")).await.unwrap();
    let wanted = ["run/1/a/failed/failed_by_hand/-", "ended/1/1/0/1/0", "run/1/a/queued/due/-", "ended/1/1/1/0/0"];
    assert_eq!(told(&store).await, wanted);
}

async fn without_a_teller_nothing_is_told(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["a"])).await.unwrap();
    store.transit(vec![transition(5, action, "a", Input::Fail)]).await.unwrap();
    assert_eq!(all_tags(&store).await, ["job/1/new"]);
}

async fn open(database: &Database) -> Store {
    database.open_with(&Options { teller: Some(Arc::new(Words)), ..Options::default() }).await
}

/// The tags that come from the teller.
async fn told(store: &Store) -> Vec<String> {
    let ours = |tag: &String| tag.starts_with("run/") || tag.starts_with("ended/");
    all_tags(store).await.into_iter().filter(ours).collect()
}
