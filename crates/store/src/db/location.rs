//! Where the database is, read from what an operator writes.

use crate::{Error, Result};
use std::path::PathBuf;

/// Where the database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL address.
    Postgres(String),
}

/// Sizes of the store. The defaults fit two cores and ten thousand minions.
#[derive(Clone, Debug)]
pub struct Options {
    /// Writes waiting for the writer; more make the senders wait (back-pressure, not memory).
    pub write_queue: usize,
    /// Most writes in one commit.
    pub group: usize,
    /// Connections that read.
    pub readers: usize,
    /// Batches of committed events kept for slow listeners before they have to go back to the log.
    pub feed: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { write_queue: 4096, group: 1024, readers: 4, feed: 1024 }
    }
}

impl Location {
    /// Reads `postgres://…`, `postgresql://…`, `sqlite:PATH` or a plain path.
    pub fn parse(text: &str) -> Result<Self> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        if path.is_empty() || path.contains("://") {
            return Err(Error::Address(text.to_owned()));
        }
        Ok(Self::Sqlite(path.into()))
    }

    /// The place for messages: never the password of an address.
    pub fn describe(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(url) => {
                match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?))) {
                    Some((scheme, (user, rest))) => {
                        format!("{scheme}://{}@{rest}", user.split(':').next().unwrap_or_default())
                    }
                    None => url.clone(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!(Location::parse("/a/b.db").unwrap(), Location::Sqlite("/a/b.db".into()));
        assert_eq!(Location::parse("sqlite:b.db").unwrap(), Location::Sqlite("b.db".into()));
        assert!(matches!(Location::parse("postgresql://h/d").unwrap(), Location::Postgres(_)));
        assert!(Location::parse("mysql://h/d").is_err());
        assert!(Location::parse("").is_err());
    }

    #[test]
    fn a_password_is_never_described() {
        let location = Location::parse("postgres://salt:hunter2@db.example.org/saltern").unwrap();
        assert_eq!(location.describe(), "postgres://salt@db.example.org/saltern");
    }
}
