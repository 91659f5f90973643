//! Who words the events that follow from a write: the store knows what has changed, `server` knows how events look.

use crate::counts::Counts;
use crate::events::NewEvent;
use crate::launches::LaunchCounts;
use saltern_core::ids::{ActionId, Jid, LaunchId, MinionId};
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_core::time::Timestamp;

/// Words events. Asked by the writer inside its transaction, so it must be quick, and the same question may be asked twice:
/// what was rolled back is done again.
pub trait Teller: Send + Sync {
    /// The event of a run's change that has none of its own: transitions and verbs. Returns, acknowledgements, claims and
    /// creations bring their events along.
    fn run_changed(&self, change: &RunChanged<'_>) -> Option<NewEvent>;

    /// The events of an action whose last open run has just ended. An action without runs has ended when it is created, and
    /// is not asked about.
    fn action_ended(&self, action: ActionId, jid: Option<Jid>, counts: &Counts, at: Timestamp) -> Vec<NewEvent>;

    /// The events of a launch whose last open minion has just ended; `head` is the action of its first step. They are logged
    /// after those of its actions. A launch without minions has ended when it is created, and is not asked about.
    fn launch_ended(
        &self,
        _launch: LaunchId,
        _head: Option<ActionId>,
        _counts: &LaunchCounts,
        _at: Timestamp,
    ) -> Vec<NewEvent> {
        Vec::new()
    }
}

/// A run after its change.
#[derive(Clone, Debug)]
pub struct RunChanged<'a> {
    /// Of which action
    pub action: ActionId,
    /// On which minion
    pub minion: &'a MinionId,
    /// The job of its newest attempt
    pub jid: Option<Jid>,
    /// Where it stands now
    pub state: RunState,
    /// Why it ended badly, if it did
    pub reason: Option<Reason>,
    /// What it waits for, if it is queued
    pub waiting_for: Option<WaitingFor>,
    /// What was said about the change
    pub message: Option<&'a str>,
    /// Whether the action is housekeeping of the server itself
    pub internal: bool,
    /// When it changed
    pub at: Timestamp,
}
