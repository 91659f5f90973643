//! Calendars, schedules and assignments change while work waits: it is told before, and done all or nothing.

use super::admission::somebody;
use super::{DAY, HOUR, NOW, TOMORROW, assign, id, minions, patch, put_calendar, refused, times};
use crate::house::{House, caller};
use crate::ward::{house, minion, ping};
use saltern_core::action::Policy;
use saltern_core::ids::ActionId;
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_server::Error;
use saltern_server::app::{ActionRequest, ScheduleDraft, Strategy, WindowEdit};

/// Two minions with something due tomorrow, of which one is under a window then; and what only looks.
async fn planned(house: &House) -> (ActionId, ActionId) {
    house.window_for("w", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let due = Timestamp(saltern_server::clock::now().0 + (DAY + HOUR / 2) * 1_000_000);
    let at = |request: ActionRequest| ActionRequest { due: Some(due), ..request };
    let patched = house.submit(at(patch(&["a", "b"], Policy::default()))).await.action;
    let looked = house.submit(at(ping(&["a"], Policy::default()))).await.action;
    (patched, looked)
}

const NEXT_WEEK: (i64, i64) = (7 * DAY, 7 * DAY + HOUR);

#[tokio::test]
async fn a_change_that_touches_waiting_work_is_refused_and_changes_nothing() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let (patched, _) = planned(&house).await;
    let before = house.app().calendar(&caller(), None, "w").unwrap();
    let preview = house.app().preview_change(&caller(), put_calendar("w", times(&[NEXT_WEEK])), Some(1)).await.unwrap();
    assert_eq!(preview.iter().map(|one| (one.action, one.minion.clone())).collect::<Vec<_>>(), [(patched, id("a"))]);
    assert!(preview[0].next.is_some());
    let text = refused(house.other_times("w", &[NEXT_WEEK], Strategy::Refuse).await);
    assert!(text.contains(&format!("action {patched} (cmd.run true) on a")), "{text}");
    assert_eq!(house.app().calendar(&caller(), None, "w").unwrap(), before);
    assert_eq!(house.state(patched, "a").await.state, RunState::Queued);
}

#[tokio::test]
async fn cancel_cancels_on_the_minions_that_are_touched_only() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let (patched, looked) = planned(&house).await;
    let done = house.other_times("w", &[NEXT_WEEK], Strategy::Cancel).await.unwrap();
    assert_eq!(done.touched.len(), 1);
    let run = house.becomes(patched, "a", RunState::Cancelled, Some(Reason::Cancelled)).await;
    assert!(run.message.as_deref().is_some_and(|text| text.contains("windows of its minion were changed")), "{run:?}");
    assert_eq!(house.state(patched, "b").await.state, RunState::Queued);
    assert_eq!(house.state(looked, "a").await.state, RunState::Queued);
}

#[tokio::test]
async fn next_moves_it_to_the_next_window() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let (patched, _) = planned(&house).await;
    let due_of_b = house.state(patched, "b").await.due;
    let done = house.other_times("w", &[NEXT_WEEK], Strategy::Next).await.unwrap();
    let run = house.state(patched, "a").await;
    assert_eq!((run.waiting_for, run.due), (Some(WaitingFor::Window), done.touched[0].next));
    assert_eq!(house.state(patched, "b").await.due, due_of_b);
    let next = done.touched[0].next.unwrap();
    assert!(house.action(patched).await.new.deadline > next);
}

#[tokio::test]
async fn next_is_refused_where_there_is_none() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    planned(&house).await;
    let text = refused(house.other_times("w", &[(-HOUR, -60)], Strategy::Next).await);
    assert!(text.contains("no next window"), "{text}");
    assert_eq!(house.app().calendar(&caller(), None, "w").unwrap().version, 1);
}

#[tokio::test]
async fn an_assignment_is_a_change_like_any_other() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let (patched, _) = planned(&house).await;
    house.window_for("other", "single", times(&[NEXT_WEEK]), minions(&["a"])).await;
    let text = refused(house.edit(assign("other", minions(&["b"])), None, Strategy::Refuse).await);
    assert!(text.contains(" on b, due "), "{text}");
    house.edit(assign("other", minions(&["b"])), None, Strategy::Cancel).await.unwrap();
    house.becomes(patched, "b", RunState::Cancelled, Some(Reason::Cancelled)).await;
    assert_eq!(house.state(patched, "a").await.state, RunState::Queued);
}

#[tokio::test]
async fn what_is_detached_keeps_its_waiting_work_and_may_start_at_any_time() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let (patched, _) = planned(&house).await;
    let edit = WindowEdit::Unassign { org: None, schedule: "w".into(), from: minions(&["a"]) };
    assert!(house.edit(edit, None, Strategy::Refuse).await.unwrap().touched.is_empty());
    assert_eq!(house.state(patched, "a").await.state, RunState::Queued);
    assert!(house.is_open("a").await);
}

#[tokio::test]
async fn a_calendar_that_goes_leaves_schedules_closed() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[NOW]), minions(&["a"])).await;
    let edit = WindowEdit::DeleteCalendar { org: None, name: "w".into() };
    house.edit(edit, Some(1), Strategy::Refuse).await.unwrap();
    assert!(!house.is_open("a").await);
    let edit = WindowEdit::DeleteSchedule { org: None, name: "w".into() };
    house.edit(edit, Some(1), Strategy::Refuse).await.unwrap();
    assert!(house.is_open("a").await);
}

#[tokio::test]
async fn what_is_no_calendar_is_refused_with_the_place() {
    let house = house().await;
    let bad = house.edit(put_calendar("w", "BEGIN:VCALENDAR\r\nnonsense\r\n".into()), None, Strategy::Refuse).await;
    let Err(Error::Invalid(text)) = bad else { panic!("{bad:?}") };
    assert!(text.contains("calendar \"w\": line "), "{text}");
    let draft = ScheduleDraft { name: "x".into(), kind: "weekly".into(), ..ScheduleDraft::default() };
    let bad = house.edit(WindowEdit::PutSchedule(draft), None, Strategy::Refuse).await;
    assert!(matches!(bad, Err(Error::Invalid(_))), "{bad:?}");
}

#[tokio::test]
async fn whoever_looked_too_early_changes_nothing() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[NOW]), minions(&["a"])).await;
    let stale = house.edit(put_calendar("w", times(&[TOMORROW])), Some(7), Strategy::Refuse).await;
    assert!(matches!(stale, Err(Error::Stale(_))), "{stale:?}");
    assert!(house.is_open("a").await);
    let twice = house.edit(put_calendar("w", times(&[TOMORROW])), None, Strategy::Refuse).await;
    assert!(matches!(twice, Err(Error::Conflict(_))), "{twice:?}");
}

#[tokio::test]
async fn windows_are_changed_and_opened_by_org_admins_only() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let (operator, boss) = (somebody("op", "operator"), somebody("boss", "org-admin"));
    let app = house.app();
    let edits = [
        put_calendar("x", times(&[NOW])),
        WindowEdit::PutSchedule(ScheduleDraft { name: "x".into(), kind: "single".into(), ..ScheduleDraft::default() }),
        assign("w", minions(&["a"])),
        WindowEdit::Unassign { org: None, schedule: "w".into(), from: minions(&["a"]) },
        WindowEdit::DeleteSchedule { org: None, name: "w".into() },
        WindowEdit::DeleteCalendar { org: None, name: "w".into() },
    ];
    for edit in edits {
        let refused = app.change_windows(&operator, edit.clone(), None, Strategy::Refuse).await;
        assert!(matches!(refused, Err(Error::Forbidden(_))), "{edit:?}: {refused:?}");
        let refused = app.preview_change(&operator, edit.clone(), None).await;
        assert!(matches!(refused, Err(Error::Forbidden(_))), "{edit:?}: {refused:?}");
        app.preview_change(&boss, edit, None).await.unwrap();
    }
    let refused = app.start_maintenance(&operator, &[id("a")], "I want to", None).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    app.start_maintenance(&boss, &[id("a")], "disk", None).await.unwrap();
    let refused = app.end_maintenance(&operator, &[id("a")]).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    // Everybody of the organisation sees them.
    assert_eq!(app.schedules(&operator, None).await.unwrap().len(), 1);
    assert_eq!(app.windows_of(&operator, &id("a"), None, 5).await.unwrap().windows.len(), 1);
}
