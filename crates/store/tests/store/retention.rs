//! Retention: what is old goes, in small steps, with all that belongs to it, and nothing else does.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, all_events, at, body, claim, event, every_job, jid, minion, minions, queued, returned, transition, verb, work,
};
use saltern_core::ids::ActionId;
use saltern_core::run::Input;
use saltern_store::{ActionFilter, ActionPage, DeadLetter, Deleted, NewEvent, Store};

on_both_databases! {
    only_what_is_archived_and_has_ended_is_deleted,
    a_deleted_action_takes_all_that_belongs_to_it_along,
    a_step_removes_no_more_than_it_may,
    an_action_that_is_being_deleted_is_not_listed,
    what_has_ended_is_purged_without_being_archived,
    finished_actions_come_oldest_first,
    actions_beyond_a_number_are_counted,
    old_events_are_removed_from_the_old_end,
    events_beyond_a_number_are_removed,
    events_that_are_purged_leave_no_gap,
    the_newest_event_always_stays,
    the_oldest_event_that_is_kept_is_known,
    dead_letters_read_back_newest_first,
    old_dead_letters_are_removed,
}

async fn only_what_is_archived_and_has_ended_is_deleted(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    assert_eq!(store.delete_action(ActionId(404), 9).await.unwrap(), Deleted::NotFound);
    store.archive(action, Some(at(5)), None).await.unwrap();
    assert_eq!(store.delete_action(action, 9).await.unwrap(), Deleted::Open);
    store.archive(action, None, None).await.unwrap();
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    assert_eq!(store.delete_action(action, 9).await.unwrap(), Deleted::NotArchived);
    assert!(store.action(action).await.unwrap().is_some());
    store.archive(action, Some(at(6)), None).await.unwrap();
    assert_eq!(store.delete_action(action, 9).await.unwrap(), Deleted::Gone);
    assert_eq!(store.action(action).await.unwrap(), None);
}

async fn a_deleted_action_takes_all_that_belongs_to_it_along(database: Database) {
    let store = database.open().await;
    let (one, other) = (retried(&store, 1).await, retried(&store, 1000).await);
    let (before, log) = (everything(&store, other).await, all_events(&store).await);
    assert_eq!(remove(&store, one, 1000).await, 1);
    assert_eq!(everything(&store, one).await, Everything::default());
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap(), []);
    assert_eq!(store.returns(jid(101), "", ALL).await.unwrap(), []);
    assert_eq!(store.jobs(&every_job()).await.unwrap().len(), 2);
    assert_eq!(everything(&store, other).await, before);
    assert_eq!(all_events(&store).await.len(), log.len(), "the log is purged by itself");
}

async fn a_step_removes_no_more_than_it_may(database: Database) {
    let store = database.open().await;
    let action = retried(&store, 1).await;
    // Two jobs, three runs, three attempts, and returns of both jobs.
    let rows = 2 + 3 + 3 + 6;
    for left in (1..=rows).rev() {
        assert_eq!(count(&store, action).await, left);
        assert_eq!(store.purge_action(action, 1).await.unwrap(), Deleted::More);
    }
    assert_eq!(store.purge_action(action, 1).await.unwrap(), Deleted::Gone);
    assert_eq!(store.purge_action(action, 1).await.unwrap(), Deleted::NotFound);
}

async fn an_action_that_is_being_deleted_is_not_listed(database: Database) {
    let store = database.open().await;
    let action = retried(&store, 1).await;
    store.archive(action, Some(at(900)), None).await.unwrap();
    assert_eq!(store.delete_action(action, 1).await.unwrap(), Deleted::More);
    assert_eq!(store.action(action).await.unwrap(), None);
    for filter in [ActionFilter::All, ActionFilter::Completed] {
        let page = ActionPage { archived: true, filter, limit: ALL, ..ActionPage::default() };
        assert_eq!(store.actions(&page).await.unwrap(), []);
    }
    assert_eq!(store.apply(verb(950, action, Input::Retry)).await.unwrap(), [], "and cannot be reopened");
    assert_eq!(store.finished_actions(at(10_000), ALL).await.unwrap(), [action], "a purge goes on with it");
}

async fn what_has_ended_is_purged_without_being_archived(database: Database) {
    let store = database.open().await;
    let open = store.create(work(500, &["web1"])).await.unwrap();
    assert_eq!(store.purge_action(open, 9).await.unwrap(), Deleted::Open);
    let action = retried(&store, 1).await;
    assert!(remove(&store, action, 4).await > 1);
    assert!(store.action(open).await.unwrap().is_some());
}

async fn finished_actions_come_oldest_first(database: Database) {
    let store = database.open().await;
    for (n, ended) in [(1, 300), (2, 100), (3, 200), (4, 0)] {
        let action = store.create(work(n, &["web1"])).await.unwrap();
        if ended > 0 {
            store.transit(vec![transition(ended, action, "web1", Input::Fail)]).await.unwrap();
        }
    }
    let finished = async |before, limit| {
        let actions = store.finished_actions(at(before), limit).await.unwrap();
        actions.into_iter().map(|action| action.0).collect::<Vec<_>>()
    };
    assert_eq!(finished(1000, ALL).await, [2, 3, 1]);
    assert_eq!(finished(300, ALL).await, [2, 3], "before, not at");
    assert_eq!(finished(1000, 1).await, [2]);
}

async fn actions_beyond_a_number_are_counted(database: Database) {
    let store = database.open().await;
    for n in 1..=5 {
        let action = store.create(work(n, &["web1"])).await.unwrap();
        if n < 5 {
            store.record_return(returned(n, Some(action), "web1")).await.unwrap();
        }
    }
    assert_eq!(store.finished_count_excess(3).await.unwrap(), 1);
    assert_eq!(store.finished_count_excess(4).await.unwrap(), 0);
    assert_eq!(store.finished_count_excess(99).await.unwrap(), 0);
}

async fn old_events_are_removed_from_the_old_end(database: Database) {
    let store = logged(&database, &[10, 20, 30, 40]).await;
    assert_eq!(store.purge_events(at(30), ALL, 100).await.unwrap(), 2);
    assert_eq!(numbers(&store).await, [3, 4]);
    assert_eq!(store.purge_events(at(30), ALL, 100).await.unwrap(), 0);
}

async fn events_beyond_a_number_are_removed(database: Database) {
    let store = logged(&database, &[10, 20, 30, 40, 50, 60]).await;
    assert_eq!(store.purge_events(at(0), 2, 3).await.unwrap(), 3, "as many as a step may");
    assert_eq!(store.purge_events(at(0), 2, 3).await.unwrap(), 1);
    assert_eq!(store.purge_events(at(0), 2, 3).await.unwrap(), 0);
    assert_eq!(numbers(&store).await, [5, 6]);
}

async fn events_that_are_purged_leave_no_gap(database: Database) {
    // A clock that was wrong for a moment.
    let store = logged(&database, &[10, 9000, 20, 30, 40]).await;
    assert_eq!(store.purge_events(at(40), ALL, 100).await.unwrap(), 1);
    assert_eq!(numbers(&store).await, [2, 3, 4, 5]);
}

async fn the_newest_event_always_stays(database: Database) {
    let store = logged(&database, &[10, 20]).await;
    assert_eq!(store.purge_events(at(99), 0, 100).await.unwrap(), 1);
    assert_eq!((numbers(&store).await, store.last_event().await.unwrap()), (vec![2], 2));
    store.close().await;
    let store = database.open().await;
    store.log_events(vec![event("next")]).await.unwrap();
    assert_eq!(numbers(&store).await, [2, 3]);
}

async fn the_oldest_event_that_is_kept_is_known(database: Database) {
    let store = logged(&database, &[]).await;
    assert_eq!(store.first_event().await.unwrap(), None);
    let store = logged(&database, &[10, 20, 30]).await;
    assert_eq!(store.first_event().await.unwrap(), Some(1));
    store.purge_events(at(30), ALL, 100).await.unwrap();
    assert_eq!(store.first_event().await.unwrap(), Some(3));
}

async fn dead_letters_read_back_newest_first(database: Database) {
    let store = database.open().await;
    let stranger = DeadLetter { minion: None, ..letter(2) };
    for new in [letter(1), stranger.clone(), letter(3)] {
        store.dead_letter(new).await.unwrap();
    }
    assert_eq!(store.dead_letters(i64::MAX, 2).await.unwrap(), [(3, letter(3)), (2, stranger)]);
    assert_eq!(store.dead_letters(2, 2).await.unwrap(), [(1, letter(1))]);
}

async fn old_dead_letters_are_removed(database: Database) {
    let store = database.open().await;
    for n in 1..=5 {
        store.dead_letter(letter(n)).await.unwrap();
    }
    assert_eq!(store.purge_dead_letters(at(3), ALL, 100).await.unwrap(), 2);
    assert_eq!(store.purge_dead_letters(at(0), 1, 100).await.unwrap(), 2);
    assert_eq!(store.purge_dead_letters(at(99), 0, 100).await.unwrap(), 1, "not even the newest is needed");
    assert_eq!(store.dead_letters(i64::MAX, ALL).await.unwrap(), []);
}

/// An action of three runs that were all tried twice, as jobs `n` and `n` + 100, and returned both times.
async fn retried(store: &Store, n: i64) -> ActionId {
    let names = ["a", "b", "c"];
    let action = store.create(queued(n, &names)).await.unwrap();
    for job in [n, n + 100] {
        assert_eq!(store.claim(claim(job, action, &names)).await.unwrap(), minions(&names));
        for id in names {
            store.record_return(returned(job, Some(action), id)).await.unwrap();
        }
        if job == n {
            store.apply(verb(n + 90, action, Input::Retry)).await.unwrap();
        }
    }
    action
}

/// Removes an action in steps; tells how many it took.
async fn remove(store: &Store, action: ActionId, step: usize) -> usize {
    for steps in 1.. {
        match store.purge_action(action, step).await.unwrap() {
            Deleted::Gone => return steps,
            Deleted::More => {}
            other => panic!("{other:?}"),
        }
    }
    unreachable!("an action has an end")
}

/// All rows that belong to an action, but for the action itself.
#[derive(Debug, Default, PartialEq)]
struct Everything {
    runs: Vec<saltern_store::Run>,
    attempts: Vec<saltern_store::Attempt>,
    jobs: Vec<saltern_store::Job>,
}

async fn everything(store: &Store, action: ActionId) -> Everything {
    let mut attempts = Vec::new();
    for id in ["a", "b", "c"] {
        attempts.extend(store.attempts(action, &minion(id)).await.unwrap());
    }
    let (runs, jobs) = (store.runs(action, "", ALL).await.unwrap(), store.jobs_of(action).await.unwrap());
    Everything { runs, attempts, jobs }
}

/// How many rows of action 1, made by [`retried`], there are.
async fn count(store: &Store, action: ActionId) -> usize {
    let Everything { runs, attempts, jobs } = everything(store, action).await;
    let mut returns = 0;
    for job in [jid(1), jid(101)] {
        returns += store.returns(job, "", ALL).await.unwrap().len();
    }
    runs.len() + attempts.len() + jobs.len() + returns
}

fn letter(n: i64) -> DeadLetter {
    DeadLetter {
        at: at(n),
        minion: Some(minion("web1")),
        what: "return".into(),
        error: "no such job".into(),
        body: body(&n.to_string()),
    }
}

/// A store with events of these times.
async fn logged(database: &Database, times: &[i64]) -> Store {
    let store = database.open().await;
    let events = times.iter().map(|n| NewEvent { at: at(*n), ..event(&n.to_string()) });
    store.log_events(events.collect()).await.unwrap();
    store
}

async fn numbers(store: &Store) -> Vec<i64> {
    all_events(store).await.into_iter().map(|event| event.number).collect()
}
