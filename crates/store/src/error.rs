//! What can go wrong with a database, in words an operator can act on.

use tokio_postgres::error::SqlState;

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
    /// The connection to the database was lost. Of a write that was just being committed it is not known whether it was kept.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// Another server wrote the same rows at the same time, again and again. Nothing of the write was kept.
    #[error("the database is busy with the same rows")]
    Conflict,
    /// There is a job with this id already. Nothing of the write was kept: take another id.
    #[error("the job id is taken")]
    JidTaken,
    /// Somebody else has accounted for this instant of a recurring action. Nothing of the write was kept: look at it anew.
    #[error("the planned instant is accounted for already")]
    FireTaken,
    /// What was asked makes no sense, whatever is stored. Nothing was.
    #[error("cannot be stored: {0}")]
    Invalid(&'static str),
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

impl Error {
    /// The same as a failure to open the database at `place`; what is clear without the place stays as it is.
    pub(crate) fn while_opening(self, place: String) -> Self {
        match self {
            Self::Database(reason) | Self::Unreachable(reason) => Self::Open { place, reason },
            other => other,
        }
    }
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
            Some(db) if *db.code() == SqlState::DISK_FULL => Self::Full,
            Some(db) if is_conflict(db.code()) => Self::Conflict,
            Some(db) if is_about_the_connection(db.code()) => Self::Unreachable(db.message().to_owned()),
            Some(db) => Self::Database(format!("{} ({})", db.message(), db.code().code())),
            None if is_broken(&error) => Self::Unreachable(chain(&error)),
            None => Self::Database(chain(&error)),
        }
    }
}

/// Whether two transactions were in each other's way and this one was undone for it.
fn is_conflict(code: &SqlState) -> bool {
    [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code)
}

/// Whether the server says that it is going away or lets nobody in, rather than something about a statement.
fn is_about_the_connection(code: &SqlState) -> bool {
    let code = code.code();
    code.starts_with("57P") || code.starts_with("08") || code == SqlState::TOO_MANY_CONNECTIONS.code()
}

/// Whether the connection is of no more use.
fn is_broken(error: &tokio_postgres::Error) -> bool {
    let cause = std::error::Error::source(error);
    error.is_closed() || cause.is_some_and(|cause| cause.is::<std::io::Error>())
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        use deadpool_postgres::PoolError;
        // A pool only connects; whatever the server says to that means that it cannot be used.
        Self::Unreachable(match error {
            PoolError::Backend(error) => {
                error.as_db_error().map_or_else(|| chain(&error), |db| db.message().to_owned())
            }
            PoolError::Timeout(_) => "it does not answer".to_owned(),
            other => other.to_string(),
        })
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
