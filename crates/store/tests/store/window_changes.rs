//! Changes of maintenance windows: by version, and in one transaction with what they do to work that waits.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, PATIENCE, at, audit, audited, claim, launch, launched, minion, queued, run, stored, under};
use crate::windows::{assignment, calendar, schedule, set_up};
use saltern_core::action::Policy;
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_store::{ANY_VERSION, Calendar, DEFAULT_ORGANISATION, Error, Schedule, Store, WindowChange, Written};
use std::time::Duration;

on_both_databases! {
    a_change_needs_the_version_that_is_there,
    what_is_there_is_not_made_again,
    a_schedule_goes_with_its_assignments,
    schedules_outlive_their_calendar,
    assignments_are_given_and_taken_back,
    what_is_not_there_is_not_assigned,
    a_change_that_is_refused_changes_nothing,
    an_organisation_that_is_not_there_has_none,
    two_servers_make_a_calendar_once,
    work_is_cancelled_with_the_change,
    work_is_moved_with_the_change,
    what_was_sent_is_neither_cancelled_nor_moved,
    the_first_step_of_a_launch_waits_with_it,
}

fn org() -> String {
    DEFAULT_ORGANISATION.into()
}

fn put(calendar: Calendar, expected: Option<i64>) -> WindowChange {
    WindowChange {
        put_calendar: Some((calendar, expected)),
        audit: vec![audit("calendar.put")],
        ..WindowChange::default()
    }
}

async fn a_change_needs_the_version_that_is_there(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    let other = Calendar { ical: "other".into(), created: at(9), ..calendar("night") };
    assert_eq!(store.change_windows(put(other.clone(), Some(1))).await.unwrap(), Written::Done(2));
    assert_eq!(store.change_windows(put(other.clone(), Some(1))).await.unwrap(), Written::Stale(2));
    assert_eq!(store.change_windows(put(calendar("day"), Some(1))).await.unwrap(), Written::Missing);
    let wanted = Calendar { version: 2, created: at(1), ..other };
    assert_eq!(store.window_data().await.unwrap().calendars, [wanted]);

    let other = Schedule { kind: "blackout".into(), calendar: None, away: "fail".into(), ..schedule("sunday") };
    let change =
        |expected| WindowChange { put_schedule: Some((other.clone(), Some(expected))), ..WindowChange::default() };
    assert_eq!(store.change_windows(change(1)).await.unwrap(), Written::Done(2));
    assert_eq!(store.change_windows(change(1)).await.unwrap(), Written::Stale(2));
    assert_eq!(store.window_data().await.unwrap().schedules, [Schedule { version: 2, ..other.clone() }]);
    assert_eq!(audited(&store).await, ["window.set_up", "calendar.put"]);
}

async fn what_is_there_is_not_made_again(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    assert_eq!(store.change_windows(put(calendar("night"), None)).await.unwrap(), Written::Exists);
    let again = WindowChange { put_schedule: Some((schedule("sunday"), None)), ..WindowChange::default() };
    assert_eq!(store.change_windows(again).await.unwrap(), Written::Exists);
}

async fn a_schedule_goes_with_its_assignments(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    let gone = |version| WindowChange {
        delete_schedule: Some((org(), "sunday".into(), Some(version))),
        ..WindowChange::default()
    };
    assert_eq!(store.change_windows(gone(4)).await.unwrap(), Written::Stale(1));
    assert_eq!(store.change_windows(gone(1)).await.unwrap(), Written::Done(1));
    assert_eq!(store.change_windows(gone(ANY_VERSION)).await.unwrap(), Written::Missing);
    let left = store.window_data().await.unwrap();
    assert_eq!((left.schedules, left.assignments, left.calendars.len()), (vec![], vec![], 1));
}

async fn schedules_outlive_their_calendar(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    let gone = WindowChange { delete_calendar: Some((org(), "night".into(), Some(1))), ..WindowChange::default() };
    assert_eq!(store.change_windows(gone.clone()).await.unwrap(), Written::Done(1));
    assert_eq!(store.change_windows(gone).await.unwrap(), Written::Missing);
    let left = store.window_data().await.unwrap();
    assert_eq!((left.calendars, left.schedules), (vec![], vec![schedule("sunday")]));
}

async fn assignments_are_given_and_taken_back(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    let change = WindowChange {
        // One of them holds already, one that goes never did.
        assign: vec![assignment("minion", "web1", "sunday"), assignment("minion", "web2", "sunday")],
        unassign: vec![assignment("group", "web", "sunday"), assignment("group", "db", "sunday")],
        ..WindowChange::default()
    };
    assert_eq!(store.change_windows(change).await.unwrap(), Written::Done(1));
    let wanted = ["web1", "web2"].map(|id| assignment("minion", id, "sunday"));
    assert_eq!(store.window_data().await.unwrap().assignments, wanted);
}

async fn what_is_not_there_is_not_assigned(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    let change = WindowChange {
        assign: vec![assignment("minion", "web2", "sunday"), assignment("minion", "web2", "monday")],
        ..WindowChange::default()
    };
    assert_eq!(store.change_windows(change).await.unwrap(), Written::Missing);
    assert_eq!(store.window_data().await.unwrap().assignments.len(), 2);
}

async fn a_change_that_is_refused_changes_nothing(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    let before = store.window_data().await.unwrap();
    let change = WindowChange {
        delete_schedule: Some((org(), "sunday".into(), Some(7))),
        cancel: vec![(action, minion("web1"))],
        unassign: vec![assignment("minion", "web1", "sunday")],
        ..put(calendar("day"), None)
    };
    assert_eq!(store.change_windows(change).await.unwrap(), Written::Stale(1));
    let after = store.window_data().await.unwrap();
    assert_eq!((after.calendars, after.assignments), (before.calendars, before.assignments));
    assert_eq!(run(&store, action).await.state, RunState::Queued);
    assert_eq!(audited(&store).await, ["window.set_up"]);
}

async fn an_organisation_that_is_not_there_has_none(database: Database) {
    let store = database.open().await;
    let refused = store.change_windows(put(Calendar { org: "acme".into(), ..calendar("night") }, None)).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

async fn two_servers_make_a_calendar_once(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let make = |n: usize| stores[n].change_windows(put(calendar(&format!("c{round}")), None));
        let (one, other) = tokio::join!(make(0), make(1));
        let mut both = [one.unwrap(), other.unwrap()];
        both.sort_by_key(|written| *written == Written::Exists);
        assert_eq!(both, [Written::Done(1), Written::Exists]);
    }
}

async fn work_is_cancelled_with_the_change(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    let change = WindowChange {
        cancel: vec![(action, minion("web1"))],
        message: "its window is gone".into(),
        at: at(40),
        ..put(Calendar { ical: "other".into(), ..calendar("night") }, Some(1))
    };
    assert_eq!(store.change_windows(change).await.unwrap(), Written::Done(2));
    let run = run(&store, action).await;
    assert_eq!((run.state, run.reason, run.ended), (RunState::Cancelled, Some(Reason::Cancelled), Some(at(40))));
    assert_eq!(run.message.as_deref(), Some("its window is gone"));
    assert_eq!(stored(&store, action).await.counts.cancelled, 1);
}

/// Moves the run of web1 to instant `due`, and leaves it `grace` microseconds.
fn moves(action: saltern_core::ids::ActionId, due: i64, grace: u64) -> WindowChange {
    WindowChange {
        moves: vec![(action, minion("web1"), at(due))],
        grace: Duration::from_micros(grace),
        message: "its window has moved".into(),
        at: at(40),
        ..WindowChange::default()
    }
}

async fn waiting(store: &Store, action: saltern_core::ids::ActionId) -> Option<WaitingFor> {
    store.run(action, &minion("web1")).await.unwrap().unwrap().waiting_for
}

async fn work_is_moved_with_the_change(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    assert_eq!(store.change_windows(moves(action, 500, 100)).await.unwrap(), Written::Done(0));
    let moved = run(&store, action).await;
    assert_eq!(
        (moved.state, moved.waiting_for, moved.due),
        (RunState::Queued, Some(WaitingFor::Window), Some(at(500)))
    );
    assert_eq!(stored(&store, action).await.new.deadline, at(1 + PATIENCE), "it has time enough");
    let late = PATIENCE + 1000;
    store.change_windows(moves(action, late, 100)).await.unwrap();
    assert_eq!(stored(&store, action).await.new.deadline, at(late + 100));
    assert_eq!(run(&store, action).await.due, Some(at(late)));
}

async fn what_was_sent_is_neither_cancelled_nor_moved(database: Database) {
    let store = database.open().await;
    let action = store.create(under(Policy::default(), queued(1, &["web1"]))).await.unwrap();
    store.claim(claim(2, action, &["web1"])).await.unwrap();
    let change = WindowChange { cancel: vec![(action, minion("web1"))], ..moves(action, 500, 0) };
    store.change_windows(change).await.unwrap();
    let run = run(&store, action).await;
    assert_eq!((run.state, run.due), (RunState::Sent, None));
}

async fn the_first_step_of_a_launch_waits_with_it(database: Database) {
    let store = database.open().await;
    let (id, steps) = store.create_launch(launch(1, 2, &["web1"])).await.unwrap();
    let late = PATIENCE + 1000;
    store.change_windows(moves(steps[0], late, 100)).await.unwrap();
    assert_eq!(waiting(&store, steps[0]).await, Some(WaitingFor::Window));
    assert_eq!(waiting(&store, steps[1]).await, Some(WaitingFor::EarlierStep));
    let deadlines: Vec<_> = store.launch_actions(id).await.unwrap().into_iter().map(|step| step.new.deadline).collect();
    assert_eq!(deadlines, [at(late + 100); 2]);
    assert_eq!(launched(&store, id).await.deadline, at(late + 100));
    let due: Vec<_> = store.due_runs(steps[0], at(late), ALL).await.unwrap();
    assert_eq!(due, [], "a step is not due by itself");
}
