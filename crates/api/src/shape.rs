//! The JSON of the API: what clients send and get, as types that both ends use.
//!
//! Hand-written beside the domain types, on purpose: a field here is a promise to programs, and changing one in `core` must
//! not change it here. Times are RFC 3339 in UTC with microseconds. What JSON cannot carry (bytes that are not UTF-8, keys
//! that are not text) is written as Python's `json` would, see `core::value`.

mod actions;
mod dead_letters;
mod events;
mod jobs;
mod keys;
mod minions;
mod runs;
mod status;
mod time;
mod verbs;

pub use actions::{
    Action, ActionDetail, ActionList, ActionParam, ActionRequest, ActionType, ActionTypeList, Counts, Created, Pause,
};
pub(crate) use actions::{read_action_id, read_minion};
pub use dead_letters::{DeadLetter, DeadLetterList};
pub use events::Event;
pub(crate) use jobs::read_jid;
pub use jobs::{Accepted, Functions, Job, JobDetail, JobList, JobStep, Return, RunRequest, Unanswered, Why};
pub use keys::{Key, KeyDecision, KeyList, KeyResult};
pub use minions::{Minion, MinionChange, MinionDetail, MinionList};
pub use runs::{Attempt, Explanation, Fact, Run, RunDetail, RunList, RunStatus};
pub use status::{Port, Status};
pub use time::Time;
pub(crate) use verbs::Order;
pub use verbs::{ActionVerb, Done, Outcome, VerbRequest, VerbResult};

use serde::{Deserialize, Serialize};

/// An error as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A stable word: `invalid`, `not_found`, `conflict`, `busy`, `internal` …
    pub code: String,
    /// One sentence
    pub message: String,
    /// What to do about it
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

/// The body of every answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error
    pub error: Problem,
}
