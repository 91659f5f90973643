//! Both databases give the same answers: whatever is done to both, the same is found in both.

use crate::database::Database;
use crate::fixtures::{
    ALL, BAD, GOOD, PATIENCE, ack, action, all_audit, all_events, at, audit, body, claim, event, every_job, jid,
    minion, queued, returned, transition, verb, work,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use saltern_core::ids::ActionId;
use saltern_core::run::{Input, WaitingFor};
use saltern_store::{
    AckMethod, ActionFilter, ActionPage, Body, Claim, Counter, EventFilter, GrainsRow, JobPage, Key, KeySlot, Minion,
    NewAction, NewReturn, NewWork, Paused, Store, Transition, Verb,
};
use std::sync::Arc;

/// Few ids and job numbers, so that the steps get in each other's way.
const IDS: [&str; 4] = ["a", "B", "a-1", "web1.example.org"];
const FUNS: [&str; 2] = ["network.ip_addrs", "ähnlich"];
const JOBS: i64 = 4;

#[derive(Clone, Debug)]
enum Step {
    PutKey(&'static str, bool, String),
    RemoveKey(&'static str, bool),
    Seen(&'static str, i64, Option<String>),
    Forget(&'static str),
    Grains(&'static str, Vec<u8>),
    PutMine(&'static str, &'static str, Vec<u8>, bool),
    RemoveMine(&'static str, Option<&'static str>),
    Job(i64, Vec<&'static str>, String, bool),
    Queue(i64, Vec<&'static str>),
    Claim(i64, i64, &'static str),
    Transit(i64, &'static str, Input, Option<String>),
    Verb(i64, bool, Input),
    Pause(i64, bool, String),
    Archive(i64, bool),
    Release(&'static str),
    Purge(i64, usize),
    Ack(i64, &'static str),
    Return(i64, &'static str, String, bool, bool),
    Log(Vec<String>),
    Audit(String),
    Reserve(usize),
}

#[test]
fn both_databases_answer_alike() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = Config { cases: 16, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(step(), 1..60), |steps| {
        let Some(postgres) = Database::postgres() else { return Ok(()) };
        let sqlite = Database::sqlite();
        let (one, other) = runtime.block_on(async { tokio::join!(told(&sqlite, &steps), told(&postgres, &steps)) });
        prop_assert_eq!(one, other);
        Ok(())
    });
    if let Err(difference) = outcome {
        panic!("{difference}");
    }
}

fn step() -> impl Strategy<Value = Step> {
    let id = || prop::sample::select(&IDS[..]);
    let fun = || prop::sample::select(&FUNS[..]);
    let text = || prop_oneof!["[ -~]{0,8}", any::<String>()];
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    let (n, flag) = (|| 0..JOBS, any::<bool>);
    let number = || 1..5_i64;
    prop_oneof![
        1 => (id(), flag(), text()).prop_map(|(id, denied, state)| Step::PutKey(id, denied, state)),
        1 => (id(), flag()).prop_map(|(id, denied)| Step::RemoveKey(id, denied)),
        1 => (id(), any::<i64>(), prop::option::of(text())).prop_map(|(id, when, version)| Step::Seen(id, when, version)),
        1 => id().prop_map(Step::Forget),
        1 => (id(), bytes()).prop_map(|(id, bytes)| Step::Grains(id, bytes)),
        1 => (id(), fun(), bytes(), flag()).prop_map(|(id, fun, bytes, clear)| Step::PutMine(id, fun, bytes, clear)),
        1 => (id(), prop::option::of(fun())).prop_map(|(id, fun)| Step::RemoveMine(id, fun)),
        3 => (n(), prop::sample::subsequence(&IDS[..], 0..=IDS.len()), text(), flag())
            .prop_map(|(n, ids, arg, internal)| Step::Job(n, ids, arg, internal)),
        3 => (n(), prop::sample::subsequence(&IDS[..], 0..=IDS.len())).prop_map(|(n, ids)| Step::Queue(n, ids)),
        3 => (number(), n(), id()).prop_map(|(action, n, id)| Step::Claim(action, n, id)),
        4 => (number(), id(), input(), prop::option::of(text()))
            .prop_map(|(action, id, input, message)| Step::Transit(action, id, input, message)),
        2 => (number(), flag(), verb_input()).prop_map(|(action, failed, input)| Step::Verb(action, failed, input)),
        1 => (number(), flag(), text()).prop_map(|(action, pause, why)| Step::Pause(action, pause, why)),
        1 => (number(), flag()).prop_map(|(action, put_away)| Step::Archive(action, put_away)),
        1 => id().prop_map(Step::Release),
        1 => (number(), 1..5_usize).prop_map(|(action, step)| Step::Purge(action, step)),
        3 => (n(), id()).prop_map(|(n, id)| Step::Ack(n, id)),
        3 => (n(), id(), text(), flag(), flag())
            .prop_map(|(n, id, fun, good, alone)| Step::Return(n, id, fun, good, alone)),
        1 => prop::collection::vec(text(), 0..4).prop_map(Step::Log),
        1 => text().prop_map(Step::Audit),
        1 => (1..9_usize).prop_map(Step::Reserve),
    ]
}

/// What may happen to a run, with few job ids.
fn input() -> impl Strategy<Value = Input> {
    let job = (0..JOBS).prop_map(jid);
    prop_oneof![
        job.prop_flat_map(|jid| prop::sample::select(vec![Input::Ack(jid), Input::Accepted(jid), Input::Claim(jid)])),
        prop::sample::select(vec![
            Input::Redeliver,
            Input::NotDelivered(true),
            Input::Gone,
            Input::Unreachable,
            Input::TimedOut,
            Input::Stopped,
            Input::Settled(true),
            Input::Wait(WaitingFor::Window, None),
            Input::Wait(WaitingFor::Slot, Some(at(9))),
        ]),
    ]
}

fn verb_input() -> impl Strategy<Value = Input> {
    let verbs = [Input::Cancel, Input::Fail, Input::Retry, Input::Budget, Input::Deadline, Input::Prerequisite];
    prop::sample::select(verbs.to_vec())
}

/// What each step was answered, and what is found in the end.
async fn told(database: &Database, steps: &[Step]) -> Vec<String> {
    let store = database.open().await;
    let mut told = Vec::new();
    for step in steps {
        // The words of an error are each database's own.
        told.push(take(&store, step.clone()).await.unwrap_or_else(|_| "refused".into()));
    }
    told.extend(found(&store).await);
    store.close().await;
    told
}

async fn take(store: &Store, step: Step) -> saltern_store::Result<String> {
    let slot = |denied| if denied { KeySlot::Denied } else { KeySlot::Current };
    let bytes = |bytes| Body { encoding: 2, bytes };
    let told = match step {
        Step::PutKey(id, denied, state) => {
            let (minion, slot) = (minion(id), slot(denied));
            let key = Key { minion, slot, state, pem: "pem".into(), fingerprint: "ff".into(), since: at(1) };
            format!("{:?}", store.change_keys(vec![key], vec![], vec![event("key")], vec![]).await?)
        }
        Step::RemoveKey(id, denied) => {
            let removed = vec![(minion(id), slot(denied))];
            format!("{:?}", store.change_keys(vec![], removed, vec![], vec![audit("key.delete")]).await?)
        }
        Step::Seen(id, when, version) => {
            let seen = Minion {
                id: minion(id),
                first_seen: at(0),
                last_seen: saltern_core::time::Timestamp(when),
                started: None,
                address: version.clone(),
                version,
                ack_method: AckMethod::Executor,
                ack_setting: Some(when % 2 == 0),
                boot_id: None,
                reboot_needed: None,
            };
            format!("{:?}", store.record_minions(vec![seen]).await?)
        }
        Step::Forget(id) => format!("{:?}", store.forget_minion(minion(id)).await?),
        Step::Grains(id, body) => {
            let row = GrainsRow { minion: minion(id), at: at(2), body: bytes(body) };
            format!("{:?}", store.record_grains(row, vec![event("grains")]).await?)
        }
        Step::PutMine(id, fun, body, clear) => {
            format!("{:?}", store.put_mine(minion(id), at(3), vec![(fun.into(), bytes(body))], clear).await?)
        }
        Step::RemoveMine(id, fun) => format!("{:?}", store.remove_mine(minion(id), fun.map(str::to_owned)).await?),
        Step::Job(n, ids, arg, internal) => {
            let plain = work(n, &ids);
            let action = NewAction { arg, internal, ..plain.action };
            format!("{:?}", store.create(NewWork { action, ..plain }).await?)
        }
        Step::Queue(n, ids) => format!("{:?}", store.create(queued(n, &ids)).await?),
        Step::Claim(action, n, id) => {
            // Far in the future, so that whatever is due at all is due then.
            let late = Claim { at: at(1 << 40), ..claim(n, ActionId(action), &[id]) };
            format!("{:?}", store.claim(late).await?)
        }
        Step::Transit(action, id, input, message) => {
            let one = Transition { message, ..transition(40, ActionId(action), id, input) };
            let two = transition(41, ActionId(action), "a", Input::Redeliver);
            format!("{:?}", store.transit(vec![one, two]).await?)
        }
        Step::Verb(action, only_failed, input) => {
            format!("{:?}", store.apply(Verb { only_failed, ..verb(50, ActionId(action), input) }).await?)
        }
        Step::Pause(action, true, why) => {
            let paused = Paused { at: at(60), by: "root".into(), why };
            format!("{:?}", store.pause(ActionId(action), paused, Some(audit("action.pause"))).await?)
        }
        Step::Pause(action, false, _) => format!("{:?}", store.resume(ActionId(action), at(61), None).await?),
        Step::Archive(action, put_away) => {
            format!("{:?}", store.archive(ActionId(action), put_away.then_some(at(62)), None).await?)
        }
        Step::Release(id) => format!("{:?}", store.release(vec![minion(id)], at(63)).await?),
        Step::Purge(action, step) => format!("{:?}", store.purge_action(ActionId(action), step).await?),
        Step::Ack(n, id) => match store.job(jid(n)).await? {
            Some(job) => format!("{:?}", store.record_ack(ack(n, job.action, id)).await?),
            None => "no such job".into(),
        },
        Step::Return(n, id, fun, good, alone) => {
            let known = store.job(jid(n)).await?;
            let standalone = (known.is_none() && alone).then(|| Box::new(action(n)));
            let new = NewReturn {
                verdict: if good { GOOD } else { BAD },
                body: Arc::new(body(&fun)),
                fun,
                standalone,
                ..returned(n, known.map(|job| job.action), id)
            };
            format!("{:?}", store.record_return(new).await?)
        }
        Step::Log(tags) => format!("{:?}", store.log_events(tags.iter().map(|tag| event(tag)).collect()).await?),
        Step::Audit(what) => format!("{:?}", store.record_audit(audit(&what)).await?),
        Step::Reserve(n) => format!("{:?}", store.reserve(Counter::Serial, n).await?),
    };
    Ok(told)
}

async fn found(store: &Store) -> Vec<String> {
    let mut found = vec![
        format!("{:#?}", store.keys().await.unwrap()),
        format!("{:#?}", store.minions().await.unwrap()),
        format!("{:#?}", store.grains_after("", ALL).await.unwrap()),
        format!("{:#?}", all_audit(store).await),
        format!("{:#?}", store.verify_audit().await.unwrap()),
        format!("{:#?}", store.open_actions(ActionId(0), ALL).await.unwrap()),
        format!("{:#?}", store.overdue_actions(at(PATIENCE + 2), ALL).await.unwrap()),
        format!("{:#?}", store.finished_actions(at(PATIENCE), ALL).await.unwrap()),
        format!("{:#?}", store.runs_in_progress(None, 5).await.unwrap()),
        format!("{:#?}", store.newest_jid().await.unwrap()),
        format!("{:#?}", all_events(store).await),
        format!("{:#?}", store.last_event().await.unwrap()),
    ];
    for fun in FUNS {
        found.push(format!("{:#?}", store.mine_of(fun).await.unwrap()));
    }
    for id in IDS {
        found.push(format!("{:#?}", store.open_runs_of(&minion(id)).await.unwrap()));
    }
    let filters = [ActionFilter::All, ActionFilter::Open, ActionFilter::Failed, ActionFilter::Completed];
    for (filter, archived) in filters.into_iter().flat_map(|filter| [(filter, false), (filter, true)]) {
        let page = ActionPage { limit: 3, internal: true, filter, archived, ..ActionPage::default() };
        let of = ActionPage { minion: Some(minion("B")), initiator: Some("root".into()), ..page.clone() };
        found.push(format!("{:#?}", store.actions(&page).await.unwrap()));
        found.push(format!("{:#?}", store.actions(&of).await.unwrap()));
    }
    for action in (1..10).map(ActionId) {
        found.push(format!("{:#?}", store.runs(action, "", ALL).await.unwrap()));
        found.push(format!("{:#?}", store.due_runs(action, at(100), ALL).await.unwrap()));
        found.push(format!("{:#?}", store.next_due(action).await.unwrap()));
        found.push(format!("{:#?}", store.attempts(action, &minion("a")).await.unwrap()));
    }
    for (internal, open, before) in [(true, true, None), (false, true, None), (false, false, Some(jid(2)))] {
        found.push(format!("{:#?}", store.jobs(&JobPage { before, limit: 2, internal, open }).await.unwrap()));
    }
    for stored in store.jobs(&every_job()).await.unwrap() {
        let filter = EventFilter { jid: Some(stored.jid) };
        found.push(format!("{stored:#?}"));
        found.push(format!("{:#?}", store.runs(stored.action, "B", ALL).await.unwrap()));
        found.push(format!("{:#?}", store.returns(stored.jid, "", ALL).await.unwrap()));
        found.push(format!("{:#?}", store.events_after(1, &filter, 5).await.unwrap()));
    }
    found
}
