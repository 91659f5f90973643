//! How many at once: batches, waves, budgets, limits, and who goes first.

use crate::house::House;
use crate::ward::{Hands, house, minion, ping};
use saltern_core::action::{Batch, Budget, OverBudget, Policy, Size, Wave};
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_server::app::Verb;
use std::time::Duration;

#[tokio::test]
async fn too_many_failures_hold_the_rest_until_somebody_decides() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let budget = Budget { failures: Size::Count(0), unreachable: None, then: OverBudget::Pause };
    let batch = Batch { size: Size::Count(1), wait: Duration::ZERO };
    let policy = Policy { budget: Some(budget), batch: Some(batch), ..Policy::default() };
    let action = house.submit(ping(&["a", "b"], policy)).await.action;
    let job = a.job("test.ping").await;
    a.fails(&job, 1).await;
    saltern_testkit::wait::until("the pause", crate::ward::LONG, || async {
        house.action(action).await.paused.is_some()
    })
    .await;
    assert_eq!(house.state(action, "b").await.state, RunState::Queued);
    house.act(action, Verb::Retry { only_failed: true }).await;
    let _ = &mut b;
}

#[tokio::test]
async fn too_many_failures_stop_the_rest_where_that_was_asked_for() {
    let house = house().await;
    let (mut a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let budget = Budget { failures: Size::Count(0), unreachable: None, then: OverBudget::Stop };
    let batch = Batch { size: Size::Count(1), wait: Duration::ZERO };
    let policy = Policy { budget: Some(budget), batch: Some(batch), ..Policy::default() };
    let action = house.submit(ping(&["a", "b"], policy)).await.action;
    let job = a.job("test.ping").await;
    a.fails(&job, 1).await;
    let run = house.becomes(action, "b", RunState::Cancelled, Some(Reason::Budget)).await;
    assert_eq!(run.deliveries, 0);
}

#[tokio::test]
async fn the_second_wave_waits_for_the_first() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let waves = vec![Wave { size: Size::Count(1), soak: Duration::from_secs(1) }];
    let action = house.submit(ping(&["a", "b"], Policy { waves, ..Policy::default() })).await.action;
    assert_eq!(house.state(action, "b").await.waiting_for, Some(WaitingFor::Wave));
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    let first = house.becomes(action, "a", RunState::Completed, None).await;
    let job = b.job("test.ping").await;
    b.return_for(&job, true).await;
    let second = house.becomes(action, "b", RunState::Completed, None).await;
    assert!(second.sent.unwrap().since(first.ended.unwrap()) >= Duration::from_secs(1));
}

#[tokio::test]
async fn who_waits_is_not_held_up_by_a_large_action() {
    let house = House::with([("auto_accept", true.into()), ("job_ack", true.into()), ("max_running", 1.into())]).await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let large = house.submit(ping(&["a", "b"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    assert_eq!(house.state(large, "b").await.waiting_for, Some(WaitingFor::Slot));
    let jid = house.ping(&["b"]).await;
    let quick = b.job("test.ping").await;
    assert_eq!(quick.jid, jid);
    b.return_for(&quick, true).await;
    // The place is free: the large one goes on.
    a.return_for(&job, true).await;
    let rest = b.job("test.ping").await;
    b.return_for(&rest, true).await;
    house.becomes(large, "b", RunState::Completed, None).await;
}

#[tokio::test]
async fn starts_are_held_to_the_rate() {
    let house = House::with([("auto_accept", true.into()), ("start_rate", 1.into())]).await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let action = house.submit(ping(&["a", "b"], Policy::default())).await.action;
    for minion in [&mut a, &mut b] {
        let job = minion.job("test.ping").await;
        minion.return_for(&job, true).await;
    }
    let (one, other) = (house.state(action, "a").await, house.state(action, "b").await);
    let apart = one.sent.unwrap().since(other.sent.unwrap()).max(other.sent.unwrap().since(one.sent.unwrap()));
    assert!(apart >= Duration::from_millis(500), "{apart:?}");
}

#[tokio::test]
async fn more_than_may_be_queued_is_refused_with_a_hint() {
    let house = House::with([("auto_accept", true.into()), ("max_queued", 1.into())]).await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let refused = house
        .app()
        .submit(&crate::house::caller(), ping(&["a", "b"], Policy::default()), saltern_server::app::Door::Action)
        .await;
    assert!(refused.unwrap_err().to_string().contains("max_queued"));
}
