//! Claims: a run is taken once, when it is due, and never against a cancel.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, all_tags, at, claim, jid, minion, minions, queued, run, state, stored, transition, verb, work,
};
use saltern_core::ids::ActionId;
use saltern_core::run::{Input, Refusal, RunState, WaitingFor};
use saltern_store::{Claim, Counts, Error, NewRun, NewWork, Verb};

on_both_databases! {
    a_claimed_run_is_sent,
    only_what_is_due_is_claimed,
    what_waits_to_be_released_is_not_claimed,
    a_claim_that_takes_nothing_leaves_nothing,
    the_first_claim_gives_the_action_its_job,
    later_claims_share_the_job_of_the_first,
    a_claim_with_a_job_id_that_is_taken_takes_nothing,
    a_claim_that_names_a_minion_twice_takes_it_once,
    the_same_job_again_is_another_delivery,
    another_job_is_another_attempt,
    of_many_claims_at_once_one_takes_the_run,
    a_cancel_that_races_a_claim_is_decided_once,
    two_servers_never_both_take_a_run,
    the_minions_that_are_back_have_their_runs_released,
    runs_in_progress_come_in_pages,
    due_runs_come_in_the_order_they_are_due,
}

async fn a_claimed_run_is_sent(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    assert_eq!(store.claim(claim(5, action, &["web1"])).await.unwrap(), [minion("web1")]);
    let sent = run(&store, action).await;
    assert_eq!((sent.state, sent.reason, sent.waiting_for, sent.due), (RunState::Sent, None, None, None));
    assert_eq!((sent.attempt, sent.deliveries, sent.jid, sent.sent), (1, 1, Some(jid(5)), Some(at(5))));
    assert_eq!(stored(&store, action).await.counts, Counts { total: 1, running: 1, ..Counts::default() });
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/5/new"]);
}

async fn only_what_is_due_is_claimed(database: Database) {
    let store = database.open().await;
    let later = |id: &str, due| NewRun {
        minion: minion(id),
        state: RunState::Queued,
        waiting_for: Some(WaitingFor::Due),
        due: Some(at(due)),
    };
    let runs = vec![later("a", 4), later("b", 5), later("c", 6)];
    let action = store.create(NewWork { runs, ..queued(1, &[]) }).await.unwrap();
    assert_eq!(store.claim(claim(5, action, &["a", "b", "c", "d"])).await.unwrap(), minions(&["a", "b"]));
    assert_eq!(store.claim(claim(6, action, &["a", "b", "c", "d"])).await.unwrap(), minions(&["c"]));
}

async fn what_waits_to_be_released_is_not_claimed(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    store.transit(vec![transition(2, action, "web1", Input::Wait(WaitingFor::Offline, None))]).await.unwrap();
    assert_eq!(store.claim(claim(5, action, &["web1"])).await.unwrap(), []);
}

async fn a_claim_that_takes_nothing_leaves_nothing(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    assert_eq!(store.claim(claim(5, action, &["web1"])).await.unwrap(), []);
    assert_eq!(store.claim(claim(6, ActionId(404), &["web1"])).await.unwrap(), []);
    assert_eq!((store.job(jid(5)).await.unwrap(), store.job(jid(6)).await.unwrap()), (None, None));
    assert_eq!(all_tags(&store).await, ["job/1/new"]);
}

async fn the_first_claim_gives_the_action_its_job(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["a", "b"])).await.unwrap();
    let retry = Claim { is_first: false, ..claim(5, action, &["a"]) };
    store.claim(retry).await.unwrap();
    assert_eq!(stored(&store, action).await.jid, None);
    store.claim(claim(6, action, &["b"])).await.unwrap();
    assert_eq!(stored(&store, action).await.jid, Some(jid(6)));
}

async fn later_claims_share_the_job_of_the_first(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["a", "b"])).await.unwrap();
    let mut first = claim(5, action, &["a", "b"]);
    first.minions = minions(&["a"]);
    store.claim(first).await.unwrap();
    let second = Claim { job: None, at: at(9), ..claim(5, action, &["b"]) };
    assert_eq!(store.claim(second).await.unwrap(), minions(&["b"]));
    let jobs = store.jobs_of(action).await.unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].minions, minions(&["a", "b"]), "one job for the whole batch, as clients expect");
}

async fn a_claim_with_a_job_id_that_is_taken_takes_nothing(database: Database) {
    let store = database.open().await;
    store.create(work(5, &["web9"])).await.unwrap();
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    let taken = store.claim(claim(5, action, &["web1"])).await;
    assert!(matches!(taken, Err(Error::JidTaken)), "{taken:?}");
    assert_eq!(state(&store, action).await, RunState::Queued);
    assert_eq!(stored(&store, action).await.counts.queued, 1);
}

async fn a_claim_that_names_a_minion_twice_takes_it_once(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    assert_eq!(store.claim(claim(5, action, &["web1", "web1"])).await.unwrap(), minions(&["web1"]));
    assert_eq!((run(&store, action).await.attempt, stored(&store, action).await.counts.running), (1, 1));
}

async fn the_same_job_again_is_another_delivery(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.transit(vec![transition(5, action, "web1", Input::Redeliver)]).await.unwrap();
    let again = Claim { job: None, at: at(6), ..claim(1, action, &["web1"]) };
    assert_eq!(store.claim(again).await.unwrap(), minions(&["web1"]));
    let sent = run(&store, action).await;
    assert_eq!((sent.attempt, sent.deliveries, sent.jid, sent.sent), (1, 2, Some(jid(1)), Some(at(6))));
    assert_eq!(store.attempts(action, &minion("web1")).await.unwrap(), [], "it is still the same attempt");
}

async fn another_job_is_another_attempt(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.transit(vec![transition(5, action, "web1", Input::Fail)]).await.unwrap();
    store.apply(verb(6, action, Input::Retry)).await.unwrap();
    store.claim(claim(7, action, &["web1"])).await.unwrap();
    let sent = run(&store, action).await;
    assert_eq!((sent.attempt, sent.deliveries, sent.jid), (2, 1, Some(jid(7))));
    assert_eq!(store.attempts(action, &minion("web1")).await.unwrap().len(), 1);
}

async fn of_many_claims_at_once_one_takes_the_run(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    let claims = (10..50).map(|n| store.claim(claim(n, action, &["web1"])));
    let taken = futures_util::future::try_join_all(claims).await.unwrap();
    assert_eq!(taken.iter().filter(|taken| !taken.is_empty()).count(), 1);
    assert_eq!(store.jobs_of(action).await.unwrap().len(), 1);
    assert_eq!(run(&store, action).await.attempt, 1);
}

async fn a_cancel_that_races_a_claim_is_decided_once(database: Database) {
    const PAIRS: usize = 1000;
    let store = database.open().await;
    let names: Vec<String> = (0..PAIRS).map(|n| format!("m{n:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let action = store.create(queued(1, &names)).await.unwrap();
    let mut races = tokio::task::JoinSet::new();
    for (n, name) in (2..).zip(&names) {
        let (store, name) = (store.clone(), minion(name));
        races.spawn(async move {
            let taking = claim(n, action, &[name.as_str()]);
            let cancelling = Verb { minions: Some(vec![name.clone()]), ..verb(n, action, Input::Cancel) };
            let (one, other) = (store.claim(taking), store.apply(cancelling));
            // Either may be handed over first.
            let (taken, fates) = if n % 2 == 0 {
                tokio::join!(one, other)
            } else {
                let (fates, taken) = tokio::join!(other, one);
                (taken, fates)
            };
            (name, taken.unwrap(), fates.unwrap())
        });
    }
    let (mut claimed, mut cancelled) = (0, 0);
    for (name, taken, fates) in races.join_all().await {
        let now = store.run(action, &name).await.unwrap().unwrap();
        match (taken.as_slice(), fates.as_slice()) {
            ([one], [(other, Err(Refusal::Sent))]) => {
                assert_eq!((one, other, now.state, now.deliveries), (&name, &name, RunState::Sent, 1));
                claimed += 1;
            }
            ([], [(other, Ok(RunState::Cancelled))]) => {
                assert_eq!((other, now.state, now.deliveries, now.jid), (&name, RunState::Cancelled, 0, None));
                cancelled += 1;
            }
            both => panic!("{name} was {both:?}"),
        }
    }
    assert_eq!(claimed + cancelled, PAIRS);
    let counts = stored(&store, action).await.counts;
    let wanted = Counts { total: 1000, running: claimed as i64, cancelled: cancelled as i64, ..Counts::default() };
    assert_eq!(counts, wanted);
}

async fn two_servers_never_both_take_a_run(database: Database) {
    let stores = [database.open().await, database.open().await];
    let names: Vec<String> = (0..40).map(|n| format!("m{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let action = stores[0].create(queued(1, &names)).await.unwrap();
    let claims = (2..42_i64).map(|n| {
        let store = &stores[usize::try_from(n % 2).unwrap()];
        store.claim(claim(n, action, &names))
    });
    let taken = futures_util::future::try_join_all(claims).await.unwrap();
    let mut all: Vec<_> = taken.into_iter().flatten().collect();
    all.sort();
    assert_eq!(all, minions(&names), "each once");
    assert_eq!(stored(&stores[1], action).await.counts, Counts { total: 40, running: 40, ..Counts::default() });
}

async fn the_minions_that_are_back_have_their_runs_released(database: Database) {
    let store = database.open().await;
    for n in 1..=3 {
        store.create(queued(n, &["a", "b"])).await.unwrap();
    }
    let wait = |n, id, what, until| transition(5, ActionId(n), id, Input::Wait(what, until));
    let waits = vec![
        wait(1, "a", WaitingFor::Offline, None),
        wait(2, "a", WaitingFor::Offline, Some(at(900))),
        wait(3, "a", WaitingFor::Window, None),
        wait(1, "b", WaitingFor::Offline, None),
    ];
    store.transit(waits).await.unwrap();
    let released = store.release(minions(&["a", "a", "z"]), at(50)).await.unwrap();
    assert_eq!(released, [ActionId(1), ActionId(2)]);
    let due = async |n, id| store.run(ActionId(n), &minion(id)).await.unwrap().unwrap().due;
    assert_eq!((due(1, "a").await, due(2, "a").await), (Some(at(50)), Some(at(50))));
    assert_eq!((due(3, "a").await, due(1, "b").await), (None, None));
    assert_eq!(store.release(minions(&["a"]), at(60)).await.unwrap(), [], "they are due already");
}

async fn runs_in_progress_come_in_pages(database: Database) {
    let store = database.open().await;
    for n in 1..=3 {
        store.create(work(n, &["a", "B"])).await.unwrap();
    }
    store.create(queued(4, &["a"])).await.unwrap();
    store.transit(vec![transition(9, ActionId(2), "a", Input::Fail)]).await.unwrap();
    let page = async |after: Option<(&str, i64)>| {
        let after = after.map(|(id, action)| (minion(id), ActionId(action)));
        let runs = store.runs_in_progress(after, 3).await.unwrap();
        runs.into_iter().map(|(action, run)| (run.minion.to_string(), action.0)).collect::<Vec<_>>()
    };
    let row = |id: &str, action| (id.to_owned(), action);
    assert_eq!(page(None).await, [row("B", 1), row("B", 2), row("B", 3)]);
    assert_eq!(page(Some(("B", 3))).await, [row("a", 1), row("a", 3)]);
    assert_eq!(page(Some(("a", 3))).await, []);
    let open = store.open_runs_of(&minion("a")).await.unwrap();
    assert_eq!(open.iter().map(|(action, _)| action.0).collect::<Vec<_>>(), [1, 3, 4]);
}

async fn due_runs_come_in_the_order_they_are_due(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["a", "b", "c", "d", "e"])).await.unwrap();
    assert_eq!(store.next_due(action).await.unwrap(), Some(at(1)));
    let wait = |id, until| transition(5, action, id, Input::Wait(WaitingFor::Due, until));
    let until = |n| Some(at(n));
    let waits = [("a", until(40)), ("b", until(30)), ("c", until(30)), ("d", until(50)), ("e", None)];
    store.transit(waits.map(|(id, until)| wait(id, until)).into()).await.unwrap();
    let due = async |now, limit| {
        let runs = store.due_runs(action, at(now), limit).await.unwrap();
        runs.into_iter().map(|run| run.minion).collect::<Vec<_>>()
    };
    assert_eq!(due(49, ALL).await, minions(&["b", "c", "a"]));
    assert_eq!(due(49, 2).await, minions(&["b", "c"]));
    assert_eq!(due(29, ALL).await, []);
    assert_eq!(store.next_due(action).await.unwrap(), Some(at(30)));
    assert_eq!(store.next_due(ActionId(404)).await.unwrap(), None);
}
