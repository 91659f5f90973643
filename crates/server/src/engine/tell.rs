//! What the log says of actions and runs: the events that have no Salt name, and those of Salt's batches.

use crate::master::entry;
use saltern_core::ids::{ActionId, Jid, LaunchId, MinionId};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{Counts, LaunchCounts, NewEvent, RunChanged, Teller};

/// Makes the events that the store adds to its transitions.
pub(crate) struct Tags;

impl Teller for Tags {
    fn run_changed(&self, change: &RunChanged<'_>) -> Option<NewEvent> {
        if change.internal {
            return None;
        }
        let text = |text: Option<&str>| text.map_or(Value::Nil, Value::from);
        let body = Value::map([
            ("action", Value::from(change.action.0)),
            ("minion", Value::from(change.minion)),
            ("jid", change.jid.map_or(Value::Nil, Value::from)),
            ("state", change.state.as_str().into()),
            ("reason", text(change.reason.map(saltern_core::run::Reason::as_str))),
            ("waiting_for", text(change.waiting_for.map(saltern_core::run::WaitingFor::as_str))),
            ("message", text(change.message)),
        ]);
        let tag = format!("saltern/run/{}/{}", change.action, change.minion);
        Some(entry(change.at, tag, body, Some(change.minion), change.jid))
    }

    fn action_ended(&self, action: ActionId, jid: Option<Jid>, counts: &Counts, at: Timestamp) -> Vec<NewEvent> {
        let body = Value::map([
            ("action", Value::from(action.0)),
            ("jid", jid.map_or(Value::Nil, Value::from)),
            ("total", counts.total.into()),
            ("completed", counts.completed.into()),
            ("failed", counts.failed.into()),
            ("unreachable", counts.unreachable.into()),
            ("cancelled", counts.cancelled.into()),
        ]);
        vec![entry(at, format!("saltern/action/{action}/ended"), body, None, jid)]
    }

    fn launch_ended(
        &self,
        launch: LaunchId,
        head: Option<ActionId>,
        counts: &LaunchCounts,
        at: Timestamp,
    ) -> Vec<NewEvent> {
        let body = Value::map([
            ("launch", Value::from(launch.0)),
            ("action", head.map_or(Value::Nil, |action| action.0.into())),
            ("total", counts.total.into()),
            ("completed", counts.completed.into()),
            ("failed", counts.failed.into()),
            ("cancelled", counts.cancelled.into()),
        ]);
        vec![entry(at, format!("saltern/chain/{launch}/ended"), body, None, None)]
    }
}

/// `salt/batch/<jid>/start`: who is there, and who is not.
pub(super) fn batch_start(
    jid: Jid,
    available: &[MinionId],
    down: &[MinionId],
    metadata: Value,
    at: Timestamp,
) -> NewEvent {
    let body = Value::map([
        ("available_minions", Value::list(available)),
        ("down_minions", Value::list(down)),
        ("metadata", metadata),
    ]);
    entry(at, format!("salt/batch/{jid}/start"), body, None, Some(jid))
}

/// `salt/batch/<jid>/done`: who has returned, and who has not.
pub(super) fn batch_done(
    jid: Jid,
    done: &[MinionId],
    timed_out: &[MinionId],
    metadata: Value,
    at: Timestamp,
) -> NewEvent {
    let body = Value::map([
        ("done_minions", Value::list(done)),
        ("timedout_minions", Value::list(timed_out)),
        ("metadata", metadata),
    ]);
    entry(at, format!("salt/batch/{jid}/done"), body, None, Some(jid))
}

/// `saltern/action/<id>/<what>`.
pub(super) fn action(id: ActionId, what: &str, body: Value, at: Timestamp) -> NewEvent {
    entry(at, format!("saltern/action/{id}/{what}"), body, None, None)
}
