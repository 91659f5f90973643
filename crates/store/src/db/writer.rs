//! The group-commit writer: many writes, one durable commit, then every answer.
//!
//! One thread owns the writing connection. It takes what has piled up since its last commit, applies it in one
//! transaction, commits, and only then tells each waiting caller. A lone write is committed at once; under load the
//! group grows by itself, which is what makes durable commits cheap.
//!
//! The writes of a group are applied side by side: on PostgreSQL their statements share one pipeline instead of waiting for
//! each other, on SQLite each finishes at once. The events of all of them are numbered together just before the commit.
//!
//! Invariants: no caller is answered before its commit; one write that fails does not take its neighbours with it (the
//! group is rolled back and repeated one by one); the queue is bounded, so a slow disk slows the senders down instead of
//! filling memory; committed events reach the feed in the order of their numbers.

use super::Tx;
use crate::events::{self, Event, NewEvent};
use crate::{Error, Options, Result};
use futures_util::future::{LocalBoxFuture, try_join_all};
use std::sync::Arc;
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

/// A write. It may be applied twice (the second time after a roll-back), so it must not consume itself.
pub(crate) trait Operation: Send + 'static {
    type Output: Send + 'static;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, log: &'a mut Log) -> LocalBoxFuture<'a, Result<Self::Output>>;
}

/// The events that a write adds to the log, in its order.
pub(crate) type Log = Vec<NewEvent>;

/// The connection the writer owns.
pub(crate) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(deadpool_postgres::Pool),
}

/// The way to the writer's thread.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Queued>>,
    closing: Arc<Notify>,
    feed: broadcast::Sender<Arc<[Event]>>,
}

impl Writer {
    /// Starts the thread. It ends when it is told to close, or when every `Writer` is gone, and the queue is empty.
    pub(crate) fn start(connection: Connection, options: &Options) -> Result<(Self, std::thread::JoinHandle<()>)> {
        let (queue, waiting) = mpsc::channel(options.write_queue.max(1));
        let (feed, _) = broadcast::channel(options.feed.max(1));
        let closing = Arc::new(Notify::new());
        let (runtime, group, out, close) =
            (tokio::runtime::Handle::current(), options.group.max(1), feed.clone(), closing.clone());
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || runtime.block_on(run(connection, waiting, close, group, out)))
            .map_err(|error| Error::Database(format!("cannot start the writer thread: {error}")))?;
        Ok((Self { queue, closing, feed }, thread))
    }

    /// Takes no more writes; those in the queue are committed.
    pub(crate) fn close(&self) {
        self.closing.notify_one();
    }

    /// Hands a write over and waits for its commit.
    pub(crate) async fn write<O: Operation>(&self, operation: O) -> Result<O::Output> {
        let (answer, answered) = oneshot::channel();
        let pending = Pending { operation, log: Log::new(), result: None, answer: Some(answer) };
        self.queue.send(Box::new(pending)).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }

    /// Committed events, in order.
    pub(crate) fn feed(&self) -> broadcast::Receiver<Arc<[Event]>> {
        self.feed.subscribe()
    }

    /// Writes that wait for the writer now.
    pub(crate) fn backlog(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }
}

/// A write in the queue, its type erased.
trait Queued: Send {
    fn apply<'a>(&'a mut self, tx: &'a Tx<'a>) -> LocalBoxFuture<'a, Result<()>>;
    fn log(&mut self) -> Log;
    fn answer(&mut self, outcome: Result<()>);
}

struct Pending<O: Operation> {
    operation: O,
    log: Log,
    result: Option<O::Output>,
    answer: Option<oneshot::Sender<Result<O::Output>>>,
}

impl<O: Operation> Queued for Pending<O> {
    fn apply<'a>(&'a mut self, tx: &'a Tx<'a>) -> LocalBoxFuture<'a, Result<()>> {
        self.log.clear();
        Box::pin(async move {
            self.result = Some(self.operation.apply(tx, &mut self.log).await?);
            Ok(())
        })
    }

    fn log(&mut self) -> Log {
        std::mem::take(&mut self.log)
    }

    fn answer(&mut self, outcome: Result<()>) {
        let Some(answer) = self.answer.take() else { return };
        let result = outcome.and_then(|()| self.result.take().ok_or(Error::Closed));
        // A caller that no longer waits has lost nothing: the write is committed or it is not.
        let _ = answer.send(result);
    }
}

async fn run(
    mut connection: Connection,
    mut waiting: mpsc::Receiver<Box<dyn Queued>>,
    closing: Arc<Notify>,
    most: usize,
    feed: broadcast::Sender<Arc<[Event]>>,
) {
    let mut group = Vec::with_capacity(most);
    loop {
        tokio::select! {
            biased;
            () = closing.notified() => {
                waiting.close();
                continue;
            }
            taken = waiting.recv_many(&mut group, most) => {
                if taken == 0 {
                    return;
                }
            }
        }
        match commit(&mut connection, &mut group).await {
            Ok(log) => {
                publish(&feed, log);
                group.iter_mut().for_each(|write| write.answer(Ok(())));
            }
            Err(error) if group.len() == 1 => group.iter_mut().for_each(|write| write.answer(Err(error.clone()))),
            Err(error) => {
                tracing::warn!(%error, writes = group.len(), "a group of writes failed, repeating them one by one");
                for write in &mut group {
                    let alone = std::slice::from_mut(write);
                    match commit(&mut connection, alone).await {
                        Ok(log) => {
                            publish(&feed, log);
                            write.answer(Ok(()));
                        }
                        Err(error) => write.answer(Err(error)),
                    }
                }
            }
        }
        group.clear();
    }
}

fn publish(feed: &broadcast::Sender<Arc<[Event]>>, log: Vec<Event>) {
    if !log.is_empty() {
        // No listener is not an error: the log is in the database.
        let _ = feed.send(log.into());
    }
}

async fn commit(connection: &mut Connection, group: &mut [Box<dyn Queued>]) -> Result<Vec<Event>> {
    match connection {
        Connection::Sqlite(connection) => {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            let applied = apply(&Tx::Sqlite(connection), group).await;
            let done = applied.and_then(|log| Ok(connection.execute_batch("COMMIT").map(|()| log)?));
            if done.is_err() && !connection.is_autocommit() {
                connection.execute_batch("ROLLBACK")?;
            }
            done
        }
        Connection::Postgres(pool) => {
            let mut client = pool.get().await?;
            let tx = client.transaction().await?;
            let log = apply(&Tx::Postgres(&tx), group).await?;
            tx.commit().await?;
            Ok(log)
        }
    }
}

async fn apply(tx: &Tx<'_>, group: &mut [Box<dyn Queued>]) -> Result<Vec<Event>> {
    try_join_all(group.iter_mut().map(|write| write.apply(tx))).await?;
    let log = group.iter_mut().flat_map(|write| write.log()).collect();
    events::append(tx, log).await
}
