//! The facade that everything above calls: the command line through the control socket today, HTTP tomorrow.
//!
//! Methods are named after what a person wants. They take and give domain types; whoever shapes them for a client does so
//! itself. Callers have been identified already: every call that changes something says who and from where.

mod actions;
mod audit;
mod banks;
mod cache;
mod calls;
mod chains;
mod events;
mod functions;
mod groups;
mod jobs;
mod keys;
mod launches;
mod minions;
mod organisations;
mod recurring;
mod requests;
mod sign_in;
mod states;
mod status;
mod tokens;
mod users;
mod viewer;
mod watch;
mod webhooks;
mod windows;

pub use actions::{ActionQuery, ActionRequest, What};
pub use audit::AuditQuery;
pub use cache::Cached;
pub use calls::{CallSummary, Called};
pub use chains::{ChainDraft, draft_of, steps_of};
pub(crate) use events::Hub;
pub use events::{Batch, Chunk, EventEntry, EventQuery, EventStream, Heard, Shaped};
pub use functions::{Refreshed, RefreshedKind};
pub use groups::GroupEntry;
pub use jobs::{Accepted, JobDetail, JobQuery, JobSummary, ReturnEntry, RunRequest};
pub use keys::{KeyEntry, KeyMatch, KeyPair};
pub use launches::{LaunchQuery, LaunchRequest, LaunchView};
pub use minions::{MinionDetail, MinionEntry};
pub use recurring::{FireEntry, RecurringDone, RecurringDraft, RecurringFilter, RecurringVerb, RecurringView};
pub use requests::{KeptAnswer, Repeated};
pub use sign_in::{Identity, Session, SignedIn};
pub use states::{Assignee, StateDraft, StateEntry};
pub use status::{PortStatus, Status};
pub use tokens::{NewToken, TokenEntry};
pub use users::{UserChange, UserEntry};
pub use watch::{Patience, Progress, Unanswered, Watch, Why};
pub use webhooks::{NewWebhook, WebhookChange, WebhookEntry, WebhookFilter, WebhookTest, WhichDead};
pub use windows::{
    CalendarDraft, FeedFilter, MinionWindow, MinionWindows, ScheduleDraft, ScheduleEntry, Subject, WindowEdit,
    WindowsChanged,
};

pub use saltern_store::{
    ANY_VERSION, Action, ActionFilter, Approval, AssigneeKind, Assignment, Attempt, AuditCheck, AuditEntry,
    AuditFilter, Calendar, Chain, Counts, DeadDelivery, DeadLetter, Fire, FunctionDoc, Group, Launch, LaunchCounts,
    LaunchMinion, MinionState, Mode, Organisation, Recurring, Run, Schedule, State, StateVersion, TokenKind,
};

pub use crate::engine::{CatchUp, EntityKind, EntityRef, Overlap, PlannedFire, RecurringWhat};
pub use crate::engine::{
    Check, Decision, Done, Door, Explanation, Fact, LaunchDone, LaunchVerb, Preview, Strategy, Touched, Verb,
};
pub use crate::master::KeyVerb;

use crate::access::Person;
use crate::clock;
use crate::config::{Config, Secret};
use crate::master::Master;
use crate::webhooks::Webhooks;
use saltern_core::access::{Rights, Sight};
use saltern_wire::zmtp::publisher::Publisher;
use std::sync::Arc;

/// Who asks, from where, and what he may.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The user
    pub who: String,
    /// The address or socket
    pub origin: String,
    /// What he may do, on the minions there are now
    pub rights: Arc<Rights>,
    /// What he showed, for whoever has to ask again later
    pub(crate) token: Option<Secret>,
    /// Who was vouched for; nothing: whoever may open the control socket
    pub(crate) person: Option<Person>,
}

impl Caller {
    /// Somebody who may do everything: whoever may open the control socket.
    pub fn administrator(who: impl Into<String>, origin: impl Into<String>) -> Self {
        let who = who.into();
        Self::with_rights(origin, Rights::administrator(who.as_str()))
    }

    /// Somebody with these rights.
    pub fn with_rights(origin: impl Into<String>, rights: Rights) -> Self {
        Self { who: rights.user.clone(), origin: origin.into(), rights: Arc::new(rights), token: None, person: None }
    }

    /// Whether he is who he is as long as the server runs: no token of his can end.
    pub(crate) const fn is_permanent(&self) -> bool {
        self.token.is_none()
    }

    /// The minions he sees.
    pub fn sight(&self) -> &Sight {
        &self.rights.sees
    }

    /// An entry of the audit log for what he does.
    pub(crate) fn audit(&self, what: &str, subject: &str, detail: serde_json::Value) -> AuditEntry {
        AuditEntry {
            at: clock::now(),
            who: self.who.clone(),
            origin: self.origin.clone(),
            what: what.to_owned(),
            subject: subject.to_owned(),
            detail: detail.to_string(),
        }
    }
}

impl App {
    /// What the operator has set.
    pub fn config(&self) -> &Config {
        &self.master.config
    }

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
    pub(crate) hub: Hub,
    pub(crate) webhooks: Webhooks,
    pub(crate) started: saltern_core::time::Timestamp,
}
