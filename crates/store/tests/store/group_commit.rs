//! Group commit: many writes in one commit, each with its own fate.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, all_audit, all_events, all_tags, assert_numbered, at, audit, event, every_job, jid, minion, returned, work,
};
use saltern_core::ids::ActionId;
use saltern_store::{AckMethod, Error, Minion, NewWork, Options, Store};
use saltern_testkit::wait;
use std::collections::BTreeSet;
use std::time::Duration;

on_both_databases! {
    a_lone_write_is_one_commit,
    what_piles_up_during_a_commit_is_committed_together,
    a_group_is_no_larger_than_it_may_be,
    a_write_that_fails_does_not_take_its_neighbours_with_it,
    a_full_queue_makes_the_senders_wait,
    commits_are_counted_by_time_and_size,
    several_servers_on_one_database_lose_nothing,
}

async fn a_lone_write_is_one_commit(database: Database) {
    let store = database.open().await;
    assert_eq!(store.commits(), 0);
    store.log_events(vec![event("a")]).await.unwrap();
    store.create(work(1, &["web1"])).await.unwrap();
    assert_eq!(store.commits(), 2);
}

async fn what_piles_up_during_a_commit_is_committed_together(database: Database) {
    let store = database.open().await;
    let held = Held::hold(&database, &store).await;
    let mut writes: Vec<_> = (0..600).map(|n| Box::pin(store.log_events(vec![event(&n.to_string())]))).collect();
    for write in &mut writes {
        let _ = futures_util::poll!(tokio::task::unconstrained(write));
    }
    assert_eq!(store.backlog(), 600);
    held.release().await;
    futures_util::future::try_join_all(writes).await.unwrap();
    assert_eq!(store.commits(), 2, "the one that was held up, and one for all the others");
    assert_eq!(all_tags(&store).await.len(), 601);
}

async fn a_group_is_no_larger_than_it_may_be(database: Database) {
    let store = database.open_with(&Options { group: 10, ..Options::default() }).await;
    let held = Held::hold(&database, &store).await;
    let mut writes: Vec<_> = (0..40).map(|n| Box::pin(store.log_events(vec![event(&n.to_string())]))).collect();
    for write in &mut writes {
        let _ = futures_util::poll!(write);
    }
    held.release().await;
    futures_util::future::try_join_all(writes).await.unwrap();
    assert_eq!(store.commits(), 5);
}

async fn a_write_that_fails_does_not_take_its_neighbours_with_it(database: Database) {
    let store = database.open().await;
    let mut feed = store.feed();
    let held = Held::hold(&database, &store).await;
    // One group, with the second use of a job id in its midst.
    let mut jobs: Vec<_> = [1, 2, 3, 2, 4, 5].map(|n| Box::pin(store.create(work(n, &["web1", "web2"])))).into();
    let mut reports = [Box::pin(store.record_return(returned(3, Some(ActionId(404)), "web1")))];
    let mut events = [Box::pin(store.log_events(vec![event("last")]))];
    for write in &mut jobs {
        let _ = futures_util::poll!(write);
    }
    let _ = (futures_util::poll!(&mut reports[0]), futures_util::poll!(&mut events[0]));
    held.release().await;

    let outcomes = futures_util::future::join_all(jobs).await;
    let failed: Vec<bool> = outcomes.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, false, false, true, false, false]);
    assert!(matches!(&outcomes[3], Err(Error::JidTaken)), "{:?}", outcomes[3]);
    let [report] = reports;
    assert!(report.await.unwrap().news, "a return is news, although its group was tried twice");
    let [log] = events;
    log.await.unwrap();

    let log = all_events(&store).await;
    assert_numbered(&log);
    let tags: Vec<&str> = log.iter().map(|event| event.event.tag.as_str()).collect();
    let jobs = ["job/1/new", "job/2/new", "job/3/new", "job/4/new", "job/5/new"];
    assert_eq!(tags, [&["held up"], &jobs[..], &["job/3/ret/web1", "last"]].concat());
    for stored in store.jobs(&every_job()).await.unwrap() {
        assert_eq!(store.runs(stored.action, "", ALL).await.unwrap().len(), 2);
    }
    let mut told = Vec::new();
    while let Ok(batch) = feed.try_recv() {
        told.extend_from_slice(&batch);
    }
    assert_eq!(told, log, "what was rolled back was never told");
}

async fn a_full_queue_makes_the_senders_wait(database: Database) {
    let store = database.open_with(&Options { write_queue: 8, ..Options::default() }).await;
    let held = Held::hold(&database, &store).await;
    let mut writes: Vec<_> = (0..50).map(|n| Box::pin(store.log_events(vec![event(&n.to_string())]))).collect();
    for write in &mut writes {
        assert!(futures_util::poll!(write).is_pending());
    }
    assert_eq!(store.backlog(), 8);
    held.release().await;
    futures_util::future::try_join_all(writes).await.unwrap();
    assert_eq!((store.backlog(), all_tags(&store).await.len()), (0, 51));
}

async fn commits_are_counted_by_time_and_size(database: Database) {
    let store = database.open().await;
    let held = Held::hold(&database, &store).await;
    let mut writes: Vec<_> = (0..40).map(|n| Box::pin(store.log_events(vec![event(&n.to_string())]))).collect();
    for write in &mut writes {
        let _ = futures_util::poll!(write);
    }
    held.release().await;
    futures_util::future::try_join_all(writes).await.unwrap();
    let stats = store.commit_stats();
    assert_eq!((stats.commits, stats.writes), (2, 41));
    let sizes: Vec<_> = stats.group_size.iter().filter(|bucket| bucket.count > 0).collect();
    assert_eq!(sizes.iter().map(|bucket| (bucket.upto, bucket.count)).collect::<Vec<_>>(), [(1.0, 1), (50.0, 1)]);
    assert_eq!(stats.latency.iter().map(|bucket| bucket.count).sum::<u64>(), 2);
    assert!(stats.seconds_total > 0.0);
}

async fn several_servers_on_one_database_lose_nothing(database: Database) {
    let stores = [database.open().await, database.open().await, database.open().await];
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..90_i64 {
        let store = stores[usize::try_from(n % 3).unwrap()].clone();
        writers.spawn(async move {
            // The same rows in different orders, as two servers may well meet them.
            let mut seen: Vec<Minion> = (0..20).map(|m| known(m, n)).collect();
            if n % 2 == 0 {
                seen.reverse();
            }
            let audited = NewWork { audit: Some(audit("job.create")), ..work(n, &["web1"]) };
            let all = tokio::try_join!(
                store.record_audit(audit("alone")),
                store.record_minions(seen),
                store.create(audited),
                store.log_events(vec![event(&format!("free/{n}"))]),
            );
            all.unwrap();
        });
    }
    writers.join_all().await;
    let log = all_events(&stores[0]).await;
    assert_numbered(&log);
    assert_eq!(log.into_iter().map(|event| event.event.tag).collect::<BTreeSet<_>>().len(), 180);
    assert_eq!(stores[1].jobs(&every_job()).await.unwrap().len(), 90);
    assert!(stores[2].job(jid(89)).await.unwrap().is_some());
    let numbers: Vec<i64> = all_audit(&stores[0]).await.into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers, (1..=180).rev().collect::<Vec<_>>());
}

fn known(m: i64, n: i64) -> Minion {
    Minion {
        id: minion(&format!("m{m}")),
        first_seen: at(0),
        last_seen: at(n),
        started: None,
        address: None,
        version: None,
        ack_method: AckMethod::None,
        ack_setting: None,
        boot_id: None,
        reboot_needed: None,
    }
}

/// Somebody else's lock on the database: the writer has taken one write, and nothing is committed until it is released.
struct Held {
    lock: Lock,
    write: tokio::task::JoinHandle<saltern_store::Result<()>>,
}

enum Lock {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client),
}

impl Held {
    async fn hold(database: &Database, store: &Store) -> Self {
        let lock = match &database.location {
            saltern_store::Location::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                Lock::Sqlite(connection)
            }
            saltern_store::Location::Postgres(_) => {
                let client = database.connect().await;
                client.batch_execute("BEGIN; LOCK TABLE counters IN EXCLUSIVE MODE").await.unwrap();
                Lock::Postgres(client)
            }
        };
        let clone = store.clone();
        let mut write = Box::pin(async move { clone.log_events(vec![event("held up")]).await });
        let _ = futures_util::poll!(&mut write);
        wait::until("the writer to take a write", Duration::from_secs(20), async || store.backlog() == 0).await;
        Self { lock, write: tokio::spawn(write) }
    }

    async fn release(self) {
        match self.lock {
            Lock::Sqlite(connection) => connection.execute_batch("ROLLBACK").unwrap(),
            Lock::Postgres(client) => client.batch_execute("ROLLBACK").await.unwrap(),
        }
        self.write.await.unwrap().unwrap();
    }
}
