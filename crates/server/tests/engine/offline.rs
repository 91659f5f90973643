//! Minions that are not there: fail, try again, or wait.

use crate::ward::{Hands, house, minion, ping};
use saltern_core::action::{Offline, Policy};
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_server::app::Verb;
use std::time::Duration;

#[tokio::test]
async fn scenario_06_a_minion_that_is_off_fails_within_ten_seconds_and_others_do_not_notice() {
    let house = house().await;
    drop(minion(&house, "off").await);
    house.gone("off").await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a", "off"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    house.becomes(action, "a", RunState::Completed, None).await;
    let run = house.becomes(action, "off", RunState::Failed, Some(Reason::Offline)).await;
    let took = run.ended.unwrap().since(house.action(action).await.new.created);
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(house.action(action).await.counts.unreachable, 1);
}

#[tokio::test]
async fn scenario_07_an_off_minion_is_tried_again_and_runs_once_when_it_is_back() {
    let house = house().await;
    drop(minion(&house, "a").await);
    house.gone("a").await;
    let policy = Policy { offline: Offline::Retry { tries: 3, every: Duration::from_secs(2) }, ..Policy::default() };
    let action = house.submit(ping(&["a"], policy)).await.action;
    house.until(action, "a", |run| run.attempt >= 1).await;
    let mut a = minion(&house, "a").await;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    let run = house.becomes(action, "a", RunState::Completed, None).await;
    assert!((2..=3).contains(&run.attempt), "attempt {}", run.attempt);
    assert_eq!(run.deliveries, 1);
}

#[tokio::test]
async fn an_off_minion_that_stays_off_fails_after_its_tries() {
    let house = house().await;
    drop(minion(&house, "a").await);
    house.gone("a").await;
    let policy =
        Policy { offline: Offline::Retry { tries: 2, every: Duration::from_millis(300) }, ..Policy::default() };
    let action = house.submit(ping(&["a"], policy)).await.action;
    let run = house.becomes(action, "a", RunState::Failed, Some(Reason::Offline)).await;
    assert_eq!(run.attempt, 2);
}

#[tokio::test]
async fn scenario_08_held_work_starts_when_the_minion_is_back() {
    let mut house = house().await;
    drop(minion(&house, "a").await);
    house.gone("a").await;
    let policy = Policy { offline: Offline::Hold, ..Policy::default() };
    let action = house.submit(ping(&["a"], policy)).await.action;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Offline)).await;
    house.crash().await;
    let mut a = minion(&house, "a").await;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    house.becomes(action, "a", RunState::Completed, None).await;
}

#[tokio::test]
async fn scenario_14_what_was_cancelled_while_the_minion_was_off_never_runs() {
    let house = house().await;
    drop(minion(&house, "a").await);
    house.gone("a").await;
    let policy = Policy { offline: Offline::Hold, ..Policy::default() };
    let action = house.submit(ping(&["a"], policy.clone())).await.action;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Offline)).await;
    let done = house.act(action, Verb::Cancel).await;
    assert_eq!(done.minions.values().copied().collect::<Vec<_>>(), ["cancelled"]);
    let mut a = minion(&house, "a").await;
    // The next thing it gets is something else.
    let next = house.submit(ping(&["a"], policy)).await;
    let job = a.job("test.ping").await;
    assert_eq!(Some(job.jid), next.jid);
    let run = house.state(action, "a").await;
    assert_eq!((run.state, run.reason, run.deliveries), (RunState::Cancelled, Some(Reason::Cancelled), 0));
    assert_eq!(run.message.as_deref(), Some("cancelled by tester"));
}

#[tokio::test]
async fn a_minion_that_lost_its_request_connection_and_is_silently_back_gets_its_work() {
    let house = house().await;
    // It stays subscribed, and has nothing to say.
    let mut silent = minion(&house, "a").await;
    silent.reconnect_silently().await;
    house.gone("a").await;
    let policy = Policy { offline: Offline::Hold, ..Policy::default() };
    let action = house.submit(ping(&["a"], policy)).await.action;
    // It is knocked at, and answers.
    let job = silent.job("test.ping").await;
    silent.return_for(&job, true).await;
    let job = silent.job("test.ping").await;
    silent.return_for(&job, true).await;
    house.becomes(action, "a", RunState::Completed, None).await;
}
