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

const STEPS: &[Step] = &[step!(1, "0001_initial")];

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
