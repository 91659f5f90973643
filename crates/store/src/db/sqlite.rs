//! SQLite: one connection that writes, a few that read.

use super::{Options, Param, Row};
use crate::{Error, Result, migrate};
use rusqlite::{Connection, OpenFlags, types::ValueRef};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long another process may hold the file's lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// Read-only connections, opened when first needed.
#[derive(Clone)]
pub(crate) struct Pool {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
}

/// Opens the file, making it if need be, with durable commits: an answered write survives a power cut.
pub(super) async fn open(path: &Path, options: &Options) -> Result<(Pool, Connection)> {
    let at = path.to_owned();
    let connection = blocking(move || {
        connect(&at).map_err(|error| match error {
            Error::Database(reason) => {
                Error::Open { place: at.display().to_string(), reason: obstacle(&at).unwrap_or(reason) }
            }
            clear => clear,
        })
    })
    .await?;
    let pool = Pool {
        path: Arc::new(path.to_owned()),
        idle: Arc::default(),
        free: Arc::new(Semaphore::new(options.readers.max(1))),
    };
    Ok((pool, connection))
}

fn connect(path: &Path) -> Result<Connection> {
    // Without SQLite's own address forms: a name that begins with `file:` is a name.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // SQLite opens what it may not write to all the same, and would fail with the first write.
    if connection.is_readonly("main")? {
        return Err(Error::Database("it cannot be written to".into()));
    }
    migrate::refuse_newer(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // Some 16 MB of log between checkpoints: commits stay short, and the log stays small beside the database.
    connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
    connection.pragma_update(None, "cache_size", -32_000)?;
    connection.set_prepared_statement_cache_capacity(128);
    migrate::sqlite(&connection)?;
    Ok(connection)
}

/// What the system has against this path, in its words: SQLite only says that it is "unable to open database file".
fn obstacle(path: &Path) -> Option<String> {
    if path.is_dir() {
        return Some("it is a directory".into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Some(format!("{} is not a directory", folder.display()));
    }
    // Writing is what a database needs; a file that did not exist is not left behind.
    let existed = path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    if opened.is_ok() && !existed {
        let _ = std::fs::remove_file(path);
    }
    opened.err().map(|error| error.to_string())
}

impl Pool {
    pub(super) async fn query(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        let turn = self.free.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        let pool = self.clone();
        blocking(move || {
            let _turn = turn;
            let connection = pool.take()?;
            let rows = query(&connection, sql, &params);
            pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            rows
        })
        .await
    }

    fn take(&self) -> Result<Connection> {
        if let Some(connection) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(connection);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&*self.path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        Ok(connection)
    }
}

pub(crate) fn query(connection: &Connection, sql: &'static str, params: &[Param]) -> Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query(rusqlite::params_from_iter(params))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = (0..columns).map(|column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Null => Param::Null,
                ValueRef::Integer(int) => Param::Int(int),
                ValueRef::Text(text) => Param::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(blob) => Param::Blob(blob.to_vec()),
                ValueRef::Real(_) => return Err(Error::Shape { what: sql, column }),
            })
        });
        found.push(Row(cells.collect::<Result<_>>()?));
    }
    Ok(found)
}

pub(crate) fn execute(connection: &Connection, sql: &'static str, params: &[Param]) -> Result<u64> {
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.execute(rusqlite::params_from_iter(params))? as u64)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::Closed)?
}
