//! The action engine: what was asked for is carried out, once, and ends in time.
//!
//! The way of an action: [`admission`] is the only door; [`accept`] stores it and
//! starts what may start at once; [`dispatch`] claims due runs and fills free places ([`pace`],
//! [`tracker`]); [`deliver`] publishes what was claimed; [`silence`] sees to those who say nothing; [`sweep`] ends what is
//! past its time. [`recurring`] asks for what is done again and again. Verbs of people are in [`verbs`], their questions in [`explain`]. What becomes of a run is decided in
//! `core::run::step` and written by `store`, nowhere else.
//!
//! The tables are the truth. What is kept in memory here (who is under way, what waits) is read back at the start, and
//! compared with the tables from time to time; its size is bounded by the limits on runs in progress.
//!
//! Invariant: what is published was claimed, and what was claimed is committed.

mod accept;
mod admission;
mod chain;
mod deliver;
mod dispatch;
mod explain;
mod knock;
mod metrics;
mod neighbours;
mod pace;
mod reboot;
mod recurring;
mod retention;
mod silence;
mod sweep;
mod tell;
mod tracker;
mod verbs;
mod window;
mod work;

pub(crate) use accept::Accepted;
pub use admission::{Check, Decision, Door};
pub(crate) use admission::{Request, function, may_call};
pub(crate) use chain::{Asked, agent, in_step};
pub use chain::{LaunchDone, LaunchVerb, Preview};
pub use explain::{Explanation, Fact};
pub use recurring::{CatchUp, EntityKind, EntityRef, Overlap, PlannedFire, RecurringWhat};
pub(crate) use recurring::{Definition, Round, changed, handed_over, kept_owner, left_out_of};
pub(crate) use tell::Tags;
pub use verbs::{Done, Verb};
pub(crate) use window::{Hours, LEAST_REFRESH, Opening, Span, Windows, span_in_words};
pub use window::{Strategy, Touched};
pub(crate) use work::Work;

use crate::config::Config;
use metrics::Metrics;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tracker::Tracker;

/// What the engine keeps in memory.
pub(crate) struct Engine {
    /// Runs in progress and the places they take
    tracker: Mutex<Tracker>,
    /// Actions with queued runs, and when each is to be looked at
    waiting: Mutex<BTreeMap<ActionId, Waiting>>,
    /// Actions that something has happened to
    woken: Mutex<BTreeSet<ActionId>>,
    /// Minions that have come (back)
    back: Mutex<BTreeSet<MinionId>>,
    wake: Notify,
    /// A place of the server has become free
    place_freed: AtomicBool,
    /// Questions that are out: what the answers mean
    questions: Mutex<HashMap<ActionId, silence::Question>>,
    others: neighbours::Others,
    chains: chain::Chains,
    knocks: knock::Knocks,
    recurrings: recurring::Recurrings,
    pub(crate) metrics: Metrics,
    started: Timestamp,
}

/// An action with queued runs.
#[derive(Clone)]
struct Waiting {
    work: Arc<Work>,
    look: Timestamp,
    /// Whether it waits for any place of the server to be free
    for_place: bool,
}

impl Engine {
    /// Whether somebody wants this run stopped, which is at this job.
    pub(crate) fn was_stopped(&self, action: ActionId, minion: &MinionId, jid: Jid) -> bool {
        self.tracker().get_mut(action, minion).is_some_and(|run| run.stopping && run.jid == jid)
    }

    pub(crate) fn new(config: &Config, now: Timestamp) -> Self {
        Self {
            tracker: Mutex::new(Tracker::new(config.max_running, config.start_rate)),
            waiting: Mutex::default(),
            woken: Mutex::default(),
            back: Mutex::default(),
            wake: Notify::new(),
            place_freed: AtomicBool::new(false),
            questions: Mutex::default(),
            others: neighbours::Others::default(),
            chains: chain::Chains::default(),
            knocks: knock::Knocks::default(),
            recurrings: recurring::Recurrings::default(),
            metrics: Metrics::default(),
            started: now,
        }
    }

    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        lock(&self.tracker)
    }

    /// Something has happened to an action: it is looked at soon.
    pub(crate) fn wake(&self, action: ActionId) {
        lock(&self.woken).insert(action);
        self.wake.notify_one();
    }

    /// A minion has come, or has come back.
    pub(crate) fn is_back(&self, minion: &MinionId) {
        self.knocks.remove(minion);
        lock(&self.back).insert(minion.clone());
        self.chains.minions_are_back();
        self.wake.notify_one();
    }

    /// A run that was in progress has ended, or waits again; tells whether it was the last of a batch that is under way.
    pub(crate) fn ended(&self, action: ActionId, minion: &MinionId, now: Timestamp) -> bool {
        let (freed, is_last_of_batch) = self.tracker().remove(action, minion, now);
        if freed {
            let mut waiting = lock(&self.waiting);
            if let Some(waiting) = waiting.get_mut(&action) {
                waiting.look = waiting.look.min(now);
            }
            if !waiting.is_empty() {
                self.place_freed.store(true, Ordering::Relaxed);
                self.wake.notify_one();
            }
        }
        is_last_of_batch
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
