//! An action as the engine works with it: read once from its row, shared by all its runs.

use super::Request;
use super::admission::function;
use super::chain::CARRIER;
use crate::Error;
use saltern_core::action::Policy;
use saltern_core::action::types::{self, ActionType, Call, Ends};
use saltern_core::ids::{ActionId, Jid, LaunchId};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{Action, NewAction};
use saltern_wire::load::{Fun, kwargs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a machine may take to come back from a reboot, unless the action says.
const REBOOT_LIMIT: Duration = Duration::from_secs(6 * 3600);

/// An action that is being carried out.
pub(crate) struct Work {
    pub(crate) id: ActionId,
    pub(crate) kind: &'static dyn ActionType,
    pub(crate) params: Map,
    pub(crate) fun: Fun,
    pub(crate) arg: Vec<Value>,
    pub(crate) target: Target,
    pub(crate) user: String,
    pub(crate) ret: String,
    pub(crate) metadata: Option<Map>,
    pub(crate) policy: Policy,
    /// Whether it is housekeeping of the server itself
    pub(crate) internal: bool,
    /// The launch that it carries a part of
    pub(crate) launch: Option<LaunchId>,
    pub(crate) created: Timestamp,
    pub(crate) due: Timestamp,
    pub(crate) total: usize,
    /// The job of first attempts, once there is one
    jid: Mutex<Option<Jid>>,
}

impl Work {
    /// Reads an action's row.
    pub(crate) fn read(action: &Action) -> Result<Arc<Self>, Error> {
        let new = &action.new;
        let broken = |what: &str| Error::Internal(format!("action {} cannot be read: {what}", action.id));
        let value = |text: &str| serde_json::from_str::<Value>(text).map_err(|_| broken("its JSON is broken"));
        let map = |text: &str| Ok::<_, Error>(value(text)?.as_map().cloned().unwrap_or_default());
        let arg = value(&new.arg)?.as_list().map(<[Value]>::to_vec).unwrap_or_default();
        let target = Target::read(&new.target_type, &value(&new.target)?, None).map_err(|_| broken("its target"))?;
        Ok(Arc::new(Self {
            id: action.id,
            kind: kind(&new.kind),
            params: map(&new.params)?,
            fun: functions(&new.fun),
            arg,
            target,
            user: new.initiator.clone(),
            ret: new.ret.clone(),
            metadata: new.metadata.as_deref().map(map).transpose()?,
            policy: new.policy.clone(),
            internal: new.internal && new.launch.is_none(),
            launch: new.launch.filter(|_| new.step.is_none()),
            created: new.created,
            due: new.due,
            total: usize::try_from(action.counts.total).unwrap_or(0),
            jid: Mutex::new(action.jid),
        }))
    }

    /// What was just stored.
    pub(super) fn new(
        id: ActionId,
        new: &NewAction,
        request: &Request,
        call: Call,
        total: usize,
        jid: Option<Jid>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            kind: request.kind,
            params: request.params.clone(),
            fun: functions(&new.fun),
            arg: arguments(call),
            target: request.target.clone(),
            user: request.who.clone(),
            ret: request.ret.clone(),
            metadata: request.metadata.clone(),
            policy: request.policy.clone(),
            internal: new.internal && new.launch.is_none(),
            launch: new.launch.filter(|_| new.step.is_none()),
            created: new.created,
            due: new.due,
            total,
            jid: Mutex::new(jid),
        })
    }

    /// The job of its first attempts.
    pub(crate) fn jid(&self) -> Option<Jid> {
        *self.jid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_jid(&self, jid: Jid) {
        self.jid.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(jid);
    }

    /// What was asked to be kept with it.
    pub(super) fn metadata_value(&self) -> Value {
        Value::Map(self.metadata.clone().unwrap_or_default())
    }

    /// How long one attempt may take.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.policy.job_timeout.or(self.ends_by_boot().then_some(REBOOT_LIMIT))
    }

    /// Whether another boot id ends it, and not a return.
    pub(crate) fn ends_by_boot(&self) -> bool {
        self.kind.ends(&self.params) == Ends::ByBoot
    }

    /// Whether the agent may be gone before it can return it.
    pub(super) fn may_end_with_agent(&self) -> bool {
        self.kind.ends(&self.params) == Ends::ByReturnOrAgentStart
    }

    /// Whether it may only start while its minions may be changed.
    pub(super) fn is_restricted(&self) -> bool {
        !self.internal && self.kind.is_restricted(&self.params)
    }
}

#[cfg(test)]
impl Work {
    /// `test.ping` for everybody.
    pub(crate) fn sample() -> Arc<Self> {
        Arc::new(Self {
            id: ActionId(1),
            kind: function(),
            params: Map::new(),
            fun: Fun::from("test.ping"),
            arg: Vec::new(),
            target: Target::list(["a"]),
            user: "root".into(),
            ret: String::new(),
            metadata: None,
            policy: Policy::default(),
            internal: false,
            launch: None,
            created: Timestamp(0),
            due: Timestamp(0),
            total: 1,
            jid: Mutex::new(None),
        })
    }
}

/// The type of this name. What a minion did by itself has none of ours; it is judged as a function is.
fn kind(name: &str) -> &'static dyn ActionType {
    if name == CARRIER.name() { &CARRIER } else { types::find(name).unwrap_or_else(function) }
}

/// A call's arguments as a publication has them.
pub(super) fn arguments(call: Call) -> Vec<Value> {
    let mut arg = call.arg;
    if !call.kwarg.is_empty() {
        arg.push(kwargs(call.kwarg));
    }
    arg
}

/// Function names as rows have them: joined by commas.
pub(crate) fn functions(names: &str) -> Fun {
    match names.split(',').collect::<Vec<_>>().as_slice() {
        [one] => Fun::from(*one),
        many => Fun::Many(many.iter().map(|name| (*name).into()).collect()),
    }
}

/// JSON text of a value.
pub(crate) fn json(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
