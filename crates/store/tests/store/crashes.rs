//! A killed process loses nothing that it acknowledged, and leaves nothing half done.
//!
//! The test starts its own executable again as the victim: it writes without pause, says on its output what has been
//! acknowledged, and is killed at a random point of that. Several rounds on one database, so that the numbers of one go on
//! where those of the one before ended.

use crate::database::Database;
use crate::fixtures::{ALL, ack, all_events, assert_numbered, at, event, every_job, returned, work};
use saltern_store::{Event, Location, Options, Store};
use saltern_testkit::wait;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const ROUNDS: i64 = 6;
const WRITERS: usize = 16;
const MINIONS: [&str; 3] = ["web1", "web2", "web3"];
/// Tells the victim which database it is to write to, and from which number on.
const VICTIM: &str = "SALTERN_TEST_VICTIM";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_no_acknowledged_write_on_sqlite() {
    if let Some((location, first)) = victims_part() {
        return write_for_ever(&location, first).await;
    }
    kill_and_look(Database::sqlite(), "a_killed_process_loses_no_acknowledged_write_on_sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_no_acknowledged_write_on_postgres() {
    if let Some((location, first)) = victims_part() {
        return write_for_ever(&location, first).await;
    }
    if let Some(database) = Database::postgres() {
        kill_and_look(database, "a_killed_process_loses_no_acknowledged_write_on_postgres").await;
    }
}

async fn kill_and_look(database: Database, test: &str) {
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let after = usize::try_from(RandomState::new().hash_one(round) % 500).unwrap();
        let said = kill_after(&database, &format!("crashes::{test}"), round * 1_000_000, after);
        assert!(said.len() >= after, "the victim ended by itself");
        acknowledged.extend(said);
        // PostgreSQL may still be at work on what the victim sent last.
        if let Location::Postgres(_) = database.location {
            wait_until_alone(&database).await;
        }
        let store = database.open().await;
        look(&store, &acknowledged).await;
        store.close().await;
    }
}

/// Runs the victim until it has acknowledged so many writes, kills it, and returns all it had acknowledged.
fn kill_after(database: &Database, test: &str, first: i64, after: usize) -> Vec<String> {
    let place = match &database.location {
        Location::Sqlite(path) => path.display().to_string(),
        Location::Postgres(url) => url.clone(),
    };
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(VICTIM, format!("{first} {place}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let mut said = lines.map_while(Result::ok).filter_map(|line| Some(line.strip_prefix("acknowledged ")?.to_owned()));
    let mut acknowledged: Vec<String> = said.by_ref().take(after).collect();
    victim.kill().unwrap();
    acknowledged.extend(said);
    victim.wait().unwrap();
    acknowledged
}

fn victims_part() -> Option<(Location, i64)> {
    let part = std::env::var(VICTIM).ok()?;
    let (first, place) = part.split_once(' ')?;
    Some((Location::parse(place).unwrap(), first.parse().unwrap()))
}

async fn write_for_ever(location: &Location, first: i64) {
    let store = Store::open(location, &Options::default()).await.unwrap();
    let next = Arc::new(AtomicI64::new(first));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next) = (store.clone(), next.clone());
        writers.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let action = store.create(work(n, &MINIONS)).await.unwrap();
                println!("acknowledged job/{n}/new");
                let (one, two) = (ack(n, action, "web1"), returned(n, Some(action), "web1"));
                let (one, two) = tokio::join!(store.record_ack(one), store.record_return(two));
                println!("acknowledged job/{n}/ack/web1");
                println!("acknowledged job/{n}/ret/web1");
                assert!(two.unwrap().news && one.is_ok());
                store.log_events(vec![event(&format!("pair/{n}/a")), event(&format!("pair/{n}/b"))]).await.unwrap();
                println!("acknowledged pair/{n}/a");
                println!("acknowledged pair/{n}/b");
            }
        });
    }
    writers.join_all().await;
}

async fn wait_until_alone(database: &Database) {
    let client = database.connect().await;
    wait::until("the victim's connections to end", Duration::from_secs(30), async || {
        let others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        client.query(others, &[]).await.unwrap().is_empty()
    })
    .await;
}

/// Everything that was acknowledged is there, and everything that is there is whole.
async fn look(store: &Store, acknowledged: &BTreeSet<String>) {
    let log = all_events(store).await;
    assert_numbered(&log);
    let events: BTreeMap<&str, &Event> = log.iter().map(|event| (event.event.tag.as_str(), event)).collect();
    assert_eq!(events.len(), log.len(), "no event is there twice");
    for tag in acknowledged {
        assert!(events.contains_key(tag.as_str()), "{tag} was acknowledged and is lost");
        if let Some(pair) = tag.strip_suffix("/a") {
            assert!(events.contains_key(format!("{pair}/b").as_str()), "{pair} is half there");
        }
    }
    let jobs = store.jobs(&every_job()).await.unwrap();
    let created = events.keys().filter(|tag| tag.ends_with("/new")).count();
    assert_eq!(jobs.len(), created, "a job and its event come together");
    for stored in jobs {
        let n = stored.created.micros() - at(0).micros();
        let runs = store.runs(stored.action, "", ALL).await.unwrap();
        assert_eq!(runs.len(), MINIONS.len(), "job {n} has all its runs");
        let returns = store.returns(stored.jid, "", ALL).await.unwrap();
        let ended = runs.iter().filter(|run| run.ended.is_some()).count();
        assert_eq!(ended, returns.len(), "a return of job {n} and its run come together");
        let counts = store.action(stored.action).await.unwrap().unwrap().counts;
        let counted = (counts.total, counts.completed, counts.open());
        let found = (runs.len() as i64, ended as i64, (runs.len() - ended) as i64);
        assert_eq!(counted, found, "the counts of job {n} come with its runs");
        let told = events.contains_key(format!("job/{n}/ret/web1").as_str());
        assert_eq!(returns.len(), usize::from(told), "a return of job {n} and its event come together");
    }
}
