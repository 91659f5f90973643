//! A transaction of either database, with the few verbs that the rest of this room writes in.

use super::{Param, Row, postgres, sqlite};
use crate::Result;

/// An open transaction. For SQLite the verbs finish at once (the writer has its own thread); for PostgreSQL they wait.
pub(crate) enum Tx<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c deadpool_postgres::Transaction<'c>),
}

/// A read that decides a write, made with [`locking!`].
///
/// SQLite has one writer, so what it reads stays as it is until the commit. Several servers may write to one PostgreSQL:
/// there the rows are locked, or the last word of one server could undo what another has decided meanwhile.
pub(crate) struct Locking {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

/// The statement, and whose rows are to be locked if not those of all its tables: ` OF r`.
macro_rules! locking {
    ($sql:expr) => {
        $crate::db::locking!($sql, "")
    };
    ($sql:expr, $of:literal) => {
        $crate::db::Locking { sqlite: $sql, postgres: concat!($sql, " FOR UPDATE", $of) }
    };
}
pub(crate) use locking;

impl Tx<'_> {
    /// Reads what a write will be decided by.
    pub(crate) async fn query_locking(&self, read: &Locking, params: Vec<Param>) -> Result<Vec<Row>> {
        match self {
            Self::Sqlite(_) => self.query(read.sqlite, params).await,
            Self::Postgres(_) => self.query(read.postgres, params).await,
        }
    }

    pub(crate) async fn query(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        match self {
            Self::Sqlite(connection) => sqlite::query(connection, sql, &params),
            Self::Postgres(tx) => postgres::query_tx(tx, sql, &params).await,
        }
    }

    /// Runs a statement; tells how many rows it changed.
    pub(crate) async fn execute(&self, sql: &'static str, params: Vec<Param>) -> Result<u64> {
        match self {
            Self::Sqlite(connection) => sqlite::execute(connection, sql, &params),
            Self::Postgres(tx) => postgres::execute(tx, sql, &params).await,
        }
    }

    /// Runs one statement for many sets of parameters: a prepared loop here, a pipeline there.
    pub(crate) async fn execute_many(&self, sql: &'static str, rows: Vec<Vec<Param>>) -> Result<Vec<u64>> {
        match self {
            Self::Sqlite(connection) => rows.iter().map(|params| sqlite::execute(connection, sql, params)).collect(),
            Self::Postgres(tx) => postgres::execute_many(tx, sql, &rows).await,
        }
    }
}
