//! What a write brings about besides its own rows: events for the log, entries of the audit log, and changes of the counts
//! of actions.
//!
//! Collected while the write is applied, and written by the writer once for the whole group.

use crate::audit::AuditEntry;
use crate::counts::{CountChange, Counts};
use crate::events::NewEvent;
use crate::launches::LaunchCounts;
use crate::teller::{RunChanged, Teller};
use saltern_core::ids::{ActionId, LaunchId};
use saltern_core::run::{Reason, RunState};
use saltern_core::time::Timestamp;
use std::sync::Arc;

/// The effects of one write, in its order.
pub(crate) struct Effects {
    collected: Collected,
    teller: Option<Arc<dyn Teller>>,
}

/// What is written for the whole group.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) events: Vec<NewEvent>,
    /// Events that come after those of the actions that end with the group
    pub(crate) closing: Vec<NewEvent>,
    pub(crate) counts: Vec<(ActionId, CountChange)>,
    pub(crate) audit: Vec<AuditEntry>,
}

impl Effects {
    pub(crate) fn new(teller: Option<Arc<dyn Teller>>) -> Self {
        Self { collected: Collected::default(), teller }
    }

    /// Adds events to the log.
    pub(crate) fn log(&mut self, events: &[NewEvent]) {
        self.collected.events.extend_from_slice(events);
    }

    /// Adds one event to the log.
    pub(crate) fn push(&mut self, event: NewEvent) {
        self.collected.events.push(event);
    }

    /// Adds entries to the audit log.
    pub(crate) fn audit<'e>(&mut self, entries: impl IntoIterator<Item = &'e AuditEntry>) {
        self.collected.audit.extend(entries.into_iter().cloned());
    }

    /// Notes that a run has gone from one standing to another.
    pub(crate) fn moved(
        &mut self,
        action: ActionId,
        from: (RunState, Option<Reason>),
        to: (RunState, Option<Reason>),
        at: Timestamp,
    ) {
        let mut change = Counts::of(to.0, to.1);
        change -= Counts::of(from.0, from.1);
        let closed = !from.0.is_terminal() && to.0.is_terminal();
        if change != Counts::default() {
            self.collected.counts.push((action, CountChange { change, closed: closed.then_some(at) }));
        }
    }

    /// Asks the teller for the event of a change.
    pub(crate) fn tell(&mut self, changed: &RunChanged<'_>) {
        self.collected.events.extend(self.teller.as_ref().and_then(|teller| teller.run_changed(changed)));
    }

    /// Asks the teller for the events of a launch that has ended.
    pub(crate) fn launch_ended(
        &mut self,
        launch: LaunchId,
        head: Option<ActionId>,
        counts: &LaunchCounts,
        at: Timestamp,
    ) {
        if let Some(teller) = &self.teller {
            self.collected.closing.extend(teller.launch_ended(launch, head, counts, at));
        }
    }

    /// Empty effects of a part of the same write.
    pub(crate) fn part(&self) -> Self {
        Self::new(self.teller.clone())
    }

    /// Adds the effects of a part.
    pub(crate) fn join(&mut self, part: Self) {
        self.collected.join(part.collected);
    }

    /// Forgets everything: the write is applied again.
    pub(crate) fn clear(&mut self) {
        self.collected = Collected::default();
    }

    /// Hands over what was collected.
    pub(crate) fn take(&mut self) -> Collected {
        std::mem::take(&mut self.collected)
    }
}

impl Collected {
    /// Adds what comes after.
    pub(crate) fn join(&mut self, next: Self) {
        self.events.extend(next.events);
        self.closing.extend(next.closing);
        self.counts.extend(next.counts);
        self.audit.extend(next.audit);
    }
}
