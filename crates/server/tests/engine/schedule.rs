//! Due times and deadlines, also over a server that was down.

use crate::house::House;
use crate::ward::{Hands, house, minion, ping, soon};
use saltern_core::action::{Offline, Policy};
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_server::app::{ActionRequest, Verb};
use std::time::Duration;

const HOLD: Policy = Policy {
    offline: Offline::Hold,
    retry: saltern_core::action::Retry {
        attempts: 3,
        when: saltern_core::action::RetryWhen::NotStarted,
        backoff: saltern_core::action::Backoff { first: Duration::from_secs(5), most: Duration::from_secs(300) },
    },
    job_timeout: None,
    batch: None,
    budget: None,
    waves: Vec::new(),
    ack: None,
    interactive: false,
    window: saltern_core::action::WindowRule::Hold,
    override_window: None,
};

async fn scheduled(house: &House, seconds: u64) -> saltern_core::ids::ActionId {
    let request = ActionRequest { due: Some(soon(seconds)), ..ping(&["a"], HOLD) };
    let accepted = house.submit(request).await;
    assert_eq!(accepted.jid, None, "nothing is published before it is due");
    accepted.action
}

#[tokio::test]
async fn scenario_03_a_restart_before_the_due_time_changes_nothing() {
    let mut house = house().await;
    drop(minion(&house, "a").await);
    house.gone("a").await;
    let action = scheduled(&house, 3600).await;
    assert_eq!(house.state(action, "a").await.waiting_for, Some(WaitingFor::Due));
    house.crash().await;
    assert_eq!(house.state(action, "a").await.state, RunState::Queued);
    let mut a = minion(&house, "a").await;
    // Its hour comes.
    house.act(action, Verb::Reschedule { due: soon(1), deadline: None }).await;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    let run = house.becomes(action, "a", RunState::Completed, None).await;
    assert_eq!((run.attempt, run.deliveries), (1, 1));
}

#[tokio::test]
async fn scenario_04_what_fell_due_while_the_server_was_down_runs_and_is_marked_late() {
    let mut house = house().await;
    drop(minion(&house, "a").await);
    let action = scheduled(&house, 3600).await;
    house.stop_turn_back_and_start(Duration::from_secs(3 * 3600)).await;
    let mut a = minion(&house, "a").await;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    house.becomes(action, "a", RunState::Completed, None).await;
    assert!(house.action(action).await.new.late);
}

#[tokio::test]
async fn scenario_05_what_expired_while_the_server_was_down_does_not_run() {
    let mut house = house().await;
    drop(minion(&house, "a").await);
    let action = scheduled(&house, 3600).await;
    house.stop_turn_back_and_start(Duration::from_secs(26 * 3600)).await;
    let run = house.becomes(action, "a", RunState::Failed, Some(Reason::Expired)).await;
    assert!(run.message.unwrap().contains("deadline"));
    assert_eq!(run.deliveries, 0);
}

#[tokio::test]
async fn nothing_is_published_before_its_time() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let due = soon(2);
    let request = ActionRequest { due: Some(due), ..ping(&["a"], Policy::default()) };
    let action = house.submit(request).await.action;
    let job = a.job("test.ping").await;
    assert!(saltern_server::clock::now() >= due);
    a.return_for(&job, true).await;
    house.becomes(action, "a", RunState::Completed, None).await;
}

impl House {
    async fn stop_turn_back_and_start(&mut self, by: Duration) {
        self.restart_after(|house| house.turn_back(by)).await;
    }
}
