//! From claim to return: acknowledged, lost, repeated, late.

use crate::ward::{Hands, house, minion, minion_of, ping, typed};
use saltern_core::action::Policy;
use saltern_core::run::{Reason, RunState};
use saltern_core::value::{Map, Value};
use saltern_server::app::Verb;
use saltern_testkit::fake_minion::FakeMinion;
use std::time::Duration;

#[tokio::test]
async fn scenario_01_a_highstate_is_sent_picked_up_and_completed_with_its_states() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(typed(&["a"], "states", [], Policy::default())).await.action;
    assert_eq!(house.state(action, "a").await.state, RunState::Sent);
    let job = a.job("state.highstate").await;
    a.ack(&job).await;
    let run = house.becomes(action, "a", RunState::PickedUp, None).await;
    assert!(run.sent <= run.picked_up);
    let state = Value::map([("result", Value::from(true)), ("changes", Value::Map(Map::new()))]);
    a.return_for(&job, Value::map([("pkg_|-vim_|-vim_|-installed", state)])).await;
    let run = house.becomes(action, "a", RunState::Completed, None).await;
    assert!(run.ended.is_some());
    let row = house.action(action).await;
    assert_eq!((row.new.initiator.as_str(), row.counts.completed, row.ended.is_some()), ("tester", 1, true));
    let returns = house.app().job(&crate::house::caller(), job.jid).await.unwrap().returns;
    assert!(returns[0].value.get("pkg_|-vim_|-vim_|-installed").is_some());
}

#[tokio::test]
async fn a_highstate_with_a_failed_state_failed() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(typed(&["a"], "states", [], Policy::default())).await.action;
    let job = a.job("state.highstate").await;
    let state = Value::map([("result", Value::from(false))]);
    a.return_for(&job, Value::map([("pkg_|-vim_|-vim_|-installed", state)])).await;
    house.becomes(action, "a", RunState::Failed, Some(Reason::ReturnedError)).await;
}

#[tokio::test]
async fn scenario_02_two_minions_are_one_action_with_two_runs() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let action = house.submit(ping(&["a", "b"], Policy::default())).await.action;
    for minion in [&mut a, &mut b] {
        let job = minion.job("test.ping").await;
        minion.return_for(&job, true).await;
    }
    let row = house.action(action).await;
    assert_eq!((row.counts.total, row.counts.completed), (2, 2));
}

#[tokio::test]
async fn scenario_09_a_lost_publication_is_sent_again_under_the_same_job_id() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    // The network ate it: the minion never saw this.
    let lost = a.job("test.ping").await;
    let again = a.job("test.ping").await;
    assert_eq!(again.jid, lost.jid);
    a.ack(&again).await;
    a.return_for(&again, true).await;
    let run = house.becomes(action, "a", RunState::Completed, None).await;
    assert_eq!((run.attempt, run.deliveries), (1, 2));
}

#[tokio::test]
async fn scenario_10_a_lost_return_is_looked_up_and_the_job_is_not_sent_again() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    // Its agent is restarted, so it is asked at once instead of after a while.
    a.announce().await;
    loop {
        let asked = a.next_job().await;
        match asked.load.get("fun").and_then(Value::as_str) {
            Some("saltutil.find_cached_job") => {
                let kept = Value::map([
                    ("return", Value::from(true)),
                    ("retcode", 0.into()),
                    ("fun", "test.ping".into()),
                    ("success", true.into()),
                ]);
                a.return_for(&asked, kept).await;
                break;
            }
            Some("test.ping") => panic!("it was sent again"),
            _ => assert!(a.answer_house(&asked).await),
        }
    }
    house.becomes(action, "a", RunState::Completed, None).await;
}

#[tokio::test]
async fn scenario_10_a_job_that_died_with_its_agent_is_lost_and_not_sent_again() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    a.announce().await;
    tokio::select! {
        () = a.only_answers_house() => {}
        run = house.becomes(action, "a", RunState::Failed, Some(Reason::Lost)) => assert_eq!(run.deliveries, 1),
    }
    // The truth comes late, and counts.
    a.return_for(&job, true).await;
    house.becomes(action, "a", RunState::Completed, None).await;
}

#[tokio::test]
async fn scenario_11_without_acknowledgement_nothing_is_sent_again() {
    let house = crate::house::House::with([("auto_accept", true.into()), ("ack_timeout", 1.into())]).await;
    let mut a = minion_of(&house, "a", "3006.28").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let first = a.job("test.ping").await;
    // Whatever else the server has to say comes before this, and it was not the same job again.
    let marker = house
        .submit(typed(
            &["a"],
            "function",
            [("fun", "test.echo".into()), ("arg", Value::list(["x"]))],
            Policy::default(),
        ))
        .await;
    tokio::time::timeout(Duration::from_secs(4), async {
        loop {
            let job = a.next_job().await;
            assert_ne!(job.jid, first.jid, "it was sent again");
        }
    })
    .await
    .expect_err("nothing more is published in this time");
    assert_eq!(house.state(action, "a").await.state, RunState::Sent);
    assert_eq!(house.state(marker.action, "a").await.deliveries, 1);
}

#[tokio::test]
async fn scenario_12_an_acknowledgement_after_the_return_changes_nothing() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    a.ack(&job).await;
    assert_eq!(house.state(action, "a").await.state, RunState::Completed);
}

#[tokio::test]
async fn scenario_13_without_acknowledgements_a_run_goes_from_sent_to_completed() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy { ack: Some(false), ..Policy::default() })).await.action;
    let job = a.job("test.ping").await;
    assert!(job.load.get("start_event").is_none());
    assert_eq!(house.state(action, "a").await.state, RunState::Sent);
    a.return_for(&job, true).await;
    let run = house.becomes(action, "a", RunState::Completed, None).await;
    assert_eq!(run.picked_up, None);
}

#[tokio::test]
async fn scenario_18_what_has_ended_stays_as_it_is_when_the_rest_is_swept() {
    let mut house = house().await;
    let names: Vec<String> = (0..10).map(|number| format!("m{number}")).collect();
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut minions = Vec::new();
    for id in &ids {
        minions.push(minion(&house, id).await);
    }
    let request =
        saltern_server::app::ActionRequest { deadline: Some(Duration::from_secs(6)), ..ping(&ids, Policy::default()) };
    let action = house.submit(request).await.action;
    for minion in &mut minions[1..] {
        let job = minion.job("test.ping").await;
        minion.return_for(&job, true).await;
    }
    let job = minions[0].job("test.ping").await;
    minions[0].ack(&job).await;
    house.crash().await;
    house.becomes(action, "m0", RunState::Failed, Some(Reason::Lost)).await;
    assert_eq!(house.action(action).await.counts.completed, 9);
}

#[tokio::test]
async fn scenario_19_a_minion_that_never_answers_again_fails_at_the_deadline() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let request = saltern_server::app::ActionRequest {
        deadline: Some(Duration::from_secs(2)),
        ..ping(&["a"], Policy::default())
    };
    let action = house.submit(request).await.action;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    drop(a);
    let run = house.becomes(action, "a", RunState::Failed, Some(Reason::Lost)).await;
    let over = run.ended.unwrap().since(house.action(action).await.new.deadline);
    assert!(over < Duration::from_secs(5), "it was open {over:?} after its deadline");
}

#[tokio::test]
async fn scenario_28_a_job_that_hangs_times_out_and_its_place_is_filled() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let batch = saltern_core::action::Batch { size: saltern_core::action::Size::Count(1), wait: Duration::ZERO };
    let policy = Policy { batch: Some(batch), job_timeout: Some(Duration::from_secs(2)), ..Policy::default() };
    let action = house.submit(ping(&["a", "b"], policy)).await.action;
    let hanging = a.job("test.ping").await;
    a.ack(&hanging).await;
    let job = b.job("test.ping").await;
    assert_eq!(job.jid, hanging.jid, "a batch has one job id");
    b.return_for(&job, true).await;
    house.becomes(action, "b", RunState::Completed, None).await;
    house.becomes(action, "a", RunState::Failed, Some(Reason::TimedOut)).await;
}

#[tokio::test]
async fn a_crash_between_claim_and_acknowledgement_loses_nothing_and_repeats_nothing() {
    let mut house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let lost = a.job("test.ping").await;
    house.crash().await;
    // The same agent finds its way back; it was not restarted.
    let mut back = FakeMinion::connect(house.requests, "a").await;
    assert_eq!(back.auth().await, saltern_testkit::fake_minion::SignIn::Accepted);
    back.subscribe().await;
    let again = back.job("test.ping").await;
    assert_eq!(again.jid, lost.jid);
    back.return_for(&again, true).await;
    house.becomes(action, "a", RunState::Completed, None).await;
}

#[tokio::test]
async fn a_killed_job_is_reported_as_stopped() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    let done = house.act(action, Verb::Stop).await;
    assert_eq!(done.minions.values().copied().collect::<Vec<_>>(), ["told to stop"]);
    let kill = a.job("saltutil.kill_job").await;
    assert_eq!(kill.load.get("arg"), Some(&Value::list([job.jid])));
    a.return_for(&kill, format!("Signal 9 sent to job {} at pid 17", job.jid)).await;
    house.becomes(action, "a", RunState::Failed, Some(Reason::Stopped)).await;
}

#[tokio::test]
async fn an_agent_update_that_took_its_agent_along_is_completed_when_the_agent_is_back() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(typed(&["a"], "agent_update", [], Policy::default())).await.action;
    let job = a.job("pkg.install").await;
    a.ack(&job).await;
    a.announce().await;
    tokio::select! {
        () = a.only_answers_house() => {}
        _ = house.becomes(action, "a", RunState::Completed, None) => {}
    }
}

#[tokio::test]
async fn a_stock_minion_that_was_restarted_is_asked_and_not_sent_the_same_job_again() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    // It may have run this, and forgotten that it did.
    a.job("test.ping").await;
    a.announce().await;
    tokio::select! {
        () = a.only_answers_house() => {}
        run = house.becomes(action, "a", RunState::Failed, Some(Reason::NotDelivered)) => assert_eq!(run.deliveries, 1),
    }
}

#[tokio::test]
async fn who_has_a_job_killed_by_himself_makes_the_server_ask_at_once() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    house.submit(ping(&["a"], Policy::default())).await;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    let kill = saltern_server::app::ActionRequest {
        what: saltern_server::app::What::Function {
            funs: vec!["saltutil.term_job".into()],
            args: vec![job.jid.into()],
            kwargs: saltern_core::value::Map::new(),
        },
        ..ping(&["a"], Policy::default())
    };
    house.submit(kill).await;
    let kill = a.job("saltutil.term_job").await;
    let asked = std::time::Instant::now();
    a.return_for(&kill, format!("Signal 15 sent to job {} at pid 17", job.jid)).await;
    a.job("saltutil.running").await;
    // By itself it asks after 15 seconds of silence at the earliest.
    assert!(asked.elapsed() < std::time::Duration::from_secs(12), "{:?}", asked.elapsed());
}
