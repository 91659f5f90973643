//! Verbs: what is done to a whole action at once, and what each run says to it.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, ack, all_audit, at, audit, claim, minion, minions, queued, returned, stored, transition, verb, work,
};
use saltern_core::ids::ActionId;
use saltern_core::run::{Input, Reason, Refusal, RunState};
use saltern_store::{Counts, Store, Verb};

on_both_databases! {
    a_cancel_says_for_each_run_what_became_of_it,
    a_verb_for_some_minions_leaves_the_others_alone,
    a_retry_of_the_failed_leaves_the_others_alone,
    a_retry_reopens_the_action_and_gives_it_time,
    a_retry_that_reopens_nothing_moves_no_deadline,
    a_deadline_ends_all_that_is_open,
    what_is_failed_by_hand_says_so,
    a_verb_is_audited,
    a_verb_for_an_action_that_does_not_exist_says_nothing,
    a_verb_reaches_every_run_of_a_large_action,
}

async fn a_cancel_says_for_each_run_what_became_of_it(database: Database) {
    let store = database.open().await;
    let action = mixed(&store).await;
    let fates = store.apply(verb(50, action, Input::Cancel)).await.unwrap();
    let wanted = [
        ("done", Err(Refusal::Ended)),
        ("failed", Err(Refusal::Ended)),
        ("picked", Err(Refusal::Sent)),
        ("sent", Err(Refusal::Sent)),
        ("waits", Ok(RunState::Cancelled)),
    ];
    assert_eq!(fates, wanted.map(|(id, fate)| (minion(id), fate)));
    let counts = Counts { total: 5, running: 2, completed: 1, failed: 1, cancelled: 1, ..Counts::default() };
    assert_eq!(stored(&store, action).await.counts, counts);
}

async fn a_verb_for_some_minions_leaves_the_others_alone(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["a", "b", "c"])).await.unwrap();
    let some = Verb { minions: Some(minions(&["c", "a", "z"])), ..verb(5, action, Input::Cancel) };
    let cancelled = Ok(RunState::Cancelled);
    assert_eq!(store.apply(some).await.unwrap(), [(minion("a"), cancelled), (minion("c"), cancelled)]);
    assert_eq!(store.run(action, &minion("b")).await.unwrap().unwrap().state, RunState::Queued);
    let nobody = Verb { minions: Some(Vec::new()), ..verb(6, action, Input::Cancel) };
    assert_eq!(store.apply(nobody).await.unwrap(), [], "no minions is not all minions");
}

async fn a_retry_of_the_failed_leaves_the_others_alone(database: Database) {
    let store = database.open().await;
    let action = mixed(&store).await;
    let failed = Verb { only_failed: true, ..verb(50, action, Input::Retry) };
    assert_eq!(store.apply(failed).await.unwrap(), [(minion("failed"), Ok(RunState::Queued))]);
    let done = store.run(action, &minion("done")).await.unwrap().unwrap();
    assert_eq!(done.state, RunState::Completed);
}

async fn a_retry_reopens_the_action_and_gives_it_time(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    assert_eq!(stored(&store, action).await.ended, Some(at(21)));
    let again = Verb { deadline: Some(at(9000)), ..verb(50, action, Input::Retry) };
    store.apply(again).await.unwrap();
    let reopened = stored(&store, action).await;
    assert_eq!((reopened.ended, reopened.new.deadline), (None, at(9000)));
    assert_eq!(reopened.counts, Counts { total: 1, queued: 1, ..Counts::default() });
    assert_eq!(store.open_actions(ActionId(0), ALL).await.unwrap().len(), 1);

    store.claim(claim(60, action, &["web1"])).await.unwrap();
    store.record_return(returned(60, Some(action), "web1")).await.unwrap();
    assert_eq!(stored(&store, action).await.ended, Some(at(80)), "and it ends anew");
}

async fn a_retry_that_reopens_nothing_moves_no_deadline(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let before = stored(&store, action).await;
    let early = Verb { deadline: Some(at(9000)), ..verb(50, action, Input::Retry) };
    assert_eq!(store.apply(early).await.unwrap(), [(minion("web1"), Err(Refusal::Open))]);
    assert_eq!(stored(&store, action).await, before);
}

async fn a_deadline_ends_all_that_is_open(database: Database) {
    let store = database.open().await;
    let action = mixed(&store).await;
    let fates = store.apply(verb(50, action, Input::Deadline)).await.unwrap();
    let ended: Vec<&str> = fates.iter().map(|(minion, _)| minion.as_str()).collect();
    assert_eq!(ended, ["picked", "sent", "waits"], "and says nothing of what had ended");
    let reason = async |id| store.run(action, &minion(id)).await.unwrap().unwrap().reason;
    assert_eq!(reason("picked").await, Some(Reason::Lost));
    assert_eq!(reason("sent").await, Some(Reason::NotDelivered));
    assert_eq!(reason("waits").await, Some(Reason::Expired));
    let over = stored(&store, action).await;
    assert_eq!(over.counts, Counts { total: 5, completed: 1, failed: 4, unreachable: 2, ..Counts::default() });
    assert_eq!(over.ended, Some(at(50)));
}

async fn what_is_failed_by_hand_says_so(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let said = Verb { message: Some("the machine burnt down".into()), ..verb(5, action, Input::Fail) };
    store.apply(said).await.unwrap();
    let failed = store.run(action, &minion("web1")).await.unwrap().unwrap();
    assert_eq!(failed.reason, Some(Reason::FailedByHand));
    assert_eq!(failed.message.as_deref(), Some("the machine burnt down"));
}

async fn a_verb_is_audited(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    let audited = Verb { audit: Some(audit("action.cancel")), ..verb(5, action, Input::Cancel) };
    store.apply(audited).await.unwrap();
    assert_eq!(all_audit(&store).await, [(1, audit("action.cancel"))]);
}

async fn a_verb_for_an_action_that_does_not_exist_says_nothing(database: Database) {
    let store = database.open().await;
    assert_eq!(store.apply(verb(5, ActionId(404), Input::Cancel)).await.unwrap(), []);
}

async fn a_verb_reaches_every_run_of_a_large_action(database: Database) {
    let store = database.open().await;
    let names: Vec<String> = (0..3000).map(|n| format!("m{n:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let action = store.create(queued(1, &names)).await.unwrap();
    let fates = store.apply(verb(5, action, Input::Cancel)).await.unwrap();
    assert_eq!(fates.into_iter().map(|(minion, _)| minion).collect::<Vec<_>>(), minions(&names));
    assert_eq!(stored(&store, action).await.counts, Counts { total: 3000, cancelled: 3000, ..Counts::default() });
}

/// An action with a run in each state: `waits`, `sent`, `picked`, `done` and `failed`.
async fn mixed(store: &Store) -> ActionId {
    let action = store.create(queued(1, &["waits", "sent", "picked", "done", "failed"])).await.unwrap();
    store.claim(claim(2, action, &["sent", "picked", "done", "failed"])).await.unwrap();
    store.record_ack(ack(2, action, "picked")).await.unwrap();
    store.record_return(returned(2, Some(action), "done")).await.unwrap();
    store.transit(vec![transition(30, action, "failed", Input::Fail)]).await.unwrap();
    action
}
