//! How the runs of an action stand, as numbers that are kept with the action.
//!
//! Thousands of returns of one action may be in one commit: their changes are summed, and the action is written once.

use crate::Result;
use crate::db::{Row, Tx, params};
use crate::events::NewEvent;
use crate::teller::Teller;
use futures_util::future::try_join_all;
use saltern_core::ids::ActionId;
use saltern_core::run::{Reason, RunState};
use saltern_core::time::Timestamp;
use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};

/// How many runs of an action stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All
    pub total: i64,
    /// Not sent
    pub queued: i64,
    /// Sent or picked up
    pub running: i64,
    /// Ended well
    pub completed: i64,
    /// Ended badly
    pub failed: i64,
    /// Those of the failed whose minion could not be reached
    pub unreachable: i64,
    /// Ended before they were sent
    pub cancelled: i64,
}

/// What a write changes about the counts of an action.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountChange {
    pub(crate) change: Counts,
    /// When a run ended that was open before
    pub(crate) closed: Option<Timestamp>,
}

const APPLY: &str = "UPDATE actions SET total = total + ?2, queued = queued + ?3, running = running + ?4, \
    completed = completed + ?5, failed = failed + ?6, unreachable = unreachable + ?7, cancelled = cancelled + ?8, \
    ended = CASE WHEN queued + ?3 + running + ?4 > 0 THEN NULL ELSE coalesce(?9, ended) END WHERE id = ?1 \
    RETURNING jid, total, queued, running, completed, failed, unreachable, cancelled";

impl Counts {
    /// The counts of a single run.
    pub fn of(state: RunState, reason: Option<Reason>) -> Self {
        let mut counts = Self { total: 1, ..Self::default() };
        match state {
            RunState::Queued => counts.queued = 1,
            RunState::Sent | RunState::PickedUp => counts.running = 1,
            RunState::Completed => counts.completed = 1,
            RunState::Failed => {
                counts.failed = 1;
                counts.unreachable = reason.is_some_and(Reason::is_unreachable).into();
            }
            RunState::Cancelled => counts.cancelled = 1,
        }
        counts
    }

    /// How many have not ended.
    pub const fn open(&self) -> i64 {
        self.queued + self.running
    }

    /// Reads seven columns from `first` on.
    pub(crate) fn read(row: &Row, first: usize) -> Result<Self> {
        Ok(Self {
            total: row.int(first)?,
            queued: row.int(first + 1)?,
            running: row.int(first + 2)?,
            completed: row.int(first + 3)?,
            failed: row.int(first + 4)?,
            unreachable: row.int(first + 5)?,
            cancelled: row.int(first + 6)?,
        })
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.total += other.total;
        self.queued += other.queued;
        self.running += other.running;
        self.completed += other.completed;
        self.failed += other.failed;
        self.unreachable += other.unreachable;
        self.cancelled += other.cancelled;
    }
}

impl SubAssign for Counts {
    fn sub_assign(&mut self, other: Self) {
        self.total -= other.total;
        self.queued -= other.queued;
        self.running -= other.running;
        self.completed -= other.completed;
        self.failed -= other.failed;
        self.unreachable -= other.unreachable;
        self.cancelled -= other.cancelled;
    }
}

/// Writes the changes of a whole group: one statement for each action, in the order of ids, so that servers on the same
/// database do not wait for each other in a circle. Returns the events of the actions that have just ended.
pub(crate) async fn apply(
    tx: &Tx<'_>,
    changes: Vec<(ActionId, CountChange)>,
    teller: Option<&dyn Teller>,
) -> Result<Vec<NewEvent>> {
    let mut sums: BTreeMap<ActionId, CountChange> = BTreeMap::new();
    for (action, CountChange { change, closed }) in changes {
        let sum = sums.entry(action).or_default();
        sum.change += change;
        sum.closed = sum.closed.max(closed);
    }
    let written = sums.iter().map(|(action, CountChange { change: c, closed })| {
        let (open, ended) = ([c.queued, c.running], [c.completed, c.failed, c.unreachable, c.cancelled]);
        let [queued, running] = open;
        let [completed, failed, unreachable, cancelled] = ended;
        let values = params![*action, c.total, queued, running, completed, failed, unreachable, cancelled, *closed];
        tx.query(APPLY, values)
    });
    let rows = try_join_all(written).await?;
    let Some(teller) = teller else { return Ok(Vec::new()) };
    let mut events = Vec::new();
    for ((action, CountChange { closed, .. }), rows) in sums.into_iter().zip(rows) {
        let (Some(at), Some(mut row)) = (closed, rows.into_iter().next()) else { continue };
        let counts = Counts::read(&row, 1)?;
        if counts.open() == 0 {
            events.extend(teller.action_ended(action, row.opt_jid(0)?, &counts, at));
        }
    }
    Ok(events)
}
