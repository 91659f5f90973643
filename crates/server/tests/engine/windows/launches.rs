//! Chains: the head starts inside, the rest goes on outside.

use super::{NOW, TOMORROW, minions, refused, times};
use crate::chains::{answer, call, chain, chunk, steps, with};
use crate::house::{House, caller};
use crate::ward::{house, minion};
use saltern_core::action::WindowRule;
use saltern_core::ids::LaunchId;
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_core::value::Value;
use saltern_server::app::{LaunchRequest, LaunchVerb, Strategy};

fn patches() -> Value {
    let second = with(call("cmd.run", &["a"]), "approval", "go on?");
    steps([call("cmd.run", &["a"]), second])
}

async fn launch(house: &House, request: LaunchRequest) -> Result<LaunchId, saltern_server::Error> {
    let chain = chain(house, "patches", patches()).await;
    Ok(house.app().launch(&caller(), chain.id, request).await?.id)
}

#[tokio::test]
async fn a_head_outside_is_refused_and_nothing_is_stored() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let text = refused(launch(&house, LaunchRequest::default()).await);
    assert!(text.starts_with("step 1: 1 of 1 minions are outside"), "{text}");
    assert_eq!((house.rows()["launches"], house.rows()["actions"]), (0, 0));
}

#[tokio::test]
async fn a_chain_that_began_inside_goes_on_outside() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[NOW]), minions(&["a"])).await;
    let launch = launch(&house, LaunchRequest::default()).await.unwrap();
    let (job, key, number, ids) = chunk(&mut a).await;
    assert_eq!((number, ids.len()), (1, 1));
    a.return_for(&job, answer((&key, 1), "done", &[("1", "done")])).await;
    house.step_waits(launch, 2, "a", WaitingFor::Approval).await;
    house.other_times("w", &[TOMORROW], Strategy::Refuse).await.unwrap();
    assert!(!house.is_open("a").await);
    let yes = LaunchVerb::Approve { step: 2 };
    house.app().act_on_launch(&caller(), launch, yes).await.unwrap();
    let (job, _, number, _) = chunk(&mut a).await;
    assert_eq!(number, 2);
    a.return_for(&job, answer((&key, 2), "done", &[("2", "done")])).await;
    assert_eq!(house.launch_ends(launch).await.counts.completed, 1);
}

#[tokio::test]
async fn a_launch_in_window_waits_for_the_window_of_its_minion() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let request = LaunchRequest { in_window: true, window: WindowRule::Fail, ..LaunchRequest::default() };
    let launch = launch(&house, request).await.unwrap();
    house.step_waits(launch, 1, "a", WaitingFor::Window).await;
    let told = house.app().explain_launch(&caller(), launch, &super::id("a")).await.unwrap().why;
    assert!(told.starts_with("it waits for window "), "{told}");
    house.other_times("w", &[NOW], Strategy::Refuse).await.unwrap();
    chunk(&mut a).await;
}

#[tokio::test]
async fn a_launch_that_missed_its_window_fails_if_the_rules_say_so() {
    let house = house().await;
    let a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[NOW]), minions(&["a"])).await;
    drop(a);
    house.gone("a").await;
    let request = LaunchRequest { window: WindowRule::Fail, ..LaunchRequest::default() };
    let launch = launch(&house, request).await.unwrap();
    house.step_waits(launch, 1, "a", WaitingFor::Offline).await;
    house.window_passes().await;
    house.step_is(launch, 1, "a", RunState::Failed, Some(Reason::Window)).await;
    assert_eq!(house.launch_ends(launch).await.counts.failed, 1);
}

#[tokio::test]
async fn a_launch_that_was_moved_to_the_next_window_has_not_missed_it() {
    let house = house().await;
    let a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[(-super::HOUR, 5 * super::HOUR)]), minions(&["a"])).await;
    drop(a);
    house.gone("a").await;
    let request = LaunchRequest { window: WindowRule::Fail, ..LaunchRequest::default() };
    let launch = launch(&house, request).await.unwrap();
    house.step_waits(launch, 1, "a", WaitingFor::Offline).await;
    house.other_times("w", &[TOMORROW], Strategy::Next).await.unwrap();
    house.step_waits(launch, 1, "a", WaitingFor::Window).await;
    // It is looked at again, and stays.
    house.app().start_maintenance(&caller(), &[super::id("a")], "x", None).await.unwrap();
    house.step_waits(launch, 1, "a", WaitingFor::Offline).await;
}

#[tokio::test]
async fn a_change_cancels_launches_that_have_not_begun() {
    let house = house().await;
    let a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[NOW]), minions(&["a"])).await;
    drop(a);
    house.gone("a").await;
    let launch = launch(&house, LaunchRequest::default()).await.unwrap();
    house.step_waits(launch, 1, "a", WaitingFor::Offline).await;
    let done = house.other_times("w", &[TOMORROW], Strategy::Cancel).await.unwrap();
    assert_eq!(done.touched.len(), 1);
    house.step_is(launch, 1, "a", RunState::Cancelled, Some(Reason::Cancelled)).await;
    assert_eq!(house.launch_ends(launch).await.counts.cancelled, 1);
}

#[tokio::test]
async fn an_override_carries_a_chain_through() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.window_for("w", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let request = LaunchRequest { override_window: Some("a hole".into()), ..LaunchRequest::default() };
    launch(&house, request).await.unwrap();
    chunk(&mut a).await;
}
