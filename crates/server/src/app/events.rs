//! The event log, from any number on, without a gap: first what is stored, then what comes.

use super::App;
use crate::{Error, body};
use saltern_core::ids::{Jid, MinionId};
use saltern_core::target::Glob;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{Event, EventFilter, Store};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Which events are wanted.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only those after this number; nothing means from now on
    pub since: Option<i64>,
    /// Only tags that match this shell pattern
    pub tag: Option<String>,
    /// Only of this job
    pub jid: Option<Jid>,
    /// End with what is stored now, instead of waiting for more
    pub stored_only: bool,
}

/// One event.
#[derive(Clone, Debug)]
pub struct EventEntry {
    /// Its number in the log
    pub number: i64,
    /// When it was logged
    pub at: Timestamp,
    /// Its tag
    pub tag: String,
    /// The minion it is of
    pub minion: Option<MinionId>,
    /// The job it belongs to
    pub jid: Option<Jid>,
    /// Its body
    pub data: Value,
}

/// Events in order, for ever.
pub struct EventStream {
    store: Store,
    feed: broadcast::Receiver<Arc<[Event]>>,
    filter: EventFilter,
    tag: Option<Glob>,
    /// The last number that was looked at
    last: i64,
    /// Read from the log, not handed out yet
    ready: VecDeque<Event>,
    stored_only: bool,
    /// Whether the log may have more than `last` that the feed will not bring
    behind: bool,
}

/// How many events are read from the log at a time.
const PAGE: usize = 500;

impl App {
    /// Events from `query.since` on.
    pub async fn events(&self, query: &EventQuery) -> Result<EventStream, Error> {
        let store = self.master.store.clone();
        // Listen first, then look at the log: what comes in between is seen twice and told by its number, never missed.
        let feed = store.feed();
        let last = match query.since {
            Some(since) => since,
            None => store.last_event().await?,
        };
        Ok(EventStream {
            store,
            feed,
            filter: EventFilter { jid: query.jid },
            tag: query.tag.as_deref().map(Glob::new),
            last,
            ready: VecDeque::new(),
            stored_only: query.stored_only,
            behind: true,
        })
    }

    /// Stored events after a number, at most `limit`, without waiting for more.
    pub async fn events_after(&self, since: i64, limit: usize) -> Result<Vec<EventEntry>, Error> {
        let events = self.master.store.events_after(since, &EventFilter::default(), limit.clamp(1, PAGE)).await?;
        events.into_iter().map(read).collect()
    }
}

impl EventStream {
    /// The next event; waits for it. `None` when the server stops, or at the end of the
    /// stored ones if no more were wanted.
    pub async fn next(&mut self) -> Option<Result<EventEntry, Error>> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                self.last = event.number;
                if self.tag.as_ref().is_none_or(|tag| tag.matches(&event.event.tag)) {
                    return Some(read(event));
                }
            }
            if self.behind {
                match self.store.events_after(self.last, &self.filter, PAGE).await {
                    Ok(events) => {
                        self.behind = events.len() == PAGE;
                        self.ready.extend(events);
                    }
                    Err(error) => return Some(Err(error.into())),
                }
                continue;
            }
            if self.stored_only {
                return None;
            }
            match self.feed.recv().await {
                Ok(batch) => {
                    let wanted = |event: &&Event| {
                        event.number > self.last && (self.filter.jid.is_none() || event.event.jid == self.filter.jid)
                    };
                    self.ready.extend(batch.iter().filter(wanted).cloned());
                }
                // Too slow for the feed: the log has everything.
                Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

pub(super) fn read(Event { number, event }: Event) -> Result<EventEntry, Error> {
    Ok(EventEntry {
        number,
        at: event.at,
        tag: event.tag,
        minion: event.minion,
        jid: event.jid,
        data: body::unpack(&event.body)?,
    })
}
