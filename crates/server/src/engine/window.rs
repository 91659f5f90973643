//! When a minion may be touched: blackouts today, maintenance windows when there are calendars.
//!
//! Asked by admission, so that people hear of it at once, and again at dispatch, because the time may have passed since.

use crate::config::Config;
use saltern_core::ids::MinionId;
use saltern_core::target::Glob;
use saltern_core::time::Timestamp;

/// Whether an action may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Now
    Open,
    /// Not now; then, or nobody knows when
    Closed(Option<Timestamp>),
}

/// What is known of closed times.
pub(crate) struct Windows {
    blackout: Vec<Glob>,
}

impl Windows {
    pub(crate) fn new(config: &Config) -> Self {
        Self { blackout: config.blackout.iter().map(|pattern| Glob::new(pattern)).collect() }
    }

    /// Whether an action may start on this minion at this instant; `restricted` is one that changes something.
    pub(super) fn opening(&self, minion: &MinionId, restricted: bool, _at: Timestamp) -> Opening {
        // What only looks is allowed while nothing may be changed.
        let held = restricted && self.blackout.iter().any(|pattern| pattern.matches(minion.as_str()));
        if held { Opening::Closed(None) } else { Opening::Open }
    }
}
