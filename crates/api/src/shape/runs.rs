//! Runs as JSON: where each minion stands, what was tried before, and why it stands there.

use super::Time;
use crate::app;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where one minion stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunStatus {
    /// `queued`, `sent`, `picked_up`, `completed`, `failed` or `cancelled`
    pub state: String,
    /// Why it failed or was cancelled
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it waits for while queued
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// When it is looked at next while queued
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// The number of its newest attempt; 0 if there was none
    #[serde(default)]
    pub attempt: u32,
    /// How often that attempt was sent
    #[serde(default)]
    pub deliveries: u32,
    /// The job of that attempt
    pub jid: Option<String>,
    /// When it was sent
    pub sent: Option<Time>,
    /// When the minion said that it began
    pub picked_up: Option<Time>,
    /// When it ended
    pub ended: Option<Time>,
    /// The exit code it returned
    pub retcode: Option<i64>,
    /// What is said about its end
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether a return came after it had ended
    #[serde(default)]
    pub late: bool,
}

/// One action on one minion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Which minion
    pub minion: String,
    /// Where it stands
    #[serde(flatten)]
    pub status: RunStatus,
}

/// A page of runs, in the order of minions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs
    pub runs: Vec<Run>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A run with what was tried before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunDetail {
    /// What a list shows
    #[serde(flatten)]
    pub run: Run,
    /// The attempts before the newest one, oldest first
    pub attempts: Vec<Attempt>,
}

/// An attempt that was followed by another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// Its number, from 1 on
    pub number: u32,
    /// Its job; its return is there
    pub jid: Option<String>,
    /// When it was sent
    pub sent: Option<Time>,
    /// When the minion said that it began
    pub picked_up: Option<Time>,
    /// When it ended
    pub ended: Option<Time>,
    /// Why it failed
    pub reason: Option<String>,
    /// The exit code it returned
    pub retcode: Option<i64>,
    /// What is said about its end
    pub message: Option<String>,
}

/// Why a run stands where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// Which action
    pub action: i64,
    /// The run
    #[serde(flatten)]
    pub run: Run,
    /// One sentence on why
    pub why: String,
    /// What has happened, oldest first
    pub facts: Vec<Fact>,
    /// What happens next
    pub next: String,
}

/// One thing that has happened, or is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fact {
    /// When, if that is known
    pub at: Option<Time>,
    /// What
    pub what: String,
}

impl From<app::Run> for Run {
    fn from(run: app::Run) -> Self {
        Self {
            minion: run.minion.to_string(),
            status: RunStatus {
                state: run.state.as_str().into(),
                reason: run.reason.map(|reason| reason.as_str().into()),
                waiting_for: run.waiting_for.map(|what| what.as_str().into()),
                due: run.due.map(Time),
                attempt: run.attempt,
                deliveries: run.deliveries,
                jid: run.jid.map(|jid| jid.to_string()),
                sent: run.sent.map(Time),
                picked_up: run.picked_up.map(Time),
                ended: run.ended.map(Time),
                retcode: run.retcode,
                message: run.message,
                late: run.late,
            },
        }
    }
}

impl From<app::Attempt> for Attempt {
    fn from(attempt: app::Attempt) -> Self {
        Self {
            number: attempt.number,
            jid: attempt.jid.map(|jid| jid.to_string()),
            sent: attempt.sent.map(Time),
            picked_up: attempt.picked_up.map(Time),
            ended: attempt.ended.map(Time),
            reason: attempt.reason.map(|reason| reason.as_str().into()),
            retcode: attempt.retcode,
            message: attempt.message,
        }
    }
}

impl From<app::Explanation> for Explanation {
    fn from(explanation: app::Explanation) -> Self {
        let facts = explanation.facts.into_iter().map(|fact| Fact { at: fact.at.map(Time), what: fact.what });
        Self {
            action: explanation.action.0,
            run: explanation.run.into(),
            why: explanation.why,
            facts: facts.collect(),
            next: explanation.next,
        }
    }
}
