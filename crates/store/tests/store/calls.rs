//! Runner calls: recorded, ended once, listed newest first.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, all_tags, at, body, event, jid, work};
use saltern_core::ids::Jid;
use saltern_store::{Body, Error, RunnerCall, Store};

on_both_databases! {
    a_call_reads_back_as_it_was_recorded,
    a_call_ends_once,
    a_call_that_is_over_is_recorded_at_once,
    the_id_of_a_call_is_used_once,
    calls_come_newest_first_in_pages,
    open_calls_are_those_that_have_not_ended,
    the_newest_job_id_may_be_that_of_a_call,
    old_calls_are_purged_unless_they_are_open,
}

async fn a_call_reads_back_as_it_was_recorded(database: Database) {
    let store = database.open().await;
    store.record_call(call(1), vec![event("salt/run/1/new")]).await.unwrap();
    assert_eq!(store.call(jid(1)).await.unwrap(), Some(call(1)));
    assert_eq!(store.call(jid(2)).await.unwrap(), None);
    assert_eq!(all_tags(&store).await, ["salt/run/1/new"]);
}

async fn a_call_ends_once(database: Database) {
    let store = database.open().await;
    store.record_call(call(1), vec![]).await.unwrap();
    let end = async |success, text: &str| {
        store.end_call(jid(1), at(9), success, body(text), vec![event(text)]).await.unwrap()
    };
    assert!(end(true, "first").await);
    assert!(!end(false, "second").await);
    let ended = RunnerCall { ended: Some(at(9)), success: Some(true), body: body("first"), ..call(1) };
    assert_eq!(store.call(jid(1)).await.unwrap(), Some(ended));
    assert_eq!(all_tags(&store).await, ["first"]);
    assert!(!store.end_call(jid(2), at(9), true, Body::empty(), vec![event("none")]).await.unwrap());
}

async fn a_call_that_is_over_is_recorded_at_once(database: Database) {
    let store = database.open().await;
    store.record_call(over(1), vec![]).await.unwrap();
    assert_eq!(store.call(jid(1)).await.unwrap(), Some(over(1)));
}

async fn the_id_of_a_call_is_used_once(database: Database) {
    let store = database.open().await;
    store.create(work(1, &["web1"])).await.unwrap();
    store.record_call(call(2), vec![]).await.unwrap();
    for n in [1, 2] {
        let refused = store.record_call(call(n), vec![event("lost")]).await;
        assert!(matches!(refused, Err(Error::JidTaken)), "{n}: {refused:?}");
    }
    assert_eq!(all_tags(&store).await, ["job/1/new"]);
}

async fn calls_come_newest_first_in_pages(database: Database) {
    let store = database.open().await;
    for n in [3, 1, 5, 2, 4] {
        store.record_call(call(n), vec![]).await.unwrap();
    }
    let page = async |before| listed(store.calls(before, 2).await.unwrap());
    assert_eq!(page(None).await, [jid(5), jid(4)]);
    assert_eq!(page(Some(jid(4))).await, [jid(3), jid(2)]);
    assert_eq!(page(Some(jid(2))).await, [jid(1)]);
}

async fn open_calls_are_those_that_have_not_ended(database: Database) {
    let store = database.open().await;
    for new in [call(3), over(2), call(1)] {
        store.record_call(new, vec![]).await.unwrap();
    }
    assert_eq!(listed(store.open_calls().await.unwrap()), [jid(1), jid(3)]);
    store.end_call(jid(1), at(9), false, Body::empty(), vec![]).await.unwrap();
    assert_eq!(listed(store.open_calls().await.unwrap()), [jid(3)]);
}

async fn the_newest_job_id_may_be_that_of_a_call(database: Database) {
    let store = database.open().await;
    store.record_call(call(5), vec![]).await.unwrap();
    assert_eq!(store.newest_jid().await.unwrap(), Some(jid(5)));
    store.create(work(4, &[])).await.unwrap();
    assert_eq!(store.newest_jid().await.unwrap(), Some(jid(5)));
    store.create(work(6, &[])).await.unwrap();
    assert_eq!(store.newest_jid().await.unwrap(), Some(jid(6)));
}

async fn old_calls_are_purged_unless_they_are_open(database: Database) {
    let store = database.open().await;
    for new in [over(1), call(2), over(3), over(4), over(5)] {
        store.record_call(new, vec![]).await.unwrap();
    }
    assert_eq!(store.purge_calls(jid(5), 2).await.unwrap(), 2);
    assert_eq!(left(&store).await, [jid(5), jid(4), jid(2)]);
    assert_eq!(store.purge_calls(jid(5), 2).await.unwrap(), 1);
    assert_eq!(store.purge_calls(jid(5), 2).await.unwrap(), 0);
    assert_eq!(left(&store).await, [jid(5), jid(2)]);
}

fn call(n: i64) -> RunnerCall {
    RunnerCall {
        jid: jid(n),
        fun: "runner.jobs.active".into(),
        user: "alice".into(),
        created: at(n),
        ended: None,
        success: None,
        body: body("begun"),
    }
}

fn over(n: i64) -> RunnerCall {
    RunnerCall { ended: Some(at(n + 1)), success: Some(false), body: body("over"), ..call(n) }
}

fn listed(calls: Vec<RunnerCall>) -> Vec<Jid> {
    calls.into_iter().map(|call| call.jid).collect()
}

async fn left(store: &Store) -> Vec<Jid> {
    listed(store.calls(None, ALL).await.unwrap())
}
