//! Events from minions, single and batched: checked, logged, and read for what they tell us.

use super::{Master, Member};
use crate::{Error, body, clock};
use saltern_core::event::{self, JobTag, JobTagKind};
use saltern_core::ids::{Jid, MinionId};
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{Ack, NewEvent};
use saltern_wire::load::{Event, MinionEvent};
use std::sync::Arc;

/// Most events in one batch. Beacons send a handful.
const MOST_IN_BATCH: usize = 1024;

/// An entry for the log: the body with its `_stamp`, packed.
pub(crate) fn entry(at: Timestamp, tag: String, data: Value, minion: Option<&MinionId>, jid: Option<Jid>) -> NewEvent {
    let mut map = match data {
        Value::Map(map) => map,
        other => Value::map([("data", other)]).as_map().cloned().unwrap_or_default(),
    };
    map.insert("_stamp", at.stamp());
    NewEvent { at, tag, minion: minion.cloned(), jid, body: Arc::new(body::pack(&Value::Map(map))), is_return: false }
}

impl Master {
    /// Takes a minion's events. What it may not send is left out, and said in the log.
    pub(super) async fn take_events(self: &Arc<Self>, member: &Arc<Member>, load: Map) -> Result<Value, Error> {
        let Ok(MinionEvent { pretag, events, .. }) = MinionEvent::parse(load) else {
            tracing::warn!(minion = %member.id, "an event without a tag or with a wrong shape was refused");
            return Ok(Value::Nil);
        };
        if pretag.is_some() {
            // Only syndics may prefix tags, and there are none.
            tracing::warn!(minion = %member.id, "an event with a pretag was refused");
            return Ok(Value::Nil);
        }
        let now = clock::now();
        if events.len() > MOST_IN_BATCH {
            tracing::warn!(minion = %member.id, dropped = events.len() - MOST_IN_BATCH, "a batch of events was too long and was cut");
        }
        let mut plain = Vec::new();
        for mut event in events.into_iter().take(MOST_IN_BATCH) {
            if let Err(reason) = event::may_send(&member.id, &event.tag) {
                // Shown as a quoted text, and not all of it: the minion chose it.
                let tag: String = event.tag.chars().take(100).collect();
                tracing::warn!(minion = %member.id, tag, %reason, "an event was refused");
                continue;
            }
            if body::cut(&mut event.body, self.config.max_return_size) {
                tracing::warn!(minion = %member.id, tag = &*event.tag, "an event was cut");
            }
            let started = *event.tag == *event::tag::minion_start(&member.id);
            note_reboot_wish(member, &event);
            match JobTag::parse(&event.tag) {
                Some(JobTag { jid, kind: JobTagKind::Ack(_) }) => self.acknowledged(member, jid, event, true).await?,
                Some(JobTag { jid, kind: JobTagKind::Start(_) }) => {
                    self.acknowledged(member, jid, event, false).await?
                }
                Some(JobTag { jid, .. }) => match self.known_job(jid).await? {
                    Some(known) if !known.is_for(&member.id) => {
                        tracing::warn!(minion = %member.id, %jid, "progress of a job that was not for it was refused");
                    }
                    known => {
                        if let Some(known) = &known {
                            self.engine.heard(known.work.id, &member.id, now);
                            if known.work.launch.is_some() {
                                self.chain_progress(member, known, event.data()).await?;
                            }
                        }
                        let jid = known.map(|_| jid);
                        plain.push(entry(now, event.tag.to_string(), event.body, Some(&member.id), jid));
                    }
                },
                None => plain.push(entry(now, event.tag.to_string(), event.body, Some(&member.id), None)),
            }
            if started {
                self.started(member, now);
            }
        }
        if !plain.is_empty() {
            self.store.log_events(plain).await?;
        }
        Ok(Value::Nil)
    }

    /// A minion has begun a job. Whatever said so, the log gets `salt/job/<jid>/ack/<minion>`.
    async fn acknowledged(&self, member: &Arc<Member>, jid: Jid, event: Event, is_ack: bool) -> Result<(), Error> {
        let known = match self.known_job(jid).await? {
            Some(known) if known.is_for(&member.id) => known,
            _ => {
                tracing::warn!(minion = %member.id, %jid, "an acknowledgement of a job that was not for it was refused");
                return Ok(());
            }
        };
        let now = clock::now();
        let ack_tag = event::tag::job_ack(jid, &member.id);
        let mut events = Vec::with_capacity(2);
        let data = Some(event.data()).filter(|data| !data.is_nil()).cloned().unwrap_or_else(|| Value::Map(Map::new()));
        if !is_ack {
            events.push(entry(now, event.tag.to_string(), event.body, Some(&member.id), Some(jid)));
        }
        let ack = Value::map([
            ("cmd", Value::from("_minion_event")),
            ("data", data),
            ("id", Value::from(&member.id)),
            ("pretag", Value::Nil),
            ("tag", Value::from(ack_tag.as_str())),
        ]);
        events.push(entry(now, ack_tag, ack, Some(&member.id), Some(jid)));
        let minion = member.id.clone();
        let action = known.work.id;
        self.store.record_ack(Ack { jid, action, minion, at: now, events }).await?;
        self.engine.heard(action, &member.id, now);
        Ok(())
    }

    /// A minion's agent says that it is up.
    fn started(self: &Arc<Self>, member: &Arc<Member>, now: Timestamp) {
        {
            let mut facts = member.facts();
            facts.started = Some(now);
            facts.chain_module = false;
            facts.chain_module_asked = None;
            facts.dirty = true;
        }
        self.restarted(&member.id);
        self.chain_minion_started(&member.id);
        self.prepare_acks(member);
    }
}

/// A beacon that says whether the machine has to be rebooted (`reboot_needed`).
fn note_reboot_wish(member: &Member, event: &Event) {
    if !event.tag.strip_prefix("salt/beacon/").is_some_and(|tag| tag.contains("/reboot_info/")) {
        return;
    }
    if let Some(needed) = event.data().get("reboot_needed").and_then(Value::as_bool) {
        let mut facts = member.facts();
        facts.dirty |= facts.reboot_needed != Some(needed);
        facts.reboot_needed = Some(needed);
    }
}
