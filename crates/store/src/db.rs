//! The seam between the two databases: one set of statements, one kind of row, one writer.
//!
//! A statement is a text with `?1` parameters in the dialect both understand; PostgreSQL gets it as `$1`. Columns are
//! 64-bit integers, text or bytes on both sides, so a [`Param`] and a [`Row`] need no more than that.

mod effects;
mod location;
pub(crate) mod postgres;
mod row;
pub(crate) mod sqlite;
mod stats;
mod tls;
mod tx;
mod writer;

pub(crate) use effects::Effects;
pub use location::{Location, Options};
pub(crate) use row::{Param, Row, params, storable};
pub use stats::{Bucket, CommitStats};
pub(crate) use tx::{Locking, Tx, locking};
pub(crate) use writer::{Connection, Operation, Writer};

use crate::Result;

/// Where reads go.
#[derive(Clone)]
pub(crate) enum Readers {
    Sqlite(sqlite::Pool),
    Postgres(deadpool_postgres::Pool),
}

/// Opens the database, brings its schema up to date, and returns the way to read and the connection that writes.
pub(crate) async fn open(location: &Location, options: &Options) -> Result<(Readers, Connection)> {
    match location {
        Location::Sqlite(path) => {
            let (pool, connection) = sqlite::open(path, options).await?;
            Ok((Readers::Sqlite(pool), Connection::Sqlite(connection)))
        }
        Location::Postgres(url) => {
            let (readers, writer) = postgres::open(url, options).await?;
            Ok((Readers::Postgres(readers), Connection::Postgres(writer)))
        }
    }
}

impl Readers {
    /// Runs one read-only statement.
    pub(crate) async fn query(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        match self {
            Self::Sqlite(pool) => pool.query(sql, params).await,
            Self::Postgres(pool) => postgres::read_pooled(pool, sql, &params).await,
        }
    }
}
