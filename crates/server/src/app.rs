//! The facade that everything above calls: the command line through the control socket today, HTTP tomorrow.
//!
//! Methods are named after what a person wants. They take and give domain types; whoever shapes them for a client does so
//! itself. Callers have been identified already: every call that changes something says who and from where.

mod actions;
mod events;
mod jobs;
mod keys;
mod minions;
mod status;
mod watch;

pub use actions::{ActionQuery, ActionRequest, What};
pub use events::{EventEntry, EventQuery, EventStream};
pub use jobs::{Accepted, JobDetail, JobQuery, JobSummary, ReturnEntry, RunRequest};
pub use keys::{KeyEntry, KeyMatch};
pub use minions::{MinionDetail, MinionEntry};
pub use status::{PortStatus, Status};
pub use watch::{Progress, Unanswered, Watch, Why};

pub use saltern_store::{Action, ActionFilter, Attempt, Counts, DeadLetter, Run};

pub use crate::engine::{Check, Decision, Done, Door, Explanation, Fact, Verb};
pub use crate::master::KeyVerb;

use crate::master::Master;
use saltern_core::access::Sight;
use saltern_wire::zmtp::publisher::Publisher;
use std::sync::Arc;

/// Who asks, from where, and what he may see.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The user
    pub who: String,
    /// The address or socket
    pub origin: String,
    /// His organisation; empty for the server's own administrators, who see every organisation's actions
    pub org: String,
    /// The minions he sees
    pub sight: Sight,
}

impl Caller {
    /// Somebody who may see everything.
    pub fn administrator(who: impl Into<String>, origin: impl Into<String>) -> Self {
        Self { who: who.into(), origin: origin.into(), org: String::new(), sight: Sight::All }
    }
}

impl App {
    /// How long a minion that says nothing is waited for unless told (`timeout`).
    pub fn timeout(&self) -> std::time::Duration {
        self.master.config.timeout
    }
}

/// The server as its users see it. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) master: Arc<Master>,
    pub(crate) publisher: Publisher,
    pub(crate) started: saltern_core::time::Timestamp,
}
