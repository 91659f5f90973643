//! Jobs: created whole, listed newest first, known to be published or not.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, GOOD, all_tags, at, audit, every_job, jid, job, minions, returned};
use saltern_core::ids::{ActionId, Jid};
use saltern_core::run::RunState;
use saltern_core::time::Timestamp;
use saltern_store::{JobPage, NewAction, NewJob, NewReturn, Store};

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
    a_job_is_unpublished_until_it_is_marked,
    the_first_mark_stands,
    the_newest_job_id_is_known,
}

async fn a_job_reads_back_as_it_was_stored(database: Database) {
    let store = database.open().await;
    assert!(store.job(jid(1)).await.unwrap().is_none());
    let new = NewJob {
        missing: vec!["gone1".into(), "no such 'minion'".into()],
        load: vec![0, 159, 146, 150],
        ..job(1, &["web1", "web2"])
    };
    let action = store.create_job(new).await.unwrap();
    let stored = store.job(jid(1)).await.unwrap().unwrap();
    assert_eq!((stored.jid, stored.action, stored.created, stored.published), (jid(1), action, at(1), None));
    let texts = [&stored.fun, &stored.arg, &stored.target, &stored.target_type, &stored.initiator];
    assert_eq!(texts, ["test.ping", r#"["a"]"#, r#""*""#, "glob", "root"]);
    assert_eq!(stored.minions, minions(&["web1", "web2"]));
    assert_eq!(stored.missing, ["gone1", "no such 'minion'"]);
    assert_eq!(stored.load, [0, 159, 146, 150]);
    assert!(!stored.internal);
}

async fn a_job_brings_its_runs_events_and_audit(database: Database) {
    let store = database.open().await;
    let new = NewJob { audit: Some(audit("job.create")), ..job(1, &["web2", "web1"]) };
    let action = store.create_job(new).await.unwrap();
    let runs = store.runs(action, "", ALL).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.minion.clone()).collect::<Vec<_>>(), minions(&["web1", "web2"]));
    for run in runs {
        assert_eq!((run.state, run.jid, run.sent), (RunState::Sent, Some(jid(1)), Some(at(1))));
        assert_eq!((run.reason, run.waiting_for), (None, None));
        assert_eq!((run.picked_up, run.ended, run.retcode), (None, None, None));
    }
    assert_eq!(all_tags(&store).await, ["job/1/new"]);
    assert_eq!(store.audit_before(i64::MAX, 9).await.unwrap(), [(1, audit("job.create"))]);
}

async fn a_job_for_nobody_has_no_runs(database: Database) {
    let store = database.open().await;
    let action = store.create_job(job(1, &[])).await.unwrap();
    assert_eq!(store.runs(action, "", ALL).await.unwrap(), []);
    assert_eq!(store.job(jid(1)).await.unwrap().unwrap().minions, []);
}

async fn actions_are_numbered_from_one(database: Database) {
    let store = database.open().await;
    for n in 1..=3 {
        assert_eq!(store.create_job(job(n, &["web1"])).await.unwrap(), ActionId(n));
    }
}

async fn a_job_id_is_used_once(database: Database) {
    let store = database.open().await;
    store.create_job(job(1, &["web1"])).await.unwrap();
    let second = store.create_job(job(1, &["web2"])).await;
    assert!(second.is_err());
    assert_eq!(store.job(jid(1)).await.unwrap().unwrap().minions, minions(&["web1"]));
    assert_eq!(store.runs(ActionId(2), "", ALL).await.unwrap(), []);
    assert_eq!(all_tags(&store).await, ["job/1/new"]);
}

async fn jobs_come_newest_first_in_pages(database: Database) {
    let store = database.open().await;
    for n in [3, 1, 5, 2, 4] {
        store.create_job(job(n, &["web1"])).await.unwrap();
    }
    let page = |before| JobPage { before, limit: 2, ..every_job() };
    assert_eq!(listed(&store, &page(None)).await, [jid(5), jid(4)]);
    assert_eq!(listed(&store, &page(Some(jid(4)))).await, [jid(3), jid(2)]);
    assert_eq!(listed(&store, &page(Some(jid(2)))).await, [jid(1)]);
    assert_eq!(listed(&store, &page(Some(jid(1)))).await, []);
}

async fn housekeeping_is_listed_only_on_demand(database: Database) {
    let store = database.open().await;
    let plain = job(1, &["web1"]);
    let internal = job(2, &["web1"]);
    let action = NewAction { internal: true, ..internal.action.clone() };
    store.create_job(plain).await.unwrap();
    store.create_job(NewJob { action, ..internal }).await.unwrap();
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
    let both = store.create_job(job(1, &["web1", "web2"])).await.unwrap();
    let one = store.create_job(job(2, &["web1"])).await.unwrap();
    store.create_job(job(3, &[])).await.unwrap();
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
        let action = store.create_job(job(n, &["web1", "web2"])).await.unwrap();
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

async fn a_job_is_unpublished_until_it_is_marked(database: Database) {
    let store = database.open().await;
    for n in [2, 3, 1] {
        store.create_job(job(n, &["web1"])).await.unwrap();
    }
    let by_itself = NewReturn { standalone: Some(Box::new(job(4, &["web1"]))), ..returned(4, None, "web1") };
    assert_eq!(by_itself.verdict, GOOD);
    store.record_return(by_itself).await.unwrap();
    assert_eq!(unpublished(&store, 9).await, [jid(1), jid(2), jid(3)], "oldest first, and nothing a minion did itself");
    assert_eq!(unpublished(&store, 2).await, [jid(1), jid(2)]);

    store.mark_published(jid(2), at(50)).await.unwrap();
    assert_eq!(unpublished(&store, 9).await, [jid(1), jid(3)]);
    assert_eq!(published(&store, 2).await, Some(at(50)));
}

async fn the_first_mark_stands(database: Database) {
    let store = database.open().await;
    store.create_job(job(1, &["web1"])).await.unwrap();
    store.mark_published(jid(1), at(50)).await.unwrap();
    store.mark_published(jid(1), at(60)).await.unwrap();
    assert_eq!(published(&store, 1).await, Some(at(50)));
    store.mark_published(jid(404), at(60)).await.unwrap();
}

async fn the_newest_job_id_is_known(database: Database) {
    let store = database.open().await;
    assert_eq!(store.newest_jid().await.unwrap(), None);
    for n in [2, 9, 4] {
        store.create_job(job(n, &[])).await.unwrap();
    }
    assert_eq!(store.newest_jid().await.unwrap(), Some(jid(9)));
}

async fn listed(store: &Store, page: &JobPage) -> Vec<Jid> {
    store.jobs(page).await.unwrap().into_iter().map(|job| job.jid).collect()
}

async fn unpublished(store: &Store, limit: usize) -> Vec<Jid> {
    store.unpublished_jobs(limit).await.unwrap().into_iter().map(|job| job.jid).collect()
}

async fn published(store: &Store, n: i64) -> Option<Timestamp> {
    store.job(jid(n)).await.unwrap().unwrap().published
}
