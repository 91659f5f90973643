//! Where the database is, read from what an operator writes.

use crate::teller::Teller;
use crate::{Error, Result};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the database is. Shown without the password it may have.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL address.
    Postgres(String),
}

/// Sizes of the store. The defaults fit two cores and ten thousand minions.
#[derive(Clone)]
pub struct Options {
    /// Writes waiting for the writer; more make the senders wait (back-pressure, not memory).
    pub write_queue: usize,
    /// Most writes in one commit.
    pub group: usize,
    /// Connections that read.
    pub readers: usize,
    /// Batches of committed events kept for slow listeners before they have to go back to the log.
    pub feed: usize,
    /// Who words the events that follow from a write.
    pub teller: Option<Arc<dyn Teller>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { write_queue: 4096, group: 1024, readers: 4, feed: 1024, teller: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { write_queue, group, readers, feed, teller: _ } = self;
        f.debug_struct("Options")
            .field("write_queue", write_queue)
            .field("group", group)
            .field("readers", readers)
            .field("feed", feed)
            .finish_non_exhaustive()
    }
}

impl Location {
    /// Reads `postgres://…`, `postgresql://…`, `sqlite:PATH` or a plain path.
    pub fn parse(text: &str) -> Result<Self> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        // SQLite's name for a database in memory: each connection would have its own.
        if path.is_empty() || path == ":memory:" || path.contains("://") {
            return Err(Error::Address(without_password(text)));
        }
        Ok(Self::Sqlite(path.into()))
    }

    /// The place for messages: never the password of an address.
    pub fn describe(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(url) => without_password(url),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Sqlite(_) => "Sqlite",
            Self::Postgres(_) => "Postgres",
        };
        f.debug_tuple(kind).field(&self.describe()).finish()
    }
}

/// An address as far as it is no secret: `scheme://user@host/database`. Parameters go (`?password=…` is one), and so does
/// all between the user's name and the last `@`: a password may have one of its own that nobody encoded.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let Some((credentials, place)) = rest.rsplit_once('@') else {
        return format!("{scheme}://{}", before_parameters(rest));
    };
    let user = credentials.split([':', '@', '/', '?']).next().unwrap_or_default();
    // With a `?` before the `@` there is no telling password, place and parameters apart.
    let place = if credentials.contains('?') { "…" } else { before_parameters(place) };
    format!("{scheme}://{user}@{place}")
}

fn before_parameters(place: &str) -> &str {
    place.split('?').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!(Location::parse("/a/b.db").unwrap(), Location::Sqlite("/a/b.db".into()));
        assert_eq!(Location::parse("sqlite:b.db").unwrap(), Location::Sqlite("b.db".into()));
        assert!(matches!(Location::parse("postgresql://h/d").unwrap(), Location::Postgres(_)));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "sqlite:", ":memory:", "sqlite::memory:", "mysql://h/d"] {
            assert!(matches!(Location::parse(text), Err(Error::Address(_))), "{text:?}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://salt:hunter2@db.example.org/saltern",
            "postgres://salt:hunter2@db.example.org/saltern?sslmode=require",
            "postgres://salt@db.example.org/saltern?password=hunter2",
            "postgres://salt:p@hunter2@db.example.org/saltern",
            "postgres://salt:hunter2/@db.example.org/saltern",
            "postgres://salt:hunter2?@db.example.org/saltern",
            "postgres://salt@db.example.org/saltern?password=p@hunter2",
        ] {
            let location = Location::parse(url).unwrap();
            for shown in [location.describe(), format!("{location:?}")] {
                assert!(!shown.contains("hunter2"), "{shown}");
                assert!(shown.contains("salt@"), "{shown}");
            }
        }
        assert_eq!(
            Location::Postgres("postgres://salt:hunter2@db/saltern?a=b".into()).describe(),
            "postgres://salt@db/saltern"
        );
        let refused = Location::parse("mysql://salt:hunter2@db/saltern").unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("hunter2"));
    }
}
