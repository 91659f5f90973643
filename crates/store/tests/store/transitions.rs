//! What is written is what `core::run::step` decides: every state a run can be in, times everything that can happen to it.
//!
//! Each state is reached by real operations, so that the test also shows that there is a way to it.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    BAD, GOOD, ack, at, claim, jid, minion, queued, returned, run, stored, transition, under, verb, work,
};
use saltern_core::action::{Backoff, Offline, Policy, Retry, RetryWhen};
use saltern_core::ids::{ActionId, Jid};
use saltern_core::run::{Input, Outcome, Reason, RunState, Verdict, WaitingFor, step};
use saltern_store::{Ack, Attempt, Claim, Counter, Counts, NewJob, NewReturn, Run, Store, Transition, Verb};
use std::time::Duration;

on_both_databases! {
    every_transition_is_what_step_decides,
    every_verb_is_what_step_decides,
    every_acknowledgement_is_what_step_decides,
    every_return_is_what_step_decides,
    every_claim_is_what_step_decides,
    transitions_are_applied_in_their_order,
    a_transition_of_a_run_that_does_not_exist_is_nothing,
    what_is_said_about_an_end_is_kept_with_the_run,
    what_is_said_about_an_attempt_is_kept_with_it,
    notes_are_kept_until_others_replace_them,
    every_attempt_but_the_newest_is_history,
    tries_of_a_minion_that_is_not_there_are_history,
    a_retry_after_a_cancel_keeps_the_history_of_what_was_tried,
}

/// Ways to the states: what is done to a run after it was created as job 1, or queued.
#[derive(Clone, Copy, Debug)]
enum Way {
    Queued,
    Offline,
    Sent,
    Redelivery,
    PickedUp,
    Backoff,
    SecondAttempt,
    Completed,
    Lost,
    NotDelivered,
    ReturnedError,
    FailedByHand,
    Cancelled,
    Retried,
}

const WAYS: [Way; 14] = [
    Way::Queued,
    Way::Offline,
    Way::Sent,
    Way::Redelivery,
    Way::PickedUp,
    Way::Backoff,
    Way::SecondAttempt,
    Way::Completed,
    Way::Lost,
    Way::NotDelivered,
    Way::ReturnedError,
    Way::FailedByHand,
    Way::Cancelled,
    Way::Retried,
];

/// The job of the first attempt, of the second, and one that no run has.
const JOBS: [i64; 3] = [1, 2, 99];

/// When the tested input comes.
const NOW: i64 = 5_000_000;

async fn every_transition_is_what_step_decides(database: Database) {
    let store = database.open().await;
    for policy in policies() {
        let kinds = inputs(jid(1), jid(2)).len();
        let cases = WAYS.into_iter().flat_map(|way| (0..kinds).map(move |kind| (way, kind)));
        each(cases, async |(way, kind)| {
            let reached = reach(&store, way, &policy).await;
            let input = inputs(reached.job(1), reached.job(99))[kind];
            let what = format!("{way:?}, {input:?}, {policy:?}");
            let wanted = step(&reached.before.standing(), input, &policy, at(NOW));
            let told = store.transit(vec![transition(NOW, reached.action, "web1", input)]).await.unwrap();
            assert_eq!(told, std::slice::from_ref(&wanted), "{what}");
            check(&store, &reached, &wanted, &what).await;
        })
        .await;
    }
}

async fn every_verb_is_what_step_decides(database: Database) {
    const VERBS: [Input; 6] =
        [Input::Cancel, Input::Fail, Input::Retry, Input::Budget, Input::Deadline, Input::Prerequisite];
    let store = database.open().await;
    for policy in policies() {
        let cases = WAYS.into_iter().flat_map(|way| VERBS.map(|input| (way, input)));
        each(cases, async |(way, input)| {
            let reached = reach(&store, way, &policy).await;
            let what = format!("{way:?}, {input:?}, {policy:?}");
            let wanted = step(&reached.before.standing(), input, &policy, at(NOW));
            let minions = Some(vec![minion("web1"), minion("other"), minion("web1")]);
            let fates = store.apply(Verb { minions, ..verb(NOW, reached.action, input) }).await.unwrap();
            let expected = match &wanted {
                Outcome::Change(change) => vec![(minion("web1"), Ok(change.standing.state))],
                Outcome::Refused(refusal) => vec![(minion("web1"), Err(*refusal))],
                Outcome::Nothing | Outcome::Late => Vec::new(),
            };
            assert_eq!(fates, expected, "{what}");
            check(&store, &reached, &wanted, &what).await;
        })
        .await;
    }
}

async fn every_acknowledgement_is_what_step_decides(database: Database) {
    let store = database.open().await;
    for policy in policies() {
        let cases = WAYS.into_iter().flat_map(|way| JOBS.map(|n| (way, n)));
        each(cases, async |(way, n)| {
            let reached = reach(&store, way, &policy).await;
            let (jid, what) = (reached.job(n), format!("{way:?}, acknowledges {n}, {policy:?}"));
            let wanted = step(&reached.before.standing(), Input::Ack(jid), &policy, at(NOW));
            let word = Ack { jid, at: at(NOW), events: vec![], ..ack(n, reached.action, "web1") };
            assert_eq!(store.record_ack(word).await.unwrap(), matches!(wanted, Outcome::Change(_)), "{what}");
            check(&store, &reached, &wanted, &what).await;
        })
        .await;
    }
}

/// Both ways through the store: the short one of a good return, and the one that reads first.
async fn every_return_is_what_step_decides(database: Database) {
    const KINDS: [(Verdict, bool); 3] = [(GOOD, true), (BAD, true), (GOOD, false)];
    let store = database.open().await;
    for policy in policies() {
        let cases = WAYS.into_iter().flat_map(|way| JOBS.map(|n| (way, n)));
        let cases = cases.flat_map(|(way, n)| KINDS.map(|kind| (way, n, kind)));
        each(cases, async |(way, n, (verdict, settles))| {
            let reached = reach(&store, way, &policy).await;
            let (jid, before) = (reached.job(n), &reached.before);
            let what = format!("{way:?}, return of {n}, {verdict:?}, settles {settles}, {policy:?}");
            let input = if settles { Input::Return(jid, verdict) } else { Input::Accepted(jid) };
            let wanted = step(&before.standing(), input, &policy, at(NOW));
            let new = NewReturn { jid, at: at(NOW), verdict, settles, ..returned(n, Some(reached.action), "web1") };
            let recorded = store.record_return(new).await.unwrap();
            if !recorded.news {
                // It came before, on the way here.
                return assert_eq!(run_of(&store, reached.action).await, *before, "{what}");
            }
            assert_eq!(recorded.outcome, Some(wanted.clone()), "{what}");
            check(&store, &reached, &wanted, &what).await;
            let after = run_of(&store, reached.action).await;
            let counts =
                matches!(wanted, Outcome::Change(_)) || (before.state == RunState::PickedUp && before.jid == Some(jid));
            assert_eq!(after.late, !counts, "{what}");
            if after.state.is_terminal() && counts {
                assert_eq!(after.retcode, Some(verdict.retcode), "{what}");
            }
        })
        .await;
    }
}

async fn every_claim_is_what_step_decides(database: Database) {
    let store = database.open().await;
    for policy in policies() {
        let cases = WAYS.into_iter().flat_map(|way| [1, 2, 3].map(|n| (way, n)));
        each(cases, async |(way, n)| {
            let reached = reach(&store, way, &policy).await;
            let (jid, before) = (reached.job(n), &reached.before);
            let what = format!("{way:?}, claimed for {n}, {policy:?}");
            let is_due = before.due.is_some_and(|due| due <= at(NOW));
            let wanted = match before.state {
                RunState::Queued if !is_due => Outcome::Nothing,
                _ => step(&before.standing(), Input::Claim(jid), &policy, at(NOW)),
            };
            let new = Claim { jid, job: None, at: at(NOW), events: vec![], ..claim(n, reached.action, &["web1"]) };
            let taken = store.claim(new).await.unwrap();
            assert_eq!(!taken.is_empty(), matches!(wanted, Outcome::Change(_)), "{what}");
            check(&store, &reached, &wanted, &what).await;
        })
        .await;
    }
}

async fn transitions_are_applied_in_their_order(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["a", "b"])).await.unwrap();
    let inputs = vec![
        transition(5, action, "a", Input::Redeliver),
        transition(6, action, "b", Input::Fail),
        transition(7, action, "a", Input::Wait(WaitingFor::Slot, Some(at(70)))),
        transition(8, action, "a", Input::Fail),
        transition(9, action, "a", Input::Cancel),
    ];
    let told = store.transit(inputs).await.unwrap();
    let states = told.iter().map(|outcome| match outcome {
        Outcome::Change(change) => Some(change.standing.state),
        _ => None,
    });
    let (queued, failed) = (Some(RunState::Queued), Some(RunState::Failed));
    assert_eq!(states.collect::<Vec<_>>(), [queued, failed, queued, failed, None]);
    let counts = stored(&store, action).await.counts;
    assert_eq!(counts, Counts { total: 2, failed: 2, ..Counts::default() });
}

async fn a_transition_of_a_run_that_does_not_exist_is_nothing(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let strange = vec![
        transition(5, action, "db1", Input::Fail),
        transition(5, ActionId(404), "web1", Input::Fail),
        transition(5, action, "web1", Input::Fail),
    ];
    let told = store.transit(strange).await.unwrap();
    assert_eq!(told[..2], [Outcome::Nothing, Outcome::Nothing]);
    assert!(matches!(told[2], Outcome::Change(_)), "the others are not held up");
}

async fn what_is_said_about_an_end_is_kept_with_the_run(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let said =
        Transition { message: Some("nobody’s there".into()), ..transition(5, action, "web1", Input::Deadline) };
    store.transit(vec![said]).await.unwrap();
    assert_eq!(run(&store, action).await.message.as_deref(), Some("nobody’s there"));
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    assert_eq!(run(&store, action).await.message, None, "the return says otherwise");
}

async fn what_is_said_about_an_attempt_is_kept_with_it(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let said = Transition {
        message: Some("it had nothing of it".into()),
        ..transition(5, action, "web1", Input::NotDelivered(true))
    };
    store.transit(vec![said]).await.unwrap();
    assert_eq!(run(&store, action).await.message, None);
    let first = Attempt {
        number: 1,
        jid: Some(jid(1)),
        sent: Some(at(1)),
        picked_up: None,
        ended: Some(at(5)),
        reason: Some(Reason::NotDelivered),
        retcode: None,
        message: Some("it had nothing of it".into()),
    };
    assert_eq!(store.attempts(action, &minion("web1")).await.unwrap(), [first]);
}

async fn notes_are_kept_until_others_replace_them(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let noted =
        Transition { evidence: Some(r#"{"asked":1}"#.into()), ..transition(5, action, "web1", Input::Ack(jid(1))) };
    store.transit(vec![noted]).await.unwrap();
    store.transit(vec![transition(6, action, "web1", Input::TimedOut)]).await.unwrap();
    assert_eq!(run(&store, action).await.evidence.as_deref(), Some(r#"{"asked":1}"#));
    store.set_evidence(action, minion("web1"), r#"{"asked":2}"#.into()).await.unwrap();
    assert_eq!(run(&store, action).await.evidence.as_deref(), Some(r#"{"asked":2}"#));
    store.set_evidence(action, minion("db1"), "{}".into()).await.unwrap();
}

async fn every_attempt_but_the_newest_is_history(database: Database) {
    let store = database.open().await;
    let retry = Retry { attempts: 9, when: RetryWhen::Always, backoff: no_pause() };
    let action = store.create(under(Policy { retry, ..Policy::default() }, work(1, &["web1"]))).await.unwrap();
    for n in 2..=4 {
        store.transit(vec![transition(n * 10, action, "web1", Input::Gone)]).await.unwrap();
        assert_eq!(store.claim(claim(n * 10 + 1, action, &["web1"])).await.unwrap().len(), 1);
    }
    let history = store.attempts(action, &minion("web1")).await.unwrap();
    let jobs: Vec<_> = history.iter().map(|attempt| (attempt.number, attempt.jid, attempt.ended)).collect();
    let wanted = [(1, jid(1), at(20)), (2, jid(21), at(30)), (3, jid(31), at(40))];
    assert_eq!(jobs, wanted.map(|(number, jid, ended)| (number, Some(jid), Some(ended))));
    let newest = run(&store, action).await;
    assert_eq!((newest.attempt, newest.jid, newest.sent), (4, Some(jid(41)), Some(at(41))));
}

async fn tries_of_a_minion_that_is_not_there_are_history(database: Database) {
    let store = database.open().await;
    let offline = Offline::Retry { tries: 2, every: Duration::from_micros(10) };
    let policy = Policy { offline, ..Policy::default() };
    let action = store.create(under(policy, queued(1, &["web1"]))).await.unwrap();
    for n in [10, 20, 30] {
        store.transit(vec![transition(n, action, "web1", Input::Unreachable)]).await.unwrap();
    }
    let history = store.attempts(action, &minion("web1")).await.unwrap();
    let tries: Vec<_> = history.iter().map(|attempt| (attempt.number, attempt.jid, attempt.reason)).collect();
    assert_eq!(tries, [(1, None, Some(Reason::Offline)), (2, None, Some(Reason::Offline))]);
    let given_up = run(&store, action).await;
    assert_eq!((given_up.state, given_up.reason), (RunState::Failed, Some(Reason::Offline)));
    assert_eq!(stored(&store, action).await.counts.unreachable, 1);
}

async fn a_retry_after_a_cancel_keeps_the_history_of_what_was_tried(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.transit(vec![transition(5, action, "web1", Input::NotDelivered(true))]).await.unwrap();
    let tried = store.attempts(action, &minion("web1")).await.unwrap();
    assert_eq!((tried.len(), tried[0].reason), (1, Some(Reason::NotDelivered)));
    store.apply(verb(6, action, Input::Cancel)).await.unwrap();
    store.apply(verb(7, action, Input::Retry)).await.unwrap();
    assert_eq!(store.attempts(action, &minion("web1")).await.unwrap(), tried);
}

/// All cases side by side, so that they share commits.
async fn each<C>(cases: impl Iterator<Item = C>, test: impl AsyncFn(C)) {
    futures_util::future::join_all(cases.map(async |case| test(case).await)).await;
}

/// Fails unless the run stands where `step` put it, with the times that belong to it, and is counted there.
async fn check(store: &Store, reached: &Reached, wanted: &Outcome, what: &str) {
    let (before, after) = (&reached.before, run_of(store, reached.action).await);
    match wanted {
        Outcome::Change(change) => {
            assert_eq!(after.standing(), change.standing, "{what}");
            assert_eq!(after.due, change.due, "{what}");
            assert_eq!(after.ended, change.standing.state.is_terminal().then_some(at(NOW)), "{what}");
            if change.closes_attempt {
                assert_eq!((after.sent, after.picked_up, after.retcode), (None, None, None), "{what}");
            }
        }
        _ => assert_eq!(Run { late: before.late, ..after.clone() }, *before, "{what}"),
    }
    let action = stored(store, reached.action).await;
    assert_eq!(action.counts, counted(after.state, after.reason), "{what}");
    assert_eq!(action.ended.is_some(), after.state.is_terminal(), "{what}");
}

fn counted(state: RunState, reason: Option<Reason>) -> Counts {
    let one = |is: bool| i64::from(is);
    Counts {
        total: 1,
        queued: one(state == RunState::Queued),
        running: one(matches!(state, RunState::Sent | RunState::PickedUp)),
        completed: one(state == RunState::Completed),
        failed: one(state == RunState::Failed),
        unreachable: one(state == RunState::Failed && reason.is_some_and(Reason::is_unreachable)),
        cancelled: one(state == RunState::Cancelled),
    }
}

/// An action whose run has gone some way.
struct Reached {
    action: ActionId,
    /// No two of them share a job id
    number: i64,
    before: Run,
}

impl Reached {
    fn job(&self, n: i64) -> Jid {
        job_of(self.number, n)
    }
}

fn job_of(number: i64, n: i64) -> Jid {
    jid(number * 1000 + n)
}

async fn reach(store: &Store, way: Way, policy: &Policy) -> Reached {
    let number = store.reserve(Counter::Serial, 1).await.unwrap();
    let first = job_of(number, 1);
    let waits = matches!(way, Way::Queued | Way::Offline | Way::Cancelled);
    let mut new = under(policy.clone(), if waits { queued(1, &["web1"]) } else { work(1, &["web1"]) });
    new.job = new.job.map(|job| NewJob { jid: first, ..job });
    let action = store.create(new).await.unwrap();
    let then = async |n, input| drop(store.transit(vec![transition(n, action, "web1", input)]).await.unwrap());
    let returns = async |verdict| {
        let new = NewReturn { jid: first, at: at(30), verdict, ..returned(1, Some(action), "web1") };
        assert!(store.record_return(new).await.unwrap().news);
    };
    match way {
        Way::Queued | Way::Sent => {}
        Way::Offline => then(20, Input::Wait(WaitingFor::Offline, None)).await,
        Way::Redelivery => then(20, Input::Redeliver).await,
        Way::PickedUp => then(20, Input::Ack(first)).await,
        Way::Backoff => then(20, Input::NotDelivered(true)).await,
        Way::SecondAttempt => {
            then(20, Input::Fail).await;
            then(21, Input::Retry).await;
            let second = Claim { jid: job_of(number, 2), job: None, at: at(22), ..claim(2, action, &["web1"]) };
            assert_eq!(store.claim(second).await.unwrap().len(), 1);
        }
        Way::Completed => returns(GOOD).await,
        Way::Lost => {
            then(20, Input::Ack(first)).await;
            then(21, Input::Deadline).await;
        }
        Way::NotDelivered => then(20, Input::Deadline).await,
        Way::ReturnedError => returns(BAD).await,
        Way::FailedByHand => then(20, Input::Fail).await,
        Way::Cancelled => then(20, Input::Cancel).await,
        Way::Retried => {
            then(20, Input::Fail).await;
            then(21, Input::Retry).await;
        }
    }
    Reached { action, number, before: run_of(store, action).await }
}

async fn run_of(store: &Store, action: ActionId) -> Run {
    store.run(action, &minion("web1")).await.unwrap().unwrap()
}

/// The rules that decisions depend on.
fn policies() -> [Policy; 3] {
    let always = Retry { attempts: 3, when: RetryWhen::Always, backoff: no_pause() };
    let tries = Offline::Retry { tries: 2, every: Duration::from_secs(1) };
    [
        Policy::default(),
        Policy { offline: Offline::Hold, retry: always, ..Policy::default() },
        Policy { offline: tries, ..Policy::default() },
    ]
}

fn no_pause() -> Backoff {
    Backoff { first: Duration::ZERO, most: Duration::ZERO }
}

/// Everything that can happen, with a job that may be the run's, and with one that is not.
fn inputs(mine: Jid, other: Jid) -> Vec<Input> {
    let mut inputs = vec![
        Input::Settled(true),
        Input::Settled(false),
        Input::Unreachable,
        Input::Wait(WaitingFor::Slot, Some(at(NOW + 7))),
        Input::Wait(WaitingFor::Window, None),
        Input::Redeliver,
        Input::NotDelivered(true),
        Input::NotDelivered(false),
        Input::Gone,
        Input::Deadline,
        Input::TimedOut,
        Input::Stopped,
        Input::Prerequisite,
        Input::Cancel,
        Input::Budget,
        Input::Fail,
        Input::Retry,
    ];
    for jid in [mine, other] {
        inputs.extend([Input::Claim(jid), Input::Ack(jid), Input::Accepted(jid)]);
        inputs.extend([Input::Return(jid, GOOD), Input::Return(jid, BAD)]);
    }
    inputs
}
