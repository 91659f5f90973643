//! Work that waits and may have to keep to a maintenance window.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, PATIENCE, at, claim, launch, launched, minions, moving, queued, stored, transition};
use saltern_core::ids::ActionId;
use saltern_core::run::Input;
use saltern_store::{MinionState, NewAction, NewWork, Store};

on_both_databases! {
    what_waits_on_these_minions_is_found,
    what_was_sent_or_has_ended_or_is_housekeeping_is_not,
    a_launch_that_has_not_begun_is_there_with_its_first_step,
    many_runs_are_found_in_their_order,
    a_deadline_is_raised_and_never_lowered,
    a_step_raises_that_of_its_launch,
}

async fn waits(store: &Store, ids: &[&str], limit: usize) -> Vec<(String, ActionId)> {
    let found = store.restricted_queue(&minions(ids), limit).await.unwrap();
    found.into_iter().map(|(action, run)| (run.minion.to_string(), action.id)).collect()
}

fn on(id: &str, action: ActionId) -> (String, ActionId) {
    (id.to_owned(), action)
}

async fn what_waits_on_these_minions_is_found(database: Database) {
    let store = database.open().await;
    let one = store.create(queued(1, &["a", "b", "c", "d"])).await.unwrap();
    let two = store.create(queued(2, &["a"])).await.unwrap();
    assert_eq!(waits(&store, &["c", "a"], ALL).await, [on("a", one), on("a", two), on("c", one)]);
    assert_eq!(waits(&store, &["c", "a"], 2).await, [on("a", one), on("a", two)]);
    assert_eq!(waits(&store, &["nobody"], ALL).await, []);
    assert_eq!(waits(&store, &[], ALL).await, []);
}

async fn what_was_sent_or_has_ended_or_is_housekeeping_is_not(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["a", "b", "c"])).await.unwrap();
    store.claim(claim(2, action, &["a"])).await.unwrap();
    store.transit(vec![transition(3, action, "b", Input::Cancel)]).await.unwrap();
    let plain = queued(4, &["a"]);
    let own = NewAction { internal: true, ..plain.action };
    store.create(NewWork { action: own, ..plain }).await.unwrap();
    assert_eq!(waits(&store, &["a", "b", "c"], ALL).await, [on("c", action)]);
    store.transit(vec![transition(5, action, "a", Input::Redeliver)]).await.unwrap();
    assert_eq!(waits(&store, &["a"], ALL).await, [], "it may have begun");
}

async fn a_launch_that_has_not_begun_is_there_with_its_first_step(database: Database) {
    let store = database.open().await;
    let (id, steps) = store.create_launch(launch(1, 2, &["a", "b"])).await.unwrap();
    assert_eq!(waits(&store, &["a", "b"], ALL).await, [on("a", steps[0]), on("b", steps[0])]);
    store.move_minions(vec![moving(2, id, "a", MinionState::Waiting, MinionState::Sent)]).await.unwrap();
    assert_eq!(waits(&store, &["a", "b"], ALL).await, [on("b", steps[0])]);
    store.transit(vec![transition(3, steps[0], "b", Input::NotNeeded)]).await.unwrap();
    assert_eq!(waits(&store, &["b"], ALL).await, [on("b", steps[1])]);
}

async fn many_runs_are_found_in_their_order(database: Database) {
    let store = database.open().await;
    let ids: Vec<String> = (0..2500).map(|n| format!("m{n:04}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let action = store.create(queued(1, &ids)).await.unwrap();
    let wanted: Vec<_> = ids.iter().map(|id| on(id, action)).collect();
    assert_eq!(waits(&store, &ids, ALL).await, wanted);
}

async fn a_deadline_is_raised_and_never_lowered(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["a"])).await.unwrap();
    assert!(store.extend_deadline(action, at(2 * PATIENCE)).await.unwrap());
    assert!(!store.extend_deadline(action, at(PATIENCE)).await.unwrap());
    assert_eq!(stored(&store, action).await.new.deadline, at(2 * PATIENCE));
    assert!(!store.extend_deadline(ActionId(404), at(9 * PATIENCE)).await.unwrap());
}

async fn a_step_raises_that_of_its_launch(database: Database) {
    let store = database.open().await;
    let (id, steps) = store.create_launch(launch(1, 2, &["a"])).await.unwrap();
    assert!(store.extend_deadline(steps[1], at(2 * PATIENCE)).await.unwrap());
    assert_eq!(launched(&store, id).await.deadline, at(2 * PATIENCE));
    assert_eq!(stored(&store, steps[0]).await.new.deadline, at(2 * PATIENCE));
}
