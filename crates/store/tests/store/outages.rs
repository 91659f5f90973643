//! PostgreSQL goes away and comes back: what failed says so, what follows works, nothing is there twice.

use crate::database::Database;
use crate::fixtures::{ALL, all_tags, assert_numbered, at, event, minion, minions, returned, work};
use saltern_store::{AckMethod, Error, EventFilter, Location, Minion, Options, Store};
use saltern_testkit::{postgres::Cluster, wait};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_broke_while_idle_are_replaced() {
    let Some(database) = Database::postgres() else { return };
    let (store, outside) = (database.open().await, database.connect().await);
    store.log_events(vec![event("before")]).await.unwrap();
    let readers = (0..4).map(|_| store.keys());
    futures_util::future::try_join_all(readers).await.unwrap();

    assert!(terminate(&outside).await > 1);
    store.log_events(vec![event("after")]).await.unwrap();
    assert_eq!(all_tags(&store).await, ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_whose_connection_is_cut_before_the_commit_are_repeated() {
    let Some(database) = Database::postgres() else { return };
    let (store, outside) = (database.open().await, database.connect().await);
    let lock = database.connect().await;
    lock.batch_execute("BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let writes = (0..5).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.create(work(n, &["web1"])).await })
    });
    let writes: Vec<_> = writes.collect();
    wait_for_lock(&outside).await;
    terminate(&outside).await;
    lock.batch_execute("ROLLBACK").await.unwrap();

    for write in writes {
        write.await.unwrap().unwrap();
    }
    let log = store.events_after(0, &EventFilter::default(), ALL).await.unwrap();
    assert_numbered(&log);
    assert_eq!(log.len(), 5, "each is there once");
}

/// Whether a commit whose answer was lost has happened is not known, so it must not be tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_cut_nothing_is_committed_twice() {
    let Some(database) = Database::postgres() else { return };
    let (store, outside) = (database.open().await, database.connect().await);
    let done = Arc::new(AtomicBool::new(false));
    let cutter = tokio::spawn({
        let done = done.clone();
        async move {
            let mut cuts = 0;
            while !done.load(Ordering::Relaxed) {
                cuts += terminate(&outside).await;
                tokio::task::yield_now().await;
            }
            cuts
        }
    });
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let store = store.clone();
        writers.spawn(async move {
            let mut outcomes = Vec::new();
            for n in 0..60 {
                let tag = format!("{writer}/{n}");
                let outcome = store.log_events(vec![event(&tag)]).await;
                assert!(matches!(outcome, Ok(()) | Err(Error::Unreachable(_))), "{outcome:?}");
                outcomes.push((tag, outcome.is_ok()));
            }
            outcomes
        });
    }
    let outcomes: Vec<(String, bool)> = writers.join_all().await.into_iter().flatten().collect();
    done.store(true, Ordering::Relaxed);
    assert!(cutter.await.unwrap() > 0);

    let read = async || store.events_after(0, &EventFilter::default(), ALL).await;
    let log = wait::until_ok("the log", PATIENCE, read).await;
    assert_numbered(&log);
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for event in &log {
        *times.entry(&event.event.tag).or_default() += 1;
    }
    for (tag, acknowledged) in &outcomes {
        let found = times.get(tag.as_str()).copied().unwrap_or_default();
        assert!(found <= 1, "{tag} is there {found} times");
        assert!(found == 1 || !acknowledged, "{tag} was acknowledged and is lost");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_not_repeated() {
    let Some(database) = Database::postgres() else { return };
    let (location, cut) = cut_after_commit(&database).await;
    let store = Store::open(&location, &Options::default()).await.unwrap();
    let mut feed = store.feed();
    store.log_events(vec![event("before")]).await.unwrap();

    cut.store(true, Ordering::SeqCst);
    let outcome = store.log_events(vec![event("unknown")]).await;
    assert!(matches!(outcome, Err(Error::Unreachable(_))), "{outcome:?}");
    assert!(!cut.load(Ordering::SeqCst), "the commit went through and its answer did not");

    store.log_events(vec![event("after")]).await.unwrap();
    let log = store.events_after(0, &EventFilter::default(), ALL).await.unwrap();
    assert_numbered(&log);
    assert_eq!(all_tags(&store).await, ["before", "unknown", "after"]);
    let mut told = Vec::new();
    while let Ok(batch) = feed.try_recv() {
        told.extend_from_slice(&batch);
    }
    assert_eq!(told, log, "the feed makes up for what it could not tell at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_is_an_error_until_it_is_back() {
    let Some(cluster) = Cluster::start() else { return };
    let location = Location::parse(&cluster.fresh_database()).unwrap();
    let store = Store::open(&location, &Options::default()).await.unwrap();
    let action = store.create(work(1, &["web1"])).await.unwrap();

    cluster.stop();
    let together = (0..50).map(|n| store.log_events(vec![event(&n.to_string())]));
    for outcome in futures_util::future::join_all(together).await {
        assert!(matches!(outcome, Err(Error::Unreachable(_))), "{outcome:?}");
    }
    assert!(matches!(store.keys().await, Err(Error::Unreachable(_))));

    cluster.resume();
    assert!(store.record_return(returned(1, Some(action), "web1")).await.unwrap().news);
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/1/ret/web1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_does_not_wait_for_readers() {
    let Some(database) = Database::postgres() else { return };
    let (store, lock) = (database.open().await, database.connect().await);
    lock.batch_execute("BEGIN; LOCK TABLE minions IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let readers: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.minions().await })
        })
        .collect();
    wait_for_lock(&database.connect().await).await;
    let write = store.log_events(vec![event("passed by")]);
    tokio::time::timeout(PATIENCE, write).await.expect("the write waits for the readers").unwrap();
    lock.batch_execute("ROLLBACK").await.unwrap();
    for reader in readers {
        assert_eq!(reader.await.unwrap().unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_loses_a_deadlock_is_tried_again() {
    let Some(database) = Database::postgres() else { return };
    let (store, outside, other) = (database.open().await, database.connect().await, database.connect().await);
    let both = minions(&["a", "b"]).into_iter().map(|id| seen(id.as_str(), 1)).collect::<Vec<_>>();
    store.record_minions(both).await.unwrap();
    // Never the one to give way: the store has to.
    other.batch_execute("SET deadlock_timeout = '1min'; BEGIN").await.unwrap();
    other.batch_execute("UPDATE minions SET version = 'other' WHERE id = 'b'").await.unwrap();
    let write = tokio::spawn({
        let store = store.clone();
        async move { store.record_minions(vec![seen("a", 2), seen("b", 2)]).await }
    });
    wait_for_lock(&outside).await;
    other.batch_execute("UPDATE minions SET version = 'other' WHERE id = 'a'; COMMIT").await.unwrap();
    write.await.unwrap().unwrap();
    assert_eq!(store.minions().await.unwrap(), [seen("a", 2), seen("b", 2)]);
}

fn seen(id: &str, when: i64) -> Minion {
    Minion {
        id: minion(id),
        first_seen: at(1),
        last_seen: at(when),
        started: None,
        address: None,
        version: None,
        ack_method: AckMethod::None,
        ack_setting: None,
        boot_id: None,
        reboot_needed: None,
    }
}

/// A way to the database that, once told to, lets one commit pass and cuts the connection before its answer.
async fn cut_after_commit(database: &Database) -> (Location, Arc<AtomicBool>) {
    let Location::Postgres(url) = &database.location else { panic!("only PostgreSQL has connections") };
    let direct: tokio_postgres::Config = url.parse().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, own) = (direct.get_ports()[0], listener.local_addr().unwrap().port());
    let cut = Arc::new(AtomicBool::new(false));
    let armed = cut.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(forward(client, server, armed.clone()));
        }
    });
    (Location::parse(&url.replace(&format!(":{port}/"), &format!(":{own}/"))).unwrap(), cut)
}

async fn forward(client: TcpStream, server: TcpStream, cut: Arc<AtomicBool>) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let there = async {
        let mut bytes = vec![0; 65536];
        loop {
            let n = from_client.read(&mut bytes).await.unwrap_or(0);
            let is_commit = bytes[..n].windows(7).any(|window| window == b"COMMIT\0");
            if n == 0 || to_server.write_all(&bytes[..n]).await.is_err() {
                return None;
            }
            if is_commit && cut.swap(false, Ordering::SeqCst) {
                return Some(to_server);
            }
        }
    };
    let back = async { tokio::io::copy(&mut from_server, &mut to_client).await };
    let cut = tokio::select! { cut = there => cut, _ = back => None };
    if let Some(_to_server) = cut {
        // The answer is on its way: it has been committed. Nobody gets to know.
        let _ = from_server.read(&mut [0; 1]).await;
    }
}

/// Ends the store's connections; tells how many there were.
async fn terminate(outside: &tokio_postgres::Client) -> usize {
    let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND application_name = 'saltern'";
    outside.query(all, &[]).await.unwrap().len()
}

/// Waits until one of the store's connections waits for a lock.
async fn wait_for_lock(outside: &tokio_postgres::Client) {
    let waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
                   AND application_name = 'saltern' AND wait_event_type = 'Lock'";
    wait::until("the store to wait for a lock", PATIENCE, async || {
        !outside.query(waiting, &[]).await.unwrap().is_empty()
    })
    .await;
}
