//! Reboots: done when the boot id has changed, and not before.

use crate::ward::{Hands, house, minion, typed};
use saltern_core::action::Policy;
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_core::value::Value;
use saltern_testkit::fake_minion::FakeMinion;
use std::time::Duration;

const BEFORE: &str = "3a0cdd2c-0a41-4c9b-9a5a-36f3f6c6e0aa";
const AFTER: &str = "7f1b9d5e-5f0e-4a86-8a0b-9d0f0c1d2e3f";

async fn tells_boot_id(minion: &mut FakeMinion, boot: &str) {
    let asked = minion.job("cmd.run").await;
    minion.return_for(&asked, boot).await;
}

#[tokio::test]
async fn scenario_33_a_reboot_is_completed_when_the_machine_is_up_again() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(typed(&["a"], "reboot", [], Policy::default())).await.action;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Facts)).await;
    tells_boot_id(&mut a, BEFORE).await;
    let job = a.job("system.reboot").await;
    a.ack(&job).await;
    a.return_for(&job, true).await;
    house.becomes(action, "a", RunState::PickedUp, None).await;
    // The agent alone is restarted: that is no reboot.
    a.announce().await;
    tells_boot_id(&mut a, BEFORE).await;
    assert_eq!(house.state(action, "a").await.state, RunState::PickedUp);
    a.announce().await;
    tells_boot_id(&mut a, AFTER).await;
    let run = house.becomes(action, "a", RunState::Completed, None).await;
    assert_eq!(run.message.as_deref(), Some("Reboot completed."));
}

#[tokio::test]
async fn scenario_34_a_machine_that_does_not_go_down_fails_after_the_limit() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let policy = Policy { job_timeout: Some(Duration::from_secs(2)), ..Policy::default() };
    let action = house.submit(typed(&["a"], "reboot", [], policy)).await.action;
    tells_boot_id(&mut a, BEFORE).await;
    let job = a.job("system.reboot").await;
    a.return_for(&job, true).await;
    house.becomes(action, "a", RunState::Failed, Some(Reason::TimedOut)).await;
}

#[tokio::test]
async fn scenario_35_a_boot_that_is_seen_before_the_return_counts() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(typed(&["a"], "reboot", [], Policy::default())).await.action;
    tells_boot_id(&mut a, BEFORE).await;
    let job = a.job("system.reboot").await;
    a.announce().await;
    tells_boot_id(&mut a, AFTER).await;
    house.becomes(action, "a", RunState::Completed, None).await;
    a.return_for(&job, true).await;
    assert_eq!(house.state(action, "a").await.state, RunState::Completed);
}

#[tokio::test]
async fn an_agent_that_died_of_the_reboot_it_began_does_not_make_it_a_failure() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(typed(&["a"], "reboot", [], Policy::default())).await.action;
    tells_boot_id(&mut a, BEFORE).await;
    let job = a.job("system.reboot").await;
    a.ack(&job).await;
    let mut fields = a.return_fields(&job, "ERROR: interrupted: the agent stopped while this job was running");
    fields.insert("retcode", 1);
    fields.insert("success", false);
    a.request("_return", fields).await;
    assert_eq!(house.state(action, "a").await.state, RunState::PickedUp);
    a.announce().await;
    tells_boot_id(&mut a, AFTER).await;
    house.becomes(action, "a", RunState::Completed, None).await;
}

#[tokio::test]
async fn scenario_36_a_machine_that_wants_a_reboot_says_so_until_it_had_one() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    a.event("salt/beacon/a/reboot_info/", Value::map([("reboot_needed", true)])).await;
    assert_eq!(house.wants_reboot("a").await, Some(true));
    a.event("salt/beacon/a/reboot_info/", Value::map([("reboot_needed", false)])).await;
    assert_eq!(house.wants_reboot("a").await, Some(false));
    a.event("salt/beacon/a/reboot_info/", Value::map([("reboot_needed", true)])).await;
    let action = house.submit(typed(&["a"], "reboot", [], Policy::default())).await.action;
    tells_boot_id(&mut a, BEFORE).await;
    a.job("system.reboot").await;
    a.announce().await;
    tells_boot_id(&mut a, AFTER).await;
    house.becomes(action, "a", RunState::Completed, None).await;
    assert_eq!(house.wants_reboot("a").await, None);
}
