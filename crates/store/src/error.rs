//! What can go wrong with a database, in words an operator can act on.

/// An error of the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The database cannot be reached or opened.
    #[error("cannot open the database at {place}: {reason}")]
    Open {
        /// Path or address, without a password
        place: String,
        /// What the database said
        reason: String,
    },
    /// The address is not one we understand.
    #[error("the database address {0:?} is neither a file path, sqlite:PATH nor postgres://…")]
    Address(String),
    /// The database was made by a newer version of this program.
    #[error("the database has schema {found}, this program knows up to {known}: start a newer saltern")]
    Newer {
        /// Schema number found
        found: i64,
        /// Newest schema number we know
        known: i64,
    },
    /// No room on the disk. Nothing of the write was kept.
    #[error("the disk that holds the database is full")]
    Full,
    /// The database refused or lost a statement.
    #[error("database: {0}")]
    Database(String),
    /// The connection to the database was lost.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The store is closing.
    #[error("the store is closed")]
    Closed,
    /// A row does not have the shape the schema promises.
    #[error("unexpected value in column {column} of {what}")]
    Shape {
        /// Statement or table
        what: &'static str,
        /// Column number
        column: usize,
    },
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            _ => Self::Database(error.to_string()),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if *db.code() == tokio_postgres::error::SqlState::DISK_FULL => Self::Full,
            Some(db) => Self::Database(format!("{} ({})", db.message(), db.code().code())),
            None => Self::Unreachable(chain(&error)),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => error.into(),
            other => Self::Unreachable(other.to_string()),
        }
    }
}

/// An error and its causes in one line; `tokio_postgres` says the useful part in the cause.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text = format!("{text}: {next_text}");
        }
        cause = next.source();
    }
    text
}
