//! The store itself: how it is opened and closed. What it can do stands in one file per thing it remembers.

use crate::Result;
use crate::db::{self, CommitStats, Location, Operation, Options, Param, Readers, Row, Writer};
use crate::events::{self, Event};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// The way to the database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    readers: Readers,
    writer: Writer,
    thread: Arc<Mutex<Option<std::thread::JoinHandle<()>>>>,
}

impl Store {
    /// Opens the database, making or updating its schema. Must be called inside a tokio runtime.
    pub async fn open(location: &Location, options: &Options) -> Result<Self> {
        let (readers, connection) = db::open(location, options).await?;
        let newest = readers.query(events::LAST, Vec::new()).await?;
        let last_event = newest.first().map_or(Ok(0), |row| row.int(0))?;
        let (writer, thread) = Writer::start(connection, options, last_event)?;
        Ok(Self { readers, writer, thread: Arc::new(Mutex::new(Some(thread))) })
    }

    /// Commits what was handed over and stops writing; later writes fail with [`Error::Closed`].
    pub async fn close(&self) {
        self.writer.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let ended = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(ended, Ok(Ok(()))) {
                tracing::error!("the writer's thread died");
            }
        }
    }

    /// Events as they are committed, in the order of their numbers. A listener that is too slow is told so and goes back
    /// to [`Store::events_after`].
    pub fn feed(&self) -> broadcast::Receiver<Arc<[Event]>> {
        self.writer.feed()
    }

    /// Writes that wait for the writer now: what back-pressure is read from.
    pub fn backlog(&self) -> usize {
        self.writer.backlog()
    }

    /// Commits since it was opened: under load far fewer than writes.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// How the writer is doing, for metrics.
    pub fn commit_stats(&self) -> CommitStats {
        self.writer.stats()
    }

    pub(crate) async fn query(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        self.readers.query(sql, params).await
    }

    pub(crate) async fn write<O: Operation>(&self, operation: O) -> Result<O::Output> {
        self.writer.write(operation).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Error, GrainsRow, Options};
    use saltern_core::ids::MinionId;
    use saltern_core::time::Timestamp;
    use std::path::Path;

    /// A store whose file cannot grow beyond so many pages: to SQLite the same as a full disk, and possible everywhere.
    async fn limited(path: &Path, pages: i64) -> Store {
        let location = Location::Sqlite(path.to_owned());
        let (readers, connection) = db::open(&location, &Options::default()).await.unwrap();
        if let db::Connection::Sqlite(connection) = &connection {
            connection.pragma_update(None, "max_page_count", pages).unwrap();
        }
        let (writer, thread) = Writer::start(connection, &Options::default(), 0).unwrap();
        Store { readers, writer, thread: Arc::new(Mutex::new(Some(thread))) }
    }

    fn grains(n: usize) -> GrainsRow {
        let minion = MinionId::new(&format!("m{n:03}")).unwrap();
        GrainsRow { minion, at: Timestamp(1), body: Body { encoding: 1, bytes: vec![1; 20_000] } }
    }

    #[tokio::test]
    async fn a_full_file_is_reported_and_what_is_removed_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let store = limited(&folder.path().join("saltern.db"), 200).await;
        let mut kept = Vec::new();
        let refused = loop {
            match store.record_grains(grains(kept.len()), vec![]).await {
                Ok(()) => kept.push(grains(kept.len())),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::Full), "{refused:?}");
        assert!(kept.len() > 10);
        assert_eq!(store.grains_after("", 1000).await.unwrap(), kept);

        store.forget_minion(kept[3].minion.clone()).await.unwrap();
        store.record_grains(grains(kept.len()), vec![]).await.unwrap();
    }
}
