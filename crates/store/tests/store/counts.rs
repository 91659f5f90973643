//! The counts of an action are those of its runs, whatever happens to them and however it is grouped.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, BAD, GOOD, ack, at, claim, jid, minion, queued, returned, stored, transition, verb, work};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use saltern_core::ids::ActionId;
use saltern_core::run::{Input, Reason, RunState, WaitingFor};
use saltern_store::{Claim, Counts, NewReturn, Run, Store, Verb};

on_both_databases! {
    returns_of_one_commit_are_counted_together,
    an_action_ends_with_its_last_run,
}

const IDS: [&str; 3] = ["a", "b", "c"];

/// Something that is done, with a number that jobs and times are made of.
#[derive(Clone, Debug)]
enum Step {
    Claim(usize, i64),
    Ack(usize, i64),
    Return(usize, i64, bool, bool),
    Transit(usize, Input),
    Verb(Option<usize>, bool, Input),
}

#[test]
fn counts_are_always_those_of_the_runs_on_sqlite() {
    counts_are_always_those_of_the_runs(48, || Some(Database::sqlite()));
}

#[test]
fn counts_are_always_those_of_the_runs_on_postgres() {
    counts_are_always_those_of_the_runs(12, Database::postgres);
}

/// Steps are handed over in groups: those of a group are committed together, and partly applied side by side.
fn counts_are_always_those_of_the_runs(cases: u32, database: impl Fn() -> Option<Database>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let groups = prop::collection::vec(prop::collection::vec(step(), 1..8), 1..12);
    let outcome = TestRunner::new(config).run(&groups, |groups| {
        let Some(database) = database() else { return Ok(()) };
        runtime.block_on(async {
            let store = database.open().await;
            let one = store.create(work(1, &IDS)).await.unwrap();
            let other = store.create(queued(2, &IDS)).await.unwrap();
            for group in groups {
                let taken = group.iter().map(|step| take(&store, if is_even(step) { one } else { other }, step));
                futures_util::future::join_all(taken).await;
                for action in [one, other] {
                    let runs = store.runs(action, "", ALL).await.unwrap();
                    let now = stored(&store, action).await;
                    prop_assert_eq!(now.counts, recount(&runs), "after {:?}", &group);
                    prop_assert_eq!(now.ended.is_some(), runs.iter().all(|run| run.ended.is_some()));
                    prop_assert!(runs.iter().all(|run| run.ended.is_some() == run.state.is_terminal()));
                }
            }
            store.close().await;
            Ok(())
        })
    });
    if let Err(difference) = outcome {
        panic!("{difference}");
    }
}

async fn returns_of_one_commit_are_counted_together(database: Database) {
    let store = database.open().await;
    let names: Vec<String> = (0..300).map(|n| format!("m{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let actions = [store.create(work(1, &names)).await.unwrap(), store.create(work(2, &names)).await.unwrap()];
    let returns = names.iter().flat_map(|id| {
        [(1, actions[0], GOOD), (2, actions[1], if *id < "m100" { BAD } else { GOOD })]
            .map(|(n, action, verdict)| store.record_return(NewReturn { verdict, ..returned(n, Some(action), id) }))
    });
    futures_util::future::try_join_all(returns).await.unwrap();
    assert!(store.commits() < 200, "{} commits are too many for a test of groups", store.commits());
    let counts = Counts { total: 300, completed: 300, ..Counts::default() };
    assert_eq!(stored(&store, actions[0]).await.counts, counts);
    assert_eq!(stored(&store, actions[1]).await.counts, Counts { completed: 200, failed: 100, ..counts });
}

async fn an_action_ends_with_its_last_run(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["a", "b"])).await.unwrap();
    store.record_return(NewReturn { at: at(70), ..returned(1, Some(action), "a") }).await.unwrap();
    assert_eq!(stored(&store, action).await.ended, None);
    store.record_return(NewReturn { at: at(60), ..returned(1, Some(action), "b") }).await.unwrap();
    assert!(stored(&store, action).await.ended.is_some());
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0..IDS.len();
    let job = || 1..6_i64;
    let input = prop::sample::select(vec![
        Input::Redeliver,
        Input::NotDelivered(true),
        Input::NotDelivered(false),
        Input::Gone,
        Input::Deadline,
        Input::TimedOut,
        Input::Stopped,
        Input::Unreachable,
        Input::Settled(true),
        Input::Wait(WaitingFor::Slot, Some(at(3))),
    ]);
    let said = prop::sample::select(vec![
        Input::Cancel,
        Input::Fail,
        Input::Retry,
        Input::Retry,
        Input::Budget,
        Input::Deadline,
        Input::Prerequisite,
    ]);
    prop_oneof![
        3 => (id(), job()).prop_map(|(id, job)| Step::Claim(id, job)),
        2 => (id(), job()).prop_map(|(id, job)| Step::Ack(id, job)),
        4 => (id(), job(), any::<bool>(), any::<bool>()).prop_map(|(id, job, good, end)| Step::Return(id, job, good, end)),
        3 => (id(), input).prop_map(|(id, input)| Step::Transit(id, input)),
        3 => (prop::option::of(id()), any::<bool>(), said).prop_map(|(id, failed, input)| Step::Verb(id, failed, input)),
    ]
}

/// Half of the steps are for one action, half for the other.
fn is_even(step: &Step) -> bool {
    match step {
        Step::Claim(id, job) | Step::Ack(id, job) | Step::Return(id, job, ..) => (*id as i64 + job) % 2 == 0,
        Step::Transit(id, _) => id % 2 == 0,
        Step::Verb(id, only_failed, _) => id.is_some() == *only_failed,
    }
}

async fn take(store: &Store, action: ActionId, step: &Step) {
    // Job ids of the two actions are apart, and those of the first attempts among them.
    let number = |job: i64| if job == 1 { action.0 } else { action.0 * 100 + job };
    match step.clone() {
        Step::Claim(id, job) => {
            let new = Claim { job: None, at: at(10_000_000_000), ..claim(number(job), action, &[IDS[id]]) };
            store.claim(new).await.map(drop)
        }
        Step::Ack(id, job) => store.record_ack(ack(number(job), action, IDS[id])).await.map(drop),
        Step::Return(id, job, good, settles) => {
            let verdict = if good { GOOD } else { BAD };
            let new = NewReturn { jid: jid(number(job)), verdict, settles, ..returned(1, Some(action), IDS[id]) };
            store.record_return(new).await.map(drop)
        }
        Step::Transit(id, input) => store.transit(vec![transition(50, action, IDS[id], input)]).await.map(drop),
        Step::Verb(id, only_failed, input) => {
            let minions = id.map(|id| vec![minion(IDS[id])]);
            store.apply(Verb { minions, only_failed, ..verb(60, action, input) }).await.map(drop)
        }
    }
    .unwrap();
}

fn recount(runs: &[Run]) -> Counts {
    let number = |is: &dyn Fn(&Run) -> bool| i64::try_from(runs.iter().filter(|run| is(run)).count()).unwrap();
    Counts {
        total: number(&|_| true),
        queued: number(&|run| run.state == RunState::Queued),
        running: number(&|run| matches!(run.state, RunState::Sent | RunState::PickedUp)),
        completed: number(&|run| run.state == RunState::Completed),
        failed: number(&|run| run.state == RunState::Failed),
        unreachable: number(&|run| run.state == RunState::Failed && run.reason.is_some_and(Reason::is_unreachable)),
        cancelled: number(&|run| run.state == RunState::Cancelled),
    }
}
