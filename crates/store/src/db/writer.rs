//! The group-commit writer: many writes, one durable commit, then every answer.
//!
//! One thread owns the writing connection. It takes what has piled up since its last commit, applies it in one
//! transaction, commits, and only then tells each waiting caller. A lone write is committed at once; under load the
//! group grows by itself, which is what makes durable commits cheap.
//!
//! The writes of a group are applied in their order; neighbours that commute are applied side by side: on PostgreSQL their
//! statements share one pipeline instead of waiting for each other, on SQLite each finishes at once. What they
//! change about the counts of actions is summed and written once; the audit entries and the events of all of them are numbered
//! together, just before the commit.
//!
//! Invariants: no caller is answered before its commit; one write that fails does not take its neighbours with it (the
//! group is rolled back and repeated one by one); nothing is repeated that may have been committed; the queue is bounded,
//! so a slow disk slows the senders down instead of filling memory; committed events reach the feed in the order of their
//! numbers.

use super::effects::{Collected, Effects};
use super::stats::{CommitStats, Recorder};
use super::{Tx, params, postgres, sqlite};
use crate::events::{self, Event};
use crate::teller::Teller;
use crate::{Error, Options, Result, audit, counts};
use futures_util::future::{LocalBoxFuture, try_join_all};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

/// A write. It may be applied twice (the second time after a roll-back), so it must not consume itself.
pub(crate) trait Operation: Send + 'static {
    type Output: Send + 'static;

    /// Whether it may be applied side by side with neighbours that may be, too. True only where whatever statements of
    /// theirs come first gives what some order of the whole writes gives.
    const COMMUTES: bool = false;

    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Self::Output>>;
}

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
    recorder: Arc<Recorder>,
    teller: Option<Arc<dyn Teller>>,
}

impl Writer {
    /// Starts the thread. It ends when it is told to close, or when every `Writer` is gone, and the queue is empty.
    /// `last_event` is the number of the newest event there is.
    pub(crate) fn start(
        connection: Connection,
        options: &Options,
        last_event: i64,
    ) -> Result<(Self, std::thread::JoinHandle<()>)> {
        let (queue, waiting) = mpsc::channel(options.write_queue.max(1));
        let (feed, _) = broadcast::channel(options.feed.max(1));
        let (closing, recorder) = (Arc::new(Notify::new()), Arc::default());
        let teller = options.teller.clone();
        let committer = Committer {
            connection,
            most: options.group.max(1),
            feed: feed.clone(),
            told: last_event,
            uncertain: false,
            recorder: Arc::clone(&recorder),
            teller: teller.clone(),
        };
        let (runtime, close) = (tokio::runtime::Handle::current(), Arc::clone(&closing));
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || runtime.block_on(committer.run(waiting, close)))
            .map_err(|error| Error::Database(format!("cannot start the writer thread: {error}")))?;
        Ok((Self { queue, closing, feed, recorder, teller }, thread))
    }

    /// Takes no more writes; those in the queue are committed.
    pub(crate) fn close(&self) {
        self.closing.notify_one();
    }

    /// Hands a write over and waits for its commit.
    pub(crate) async fn write<O: Operation>(&self, operation: O) -> Result<O::Output> {
        let (answer, answered) = oneshot::channel();
        let effects = Effects::new(self.teller.clone());
        let pending = Pending { operation, effects, result: None, answer: Some(answer) };
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

    /// Commits since the start.
    pub(crate) fn commits(&self) -> u64 {
        self.recorder.commits()
    }

    /// How it is doing.
    pub(crate) fn stats(&self) -> CommitStats {
        self.recorder.read()
    }
}

/// A write in the queue, its type erased.
trait Queued: Send {
    fn commutes(&self) -> bool;
    fn apply<'a>(&'a mut self, tx: &'a Tx<'a>) -> LocalBoxFuture<'a, Result<()>>;
    fn effects(&mut self) -> &mut Effects;
    fn answer(&mut self, outcome: Result<()>);
}

struct Pending<O: Operation> {
    operation: O,
    effects: Effects,
    result: Option<O::Output>,
    answer: Option<oneshot::Sender<Result<O::Output>>>,
}

impl<O: Operation> Queued for Pending<O> {
    fn commutes(&self) -> bool {
        O::COMMUTES
    }

    fn apply<'a>(&'a mut self, tx: &'a Tx<'a>) -> LocalBoxFuture<'a, Result<()>> {
        self.effects.clear();
        Box::pin(async move {
            self.result = Some(self.operation.apply(tx, &mut self.effects).await?);
            Ok(())
        })
    }

    fn effects(&mut self) -> &mut Effects {
        &mut self.effects
    }

    fn answer(&mut self, outcome: Result<()>) {
        let Some(answer) = self.answer.take() else { return };
        let result = outcome.and_then(|()| self.result.take().ok_or(Error::Closed));
        // A caller that no longer waits has lost nothing: the write is committed or it is not.
        let _ = answer.send(result);
    }
}

/// The writer's thread: owns the connection and turns what is in the queue into commits.
struct Committer {
    connection: Connection,
    most: usize,
    feed: broadcast::Sender<Arc<[Event]>>,
    /// The number of the last event that went to the feed.
    told: i64,
    /// Whether there may be events after that which were committed without our knowing.
    uncertain: bool,
    recorder: Arc<Recorder>,
    teller: Option<Arc<dyn Teller>>,
}

/// Why a group was not committed.
struct Failure {
    error: Error,
    blame: Blame,
}

/// Where the fault lies, which decides what may be tried again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blame {
    /// One of the writes; nothing was kept, and the others may be fine by themselves.
    Write,
    /// Another server's writes that were in the way; nothing was kept, and the same again may do.
    Conflict,
    /// The connection, which was lost before the commit was asked for; nothing was kept, and the same again on another
    /// connection may do.
    Connection,
    /// The database: it cannot be used, or it did not say whether it committed. A repetition would be futile or could do
    /// things twice.
    Database,
}

/// Time between two looks at what other servers have committed, where there may be some.
const LOOK: Duration = Duration::from_millis(500);

/// How often is tried what failed through no fault of its own.
const TRIES: usize = 10;

impl Committer {
    async fn run(mut self, mut waiting: mpsc::Receiver<Box<dyn Queued>>, closing: Arc<Notify>) {
        let mut group = Vec::with_capacity(self.most);
        loop {
            tokio::select! {
                biased;
                () = closing.notified() => {
                    waiting.close();
                    continue;
                }
                taken = waiting.recv_many(&mut group, self.most) => {
                    if taken == 0 {
                        return self.connection.finish();
                    }
                }
                // What other servers have committed is heard of by looking.
                () = tokio::time::sleep(LOOK), if matches!(self.connection, Connection::Postgres(_)) => {
                    self.uncertain = true;
                    self.tell(Vec::new()).await;
                    continue;
                }
            }
            self.settle(&mut group).await;
            group.clear();
        }
    }

    /// Commits the group, or as much of it as can be, and answers every write.
    async fn settle(&mut self, group: &mut [Box<dyn Queued>]) {
        let Err(Failure { error, blame }) = self.try_commit(group).await else { return };
        if blame != Blame::Write || group.len() == 1 {
            return refuse(group, &error);
        }
        tracing::warn!(%error, writes = group.len(), "a group of writes failed, repeating them one by one");
        for at in 0..group.len() {
            if let Err(Failure { error, blame }) = self.try_commit(&mut group[at..=at]).await {
                if blame != Blame::Write {
                    return refuse(&mut group[at..], &error);
                }
                refuse(&mut group[at..=at], &error);
            }
        }
    }

    /// Commits a group, again if that failed through no fault of its own and nothing was kept.
    async fn try_commit(&mut self, group: &mut [Box<dyn Queued>]) -> Result<(), Failure> {
        for _ in 1..TRIES {
            match self.commit(group).await {
                Err(Failure { blame: Blame::Conflict | Blame::Connection, .. }) => {}
                settled => return settled,
            }
        }
        self.commit(group).await
    }

    /// Commits a group and, only then, tells the listeners and the callers.
    async fn commit(&mut self, group: &mut [Box<dyn Queued>]) -> Result<(), Failure> {
        let (begun, teller) = (Instant::now(), self.teller.as_deref());
        let committed = match &mut self.connection {
            Connection::Sqlite(connection) => commit_sqlite(connection, group, teller).await,
            Connection::Postgres(pool) => commit_postgres(pool, group, teller).await,
        };
        self.uncertain |= matches!(&committed, Err(failure) if failure.blame == Blame::Database);
        let log = committed?;
        self.recorder.record(group.len(), begun.elapsed());
        self.tell(log).await;
        group.iter_mut().for_each(|write| write.answer(Ok(())));
        Ok(())
    }

    /// Hands committed events to the listeners: in the order of their numbers, each once.
    async fn tell(&mut self, mut log: Vec<Event>) {
        // Numbers have no gaps: what is missing was committed by another server.
        self.uncertain |= log.first().is_some_and(|event| event.number != self.told + 1);
        if self.uncertain {
            match self.connection.events_after(self.told).await {
                Ok(events) => log = events,
                // Nobody is told anything until it can be told in order; the log has it all.
                Err(error) => return tracing::warn!(%error, "the event feed is held back"),
            }
            self.uncertain = false;
        }
        let Some(last) = log.last().map(|event| event.number) else { return };
        self.told = last;
        // No listener is not an error: the log is in the database.
        let _ = self.feed.send(log.into());
    }
}

fn refuse(group: &mut [Box<dyn Queued>], error: &Error) {
    group.iter_mut().for_each(|write| write.answer(Err(error.clone())));
}

async fn commit_sqlite(
    connection: &mut rusqlite::Connection,
    group: &mut [Box<dyn Queued>],
    teller: Option<&dyn Teller>,
) -> Result<Vec<Event>, Failure> {
    let begun = connection.execute_batch("BEGIN IMMEDIATE");
    begun.map_err(|error| Failure { error: error.into(), blame: Blame::Database })?;
    let applied = apply(&Tx::Sqlite(connection), group, teller).await;
    let done = applied.and_then(|log| Ok(connection.execute_batch("COMMIT").map(|()| log)?));
    done.map_err(|error| match undo(connection) {
        Ok(()) => Failure { error, blame: Blame::Write },
        Err(error) => Failure { error, blame: Blame::Database },
    })
}

/// Ends a transaction that could not be committed; some failures have ended it already.
fn undo(connection: &rusqlite::Connection) -> Result<()> {
    if connection.is_autocommit() { Ok(()) } else { Ok(connection.execute_batch("ROLLBACK")?) }
}

async fn commit_postgres(
    pool: &deadpool_postgres::Pool,
    group: &mut [Box<dyn Queued>],
    teller: Option<&dyn Teller>,
) -> Result<Vec<Event>, Failure> {
    let mut client = pool.get().await.map_err(|error| Failure { error: error.into(), blame: Blame::Database })?;
    let done = commit_with(&mut client, group, teller).await;
    if let Err(Failure { error: Error::Unreachable(_), .. }) = &done {
        postgres::discard(client);
    }
    done
}

async fn commit_with(
    client: &mut deadpool_postgres::Client,
    group: &mut [Box<dyn Queued>],
    teller: Option<&dyn Teller>,
) -> Result<Vec<Event>, Failure> {
    let before_commit = |error: Error| {
        let blame = match error {
            Error::Unreachable(_) => Blame::Connection,
            Error::Conflict => Blame::Conflict,
            _ => Blame::Write,
        };
        Failure { error, blame }
    };
    let tx = client.transaction().await.map_err(|error| before_commit(error.into()))?;
    let log = apply(&Tx::Postgres(&tx), group, teller).await.map_err(before_commit)?;
    // Whatever goes wrong from here on, the server may have committed.
    tx.commit().await.map_err(|error| Failure { error: error.into(), blame: Blame::Database })?;
    Ok(log)
}

async fn apply(tx: &Tx<'_>, group: &mut [Box<dyn Queued>], teller: Option<&dyn Teller>) -> Result<Vec<Event>> {
    for neighbours in group.chunk_by_mut(|one, next| one.commutes() && next.commutes()) {
        try_join_all(neighbours.iter_mut().map(|write| write.apply(tx))).await?;
    }
    let mut all = Collected::default();
    for write in group {
        all.join(write.effects().take());
    }
    all.events.extend(counts::apply(tx, all.counts, teller).await?);
    all.events.extend(all.closing);
    // Last, and always in this order: what every server needs is locked for as short as can be.
    audit::append(tx, all.audit).await?;
    events::append(tx, all.events).await
}

impl Connection {
    async fn events_after(&self, number: i64) -> Result<Vec<Event>> {
        let (sql, params) = (events::AFTER, params![number, i64::MAX]);
        let rows = match self {
            Self::Sqlite(connection) => sqlite::query(connection, sql, &params)?,
            Self::Postgres(pool) => postgres::read_pooled(pool, sql, &params).await?,
        };
        rows.into_iter().map(events::read).collect()
    }

    /// Leaves a SQLite file whole in itself: what is in the log beside it goes into it, even while readers are open.
    fn finish(self) {
        if let Self::Sqlite(connection) = self
            && let Err(error) = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        {
            tracing::warn!(%error, "the database file was left with its log");
        }
    }
}
