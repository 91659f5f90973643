//! What is remembered: minions and their keys, actions, jobs, runs, attempts, returns, chains and their launches, what recurs,
//! maintenance windows, the numbered event log, audit; users, groups, organisations and tokens.
//!
//! SQLite and PostgreSQL behind one [`Store`]; the only room with SQL. Every write goes through one writer that commits
//! many of them at once ([`db::Writer`]); whoever awaits a write gets its answer after the commit, so what was answered
//! is on disk. Reads go to other connections and never wait for the writer.
//!
//! This room knows no wire format: bodies are opaque bytes with an encoding number ([`Body`]), made and read by `server`.
//!
//! Read next: `db/` for the seam between the two databases, then one file per thing that is remembered.

mod actions;
mod audit;
mod banks;
mod calls;
mod chains;
mod counters;
mod counts;
mod db;
mod dead_letters;
mod error;
mod events;
mod fires;
mod functions;
mod grains;
mod groups;
mod jobs;
mod keys;
mod launches;
mod migrate;
mod mine;
mod minions;
mod organisations;
#[cfg(test)]
mod plans;
mod queue;
mod recurring;
mod requests;
mod retention;
mod returns;
mod runs;
mod servers;
mod states;
mod store;
mod teller;
mod tokens;
mod transit;
mod users;
mod verbs;
mod versions;
mod webhooks;
mod windows;
mod work;

pub use actions::{Action, ActionFilter, ActionPage, NewAction, Paused};
pub use audit::{AuditBreak, AuditCheck, AuditEntry, AuditFilter, AuditLink, link};
pub use calls::RunnerCall;
pub use chains::Chain;
pub use counters::Counter;
pub use counts::Counts;
pub use db::{Bucket, CommitStats, Location, Options};
pub use dead_letters::DeadLetter;
pub use error::Error;
pub use events::{Event, EventFilter, NewEvent};
pub use fires::{Fire, FireEvents, FireSlot};
pub use functions::FunctionDoc;
pub use grains::GrainsRow;
pub use groups::Group;
pub use jobs::{Job, JobPage, NewJob};
pub use keys::{Key, KeySlot};
pub use launches::{
    Approval, ChunkClaim, Launch, LaunchCancelled, LaunchCounts, LaunchEvents, LaunchMinion, LaunchPage, MinionMove,
    MinionState, NewLaunch, NewLaunchMinion, NewStep, NewStepRun,
};
pub use mine::MineEntry;
pub use minions::{AckMethod, Minion};
pub use organisations::{DEFAULT_ORGANISATION, Organisation};
pub use recurring::{Heir, HeirEvents, Recurring};
pub use requests::{Begun, Reply};
pub use retention::Deleted;
pub use returns::{NewReturn, Recorded, Return};
pub use runs::{Attempt, Run};
pub use servers::Neighbours;
pub use states::{Assigned, AssigneeKind, KEPT_VERSIONS, State, StateAssignment, StateVersion};
pub use store::Store;
pub use teller::{RunChanged, Teller};
pub use tokens::{Token, TokenKind};
pub use transit::{Ack, Transition};
pub use users::User;
pub use verbs::Verb;
pub use versions::{ANY_VERSION, Written};
pub use webhooks::{DeadDelivery, Webhook};
pub use windows::{Assignment, Calendar, Mode, Refresh, Schedule, WindowChange, WindowData};
pub use work::{Claim, NewRun, NewWork};

/// Result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes whose meaning belongs to the caller, with the number of their encoding.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Body {
    /// Which encoding; see `server::body`.
    pub encoding: i64,
    /// The encoded bytes.
    pub bytes: Vec<u8>,
}
