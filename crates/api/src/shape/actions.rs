//! Actions as JSON: the request, the list, the detail, and the types there are.

use super::jobs::{glob, map, seconds, texts};
use super::policy::PolicyShape;
use super::{RunDetail, Time};
use crate::app;
use saltern_core::action::Policy;
use saltern_core::action::types::{self, Param};
use saltern_core::ids::{ActionId, MinionId};
use saltern_core::target::Target;
use saltern_core::value::Value;
use saltern_server::Error;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What somebody wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// The action's type
    #[serde(rename = "type")]
    pub kind: String,
    /// Its parameters
    #[serde(default, skip_serializing_if = "Value::is_nil")]
    #[schema(value_type = Option<Object>)]
    pub params: Value,
    /// On which minions: text, or a list where the type takes one
    #[schema(schema_with = super::policy::target)]
    pub target: Value,
    /// How to read the target: Salt's `tgt_type`
    #[serde(default = "glob")]
    #[schema(schema_with = super::policy::tgt_type, required = false)]
    pub tgt_type: String,
    /// What separates keys in a grain or pillar target, if not `:`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// What it is called in lists; nothing means what it does
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The rules it is carried out by
    #[serde(default)]
    #[schema(value_type = PolicyShape)]
    pub policy: Policy,
    /// When it is due; nothing means now
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// Seconds after its due time in which it ends, whatever happens; nothing means as configured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<f64>,
    /// Copied into the job and every return
    #[serde(default, skip_serializing_if = "Value::is_nil")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Value,
    /// Returners that minions call themselves
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ret: String,
    /// Whether it begins paused
    #[serde(default)]
    pub paused: bool,
    /// Where a minion's maintenance window is closed when it is due: start when that opens, in place of a refusal
    #[serde(default)]
    pub in_window: bool,
}

/// An action that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Created {
    /// The action's id
    pub id: i64,
    /// The job's id; nothing as long as it is not due
    pub jid: Option<String>,
    /// The minions it is for
    pub minions: Vec<String>,
    /// Names of a list target that no accepted minion has
    #[serde(default)]
    pub missing: Vec<String>,
}

/// A page of actions, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionList {
    /// The actions
    pub actions: Vec<Action>,
    /// What `before` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// An action in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Action {
    /// Its id
    pub id: i64,
    /// Its type
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is called
    pub name: String,
    /// `open` while any run is; then `failed` if any failed, `cancelled` if any was cancelled, else `completed`
    pub state: String,
    /// The function; several are joined by commas
    pub fun: String,
    /// The target expression
    #[schema(value_type = Value)]
    pub target: Value,
    /// The target's type
    pub tgt_type: String,
    /// Who asked
    pub user: String,
    /// When it was accepted
    pub created: Time,
    /// When it is due
    pub due: Time,
    /// When it ends, whatever happens
    pub deadline: Time,
    /// When its last run ended; nothing while any is open
    pub ended: Option<Time>,
    /// The job of its first attempts; nothing as long as it is not due
    pub jid: Option<String>,
    /// How many runs stand where
    pub counts: Counts,
    /// Since when, by whom and why it is paused
    pub paused: Option<Pause>,
    /// When it was archived
    pub archived: Option<Time>,
    /// Whether it began late because the server was down
    pub late: bool,
    /// Whether it is housekeeping of the server itself
    pub internal: bool,
    /// The launch of a chain that it belongs to
    #[serde(default)]
    pub launch: Option<i64>,
    /// Which step of that launch it is; nothing for one that carries steps to minions
    #[serde(default)]
    pub step: Option<i64>,
}

/// How many runs of an action stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// All
    pub total: i64,
    /// Not sent
    pub queued: i64,
    /// Sent or picked up
    pub running: i64,
    /// Ended well
    pub completed: i64,
    /// Ended badly
    pub failed: i64,
    /// Those of the failed whose minion could not be reached
    pub unreachable: i64,
    /// Ended before they were sent
    pub cancelled: i64,
}

/// Since when, by whom and why an action is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pause {
    /// Since when
    pub at: Time,
    /// By whom
    pub by: String,
    /// Why
    pub why: String,
}

/// An action with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionDetail {
    /// What a list shows
    #[serde(flatten)]
    pub action: Action,
    /// The parameters
    #[schema(value_type = Value)]
    pub params: Value,
    /// The function's arguments
    #[schema(value_type = Value)]
    pub arg: Value,
    /// The rules it is carried out by
    #[schema(value_type = PolicyShape)]
    pub policy: Policy,
    /// What was looked at when it was accepted, and what was found
    #[schema(value_type = Value)]
    pub decision: Value,
    /// Copied into the job and every return
    #[schema(value_type = Value)]
    pub metadata: Value,
    /// Returners that minions call themselves
    pub ret: String,
    /// Where the request came from
    pub origin: String,
    /// The organisation of whoever asked
    pub org: String,
    /// Its jobs, oldest first: one for the first attempts, one for each retry
    pub jobs: Vec<String>,
}

/// The action types there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionTypeList {
    /// In the order they are offered
    pub types: Vec<ActionType>,
}

/// An action type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionType {
    /// The word for it
    pub name: String,
    /// What people read
    pub title: String,
    /// One line that explains it
    pub help: String,
    /// What it can be told
    pub params: Vec<ActionParam>,
}

/// A parameter of an action type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionParam {
    /// Its name
    pub name: String,
    /// What it means
    pub help: String,
    /// Whether it must be given
    pub required: bool,
    /// `text`, `body`, `names`, `number`, `flag`, `list` or `map`
    pub kind: String,
}

impl ActionRequest {
    /// The domain's request, if this is one.
    pub(crate) fn read(self) -> Result<app::ActionRequest, Error> {
        let target = Target::read(&self.tgt_type, &self.target, self.delimiter.as_deref())
            .map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(app::ActionRequest {
            what: app::What::Typed { kind: self.kind, params: map("params", self.params)?.unwrap_or_default() },
            target,
            name: self.name,
            policy: self.policy,
            due: self.due.map(|due| due.0),
            deadline: seconds("deadline", self.deadline)?,
            metadata: map("metadata", self.metadata)?,
            ret: self.ret,
            paused: self.paused,
            in_window: self.in_window,
        })
    }
}

impl ActionTypeList {
    /// All there are.
    pub(crate) fn all() -> Self {
        let param = |param: &Param| ActionParam {
            name: param.name.into(),
            help: param.help.into(),
            required: param.required,
            kind: param.kind.as_str().into(),
        };
        let types = types::ALL.iter().map(|kind| ActionType {
            name: kind.name().into(),
            title: kind.title().into(),
            help: kind.help().into(),
            params: kind.params().iter().map(param).collect(),
        });
        Self { types: types.collect() }
    }
}

impl ActionDetail {
    pub(crate) fn of(action: app::Action, jobs: Vec<String>) -> Self {
        let new = &action.new;
        Self {
            params: value(&new.params),
            arg: value(&new.arg),
            policy: new.policy.clone(),
            decision: value(&new.decision),
            metadata: new.metadata.as_deref().map(value).unwrap_or_default(),
            ret: new.ret.clone(),
            origin: new.origin.clone(),
            org: new.org.clone(),
            jobs,
            action: action.into(),
        }
    }
}

impl RunDetail {
    pub(crate) fn of(run: app::Run, attempts: Vec<app::Attempt>) -> Self {
        Self { run: run.into(), attempts: attempts.into_iter().map(Into::into).collect() }
    }
}

impl From<app::Accepted> for Created {
    fn from(accepted: app::Accepted) -> Self {
        Self {
            id: accepted.action.0,
            jid: accepted.jid.map(|jid| jid.to_string()),
            minions: texts(&accepted.minions),
            missing: accepted.missing,
        }
    }
}

impl From<app::Action> for Action {
    fn from(action: app::Action) -> Self {
        let (new, counts) = (action.new, Counts::from(action.counts));
        Self {
            id: action.id.0,
            kind: new.kind,
            name: new.name,
            state: state(action.ended.is_some(), counts).into(),
            fun: new.fun,
            target: value(&new.target),
            tgt_type: new.target_type,
            user: new.initiator,
            created: new.created.into(),
            due: new.due.into(),
            deadline: new.deadline.into(),
            ended: action.ended.map(Time),
            jid: action.jid.map(|jid| jid.to_string()),
            counts,
            paused: action.paused.map(|paused| Pause { at: paused.at.into(), by: paused.by, why: paused.why }),
            archived: action.archived.map(Time),
            late: new.late,
            internal: new.internal,
            launch: new.launch.map(|launch| launch.0),
            step: new.step,
        }
    }
}

impl From<app::Counts> for Counts {
    fn from(counts: app::Counts) -> Self {
        let app::Counts { total, queued, running, completed, failed, unreachable, cancelled } = counts;
        Self { total, queued, running, completed, failed, unreachable, cancelled }
    }
}

const fn state(ended: bool, counts: Counts) -> &'static str {
    match counts {
        _ if !ended => "open",
        Counts { failed: 1.., .. } => "failed",
        Counts { cancelled: 1.., .. } => "cancelled",
        _ => "completed",
    }
}

/// What the store keeps as JSON.
fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// Reads an action id from a path or a query.
pub(crate) fn read_action_id(text: &str) -> Result<ActionId, Error> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(ActionId).ok_or_else(|| Error::Invalid(format!("{text:?} is not an action id: it is a number")))
}

/// Reads a minion id from a path, a query or a list.
pub(crate) fn read_minion(text: &str) -> Result<MinionId, Error> {
    MinionId::new(text).map_err(|error| Error::Invalid(format!("{text:?} is not a minion id: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::action::Offline;
    use std::time::Duration;

    fn read(json: &str) -> Result<app::ActionRequest, String> {
        let request: ActionRequest = serde_json::from_str(json).map_err(|error| error.to_string())?;
        request.read().map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_needs_no_more_than_type_and_target() {
        let request = read(r#"{"type": "reboot", "target": "web*"}"#).unwrap();
        assert_eq!(request.target.to_string(), "glob web*");
        assert_eq!((request.policy, request.due, request.paused), (Policy::default(), None, false));
        assert!(matches!(request.what, app::What::Typed { kind, params } if kind == "reboot" && params.is_empty()));
    }

    #[test]
    fn a_request_may_say_when_and_how() {
        let request = read(
            r#"{"type": "reboot", "target": "*", "policy": {"offline": "hold"}, "due": "2026-12-01T04:00:00+01:00", "deadline": 90.5}"#,
        )
        .unwrap();
        assert_eq!(request.policy.offline, Offline::Hold);
        assert_eq!(request.due.map(saltern_core::time::Timestamp::rfc3339).as_deref(), Some("2026-12-01T03:00:00Z"));
        assert_eq!(request.deadline, Some(Duration::from_millis(90_500)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in [
            r#"{"type": "reboot"}"#,
            r#"{"type": "reboot", "target": "*", "parms": {}}"#,
            r#"{"type": "reboot", "target": "*", "params": [1]}"#,
            r#"{"type": "reboot", "target": "*", "policy": {"offlien": "hold"}}"#,
            r#"{"type": "reboot", "target": "*", "due": "tomorrow"}"#,
            r#"{"type": "reboot", "target": "*", "deadline": -1}"#,
            r#"{"type": "reboot", "target": "*", "deadline": 0}"#,
            r#"{"type": "reboot", "target": "*", "deadline": 1e300}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_action_is_open_until_its_last_run_has_ended() {
        let counts = Counts { total: 3, completed: 1, failed: 1, cancelled: 1, ..Counts::default() };
        assert_eq!(state(false, counts), "open");
        assert_eq!(state(true, counts), "failed");
        assert_eq!(state(true, Counts { failed: 0, ..counts }), "cancelled");
        assert_eq!(state(true, Counts { failed: 0, cancelled: 0, ..counts }), "completed");
    }

    #[test]
    fn every_type_tells_its_parameters() {
        let types = ActionTypeList::all().types;
        let install = types.iter().find(|kind| kind.name == "package_install").unwrap();
        assert!(install.params.iter().any(|param| param.name == "packages" && param.required && param.kind == "names"));
    }

    #[test]
    fn ids_are_numbers() {
        assert_eq!(read_action_id("7").unwrap(), ActionId(7));
        for bad in ["", "0", "-1", "x", "7x", "99999999999999999999"] {
            assert!(read_action_id(bad).is_err(), "{bad}");
        }
    }
}
