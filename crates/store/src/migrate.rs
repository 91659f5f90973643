//! Brings a database to the newest schema: numbered files, forward only, the same numbers for both databases.
//!
//! Each step and its number are one transaction; on PostgreSQL an advisory lock lets several servers start at once. A
//! database that is newer than this program is refused, never touched.

use crate::audit::{self, Rechain};
use crate::db::{postgres as pg, sqlite as lite};
use crate::{Error, Result};

struct Step {
    number: i64,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! step {
    ($number:literal, $name:literal) => {
        Step {
            number: $number,
            sqlite: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
        }
    };
}

const STEPS: &[Step] = &[
    step!(1, "0001_initial"),
    step!(2, "0002_action_engine"),
    step!(3, "0003_access"),
    step!(4, "0004_chains"),
    step!(5, "0005_recurring"),
];

/// The step after which the audit log is a chain: entries that were there before get their hashes in it.
const CHAINED: i64 = 3;

/// Any number that other programs on the same database are unlikely to lock.
const LOCK: i64 = 0x5a17_e2a1;

const SQLITE_VERSIONS: &str = "CREATE TABLE IF NOT EXISTS schema_versions (number INTEGER PRIMARY KEY) STRICT";
const POSTGRES_VERSIONS: &str = "CREATE TABLE IF NOT EXISTS schema_versions (number BIGINT PRIMARY KEY)";
const NEWEST: &str = "SELECT coalesce(max(number), 0) FROM schema_versions";

/// Refuses a file that a newer version has made, before anything about it is changed: even how it keeps its log.
pub(crate) fn refuse_newer(connection: &rusqlite::Connection) -> Result<()> {
    if !connection.table_exists(None, "schema_versions")? {
        return Ok(());
    }
    missing(connection.query_row(NEWEST, [], |row| row.get(0))?).map(drop)
}

pub(crate) fn sqlite(connection: &rusqlite::Connection) -> Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let migrated = (|| {
        connection.execute_batch(SQLITE_VERSIONS)?;
        let found = connection.query_row(NEWEST, [], |row| row.get(0))?;
        for step in missing(found)? {
            connection.execute_batch(step.sqlite)?;
            if step.number == CHAINED {
                chain_sqlite(connection)?;
            }
            connection.execute("INSERT INTO schema_versions (number) VALUES (?1)", [step.number])?;
        }
        Ok(connection.execute_batch("COMMIT")?)
    })();
    if migrated.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    migrated
}

pub(crate) async fn postgres(client: &mut deadpool_postgres::Client) -> Result<()> {
    let tx = client.transaction().await?;
    tx.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    tx.batch_execute(POSTGRES_VERSIONS).await?;
    let found: i64 = tx.query_one(NEWEST, &[]).await?.get(0);
    for step in missing(found)? {
        tx.batch_execute(step.postgres).await?;
        if step.number == CHAINED {
            chain_postgres(&tx).await?;
        }
        tx.execute("INSERT INTO schema_versions (number) VALUES ($1)", &[&step.number]).await?;
    }
    tx.commit().await?;
    Ok(())
}

fn chain_sqlite(connection: &rusqlite::Connection) -> Result<()> {
    let mut chain = Rechain::default();
    loop {
        let page = chain.page(lite::query(connection, audit::AFTER, &chain.next())?)?;
        if page.is_empty() {
            return lite::execute(connection, Rechain::HEAD, &chain.head()).map(drop);
        }
        for row in page {
            lite::execute(connection, Rechain::WRITE, &row)?;
        }
    }
}

async fn chain_postgres(tx: &deadpool_postgres::Transaction<'_>) -> Result<()> {
    let mut chain = Rechain::default();
    loop {
        let page = chain.page(pg::query_tx(tx, audit::AFTER, &chain.next()).await?)?;
        if page.is_empty() {
            return pg::execute_many(tx, Rechain::HEAD, &[chain.head()]).await.map(drop);
        }
        pg::execute_many(tx, Rechain::WRITE, &page).await?;
    }
}

fn missing(found: i64) -> Result<impl Iterator<Item = &'static Step>> {
    let known = STEPS.last().map_or(0, |step| step.number);
    if found > known {
        return Err(Error::Newer { found, known });
    }
    Ok(STEPS.iter().filter(move |step| step.number > found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Counts, Location, Options, Store};
    use saltern_core::action::Policy;
    use saltern_core::ids::{ActionId, Jid, MinionId};
    use saltern_core::run::{Reason, RunState};
    use saltern_core::time::Timestamp;

    /// What the first schema held: an action that is half done, one that failed, and one for nobody.
    const FILLED: &str = "
        INSERT INTO actions VALUES (1, 'function', 'test.ping', '[]', '\"*\"', 'glob', 'root', 10, 10, 900, 0);
        INSERT INTO actions VALUES (2, 'function', 'cmd.run', '[]', '\"*\"', 'glob', 'root', 20, 20, 900, 1);
        INSERT INTO actions VALUES (3, 'function', 'test.ping', '[]', '\"*\"', 'glob', 'root', 30, 30, 900, 0);
        INSERT INTO runs VALUES (1, 'a', 'completed', NULL, NULL, 1, '20260101000000000001', 900, 11, 12, 13, 0);
        INSERT INTO runs VALUES (1, 'b', 'sent', NULL, NULL, 1, '20260101000000000001', 900, 11, NULL, NULL, NULL);
        INSERT INTO runs VALUES (2, 'a', 'failed', 'returned_error', NULL, 1, '20260101000000000002', 900, 21, 22, 23, 3);
        INSERT INTO attempts VALUES ('20260101000000000001', 'a', 1, 1, 11, 12);
        INSERT INTO jobs VALUES ('20260101000000000001', 1, 10, 11, 'test.ping', '[]', '\"*\"', 'glob', 'root', 'a', '', '', 0);
        INSERT INTO jobs VALUES ('20260101000000000002', 2, 20, NULL, 'cmd.run', '[]', '\"*\"', 'glob', 'root', 'a', '', '', 1);
        INSERT INTO minions VALUES ('a', 1, 2, NULL, NULL, NULL, 'none', NULL);";

    /// More audit entries than are chained at once, from when there was no chain, two of them longer than is kept now.
    fn audited() -> String {
        let mut sql = String::from("INSERT INTO counters VALUES ('audit', 2345);");
        for n in 1..=2345 {
            let subject = if n < 3 { "ü".repeat(3000) } else { format!("web{n}") };
            sql +=
                &format!("INSERT INTO audit VALUES ({n}, {n}, 'root', 'socket', 'key.accept', '{subject}', '{{}}');");
        }
        sql
    }

    #[tokio::test]
    async fn what_the_first_schema_held_is_converted_on_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        check_converted(&first_sqlite(folder.path(), &FILLED.replace("'', '', ", "'', x'', "))).await;
    }

    #[tokio::test]
    async fn what_the_first_schema_held_is_converted_on_postgres() {
        let Some(location) = first_postgres(FILLED).await else { return };
        check_converted(&location).await;
    }

    #[tokio::test]
    async fn audit_entries_that_are_there_are_chained_on_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let location = first_sqlite(folder.path(), &format!("BEGIN;{}COMMIT;", audited()));
        check_chained(&location).await;
        let Location::Sqlite(path) = &location else { panic!("a SQLite database has a file") };
        rusqlite::Connection::open(path).unwrap().execute_batch(FORGE).unwrap();
        check_forged(&location).await;
    }

    #[tokio::test]
    async fn audit_entries_that_are_there_are_chained_on_postgres() {
        let Some(location) = first_postgres(&audited()).await else { return };
        check_chained(&location).await;
        let Location::Postgres(url) = &location else { panic!("a PostgreSQL database has an address") };
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(FORGE).await.unwrap();
        check_forged(&location).await;
    }

    /// An entry that looks as old ones did before they were chained.
    const FORGE: &str = "UPDATE audit SET who = 'mallory', hash = substr(hash, 1, 0) WHERE number = 7";

    async fn check_chained(location: &Location) {
        let store = Store::open(location, &Options::default()).await.unwrap();
        let found = store.verify_audit().await.unwrap();
        assert_eq!((found.entries, found.broken), (2345, None));
        let first = store.audit_links(0, 1).await.unwrap().remove(0).entry;
        assert_eq!(first.subject.chars().count(), 250);
        store.record_audit(crate::AuditEntry { what: "next".into(), ..first }).await.unwrap();
        let found = store.verify_audit().await.unwrap();
        assert_eq!((found.entries, found.broken), (2346, None), "the chain goes on");
        store.close().await;
    }

    async fn check_forged(location: &Location) {
        let store = Store::open(location, &Options::default()).await.unwrap();
        let broken = store.verify_audit().await.unwrap().broken.unwrap();
        assert_eq!(broken.number, 7, "what was forged later is not taken for old");
        store.close().await;
    }

    /// A database of the first schema with this in it.
    fn first_sqlite(folder: &std::path::Path, filled: &str) -> Location {
        let path = folder.join("saltern.db");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(SQLITE_VERSIONS).unwrap();
        connection.execute_batch(STEPS[0].sqlite).unwrap();
        connection.execute_batch(filled).unwrap();
        connection.execute_batch("INSERT INTO schema_versions VALUES (1)").unwrap();
        Location::Sqlite(path)
    }

    async fn first_postgres(filled: &str) -> Option<Location> {
        let url = saltern_testkit::postgres::fresh_database()?;
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(POSTGRES_VERSIONS).await.unwrap();
        client.batch_execute(STEPS[0].postgres).await.unwrap();
        client.batch_execute(filled).await.unwrap();
        client.batch_execute("INSERT INTO schema_versions VALUES (1)").await.unwrap();
        Some(Location::parse(&url).unwrap())
    }

    async fn check_converted(location: &Location) {
        let store = Store::open(location, &Options::default()).await.unwrap();
        let half = action(&store, 1).await;
        let counts = Counts { total: 2, running: 1, completed: 1, ..Counts::default() };
        assert_eq!((half.counts, half.ended, half.jid), (counts, None, Jid::parse("20260101000000000001")));
        assert_eq!((half.new.name.as_str(), half.new.policy), ("test.ping", Policy::default()));

        let failed = action(&store, 2).await;
        let counts = Counts { total: 1, failed: 1, ..Counts::default() };
        assert_eq!((failed.counts, failed.ended, failed.new.internal), (counts, Some(Timestamp(23)), true));
        let run = store.run(ActionId(2), &MinionId::new("a").unwrap()).await.unwrap().unwrap();
        assert_eq!((run.state, run.reason, run.retcode), (RunState::Failed, Some(Reason::ReturnedError), Some(3)));
        assert_eq!((run.attempt, run.deliveries, run.sent), (1, 1, Some(Timestamp(21))));
        assert_eq!(store.attempts(ActionId(1), &run.minion).await.unwrap(), [], "a single attempt is the run itself");

        assert_eq!(action(&store, 3).await.ended, Some(Timestamp(30)), "for nobody, so it ended when it was made");
        assert_eq!(store.jobs_of(ActionId(1)).await.unwrap().len(), 1);
        assert_eq!(store.minions().await.unwrap()[0].boot_id, None);
        store.close().await;
    }

    async fn action(store: &Store, id: i64) -> Action {
        store.action(ActionId(id)).await.unwrap().unwrap()
    }
}
