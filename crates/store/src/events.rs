//! The numbered event log.
//!
//! Numbers have no gaps and are committed in order, so "everything after N" is a complete answer. A return's event keeps
//! no copy of the return: its body is read from `returns`.

use crate::counters::{self, Counter};
use crate::db::{Effects, Operation, Row, Tx, params};
use crate::{Body, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::time::Timestamp;
use std::sync::Arc;

/// An event to be logged.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// When it happened
    pub at: Timestamp,
    /// Its tag
    pub tag: String,
    /// The minion it came from or is about
    pub minion: Option<MinionId>,
    /// The job it belongs to
    pub jid: Option<Jid>,
    /// Its body
    pub body: Arc<Body>,
    /// Whether the body is stored in `returns` already (a return's event)
    pub is_return: bool,
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number
    pub number: i64,
    /// What was logged
    pub event: NewEvent,
}

/// Which events of the log are wanted.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only of this job
    pub jid: Option<Jid>,
}

const INSERT: &str =
    "INSERT INTO events (number, at, tag, minion, jid, encoding, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

// A return is looked up by its whole key for each event. With a join, PostgreSQL may well choose to go through all returns
// of a job for each of its events.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT e.number, e.at, e.tag, e.minion, e.jid, \
             coalesce((SELECT r.encoding FROM returns r \
               WHERE e.encoding = -1 AND r.jid = e.jid AND r.minion = e.minion), \
               CASE WHEN e.encoding = -1 THEN 0 ELSE e.encoding END), \
             coalesce((SELECT r.body FROM returns r \
               WHERE e.encoding = -1 AND r.jid = e.jid AND r.minion = e.minion), e.body), \
             CASE WHEN e.encoding = -1 THEN 1 ELSE 0 END FROM events e ",
            $rest
        )
    };
}

pub(crate) const AFTER: &str = select!("WHERE e.number > ?1 ORDER BY e.number LIMIT ?2");
pub(crate) const OF_JOB_AFTER: &str = select!("WHERE e.number > ?1 AND e.jid = ?3 ORDER BY e.number LIMIT ?2");
pub(crate) const LAST: &str = "SELECT coalesce(max(number), 0) FROM events";

/// The encoding number that says "the body is in `returns`".
const IN_RETURNS: i64 = -1;

/// Numbers the events and writes them: one counter step and one bulk insert for a whole group of writes.
pub(crate) async fn append(tx: &Tx<'_>, log: Vec<NewEvent>) -> Result<Vec<Event>> {
    if log.is_empty() {
        return Ok(Vec::new());
    }
    let first = counters::take(tx, Counter::Event, log.len()).await?;
    let events: Vec<Event> = (first..).zip(log).map(|(number, event)| Event { number, event }).collect();
    let rows = events.iter().map(|Event { number, event }| {
        let (encoding, body) =
            if event.is_return { (IN_RETURNS, Vec::new()) } else { (event.body.encoding, event.body.bytes.clone()) };
        params![*number, event.at, &event.tag, event.minion.as_ref(), event.jid, encoding, body]
    });
    tx.execute_many(INSERT, rows.collect()).await?;
    Ok(events)
}

struct Append(Vec<NewEvent>);

impl Operation for Append {
    type Output = ();
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, _tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        effects.log(&self.0);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Store {
    /// Logs events; returns after their commit.
    pub async fn log_events(&self, events: Vec<NewEvent>) -> Result<()> {
        self.write(Append(events)).await
    }

    /// The events after number `after`, oldest first, at most `limit`.
    pub async fn events_after(&self, after: i64, filter: &EventFilter, limit: usize) -> Result<Vec<Event>> {
        let rows = match filter.jid {
            None => self.query(AFTER, params![after, limit]).await?,
            Some(jid) => self.query(OF_JOB_AFTER, params![after, limit, jid]).await?,
        };
        rows.into_iter().map(read).collect()
    }

    /// Number of the oldest event that is kept.
    pub async fn first_event(&self) -> Result<Option<i64>> {
        let rows = self.query("SELECT number FROM events ORDER BY number LIMIT 1", params![]).await?;
        rows.first().map(|row| row.int(0)).transpose()
    }

    /// The number of the newest event, 0 if there is none.
    pub async fn last_event(&self) -> Result<i64> {
        let rows = self.query(LAST, params![]).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }
}

pub(crate) fn read(mut row: Row) -> Result<Event> {
    let minion = row.opt_text(3)?.and_then(|id| MinionId::new(&id).ok());
    let event = NewEvent {
        at: row.time(1)?,
        tag: row.text(2)?,
        minion,
        jid: row.opt_jid(4)?,
        body: Arc::new(Body { encoding: row.int(5)?, bytes: row.blob(6)? }),
        is_return: row.flag(7)?,
    };
    Ok(Event { number: row.int(0)?, event })
}
