//! `_minion_event`: what a minion tells without being asked.

use super::{Error, field};
use bytestring::ByteString;
use saltern_core::value::{Map, Value};

/// One event, or a batch of them.
#[derive(Clone, Debug)]
pub struct MinionEvent {
    /// Prefix for the tags; only a registered syndic may set one.
    pub pretag: Option<ByteString>,
    /// The events in order.
    pub events: Vec<Event>,
    /// Whether they came as a batch (beacons, syndics). Stock masters filter only those; a server should filter all.
    pub is_batch: bool,
}

/// An event ready for the bus.
#[derive(Clone, Debug)]
pub struct Event {
    /// The tag as sent.
    pub tag: ByteString,
    /// The body: the whole load for a single event, the entry's own `data` for one of a batch.
    pub body: Value,
    holds_load: bool,
}

impl MinionEvent {
    /// Reads a load whose channel fields were taken out.
    pub fn parse(load: Map) -> Result<Self, Error> {
        let pretag = field::text_if_present(&load, "pretag")?;
        let Some(batch) = field::present(&load, "events") else {
            let event = Event { tag: field::text(&load, "tag")?, body: Value::Map(load), holds_load: true };
            return Ok(Self { pretag, events: vec![event], is_batch: false });
        };
        let entries = batch.as_list().ok_or(Error::Wrong { field: "events", wanted: "a list" })?;
        let events = entries.iter().map(Event::of_batch).collect::<Result<_, _>>()?;
        Ok(Self { pretag, events, is_batch: true })
    }
}

impl Event {
    /// What the minion said, without the load around it.
    pub fn data(&self) -> &Value {
        if self.holds_load { self.body.get("data").unwrap_or(&Value::Nil) } else { &self.body }
    }

    fn of_batch(entry: &Value) -> Result<Self, Error> {
        let entry = entry.as_map().ok_or(Error::Wrong { field: "events", wanted: "a list of maps" })?;
        let body = entry.get("data").cloned().unwrap_or_default();
        Ok(Self { tag: field::text(entry, "tag")?, body, holds_load: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map {
        value.as_map().unwrap().clone()
    }

    #[test]
    fn a_single_event_carries_the_whole_load() {
        let load = map(Value::map([("cmd", "_minion_event"), ("id", "web1"), ("tag", "salt/x"), ("data", "started")]));
        let event = MinionEvent::parse(load).unwrap();
        assert!(!event.is_batch && event.pretag.is_none());
        assert_eq!(event.events[0].tag, "salt/x");
        assert_eq!(event.events[0].body.get("id").unwrap().as_str(), Some("web1"));
        assert_eq!(event.events[0].data().as_str(), Some("started"));
    }

    #[test]
    fn a_batched_event_carries_its_own_data() {
        let entry = |tag: &str| Value::map([("tag", Value::from(tag)), ("data", Value::map([("data", 1)]))]);
        let mut load = map(Value::map([("cmd", "_minion_event"), ("pretag", "syndic/a")]));
        load.push("events", Value::list([entry("a"), entry("b")]));
        let event = MinionEvent::parse(load).unwrap();
        assert!(event.is_batch);
        assert_eq!(event.pretag.as_deref(), Some("syndic/a"));
        assert_eq!(event.events[1].tag, "b");
        assert_eq!(event.events[1].data(), &Value::map([("data", 1)]));
    }

    #[test]
    fn errors_name_the_field() {
        let parse = |entries: Value| MinionEvent::parse(map(entries)).unwrap_err();
        assert_eq!(parse(Value::map([("cmd", "x")])), Error::Missing("tag"));
        assert_eq!(parse(Value::map([("events", 1)])), Error::Wrong { field: "events", wanted: "a list" });
        let entries = Value::map([("events", Value::list([1]))]);
        assert_eq!(parse(entries), Error::Wrong { field: "events", wanted: "a list of maps" });
        assert_eq!(parse(Value::map([("tag", 1)])), Error::Wrong { field: "tag", wanted: "text" });
    }
}
