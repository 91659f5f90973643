//! Launches as JSON: the request, what each step and each minion has come to, and what is done with one.

use super::jobs::{map, seconds, texts};
use super::{Counts, Time};
use crate::app;
use saltern_core::action::WindowRule;
use saltern_core::ids::LaunchId;
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How a chain is to be launched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchRequest {
    /// What the launch is called; nothing: as the chain is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    pub name: Option<String>,
    /// On which minions all steps are done, in place of their own targets
    #[serde(default, skip_serializing_if = "Value::is_nil")]
    #[schema(schema_with = super::policy::target, required = false)]
    pub target: Value,
    /// How to read the target: Salt's `tgt_type`; nothing: `glob`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = super::policy::tgt_type, required = false)]
    pub tgt_type: Option<String>,
    /// What separates keys in a grain or pillar target, if not `:`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Other parameters for this launch, by the number of the step: `{"2": {"version": "1.4"}}`
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, BTreeMap<String, Value>>)]
    pub params: BTreeMap<usize, Value>,
    /// When it is due; nothing means now
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// Seconds after its due time in which it ends, whatever happens; nothing means as configured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<f64>,
    /// Where a minion's maintenance window is closed when it is due: begin when that opens, in place of a refusal
    #[serde(default)]
    pub in_window: bool,
    /// What happens where the window is closed again when a minion's turn comes: `hold` (usual) or `fail`
    #[serde(default)]
    #[schema(schema_with = super::policy::window_rule, required = false)]
    pub window: WindowRule,
    /// For what reason maintenance windows are not asked; for admins of the minions' organisation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub override_window: Option<String>,
}

/// Whom each step of a launch would be for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaunchPreview {
    /// The steps, in order
    pub steps: Vec<StepPreview>,
    /// Minions on which a step cannot be done: they would take no part
    pub refused: Vec<StepRefusal>,
}

/// Whom one step would be for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepPreview {
    /// Its number
    pub step: usize,
    /// The minions
    pub minions: Vec<String>,
}

/// A minion that cannot take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepRefusal {
    /// Which minion
    pub minion: String,
    /// The number of the step that cannot be done there
    pub step: usize,
    /// Why not
    pub reason: String,
}

/// A page of launches, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaunchList {
    /// The launches
    pub launches: Vec<Launch>,
    /// What `before` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// One execution of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Launch {
    /// Its number
    pub id: i64,
    /// The number of the chain it was made from, which may be gone
    pub chain: Option<i64>,
    /// What it is called
    pub name: String,
    /// Who launched it
    pub user: String,
    /// The organisation of whoever launched it
    pub org: String,
    /// `waiting` while it is not due, then `running` until it has `ended`
    pub state: String,
    /// When it was launched
    pub created: Time,
    /// When it is due
    pub due: Time,
    /// When it ends, whatever happens
    pub deadline: Time,
    /// When its last minion ended; nothing while any is open
    pub ended: Option<Time>,
    /// When and by whom it was cancelled
    pub cancelled: Option<Cancelled>,
    /// Whether what ran was killed
    pub stopped: bool,
    /// Who has said yes to which step
    pub approvals: Vec<StepApproval>,
    /// How many minions stand where
    pub counts: LaunchCounts,
}

/// When and by whom a launch was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cancelled {
    /// When
    pub at: Time,
    /// By whom
    pub by: String,
}

/// Somebody's yes to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepApproval {
    /// The step's number
    pub step: i64,
    /// When
    pub at: Time,
    /// By whom
    pub by: String,
}

/// How many minions of a launch stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaunchCounts {
    /// All
    pub total: i64,
    /// Not at the end of their part
    pub open: i64,
    /// Ended well
    pub completed: i64,
    /// Ended badly
    pub failed: i64,
    /// Ended because somebody cancelled it
    pub cancelled: i64,
}

/// A launch with its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaunchDetail {
    /// What a list shows
    #[serde(flatten)]
    pub launch: Launch,
    /// Its steps, in order, without those that concern none of the minions you see
    pub steps: Vec<LaunchStep>,
}

/// One step of a launch: an action with a run on each of its minions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LaunchStep {
    /// Its number
    pub step: i64,
    /// What it is called
    pub name: String,
    /// Its type
    #[serde(rename = "type")]
    pub kind: String,
    /// Its parameters, as they are for this launch
    #[schema(value_type = Object)]
    pub params: Value,
    /// The target expression it was resolved from
    #[schema(value_type = Value)]
    pub target: Value,
    /// The target's type
    pub tgt_type: String,
    /// How much of the step before must have ended before it begins: `each`, `all` or a part such as `80%`
    pub barrier: String,
    /// How many runs of the step before may have failed, such as `2` or `10%`; nothing: any number
    pub budget: Option<String>,
    /// After what it is done: `ok`, `failed` or `always`
    pub after: String,
    /// How long it may take, in seconds
    pub limit: f64,
    /// Whether it may be done again where it was interrupted
    pub repeatable: bool,
    /// The question that needs a yes before it begins
    pub approval: Option<String>,
    /// Who said yes
    pub approved: Option<StepApproval>,
    /// The id of its action, which has its runs
    pub action: i64,
    /// The id of its job, which has its returns
    pub jid: Option<String>,
    /// As of every action: `open` while any run is; then `failed`, `cancelled` or `completed`
    pub state: String,
    /// How many runs stand where
    pub counts: Counts,
}

/// A page of the minions of a launch, in the order of ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaunchMinionList {
    /// The minions
    pub minions: Vec<LaunchMinion>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// Where a launch stands on one minion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaunchMinion {
    /// Which minion
    pub minion: String,
    /// `waiting` before the next chunk, `sent` while one is under way, `restarting`, `asking` where it stands, or `ended`
    pub state: String,
    /// The chunk of its plan that it is at, from 1 on
    pub chunk: i64,
    /// Whether a step has failed there
    pub failed: bool,
    /// Since when it stands so
    pub since: Time,
    /// How it ended: `completed`, `failed` or `cancelled`
    pub outcome: Option<String>,
    /// What is said about where it stands
    pub message: Option<String>,
}

/// A step to say yes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// The step's number
    #[schema(minimum = 1, maximum = 200)]
    pub step: usize,
}

/// What was done with a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaunchDone {
    /// With which launch
    pub launch: i64,
    /// What
    pub note: String,
}

impl LaunchRequest {
    /// The domain's request, if this is one.
    pub(crate) fn read(self) -> Result<app::LaunchRequest, Error> {
        let target = match (self.target, self.tgt_type.as_deref()) {
            (Value::Nil, Some(_)) => {
                return Err(Error::Invalid("tgt_type says how to read target: give that, too".into()));
            }
            (Value::Nil, None) => None,
            (target, kind) => {
                let target = Target::read(kind.unwrap_or("glob"), &target, self.delimiter.as_deref());
                Some(target.map_err(|error| Error::Invalid(error.to_string()))?)
            }
        };
        let params = self.params.into_iter().map(|(number, params)| {
            let params = map(&format!("params of step {number}"), params)?;
            Ok((number, params.unwrap_or_default()))
        });
        Ok(app::LaunchRequest {
            name: self.name,
            target,
            params: params.collect::<Result<_, Error>>()?,
            due: self.due.map(|due| due.0),
            deadline: seconds("deadline", self.deadline)?,
            in_window: self.in_window,
            window: self.window,
            override_window: self.override_window,
        })
    }
}

impl Launch {
    /// A launch as it stands at this time.
    pub(crate) fn of(launch: app::Launch, now: Timestamp) -> Self {
        let state = match launch.ended {
            Some(_) => "ended",
            None if launch.due > now => "waiting",
            None => "running",
        };
        let app::LaunchCounts { total, open, completed, failed, cancelled } = launch.counts;
        Self {
            id: launch.id.0,
            chain: launch.chain.map(|chain| chain.0),
            name: launch.name,
            user: launch.initiator,
            org: launch.org,
            state: state.into(),
            created: launch.created.into(),
            due: launch.due.into(),
            deadline: launch.deadline.into(),
            ended: launch.ended.map(Time),
            cancelled: launch.cancelled.map(|(at, by)| Cancelled { at: at.into(), by }),
            stopped: launch.stopped,
            approvals: launch.approvals.into_iter().map(Into::into).collect(),
            counts: LaunchCounts { total, open, completed, failed, cancelled },
        }
    }
}

impl LaunchDetail {
    /// A launch as it stands at this time.
    pub(crate) fn of(app::LaunchView { launch, steps }: app::LaunchView, now: Timestamp) -> Self {
        let launch = Launch::of(launch, now);
        let steps = steps.into_iter().map(|(step, action)| {
            let number = action.new.step.unwrap_or_default();
            let action = super::Action::from(action);
            LaunchStep {
                step: number,
                name: step.describe(),
                barrier: step.barrier.to_string(),
                budget: step.budget.map(|budget| budget.to_string()),
                after: step.after.as_str().into(),
                limit: step.limit().as_secs_f64(),
                repeatable: step.is_repeatable(),
                approved: launch.approvals.iter().find(|approval| approval.step == number).cloned(),
                approval: step.approval,
                kind: step.kind,
                params: Value::Map(step.params),
                target: action.target,
                tgt_type: action.tgt_type,
                action: action.id,
                jid: action.jid,
                state: action.state,
                counts: action.counts,
            }
        });
        Self { steps: steps.collect(), launch }
    }
}

impl From<app::Approval> for StepApproval {
    fn from(approval: app::Approval) -> Self {
        Self { step: approval.step, at: approval.at.into(), by: approval.by }
    }
}

impl From<app::LaunchMinion> for LaunchMinion {
    fn from(row: app::LaunchMinion) -> Self {
        Self {
            minion: row.minion.to_string(),
            state: row.state.as_str().into(),
            chunk: row.chunk,
            failed: row.failed,
            since: row.since.into(),
            outcome: row.outcome,
            message: row.message,
        }
    }
}

impl From<app::Preview> for LaunchPreview {
    fn from(preview: app::Preview) -> Self {
        let steps = preview.steps.iter().enumerate();
        let refused = preview.refused.into_iter();
        Self {
            steps: steps.map(|(index, minions)| StepPreview { step: index + 1, minions: texts(minions) }).collect(),
            refused: refused
                .map(|(minion, step, reason)| StepRefusal { minion: minion.to_string(), step, reason })
                .collect(),
        }
    }
}

impl From<app::LaunchDone> for LaunchDone {
    fn from(done: app::LaunchDone) -> Self {
        Self { launch: done.launch.0, note: done.note }
    }
}

/// Reads the number of a launch from a path or a query.
pub(crate) fn read_launch_id(text: &str) -> Result<LaunchId, Error> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(LaunchId).ok_or_else(|| Error::Invalid(format!("{text:?} is not the number of a launch")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(json: &str) -> Result<app::LaunchRequest, String> {
        let request: LaunchRequest = serde_json::from_str(json).map_err(|error| error.to_string())?;
        request.read().map_err(|error| error.to_string())
    }

    #[test]
    fn a_launch_needs_nothing() {
        let request = read("{}").unwrap();
        assert!(request.name.is_none() && request.target.is_none() && request.due.is_none());
        assert!(request.deadline.is_none() && request.params.is_empty());
    }

    #[test]
    fn a_launch_may_say_whom_when_and_with_what() {
        let request = read(
            r#"{"name": "x", "target": ["web1", "web2"], "tgt_type": "list", "params": {"2": {"version": "1.4"}},
                "due": "2026-12-01T04:00:00+01:00", "deadline": 90}"#,
        )
        .unwrap();
        assert_eq!(request.target.unwrap().to_string(), "list web1,web2");
        assert_eq!(request.params[&2].get("version").and_then(Value::as_str), Some("1.4"));
        assert_eq!(request.deadline, Some(Duration::from_secs(90)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in [
            r#"{"tgt_type": "glob"}"#,
            r#"{"target": "*", "tgt_type": "colour"}"#,
            r#"{"params": {"two": {}}}"#,
            r#"{"params": {"2": []}}"#,
            r#"{"deadline": -1}"#,
            r#"{"due": "tomorrow"}"#,
            r#"{"at": "2026-12-01T04:00:00Z"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_launch_has_the_number_it_was_given() {
        assert_eq!(read_launch_id("7").unwrap(), LaunchId(7));
        for bad in ["", "0", "-7", "x", "99999999999999999999"] {
            assert!(read_launch_id(bad).is_err(), "{bad}");
        }
    }
}
