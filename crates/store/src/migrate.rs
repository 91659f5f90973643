//! Brings a database to the newest schema: numbered files, forward only, the same numbers for both databases.
//!
//! Each step and its number are one transaction; on PostgreSQL an advisory lock lets several servers start at once. A
//! database that is newer than this program is refused, never touched.

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

const STEPS: &[Step] = &[step!(1, "0001_initial"), step!(2, "0002_action_engine")];

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
        tx.execute("INSERT INTO schema_versions (number) VALUES ($1)", &[&step.number]).await?;
    }
    tx.commit().await?;
    Ok(())
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

    #[tokio::test]
    async fn what_the_first_schema_held_is_converted_on_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saltern.db");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(SQLITE_VERSIONS).unwrap();
        connection.execute_batch(STEPS[0].sqlite).unwrap();
        connection.execute_batch(&FILLED.replace("'', '', ", "'', x'', ")).unwrap();
        connection.execute_batch("INSERT INTO schema_versions VALUES (1)").unwrap();
        drop(connection);
        check_converted(&Location::Sqlite(path)).await;
    }

    #[tokio::test]
    async fn what_the_first_schema_held_is_converted_on_postgres() {
        let Some(url) = saltern_testkit::postgres::fresh_database() else { return };
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(POSTGRES_VERSIONS).await.unwrap();
        client.batch_execute(STEPS[0].postgres).await.unwrap();
        client.batch_execute(FILLED).await.unwrap();
        client.batch_execute("INSERT INTO schema_versions VALUES (1)").await.unwrap();
        check_converted(&Location::parse(&url).unwrap()).await;
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
