//! Chains: a launch goes its way on each of its minions, chunk by chunk, whatever goes down in between.
//!
//! A launch is its steps (actions with runs, like any others) and one row for each minion: which chunk of its plan is next, and
//! whether that is waiting, on its way, or waiting for the machine to be back. Chunks travel as *carriers*: hidden
//! actions with a job of their own, delivered, acknowledged, sent again and given up like all others, so nothing of that is here. What
//! a minion tells, while a chunk runs and at its end, is written to the runs of the steps ([`hear`]).
//!
//! The minion's own store is the truth about what ran there: it never runs a chunk twice, so a start may be sent again, and
//! whoever has lost the thread asks (`resume`, [`carry`]) and goes on from the answer.
//!
//! The way of a launch: [`launch`] admits and compiles it; [`round`] looks at what is open and starts what may start;
//! [`carry`] sends it; [`hear`] takes the news; [`verbs`] is what people do to it. Pure decisions are in `core::chain`.
//!
//! Invariant: a chunk is claimed in the tables before it is sent; a minion is held by at most one launch.

mod book;
mod carrier;
mod carry;
mod explain;
mod hear;
mod launch;
mod module;
mod round;
mod tidy;
mod verbs;
mod windows;

pub(super) use carrier::{CARRIER, Errand};
pub use launch::Preview;
pub(crate) use launch::{Asked, agent, in_step};
pub use verbs::{LaunchDone, LaunchVerb};

use super::lock;
use book::Book;
use saltern_core::ids::{LaunchId, MinionId};
use saltern_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use tokio::sync::Notify;

/// What is kept in memory of launches that are open: read back from the tables at the start and from time to time.
#[derive(Default)]
pub(super) struct Chains {
    open: Mutex<BTreeMap<LaunchId, Open>>,
    woken: Mutex<BTreeSet<LaunchId>>,
    wake: Notify,
    book: Book,
    tidy: tidy::Tidy,
    /// Minions that are to get the module
    lacking: Mutex<BTreeSet<MinionId>>,
}

/// A launch that has not ended.
#[derive(Clone)]
struct Open {
    /// When it is to be looked at
    look: Timestamp,
    /// Whether a minion of it is held by another chain
    blocked: bool,
    /// Whether it waits for a minion that is away
    expects: bool,
}

impl Chains {
    /// Something has happened to a launch: it is looked at soon.
    fn wake(&self, launch: LaunchId) {
        lock(&self.woken).insert(launch);
        self.wake.notify_one();
    }

    /// Those that wait for something that may have happened now.
    fn wake_those(&self, waits: impl Fn(&Open) -> bool) {
        let woken: Vec<LaunchId> =
            lock(&self.open).iter().filter(|(_, open)| waits(open)).map(|(launch, _)| *launch).collect();
        if !woken.is_empty() {
            lock(&self.woken).extend(woken);
            self.wake.notify_one();
        }
    }

    /// Something has happened that may concern any of them.
    pub(super) fn wake_all(&self) {
        self.wake_those(|_| true);
    }

    /// Minions have come, or have come back.
    pub(super) fn minions_are_back(&self) {
        self.wake_those(|open| open.expects);
    }

    /// A minion is free of a chain.
    fn minion_is_free(&self) {
        self.wake_those(|open| open.blocked);
    }
}
