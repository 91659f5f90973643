//! What the log says of what recurs. Events are for the owner and for those who look after the server.

use super::instants::{MISSED, REFUSED};
use crate::master::entry;
use saltern_core::ids::RecurringId;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{Counts, Fire, FireSlot, NewEvent, Recurring};

/// Told where somebody has to do something.
const NOTICE: &str = "saltern/notification/recurring";

/// A definition was created, changed or deleted by somebody.
pub(crate) fn changed(row: &Recurring, word: &str, by: &str, at: Timestamp) -> NewEvent {
    event(row, word, at, vec![("by", by.into()), ("active", row.active.into()), ("next", instant(row.next))])
}

/// Definitions of somebody who was removed belong to somebody else now; to nobody: they do not fire any more.
pub(crate) fn handed_over(ids: &[RecurringId], from: &str, to: Option<&str>, at: Timestamp) -> NewEvent {
    let body = Value::map([
        ("what", Value::from(if to.is_some() { "reassigned" } else { "stopped" })),
        ("recurring", Value::list(ids.iter().map(|id| id.0))),
        ("from", from.into()),
        ("user", to.map_or(Value::Nil, Value::from)),
    ]);
    entry(at, NOTICE.into(), body, None, None)
}

/// An instant was fired, as this action or launch.
pub(super) fn fired(
    row: &Recurring,
    slot: &FireSlot,
    work: (&'static str, i64),
    minions: usize,
    at: Timestamp,
) -> NewEvent {
    let data = vec![
        ("planned", slot.planned.rfc3339().into()),
        (work.0, work.1.into()),
        ("minions", i64::try_from(minions).unwrap_or(0).into()),
        ("skipped", slot.skipped.into()),
        ("late", slot.late.into()),
        ("next", instant(slot.next)),
    ];
    event(row, "fired", at, data)
}

/// Instants at which nothing was done, and why. What was missed is told once for all of it; what was refused is for somebody
/// to look at.
pub(super) fn not_done(row: &Recurring, slots: &[&(FireSlot, &'static str)], at: Timestamp) -> Vec<NewEvent> {
    let mut events = Vec::new();
    let missed: Vec<&FireSlot> = slots.iter().filter(|(_, outcome)| *outcome == MISSED).map(|(slot, _)| slot).collect();
    if let (Some(first), Some(last)) = (missed.first(), missed.last()) {
        let data = vec![
            ("planned", first.planned.rfc3339().into()),
            ("until", last.planned.rfc3339().into()),
            ("count", i64::try_from(missed.len()).unwrap_or(0).into()),
            ("why", last.why.as_str().into()),
        ];
        events.push(event(row, MISSED, at, data));
    }
    for (slot, outcome) in slots.iter().filter(|(_, outcome)| *outcome != MISSED) {
        let data = || {
            vec![
                ("planned", slot.planned.rfc3339().into()),
                ("why", slot.why.as_str().into()),
                ("skipped", slot.skipped.into()),
                ("next", instant(slot.next)),
            ]
        };
        events.push(event(row, outcome, at, data()));
        if *outcome == REFUSED {
            let mut told = data();
            told.push(("what", REFUSED.into()));
            events.push(entry(at, NOTICE.into(), body(row, told), None, None));
        }
    }
    events
}

/// How an instant ended that was fired.
pub(super) fn digest(row: Option<&Recurring>, fire: &Fire, counts: &Counts, at: Timestamp) -> NewEvent {
    let mut data = vec![
        ("recurring", Value::from(fire.recurring.0)),
        ("planned", fire.planned.rfc3339().into()),
        ("action", fire.action.map_or(Value::Nil, |action| action.0.into())),
        ("launch", fire.launch.map_or(Value::Nil, |launch| launch.0.into())),
        ("ok", counts.completed.into()),
        ("failed", counts.failed.into()),
        ("cancelled", counts.cancelled.into()),
        ("skipped", fire.skipped.into()),
    ];
    if let Some(row) = row {
        data.extend([("name", row.name.as_str().into()), ("user", row.owner.as_str().into())]);
    }
    entry(at, format!("saltern/recurring/{}/digest", fire.recurring), Value::map(data), None, None)
}

fn event(row: &Recurring, word: &str, at: Timestamp, data: Vec<(&'static str, Value)>) -> NewEvent {
    entry(at, format!("saltern/recurring/{}/{word}", row.id), body(row, data), None, None)
}

fn body(row: &Recurring, mut data: Vec<(&'static str, Value)>) -> Value {
    data.extend([
        ("recurring", Value::from(row.id.0)),
        ("name", row.name.as_str().into()),
        ("org", row.org.as_str().into()),
        ("user", row.owner.as_str().into()),
    ]);
    Value::map(data)
}

fn instant(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Nil, |at| at.rfc3339().into())
}
