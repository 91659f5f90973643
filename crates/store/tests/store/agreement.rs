//! Both databases give the same answers: whatever is done to both, the same is found in both.

use crate::database::Database;
use crate::fixtures::{ALL, BAD, GOOD, ack, all_events, at, audit, body, event, every_job, jid, job, minion, returned};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use saltern_store::{
    AckMethod, Body, Counter, EventFilter, GrainsRow, JobPage, Key, KeySlot, Minion, NewAction, NewJob, NewReturn,
    Store,
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
    Publish(i64, i64),
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
        1 => (n(), 0..99_i64).prop_map(|(n, when)| Step::Publish(n, when)),
        3 => (n(), id()).prop_map(|(n, id)| Step::Ack(n, id)),
        3 => (n(), id(), text(), flag(), flag())
            .prop_map(|(n, id, fun, good, alone)| Step::Return(n, id, fun, good, alone)),
        1 => prop::collection::vec(text(), 0..4).prop_map(Step::Log),
        1 => text().prop_map(Step::Audit),
        1 => (1..9_usize).prop_map(Step::Reserve),
    ]
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
            let plain = job(n, &ids);
            let action = NewAction { arg, internal, ..plain.action.clone() };
            format!("{:?}", store.create_job(NewJob { action, ..plain }).await?)
        }
        Step::Publish(n, when) => format!("{:?}", store.mark_published(jid(n), at(when)).await?),
        Step::Ack(n, id) => match store.job(jid(n)).await? {
            Some(job) => format!("{:?}", store.record_ack(ack(n, job.action, id)).await?),
            None => "no such job".into(),
        },
        Step::Return(n, id, fun, good, alone) => {
            let known = store.job(jid(n)).await?;
            let standalone = (known.is_none() && alone).then(|| Box::new(job(n, &[id])));
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
        format!("{:#?}", store.audit_before(i64::MAX, ALL).await.unwrap()),
        format!("{:#?}", store.unpublished_jobs(ALL).await.unwrap()),
        format!("{:#?}", store.newest_jid().await.unwrap()),
        format!("{:#?}", all_events(store).await),
        format!("{:#?}", store.last_event().await.unwrap()),
    ];
    for fun in FUNS {
        found.push(format!("{:#?}", store.mine_of(fun).await.unwrap()));
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
