//! What people do with actions: each verb once, and where it loses a race.

use crate::house::caller;
use crate::ward::{Hands, house, minion, ping, typed};
use saltern_core::action::{Backoff, Policy, Retry, RetryWhen};
use saltern_core::ids::MinionId;
use saltern_core::run::{Reason, RunState};
use saltern_core::value::Value;
use saltern_server::app::{ActionQuery, ActionRequest, Verb};
use saltern_store::ActionFilter;
use std::collections::BTreeSet;
use std::time::Duration;

fn all() -> ActionQuery {
    ActionQuery {
        before: None,
        limit: 100,
        internal: false,
        archived: false,
        filter: ActionFilter::All,
        initiator: None,
        minion: None,
    }
}

/// Whatever fails is tried once more, at once.
fn tried_twice() -> Policy {
    let backoff = Backoff { first: Duration::ZERO, most: Duration::ZERO };
    Policy { retry: Retry { attempts: 2, when: RetryWhen::Always, backoff }, ..Policy::default() }
}

#[tokio::test]
async fn scenario_15_cancel_against_dispatch_has_one_winner_each_time() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    const RACES: usize = 1_000;
    let mut actions = Vec::new();
    for _ in 0..RACES {
        actions.push(
            house
                .submit(ActionRequest {
                    paused: true,
                    ..ping(&["a"], Policy { ack: Some(false), ..Policy::default() })
                })
                .await
                .action,
        );
    }
    // Both at the same instant, each in a task of its own.
    let app = house.app();
    let races = actions.iter().map(|&action| {
        let app = app.clone();
        tokio::spawn(async move {
            let caller = caller();
            let ids = [action];
            let (resumed, cancelled) = tokio::join!(app.act(&caller, &ids, None, &Verb::Resume), async {
                tokio::task::yield_now().await;
                app.act(&caller, &ids, None, &Verb::Cancel).await
            });
            resumed.unwrap();
            cancelled.unwrap().remove(0).minions.into_values().next().unwrap()
        })
    });
    let words = futures_util::future::join_all(races).await;
    let cancelled: BTreeSet<_> = actions
        .iter()
        .zip(words)
        .filter(|(_, word)| *word.as_ref().unwrap() == "cancelled")
        .map(|(action, _)| *action)
        .collect();
    let mut ran = BTreeSet::new();
    while ran.len() + cancelled.len() < RACES {
        let job = a.next_job().await;
        if a.answer_house(&job).await {
            continue;
        }
        let number = job.load.get("metadata").and_then(|metadata| metadata.get("saltern")?.get("action")?.as_i64());
        let action = saltern_core::ids::ActionId(number.unwrap());
        assert!(!cancelled.contains(&action), "{action} was cancelled, and ran");
        a.return_for(&job, true).await;
        ran.insert(action);
    }
    for action in actions {
        let run = house.state(action, "a").await;
        match run.state {
            RunState::Cancelled => assert!(cancelled.contains(&action) && !ran.contains(&action)),
            RunState::Completed => assert!(ran.contains(&action)),
            other => panic!("{action} is {other:?}"),
        }
    }
}

#[tokio::test]
async fn scenario_16_what_runs_is_not_cancelled_but_can_be_failed_by_hand() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    let done = house.act(action, Verb::Cancel).await;
    assert_eq!(done.minions.values().copied().collect::<Vec<_>>(), ["too late: it was sent"]);
    house.act(action, Verb::Fail { message: "the machine burnt down".into() }).await;
    let run = house.becomes(action, "a", RunState::Failed, Some(Reason::FailedByHand)).await;
    assert_eq!(run.message.as_deref(), Some("the machine burnt down"));
}

#[tokio::test]
async fn what_is_killed_on_somebodys_word_is_stopped_also_if_it_tells_so_itself() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], tried_twice())).await.action;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    house.becomes(action, "a", RunState::PickedUp, None).await;
    house.act(action, Verb::Stop).await;
    let kill = a.job("saltutil.kill_job").await;
    a.fails(&job, -9).await;
    house.becomes(action, "a", RunState::Failed, Some(Reason::Stopped)).await;
    a.return_for(&kill, "Signal 9 sent to job").await;
    let run = house.state(action, "a").await;
    assert_eq!((run.state, run.reason, run.attempt), (RunState::Failed, Some(Reason::Stopped), 1));
}

#[tokio::test]
async fn scenario_17_a_return_after_a_failure_by_hand_is_kept_and_changes_nothing() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    house.act(action, Verb::Fail { message: "enough".into() }).await;
    a.return_for(&job, "after all").await;
    let run = house.state(action, "a").await;
    assert_eq!((run.state, run.reason, run.late), (RunState::Failed, Some(Reason::FailedByHand), true));
    let returns = house.app().job(&crate::house::caller(), job.jid).await.unwrap().returns;
    assert_eq!(returns[0].value, Value::from("after all"));
    let explained = house.app().explain(&caller(), action, &MinionId::new("a").unwrap()).await.unwrap();
    assert!(explained.facts.iter().any(|fact| fact.what.contains("after it had ended")), "{explained:?}");
}

#[tokio::test]
async fn scenario_20_only_what_failed_is_done_again_and_the_earlier_output_stays() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let action = house.submit(ping(&["a", "b"], Policy::default())).await.action;
    let first = a.job("test.ping").await;
    a.fails(&first, 3).await;
    let job = b.job("test.ping").await;
    b.return_for(&job, true).await;
    let done = house.act(action, Verb::Retry { only_failed: true }).await;
    assert_eq!(done.minions.len(), 1);
    let again = a.job("test.ping").await;
    assert_ne!(again.jid, first.jid, "another attempt has another job id");
    a.return_for(&again, true).await;
    let run = house.becomes(action, "a", RunState::Completed, None).await;
    assert_eq!(run.attempt, 2);
    let attempts = house.app().attempts(&caller(), action, &MinionId::new("a").unwrap()).await.unwrap();
    assert_eq!((attempts[0].jid, attempts[0].retcode), (Some(first.jid), Some(3)));
    assert_eq!(house.app().job(&crate::house::caller(), first.jid).await.unwrap().returns.len(), 2);
}

#[tokio::test]
async fn scenario_21_a_second_retry_while_the_first_is_open_does_not_run_it_twice() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.fails(&job, 1).await;
    house.act(action, Verb::Retry { only_failed: true }).await;
    let done = house.act(action, Verb::Retry { only_failed: false }).await;
    assert_eq!(done.minions.values().copied().collect::<Vec<_>>(), ["has not ended"]);
    let again = a.job("test.ping").await;
    a.return_for(&again, true).await;
    let run = house.becomes(action, "a", RunState::Completed, None).await;
    assert_eq!((run.attempt, run.deliveries), (2, 1));
}

#[tokio::test]
async fn scenario_22_what_is_archived_leaves_the_list_and_only_that_can_be_deleted() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], Policy::default())).await.action;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    let refused = house.app().act(&caller(), &[action], None, &Verb::Delete).await.unwrap_err();
    assert!(refused.to_string().contains("archive"), "{refused}");
    house.act(action, Verb::Archive).await;
    assert!(house.app().actions(&caller(), &all()).await.unwrap().iter().all(|listed| listed.id != action));
    let archived = ActionQuery { archived: true, ..all() };
    assert_eq!(house.app().actions(&caller(), &archived).await.unwrap().len(), 1);
    house.act(action, Verb::Delete).await;
    assert!(house.app().actions(&caller(), &archived).await.unwrap().is_empty());
    assert!(house.app().job(&crate::house::caller(), job.jid).await.is_err());
}

#[tokio::test]
async fn a_paused_action_starts_nothing_until_it_is_resumed() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let paused = house
        .submit(ActionRequest {
            paused: true,
            ..typed(&["a"], "function", [("fun", "test.version".into())], Policy::default())
        })
        .await
        .action;
    house.submit(ping(&["a"], Policy::default())).await;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    house.act(paused, Verb::Resume).await;
    let job = a.job("test.version").await;
    a.return_for(&job, "3008.3").await;
    house.becomes(paused, "a", RunState::Completed, None).await;
}

#[tokio::test]
async fn a_failing_repeatable_action_is_tried_again_by_itself() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let action = house.submit(ping(&["a"], tried_twice())).await.action;
    for _ in 0..2 {
        let job = a.job("test.ping").await;
        a.fails(&job, 1).await;
    }
    let run = house.becomes(action, "a", RunState::Failed, Some(Reason::ReturnedError)).await;
    assert_eq!(run.attempt, 2);
}
