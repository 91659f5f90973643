//! The event log, from any number on, without a gap: first what is stored, then what comes; only what the caller may see.
//!
//! Many read the same events, so what can be done once for all of them is: a batch of committed events is wrapped once
//! ([`Batch`]), and whoever shapes events for clients leaves the shaped bytes there for the next reader. A reader who may see
//! everything and filters nothing is handed whole batches.

use super::viewer::Viewer;
use super::{App, Caller};
use crate::{Error, body};
use bytes::Bytes;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::target::Glob;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{Event, EventFilter, Store};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Which events are wanted.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only those after this number; nothing means from now on
    pub since: Option<i64>,
    /// Only tags that match this shell pattern
    pub tag: Option<String>,
    /// Only of this job
    pub jid: Option<Jid>,
    /// Only of this action: its own events and those of its runs
    pub action: Option<ActionId>,
    /// Only of minions whose id matches this shell pattern
    pub minion: Option<String>,
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

/// Places for bytes that are made once and sent to many; each way to shape events has a number of its own.
#[derive(Debug, Default)]
pub struct Shaped([OnceLock<Bytes>; 3]);

/// An event on its way to readers.
#[derive(Debug)]
pub struct Heard {
    /// The event
    pub entry: EventEntry,
    /// What was made of it already
    pub shaped: Shaped,
}

/// Events that were committed together.
#[derive(Debug)]
pub struct Batch {
    /// They
    pub events: Vec<Arc<Heard>>,
    /// What was made of all of them already
    pub shaped: Shaped,
}

/// What comes next.
pub enum Chunk {
    /// All of a batch
    Whole(Arc<Batch>),
    /// These
    Some(Vec<Arc<Heard>>),
}

/// Hands committed events to everybody who follows the log.
#[derive(Clone)]
pub(crate) struct Hub(broadcast::Sender<Option<Arc<Batch>>>);

/// Events in order, for ever.
pub struct EventStream {
    store: Store,
    /// Nothing instead of a batch: look into the log
    feed: broadcast::Receiver<Option<Arc<Batch>>>,
    wanted: Wanted,
    viewer: Viewer,
    /// The last number that was looked at
    last: i64,
    /// Picked out, not handed out yet
    ready: VecDeque<Arc<Heard>>,
    stored_only: bool,
    /// Numbers that were asked for and are not in the log any more
    gap: Option<(i64, i64)>,
    /// Whether the log may have more than `last` that the feed will not bring
    behind: bool,
}

struct Wanted {
    log: EventFilter,
    tag: Option<Glob>,
    minion: Option<Glob>,
    action: Option<ActionId>,
}

/// How many events are read from the log at a time.
const PAGE: usize = 500;

/// Batches that wait for a slow reader before he is sent back to the log.
const BATCHES: usize = 256;

impl Shaped {
    /// What was made in place `number`, made now if nobody was here before.
    pub fn or_make(&self, number: usize, make: impl FnOnce() -> Bytes) -> Bytes {
        match self.0.get(number) {
            Some(place) => place.get_or_init(make).clone(),
            None => make(),
        }
    }
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(BATCHES))
    }

    /// Passes on what is committed, until `stop`.
    pub(crate) async fn run(self, store: Store, stop: CancellationToken) {
        let mut feed = store.feed();
        loop {
            let next = tokio::select! {
                next = feed.recv() => next,
                () = stop.cancelled() => return,
            };
            let batch = match next {
                Ok(_) if self.0.receiver_count() == 0 => continue,
                Ok(events) => Batch::read(events.iter().cloned()).map(Arc::new),
                Err(broadcast::error::RecvError::Lagged(_)) => None,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            // Nobody listens: nothing is lost by that.
            let _ = self.0.send(batch);
        }
    }
}

impl Batch {
    /// Nothing if one of them cannot be read: the log says what is wrong with it.
    fn read(events: impl Iterator<Item = Event>) -> Option<Self> {
        let events = events.map(|event| Some(Arc::new(Heard { entry: read(event).ok()?, shaped: Shaped::default() })));
        Some(Self { events: events.collect::<Option<_>>()?, shaped: Shaped::default() })
    }
}

impl Wanted {
    fn is_all(&self) -> bool {
        self.tag.is_none() && self.minion.is_none() && self.action.is_none() && self.log.jid.is_none()
    }

    fn wants(&self, event: &EventEntry) -> bool {
        self.tag.as_ref().is_none_or(|tag| tag.matches(&event.tag))
            && (self.log.jid.is_none() || event.jid == self.log.jid)
            && self.minion.as_ref().is_none_or(|glob| event.minion.as_ref().is_some_and(|id| glob.matches(id.as_str())))
            && self.action.is_none_or(|id| is_of_action(&event.tag, id))
    }
}

/// `saltern/action/<id>/…` and `saltern/run/<id>/…`.
fn is_of_action(tag: &str, id: ActionId) -> bool {
    let rest = tag.strip_prefix("saltern/action/").or_else(|| tag.strip_prefix("saltern/run/"));
    rest.and_then(|rest| rest.split('/').next()).is_some_and(|number| number == id.to_string())
}

impl App {
    /// Events from `query.since` on.
    pub async fn events(&self, caller: &Caller, query: &EventQuery) -> Result<EventStream, Error> {
        let store = self.master.store.clone();
        // Listen first, then look at the log: what comes in between is seen twice and told by its number, never missed.
        let feed = self.hub.0.subscribe();
        let last = match query.since {
            Some(since) => since,
            None => store.last_event().await?,
        };
        // What was forgotten is said, not passed over: zero means "from the first there is".
        let first = store.first_event().await?.unwrap_or(0);
        let gap = (last > 0 && last + 1 < first).then_some((last + 1, first - 1));
        Ok(EventStream {
            gap,
            store,
            feed,
            wanted: Wanted {
                log: EventFilter { jid: query.jid },
                tag: query.tag.as_deref().map(Glob::new),
                minion: query.minion.as_deref().map(Glob::new),
                action: query.action,
            },
            viewer: Viewer::new(self.clone(), caller.clone()),
            last,
            ready: VecDeque::new(),
            stored_only: query.stored_only,
            behind: true,
        })
    }
}

impl EventStream {
    /// The next event; waits for it. `None` when the server stops or the caller's token is no longer good, or at the end of
    /// the stored ones if no more were wanted.
    pub async fn next(&mut self) -> Option<Result<EventEntry, Error>> {
        loop {
            if !self.ready.is_empty() && self.viewer.is_due() {
                // They were picked out with the rights he had: they are picked out anew.
                (self.last, self.behind) = (self.passed(), true);
                self.ready.clear();
            }
            if let Some(heard) = self.ready.pop_front() {
                return Some(Ok(heard.entry.clone()));
            }
            match self.next_chunk().await? {
                Ok(Chunk::Whole(batch)) => self.ready.extend(batch.events.iter().cloned()),
                Ok(Chunk::Some(events)) => self.ready.extend(events),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Events that were asked for and are not in the log any more: from number, to number.
    pub const fn gap(&self) -> Option<(i64, i64)> {
        self.gap
    }

    /// Everything up to this number was handed out, or is not wanted, or is not his to see.
    pub(crate) fn passed(&self) -> i64 {
        self.ready.front().map_or(self.last, |next| next.entry.number - 1)
    }

    /// As many as are there, at least one; the same otherwise.
    pub async fn next_chunk(&mut self) -> Option<Result<Chunk, Error>> {
        loop {
            // Before anything is handed out: also who reads old events for hours is cut off when his token ends.
            if self.viewer.is_due() && !self.viewer.look().await {
                return None;
            }
            if self.behind {
                let events = match self.store.events_after(self.last, &self.wanted.log, PAGE).await {
                    Ok(events) => events,
                    Err(error) => return Some(Err(error.into())),
                };
                self.behind = events.len() == PAGE;
                let mut heard = Vec::with_capacity(events.len());
                for event in events {
                    match read(event) {
                        Ok(entry) => heard.push(Arc::new(Heard { entry, shaped: Shaped::default() })),
                        Err(error) => return Some(Err(error)),
                    }
                }
                match self.pick(&heard).await {
                    Ok(events) if events.is_empty() => continue,
                    Ok(events) => return Some(Ok(Chunk::Some(events))),
                    Err(error) => return Some(Err(error)),
                }
            }
            if self.stored_only {
                return None;
            }
            let batch = tokio::select! {
                // First: what he may see has changed, or he may see nothing any more.
                biased;
                () = self.viewer.changed() => continue,
                batch = self.feed.recv() => batch,
            };
            match batch {
                Ok(Some(batch)) => match self.take(&batch).await {
                    Ok(Some(chunk)) => return Some(Ok(chunk)),
                    Ok(None) => {}
                    Err(error) => return Some(Err(error)),
                },
                // Too slow for the feed: the log has everything.
                Ok(None) | Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    async fn take(&mut self, batch: &Arc<Batch>) -> Result<Option<Chunk>, Error> {
        let (Some(first), Some(newest)) = (batch.events.first(), batch.events.last()) else { return Ok(None) };
        if first.entry.number > self.last && self.wanted.is_all() && self.viewer.sees_everything() {
            self.last = newest.entry.number;
            return Ok(Some(Chunk::Whole(batch.clone())));
        }
        let events = self.pick(&batch.events).await?;
        Ok((!events.is_empty()).then_some(Chunk::Some(events)))
    }

    /// Those that are new, wanted and his to see.
    async fn pick(&mut self, events: &[Arc<Heard>]) -> Result<Vec<Arc<Heard>>, Error> {
        let mut picked = Vec::new();
        for heard in events.iter().filter(|heard| heard.entry.number > self.last) {
            if self.wanted.wants(&heard.entry) {
                picked.extend(self.viewer.see(heard).await?);
            }
        }
        if let Some(newest) = events.last() {
            self.last = self.last.max(newest.entry.number);
        }
        Ok(picked)
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
