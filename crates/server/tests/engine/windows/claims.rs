//! The second look: what was let in, and finds its window closed when it could start.

use super::{DAY, HOUR, NOW, TOMORROW, assign, id, minions, patch, put_calendar, times};
use crate::house::{House, caller};
use crate::ward::{Hands, house, minion, ping};
use saltern_core::action::{Batch, Offline, Policy, Size, WindowRule};
use saltern_core::ids::ActionId;
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_server::app::{ActionRequest, ScheduleDraft, Strategy, Verb, WindowEdit};
use saltern_testkit::fake_minion::{FakeMinion, Job};
use std::time::Duration;

/// Two minions, one at a time: the first runs it, the second waits for the place when its window is closed.
async fn delayed(house: &House, rule: WindowRule) -> (FakeMinion, FakeMinion, Job, ActionId) {
    let (mut a, b) = (minion(house, "a").await, minion(house, "b").await);
    house.window_for("w", "single", times(&[NOW]), minions(&["a", "b"])).await;
    let batch = Some(Batch { size: Size::Count(1), wait: Duration::ZERO });
    let request = patch(&["a", "b"], Policy { batch, window: rule, ..Policy::default() });
    let request = ActionRequest { deadline: Some(Duration::from_secs(HOUR as u64)), ..request };
    let action = house.submit(request).await.action;
    let job = a.job("cmd.run").await;
    house.becomes(action, "b", RunState::Queued, None).await;
    house.window_passes().await;
    assert!(!house.is_open("b").await);
    (a, b, job, action)
}

impl House {
    /// The windows that were open are over, the next are tomorrow. Behind the server's back, as time passes: whoever changes
    /// a calendar is asked what becomes of what waits.
    pub(super) async fn window_passes(&self) {
        let path = self.dir.path().join("data/saltern.db");
        let database = rusqlite::Connection::open(path).unwrap();
        database.busy_timeout(Duration::from_secs(10)).unwrap();
        database.execute("UPDATE calendars SET ical = ?1", [times(&[TOMORROW])]).unwrap();
        drop(database);
        // Any change has all of it read again.
        let nothing = put_calendar("nothing", times(&[]));
        self.edit(nothing, None, Strategy::Next).await.unwrap();
    }
}

#[tokio::test]
async fn a_run_that_is_delayed_past_the_end_waits_for_the_next_window() {
    let house = house().await;
    let (a, mut b, job, action) = delayed(&house, WindowRule::Hold).await;
    a.return_for(&job, true).await;
    house.until(action, "b", |run| run.waiting_for == Some(WaitingFor::Window)).await;
    let run = house.state(action, "b").await;
    let tomorrow = saltern_server::clock::now().plus(Duration::from_secs(DAY as u64 - 300));
    assert!(run.due.is_some_and(|due| due > tomorrow), "{run:?}");
    assert_eq!(house.state(action, "a").await.state, RunState::Completed, "what was started is finished");
    assert!(house.action(action).await.new.deadline > tomorrow, "it is given the time");
    // Nothing was sent to it: the next thing it hears is this.
    house.submit(ping(&["b"], Policy::default())).await;
    b.job("test.ping").await;
    // When the window opens after all, it starts.
    house.other_times("w", &[NOW], Strategy::Refuse).await.unwrap();
    b.job("cmd.run").await;
}

#[tokio::test]
async fn a_run_that_is_delayed_past_the_end_fails_if_the_rules_say_so() {
    let house = house().await;
    let (a, _b, job, action) = delayed(&house, WindowRule::Fail).await;
    a.return_for(&job, true).await;
    let run = house.becomes(action, "b", RunState::Failed, Some(Reason::Window)).await;
    assert!(run.message.as_deref().is_some_and(|text| text.contains("window was closed")), "{run:?}");
}

#[tokio::test]
async fn a_minion_that_was_away_in_its_window_waits_for_the_next() {
    let house = house().await;
    let a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[NOW]), minions(&["a"])).await;
    drop(a);
    house.gone("a").await;
    let action = house.submit(patch(&["a"], Policy { offline: Offline::Hold, ..Policy::default() })).await.action;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Offline)).await;
    house.other_times("w", &[TOMORROW], Strategy::Next).await.unwrap();
    let mut a = minion(&house, "a").await;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Window)).await;
    house.submit(ping(&["a"], Policy::default())).await;
    a.job("test.ping").await;
}

#[tokio::test]
async fn a_retry_and_another_due_time_are_no_way_around() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[NOW]), minions(&["a"])).await;
    let action = house.submit(patch(&["a"], Policy::default())).await.action;
    let job = a.job("cmd.run").await;
    a.fails(&job, 1).await;
    house.becomes(action, "a", RunState::Failed, Some(Reason::ReturnedError)).await;
    house.other_times("w", &[TOMORROW], Strategy::Refuse).await.unwrap();
    house.act(action, Verb::Retry { only_failed: true }).await;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Window)).await;
    house.act(action, Verb::Reschedule { due: Timestamp(saltern_server::clock::now().0 - 1), deadline: None }).await;
    house.submit(ping(&["a"], Policy::default())).await;
    a.job("test.ping").await;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Window)).await;
}

#[tokio::test]
async fn the_end_of_a_window_holds_by_itself() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    house.window_for("w", "single", times(&[(-HOUR, 4), TOMORROW]), minions(&["a", "b"])).await;
    let batch = Some(Batch { size: Size::Count(1), wait: Duration::ZERO });
    let action = house.submit(patch(&["a", "b"], Policy { batch, ..Policy::default() })).await.action;
    let job = a.job("cmd.run").await;
    saltern_testkit::wait::until("the window to end", crate::ward::LONG, || async { !house.is_open("b").await }).await;
    a.return_for(&job, true).await;
    house.until(action, "b", |run| run.waiting_for == Some(WaitingFor::Window)).await;
    house.submit(ping(&["b"], Policy::default())).await;
    b.job("test.ping").await;
}

#[tokio::test]
async fn maintenance_by_hand_lets_start_what_waits() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let request = ActionRequest { in_window: true, ..patch(&["a"], Policy::default()) };
    house.submit(request).await;
    house.app().start_maintenance(&caller(), &[id("a")], "now", None).await.unwrap();
    a.job("cmd.run").await;
}

#[tokio::test]
async fn a_schedule_may_say_that_what_is_late_fails() {
    let house = house().await;
    let a = minion(&house, "a").await;
    house.edit(put_calendar("w", times(&[NOW])), None, Strategy::Refuse).await.unwrap();
    let draft = ScheduleDraft {
        name: "strict".into(),
        kind: "single".into(),
        calendar: Some("w".into()),
        away: "fail".into(),
        ..ScheduleDraft::default()
    };
    house.edit(WindowEdit::PutSchedule(draft), None, Strategy::Refuse).await.unwrap();
    house.edit(assign("strict", minions(&["a"])), None, Strategy::Refuse).await.unwrap();
    drop(a);
    house.gone("a").await;
    let action = house.submit(patch(&["a"], Policy { offline: Offline::Hold, ..Policy::default() })).await.action;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Offline)).await;
    house.window_passes().await;
    let _a = minion(&house, "a").await;
    house.becomes(action, "a", RunState::Failed, Some(Reason::Window)).await;
}
