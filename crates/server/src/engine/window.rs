//! When minions may be changed: maintenance windows, blackouts, and maintenance modes that somebody has switched on.
//!
//! Whatever changes a minion (a *restricted* action) starts only while its windows are open. That is asked by admission
//! (`admit`), so that people hear of it at once, and again when a run is claimed, because the time may have passed since.
//! What was started is finished; a chain that began inside goes on outside.
//!
//! The rules: a minion without schedules is always open. Its own windows count before those of its groups; where there are
//! several, one that is open is enough. A schedule without a calendar that can be read is closed. While an event of a
//! blackout lasts, its own or a group's, it is closed. A maintenance mode opens all of that. The setting `blackout` holds
//! beside it, whatever calendars say.
//!
//! What the tables say is kept as a [`Snapshot`] with calendars expanded into times of day ([`timetable`]), so that an answer
//! costs neither a database nor an expansion. It is made anew when something was changed, here or on another server, and
//! once a day ([`keep`]). What a change does to work that waits is in [`change`].

mod admit;
mod change;
mod keep;
mod refresh;
mod snapshot;
mod timetable;
mod words;

pub use change::{Strategy, Touched};
pub(crate) use refresh::LEAST_REFRESH;
pub(crate) use snapshot::{Hours, Snapshot};
pub(crate) use timetable::Span;
pub(crate) use words::span_in_words;

use crate::config::Config;
use crate::webhooks::{Client, Reach};
use saltern_core::action::{Policy, WindowRule};
use saltern_core::ids::MinionId;
use saltern_core::target::Glob;
use saltern_core::time::Timestamp;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Whether an action may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Now
    Open,
    /// Not now; then, or nobody knows when
    Closed(Option<Timestamp>),
}

/// How long after it was due something is put off from window to window: whoever is away in all of them is not waited for
/// for ever.
const LONGEST_WAIT: Duration = Duration::from_secs(90 * 86_400);

/// What is known of closed times.
pub(crate) struct Windows {
    blackout: Vec<Glob>,
    snapshot: RwLock<Arc<Snapshot>>,
    /// One change, or one look at the tables, at a time
    changing: tokio::sync::Mutex<()>,
    client: Client,
}

impl Windows {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            blackout: config.blackout.iter().map(|pattern| Glob::new(pattern)).collect(),
            snapshot: RwLock::default(),
            changing: tokio::sync::Mutex::default(),
            client: Client::new(if config.calendar_near_urls { Reach::Anywhere } else { Reach::Far }),
        }
    }

    /// Whether an action may start on this minion at this instant; `restricted` is one that changes something.
    pub(crate) fn opening(&self, minion: &MinionId, restricted: bool, at: Timestamp) -> Opening {
        self.opening_by(minion, restricted, false, at)
    }

    /// The same; `overridden`: for somebody's reason, windows are not asked.
    pub(super) fn opening_by(&self, minion: &MinionId, restricted: bool, overridden: bool, at: Timestamp) -> Opening {
        // What only looks is allowed while nothing may be changed.
        if !restricted {
            return Opening::Open;
        }
        if self.is_blacked_out(minion) {
            return Opening::Closed(None);
        }
        if overridden { Opening::Open } else { self.snapshot().opening(minion, at) }
    }

    /// Whether what finds its window closed fails, and does not wait for the next.
    pub(super) fn fails_outside(&self, minion: &MinionId, policy: &Policy) -> bool {
        !self.is_blacked_out(minion) && (policy.window == WindowRule::Fail || self.snapshot().fails_outside(minion))
    }

    /// Whether a window of this minion was open at some moment since then.
    pub(super) fn was_open_since(&self, minion: &MinionId, since: Timestamp, now: Timestamp) -> bool {
        self.snapshot().was_open_since(minion, since, now)
    }

    /// Whether the setting `blackout` means this minion.
    pub(super) fn is_blacked_out(&self, minion: &MinionId) -> bool {
        self.blackout.iter().any(|pattern| pattern.matches(minion.as_str()))
    }

    /// What is known now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another snapshot in the place of the known one, which is given back.
    fn replace(&self, snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        std::mem::replace(&mut *self.snapshot.write().unwrap_or_else(PoisonError::into_inner), snapshot)
    }
}

/// The deadline of what has to wait for a window beyond its own one: it has as long after the window opens as it had after it
/// was due, but not longer than that. Nothing: its deadline stands.
pub(super) fn put_off(due: Timestamp, deadline: Timestamp, opens: Timestamp, longest: Duration) -> Option<Timestamp> {
    let is_waited_for = opens >= deadline && opens <= due.plus(LONGEST_WAIT);
    is_waited_for.then(|| opens.plus(deadline.since(due).min(longest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_put_off_behind_the_window_and_not_for_ever() {
        let at = |hours: i64| Timestamp::from_secs(1_800_000_000 + hours * 3_600);
        let day = Duration::from_secs(86_400);
        let to = |opens| put_off(at(0), at(4), at(opens), day);
        assert_eq!(to(3), None, "its deadline is after the window opens");
        assert_eq!(to(4), Some(at(8)));
        assert_eq!(to(7 * 24), Some(at(7 * 24 + 4)));
        assert_eq!(put_off(at(0), at(100), at(200), day), Some(at(224)), "it has no longer than a job may have");
        assert_eq!(to(90 * 24), Some(at(90 * 24 + 4)));
        assert_eq!(to(90 * 24 + 1), None, "nobody is waited for for ever");
    }
}
