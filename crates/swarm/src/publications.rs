//! Publications, opened once each.
//!
//! The same frame reaches every light minion. The first to hand it in verifies, decrypts and compiles it; for the others it
//! is a comparison of bytes.

use crate::access::Access;
use crate::answer;
use crate::load::Load;
use crate::tally::{Record, Tally};
use bytes::Bytes;
use bytestring::ByteString;
use saltern_core::ids::MinionId;
use saltern_core::target::{Facts, Matcher, Nodegroups, Target};
use saltern_core::value::{Map, Value};
use saltern_wire::envelope::{self, Signatures, Subscription};
use saltern_wire::limits::Decode;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many frames are remembered: more than the jobs that are usually on their way at once.
const RECENT: usize = 128;

/// A job as published.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) record: Arc<Record>,
    pub(crate) fun: Value,
    pub(crate) arg: Value,
    /// What every minion returns, unless it depends on the minion
    pub(crate) usual: Option<Load>,
    /// Whether it asks for an acknowledgement
    pub(crate) asks_ack: bool,
    matcher: Matcher,
}

impl Job {
    /// Whether it means this minion.
    pub(crate) fn is_for(&self, id: &MinionId, grains: &Map) -> bool {
        matches(&self.matcher, id, grains)
    }
}

/// The minions of the swarm, for whoever has to say how many a job means.
pub(crate) struct Fleet<'a> {
    pub(crate) ids: &'a [MinionId],
    /// How many of them answer; they come first
    pub(crate) answering: usize,
    pub(crate) grains: &'a Map,
    /// What a job of any size returns
    pub(crate) padding: &'a ByteString,
}

/// The publications seen lately.
#[derive(Debug, Default)]
pub(crate) struct Publications {
    /// Newest last
    recent: Mutex<VecDeque<(Bytes, Option<Arc<Job>>)>>,
}

impl Publications {
    /// Opens a publication, or finds it opened. Nothing if it is not a job that can be read.
    pub(crate) fn open(
        &self,
        frame: &Bytes,
        access: &Access,
        tally: &Tally,
        fleet: &Fleet<'_>,
    ) -> Result<Option<Arc<Job>>, envelope::Error> {
        // Held while it is opened: two thousand minions that get the same frame at once wait for one of them.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, job)) = recent.iter().rev().find(|(known, _)| known == frame) {
            return Ok(job.clone());
        }
        let with = Subscription {
            shared: &access.shared,
            server: &access.server,
            signatures: Signatures::IfPresent,
            // Minions that subscribe at different times see the same frames in their own order.
            last_serial: 0,
        };
        let opened = envelope::open_publication(frame.clone(), &with, &Decode::after_auth())?;
        let job = read(opened.load, tally, fleet).map(Arc::new);
        if job.is_none() {
            tally.error("publication_unreadable");
        }
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back((frame.clone(), job.clone()));
        Ok(job)
    }
}

fn read(mut load: Map, tally: &Tally, fleet: &Fleet<'_>) -> Option<Job> {
    let Some(Value::Text(jid)) = load.remove("jid") else { return None };
    let kind = load.get("tgt_type").and_then(Value::as_str).unwrap_or("glob");
    let delimiter = load.get("delimiter").and_then(Value::as_str);
    let target = Target::read(kind, load.get("tgt")?, delimiter).ok()?;
    let matcher = target.compile(&Nodegroups::default()).ok()?;
    let asks_ack = load.get("start_event").is_some_and(Value::is_truthy)
        || load.get("module_executors").is_some_and(Value::is_truthy);
    let meant = || fleet.ids.iter().take(fleet.answering).filter(|id| matches(&matcher, id, fleet.grains)).count();
    let fun = load.get("fun")?.clone();
    let arg = load.get("arg").cloned().unwrap_or_else(|| Value::List(Vec::new()));
    let usual = answer::usual(&fun, &arg, fleet.padding);
    Some(Job {
        record: tally.record(&jid, fleet.ids.len(), || meant() as u64),
        usual: usual.map(|value| Load::new(&answer::return_load(&jid, &fun, &arg, value, false))),
        fun,
        arg,
        asks_ack,
        matcher,
    })
}

fn matches(matcher: &Matcher, id: &MinionId, grains: &Map) -> bool {
    let grains = matcher.needs().grains.then(|| Value::Map(grains_of(id, grains)));
    matcher.matches(&View { id, grains })
}

/// The grains of one light minion: those of all, and its id.
pub(crate) fn grains_of(id: &MinionId, common: &Map) -> Map {
    let mut grains = common.clone();
    grains.insert("id", id);
    grains
}

/// The grains that all light minions have in common.
pub(crate) fn common_grains(salt_version: &str) -> Map {
    let texts = [
        ("kernel", "Linux"),
        ("os", "Debian"),
        ("os_family", "Debian"),
        ("osrelease", "12"),
        ("cpuarch", "x86_64"),
        ("saltversion", salt_version),
    ];
    let mut grains: Map = texts.into_iter().map(|(name, value)| (Value::from(name), Value::from(value))).collect();
    grains.push("swarm", true);
    grains
}

struct View<'a> {
    id: &'a MinionId,
    grains: Option<Value>,
}

impl Facts for View<'_> {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn grains(&self) -> Option<&Value> {
        self.grains.as_ref()
    }

    fn pillar(&self) -> Option<&Value> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_job(tgt: Value, kind: &str) -> Option<Job> {
        let ids: Vec<MinionId> = ["a1", "a2", "b1"].iter().map(|id| MinionId::new(id).unwrap()).collect();
        let grains = common_grains("3008.3");
        let load = Value::map([
            ("jid", Value::from("20261115200427443183")),
            ("fun", "test.ping".into()),
            ("arg", Value::List(Vec::new())),
            ("tgt", tgt),
            ("tgt_type", kind.into()),
            ("start_event", true.into()),
        ]);
        let fleet = Fleet { ids: &ids, answering: 2, grains: &grains, padding: &ByteString::new() };
        read(load.as_map().unwrap().clone(), &Tally::new(), &fleet)
    }

    #[test]
    fn a_job_knows_how_many_of_those_who_answer_it_means() {
        assert_eq!(read_job("*".into(), "glob").unwrap().record.expected, 2);
        assert_eq!(read_job("a1".into(), "glob").unwrap().record.expected, 1);
        assert_eq!(read_job("os:Debian".into(), "grain").unwrap().record.expected, 2);
        assert_eq!(read_job("id:a2".into(), "grain").unwrap().record.expected, 1);
        assert_eq!(read_job(Value::list(["a2", "b1"]), "list").unwrap().record.expected, 1);
    }

    #[test]
    fn a_job_is_for_whom_its_target_means() {
        let (job, grains) = (read_job("a*".into(), "glob").unwrap(), common_grains("3008.3"));
        assert!(job.asks_ack);
        assert!(job.is_for(&MinionId::new("a2").unwrap(), &grains));
        assert!(!job.is_for(&MinionId::new("b1").unwrap(), &grains));
    }

    #[test]
    fn what_is_not_a_job_is_nothing() {
        assert!(read_job("*".into(), "no such type").is_none());
        assert!(read_job(Value::Nil, "glob").is_none());
    }
}
