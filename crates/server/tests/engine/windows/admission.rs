//! What somebody hears who asks for something outside of a window, and the two ways out of it.

use super::{DAY, HOUR, NOW, TOMORROW, id, minions, patch, refused, times};
use crate::house::{House, caller};
use crate::ward::{Hands, house, minion, ping};
use saltern_core::access::{Grant, Rights, Sight};
use saltern_core::action::Policy;
use saltern_core::run::{RunState, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_server::Error;
use saltern_server::app::{ActionRequest, AuditQuery, Caller, Door};
use std::time::Duration;

fn far(seconds: i64) -> Timestamp {
    Timestamp(saltern_server::clock::now().0 + seconds * 1_000_000)
}

#[tokio::test]
async fn what_would_start_outside_is_refused_with_the_next_windows_and_nothing_is_stored() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let before = house.rows();
    let text = refused(house.app().submit(&caller(), patch(&["a", "b"], Policy::default()), Door::Action).await);
    assert!(text.starts_with("1 of 2 minions are outside of their maintenance windows then: a (next: "), "{text}");
    assert!(text.contains("UTC") && text.contains("--in-window") && text.contains("with a reason"), "{text}");
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn what_only_looks_passes_outside() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    house.submit(ping(&["a"], Policy::default())).await;
    a.job("test.ping").await;
}

#[tokio::test]
async fn inside_of_the_window_it_starts() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.window_for("now", "single", times(&[NOW]), minions(&["a"])).await;
    house.submit(patch(&["a"], Policy::default())).await;
    a.job("cmd.run").await;
}

#[tokio::test]
async fn a_due_time_inside_of_a_window_to_come_is_taken_and_one_outside_is_not() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let at = |due| ActionRequest { due: Some(due), ..patch(&["a"], Policy::default()) };
    house.submit(at(far(DAY + HOUR / 2))).await;
    let late = house.app().submit(&caller(), at(far(DAY + 2 * HOUR)), Door::Action).await;
    refused(late);
}

#[tokio::test]
async fn in_window_moves_each_run_to_the_next_window_of_its_minion() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let mut c = minion(&house, "c").await;
    house.window_for("tomorrow", "single", times(&[TOMORROW]), minions(&["a"])).await;
    house.window_for("week", "single", times(&[(7 * DAY, 7 * DAY + HOUR)]), minions(&["b"])).await;
    let request = ActionRequest { in_window: true, ..patch(&["a", "b", "c"], Policy::default()) };
    let action = house.submit(request).await.action;
    // Whose window is open starts.
    c.job("cmd.run").await;
    let near = |at: Option<Timestamp>, seconds: i64| {
        at.is_some_and(|at| at.0.abs_diff(far(seconds).0) < Duration::from_secs(120).as_micros() as u64)
    };
    for (name, seconds) in [("a", DAY), ("b", 7 * DAY)] {
        let run = house.state(action, name).await;
        assert_eq!((run.state, run.waiting_for), (RunState::Queued, Some(WaitingFor::Window)));
        assert!(near(run.due, seconds), "{run:?}");
    }
    let row = house.action(action).await;
    assert!(row.new.deadline > far(7 * DAY + HOUR), "it lasts until the last of them: {row:?}");
    let told = house.app().explain(&caller(), action, &id("a")).await.unwrap().why;
    assert!(told.starts_with("it waits for window ") && told.ends_with(" UTC (schedule tomorrow)"), "{told}");
}

#[tokio::test]
async fn what_all_wait_for_their_windows_has_no_job_yet() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("tomorrow", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let request = ActionRequest { in_window: true, ..patch(&["a"], Policy::default()) };
    let accepted = house.submit(request).await;
    assert_eq!(accepted.jid, None);
}

#[tokio::test]
async fn in_window_is_refused_where_there_is_none_to_come() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("past", "single", times(&[(-2 * HOUR, -HOUR)]), minions(&["a"])).await;
    let request = ActionRequest { in_window: true, ..patch(&["a"], Policy::default()) };
    let text = refused(house.app().submit(&caller(), request, Door::Action).await);
    assert!(text.contains("have no next maintenance window: a (next: none)"), "{text}");
}

/// Somebody with one role in the organisation.
pub(super) fn somebody(name: &str, role: &str) -> Caller {
    let mut rights = Rights::nobody(name);
    rights.org = "default".into();
    rights.take_grant(&Grant::parse(role).unwrap(), Sight::All);
    Caller::with_rights("test", rights)
}

async fn audited(house: &House, what: &str) -> Vec<String> {
    let entries = house.app().audit(&caller(), &AuditQuery { limit: 1_000, ..AuditQuery::default() }).await.unwrap();
    entries.into_iter().filter(|(_, entry)| entry.what == what).map(|(_, entry)| entry.detail).collect()
}

#[tokio::test]
async fn an_org_admin_overrides_with_a_reason_which_is_audited() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let because = |reason: &str| Policy { override_window: Some(reason.into()), ..Policy::default() };
    let by =
        async |who: &Caller, reason: &str| house.app().submit(who, patch(&["a"], because(reason)), Door::Action).await;
    let refused = by(&somebody("op", "operator"), "I want to").await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    let empty = by(&somebody("boss", "org-admin"), "  ").await;
    assert!(matches!(empty, Err(Error::Invalid(_))), "{empty:?}");
    assert!(audited(&house, "window.override").await.is_empty());
    by(&somebody("boss", "org-admin"), "openssl hole").await.unwrap();
    a.job("cmd.run").await;
    let found = audited(&house, "window.override").await;
    assert!(found.len() == 1 && found[0].contains("openssl hole"), "{found:?}");
}

#[tokio::test]
async fn a_preview_refuses_alike_and_audits_nothing() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    refused(house.app().preview(&caller(), patch(&["a"], Policy::default()), Door::Action).await);
    let policy = Policy { override_window: Some("because".into()), ..Policy::default() };
    house.app().preview(&caller(), patch(&["a"], policy), Door::Action).await.unwrap();
    assert!(audited(&house, "window.override").await.is_empty());
}
