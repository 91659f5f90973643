//! Returns: each stored once, with its run, its event and, for what a minion did by itself, its job.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, BAD, GOOD, all_tags, at, body, event, every_job, jid, job, minion, minions, returned, run};
use saltern_core::run::RunState;
use saltern_store::{NewReturn, Return};
use std::sync::Arc;

on_both_databases! {
    a_return_reads_back_as_it_was_stored,
    a_good_return_completes_its_run,
    a_bad_return_fails_its_run_and_says_why,
    a_return_ends_a_run_that_was_never_acknowledged,
    a_duplicate_is_absorbed,
    of_many_duplicates_at_once_one_is_news,
    a_return_logs_its_own_event_first,
    a_standalone_return_brings_its_job,
    a_duplicate_of_a_standalone_return_makes_no_second_job,
    returns_come_in_pages_by_minion,
}

async fn a_return_reads_back_as_it_was_stored(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &["web1"])).await.unwrap();
    let bytes = vec![0x82, 0, 0xff, 0xfe];
    let new = NewReturn {
        verdict: BAD,
        body: Arc::new(saltern_store::Body { encoding: 7, bytes }),
        fun: "cmd.run,test.ping".into(),
        ..returned(1, Some(action), "web1")
    };
    assert!(store.record_return(new.clone()).await.unwrap());
    let stored = Return {
        jid: jid(1),
        minion: minion("web1"),
        at: at(21),
        fun: new.fun,
        retcode: 3,
        success: false,
        body: (*new.body).clone(),
    };
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap(), [stored]);
}

async fn a_good_return_completes_its_run(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &["web1"])).await.unwrap();
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    let ended = run(&store, action).await;
    assert_eq!((ended.state, ended.reason), (RunState::Completed, None));
    assert_eq!((ended.ended, ended.retcode), (Some(at(21)), Some(0)));
}

async fn a_bad_return_fails_its_run_and_says_why(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &["web1"])).await.unwrap();
    let bad = NewReturn { verdict: BAD, ..returned(1, Some(action), "web1") };
    store.record_return(bad).await.unwrap();
    let ended = run(&store, action).await;
    assert_eq!((ended.state, ended.reason.as_deref()), (RunState::Failed, Some("returned_error")));
    assert_eq!((ended.ended, ended.retcode), (Some(at(21)), Some(3)));
}

async fn a_return_ends_a_run_that_was_never_acknowledged(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &["web1"])).await.unwrap();
    assert_eq!(run(&store, action).await.state, RunState::Sent);
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    let ended = run(&store, action).await;
    assert_eq!((ended.state, ended.picked_up), (RunState::Completed, None));
}

async fn a_duplicate_is_absorbed(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &["web1"])).await.unwrap();
    assert!(store.record_return(returned(1, Some(action), "web1")).await.unwrap());
    let (ended, kept) = (run(&store, action).await, store.returns(jid(1), "", ALL).await.unwrap());

    let again = NewReturn {
        at: at(500),
        verdict: BAD,
        body: Arc::new(body("another")),
        events: vec![event("more")],
        ..returned(1, Some(action), "web1")
    };
    assert!(!store.record_return(again).await.unwrap());
    assert_eq!(run(&store, action).await, ended);
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap(), kept);
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/1/ret/web1"]);
}

async fn of_many_duplicates_at_once_one_is_news(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &["web1"])).await.unwrap();
    let sent = (0..40).map(|_| store.record_return(returned(1, Some(action), "web1")));
    let news = futures_util::future::try_join_all(sent).await.unwrap();
    assert_eq!(news.iter().filter(|news| **news).count(), 1);
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/1/ret/web1"]);
}

async fn a_return_logs_its_own_event_first(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &["web1"])).await.unwrap();
    let new = NewReturn { events: vec![event("then"), event("last")], ..returned(1, Some(action), "web1") };
    store.record_return(new).await.unwrap();
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/1/ret/web1", "then", "last"]);
}

async fn a_standalone_return_brings_its_job(database: Database) {
    let store = database.open().await;
    let new = NewReturn { standalone: Some(Box::new(job(1, &["web1"]))), ..returned(1, None, "web1") };
    assert!(store.record_return(new).await.unwrap());
    let stored = store.job(jid(1)).await.unwrap().unwrap();
    assert_eq!((stored.minions, stored.published), (minions(&["web1"]), Some(at(21))));
    assert_eq!(
        store.runs(stored.action, "", ALL).await.unwrap(),
        [],
        "nobody asked for it, so there is nothing to run"
    );
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap().len(), 1);
    assert_eq!(all_tags(&store).await, ["job/1/ret/web1"]);
}

async fn a_duplicate_of_a_standalone_return_makes_no_second_job(database: Database) {
    let store = database.open().await;
    let new = NewReturn { standalone: Some(Box::new(job(1, &["web1"]))), ..returned(1, None, "web1") };
    assert_eq!(new.verdict, GOOD);
    assert!(store.record_return(new.clone()).await.unwrap());
    assert!(!store.record_return(new).await.unwrap());
    assert_eq!(store.jobs(&every_job()).await.unwrap().len(), 1);
    assert_eq!(all_tags(&store).await.len(), 1);
}

async fn returns_come_in_pages_by_minion(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &["d", "b", "a", "E", "c"])).await.unwrap();
    for id in ["c", "E", "a", "d", "b"] {
        store.record_return(returned(1, Some(action), id)).await.unwrap();
    }
    let page = async |after| {
        let returns = store.returns(jid(1), after, 2).await.unwrap();
        returns.into_iter().map(|one| one.minion).collect::<Vec<_>>()
    };
    assert_eq!(page("").await, minions(&["E", "a"]));
    assert_eq!(page("a").await, minions(&["b", "c"]));
    assert_eq!(page("c").await, minions(&["d"]));
    assert_eq!(page("d").await, []);
}
