//! Jobs: created whole with what they have from their action, listed newest first.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, action, all_audit, all_tags, at, audit, claim, every_job, jid, minions, queued, returned, work,
};
use saltern_core::ids::{ActionId, Jid};
use saltern_core::run::RunState;
use saltern_store::{Error, JobPage, NewAction, NewJob, NewWork, Store};

on_both_databases! {
    a_job_reads_back_as_it_was_stored,
    a_job_brings_its_runs_events_and_audit,
    a_job_for_nobody_has_no_runs,
    actions_are_numbered_from_one,
    a_job_id_is_used_once,
    jobs_come_newest_first_in_pages,
    housekeeping_is_listed_only_on_demand,
    active_jobs_are_those_with_a_run_that_has_not_ended,
    active_jobs_come_in_pages_too,
    the_jobs_of_an_action_are_listed_oldest_first,
    the_newest_job_id_is_known,
}

async fn a_job_reads_back_as_it_was_stored(database: Database) {
    let store = database.open().await;
    assert!(store.job(jid(1)).await.unwrap().is_none());
    let plain = work(1, &["web1", "web2"]);
    let job = NewJob { missing: vec!["gone1".into(), "no such 'minion'".into()], ..plain.job.unwrap() };
    let action = store.create(NewWork { job: Some(job), ..work(1, &["web1", "web2"]) }).await.unwrap();
    let stored = store.job(jid(1)).await.unwrap().unwrap();
    assert_eq!((stored.jid, stored.action, stored.created), (jid(1), action, at(1)));
    let texts = [&stored.fun, &stored.arg, &stored.target, &stored.target_type, &stored.initiator];
    assert_eq!(texts, ["test.ping", r#"["a"]"#, r#""*""#, "glob", "root"]);
    assert_eq!(stored.minions, minions(&["web1", "web2"]));
    assert_eq!(stored.missing, ["gone1", "no such 'minion'"]);
    assert!(!stored.internal);
}

async fn a_job_brings_its_runs_events_and_audit(database: Database) {
    let store = database.open().await;
    let new = NewWork { audit: Some(audit("job.create")), ..work(1, &["web2", "web1"]) };
    let action = store.create(new).await.unwrap();
    let runs = store.runs(action, "", ALL).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.minion.clone()).collect::<Vec<_>>(), minions(&["web1", "web2"]));
    for run in runs {
        assert_eq!((run.state, run.jid, run.sent), (RunState::Sent, Some(jid(1)), Some(at(1))));
        assert_eq!((run.attempt, run.deliveries), (1, 1));
        assert_eq!((run.reason, run.waiting_for, run.due), (None, None, None));
        assert_eq!((run.picked_up, run.ended, run.retcode), (None, None, None));
    }
    assert_eq!(all_tags(&store).await, ["job/1/new"]);
    assert_eq!(all_audit(&store).await, [(1, audit("job.create"))]);
}

async fn a_job_for_nobody_has_no_runs(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &[])).await.unwrap();
    assert_eq!(store.runs(action, "", ALL).await.unwrap(), []);
    assert_eq!(store.job(jid(1)).await.unwrap().unwrap().minions, []);
}

async fn actions_are_numbered_from_one(database: Database) {
    let store = database.open().await;
    for n in 1..=3 {
        assert_eq!(store.create(work(n, &["web1"])).await.unwrap(), ActionId(n));
    }
}

async fn a_job_id_is_used_once(database: Database) {
    let store = database.open().await;
    store.create(work(1, &["web1"])).await.unwrap();
    let second = store.create(work(1, &["web2"])).await;
    assert!(matches!(second, Err(Error::JidTaken)), "{second:?}");
    assert_eq!(store.job(jid(1)).await.unwrap().unwrap().minions, minions(&["web1"]));
    assert_eq!(store.runs(ActionId(2), "", ALL).await.unwrap(), []);
    assert_eq!(all_tags(&store).await, ["job/1/new"]);
}

async fn jobs_come_newest_first_in_pages(database: Database) {
    let store = database.open().await;
    for n in [3, 1, 5, 2, 4] {
        store.create(work(n, &["web1"])).await.unwrap();
    }
    let page = |before| JobPage { before, limit: 2, ..every_job() };
    assert_eq!(listed(&store, &page(None)).await, [jid(5), jid(4)]);
    assert_eq!(listed(&store, &page(Some(jid(4)))).await, [jid(3), jid(2)]);
    assert_eq!(listed(&store, &page(Some(jid(2)))).await, [jid(1)]);
    assert_eq!(listed(&store, &page(Some(jid(1)))).await, []);
}

async fn housekeeping_is_listed_only_on_demand(database: Database) {
    let store = database.open().await;
    let internal = NewAction { internal: true, ..action(2) };
    store.create(work(1, &["web1"])).await.unwrap();
    store.create(NewWork { action: internal, ..work(2, &["web1"]) }).await.unwrap();
    for open in [false, true] {
        let with = |internal| JobPage { internal, open, ..every_job() };
        assert_eq!(listed(&store, &with(false)).await, [jid(1)]);
        assert_eq!(listed(&store, &with(true)).await, [jid(2), jid(1)]);
    }
    assert!(store.job(jid(2)).await.unwrap().unwrap().internal);
}

async fn active_jobs_are_those_with_a_run_that_has_not_ended(database: Database) {
    let store = database.open().await;
    let active = JobPage { open: true, ..every_job() };
    let both = store.create(work(1, &["web1", "web2"])).await.unwrap();
    let one = store.create(work(2, &["web1"])).await.unwrap();
    store.create(work(3, &[])).await.unwrap();
    assert_eq!(listed(&store, &active).await, [jid(2), jid(1)]);

    store.record_return(returned(1, Some(both), "web1")).await.unwrap();
    store.record_return(returned(2, Some(one), "web1")).await.unwrap();
    assert_eq!(listed(&store, &active).await, [jid(1)]);

    store.record_return(returned(1, Some(both), "web2")).await.unwrap();
    assert_eq!(listed(&store, &active).await, []);
    assert_eq!(listed(&store, &every_job()).await.len(), 3);
}

async fn active_jobs_come_in_pages_too(database: Database) {
    let store = database.open().await;
    for n in 1..=7 {
        let action = store.create(work(n, &["web1", "web2"])).await.unwrap();
        store.record_return(returned(n, Some(action), "web1")).await.unwrap();
        if n % 3 == 0 {
            store.record_return(returned(n, Some(action), "web2")).await.unwrap();
        }
    }
    let page = |before| JobPage { before, limit: 2, internal: false, open: true };
    assert_eq!(listed(&store, &page(None)).await, [jid(7), jid(5)]);
    assert_eq!(listed(&store, &page(Some(jid(5)))).await, [jid(4), jid(2)]);
    assert_eq!(listed(&store, &page(Some(jid(2)))).await, [jid(1)]);
}

async fn the_jobs_of_an_action_are_listed_oldest_first(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["web1", "web2"])).await.unwrap();
    store.create(work(2, &["web1"])).await.unwrap();
    for (n, id) in [(4, "web1"), (3, "web2")] {
        assert_eq!(store.claim(claim(n, action, &[id])).await.unwrap(), minions(&[id]));
    }
    let jobs = store.jobs_of(action).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.jid).collect::<Vec<_>>(), [jid(3), jid(4)]);
    let texts = [&jobs[0].fun, &jobs[0].arg, &jobs[0].target, &jobs[0].target_type, &jobs[0].initiator];
    assert_eq!(texts, ["test.ping", r#"["a"]"#, r#""*""#, "glob", "root"], "copied from the action");
    assert_eq!((jobs[0].created, &jobs[0].minions), (at(3), &minions(&["web2"])));
}

async fn the_newest_job_id_is_known(database: Database) {
    let store = database.open().await;
    assert_eq!(store.newest_jid().await.unwrap(), None);
    for n in [2, 9, 4] {
        store.create(work(n, &[])).await.unwrap();
    }
    assert_eq!(store.newest_jid().await.unwrap(), Some(jid(9)));
}

async fn listed(store: &Store, page: &JobPage) -> Vec<Jid> {
    store.jobs(page).await.unwrap().into_iter().map(|job| job.jid).collect()
}
