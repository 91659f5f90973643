//! Publications, opened once each.
//!
//! The same frame reaches every light minion. The first to hand it in verifies, decrypts and compiles it; the others find
//! it by its bytes.

use crate::access::Access;
use crate::answer::{self, Query};
use crate::chain::Order;
use crate::load::Load;
use crate::records::{Origin, Record};
use crate::tally::Tally;
use bytes::Bytes;
use bytestring::ByteString;
use saltern_core::ids::MinionId;
use saltern_core::target::{Facts, Matcher, Nodegroups, Target};
use saltern_core::value::{Map, Value};
use saltern_wire::envelope::{self, Signatures, Subscription};
use saltern_wire::limits::Decode;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// How many frames are remembered: more than one minion is behind another when many jobs are published at once.
const RECENT: usize = 4_096;

/// A job as published.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) record: Arc<Record>,
    pub(crate) load: Map,
    /// Whether it is about the minion itself, and no work
    pub(crate) is_about_minion: bool,
    pub(crate) answer: Answer,
    /// Whether it asks for an acknowledgement
    pub(crate) asks_ack: bool,
    matcher: Matcher,
}

/// Where the return of a job comes from.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Every minion returns the same
    Usual(Load),
    /// It depends on what the minion is at
    Query(Query),
    /// It depends on how far the minion is with an action chain
    Chain(Order),
}

impl Job {
    /// Whether its contract lets it come again: what must not run twice is counted by itself, step by step.
    pub(crate) fn may_come_again(&self) -> bool {
        matches!(self.answer, Answer::Chain(_))
    }

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
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    opened: HashMap<Bytes, Option<Arc<Job>>>,
    /// Newest last
    order: VecDeque<Bytes>,
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
        if let Some(job) = recent.opened.get(frame) {
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
        if recent.order.len() == RECENT
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.opened.remove(&oldest);
        }
        recent.order.push_back(frame.clone());
        recent.opened.insert(frame.clone(), job.clone());
        Ok(job)
    }
}

fn read(load: Map, tally: &Tally, fleet: &Fleet<'_>) -> Option<Job> {
    let Some(Value::Text(jid)) = load.get("jid") else { return None };
    let kind = load.get("tgt_type").and_then(Value::as_str).unwrap_or("glob");
    let delimiter = load.get("delimiter").and_then(Value::as_str);
    let target = Target::read(kind, load.get("tgt")?, delimiter).ok()?;
    let matcher = target.compile(&Nodegroups::default()).ok()?;
    let asks_ack = load.get("start_event").is_some_and(Value::is_truthy)
        || load.get("module_executors").is_some_and(Value::is_truthy);
    let (fun, arg) = (load.get("fun")?, load.get("arg").unwrap_or(&Value::Nil));
    let origin = load.get("metadata").and_then(Origin::read);
    let answering = fleet.ids.iter().take(fleet.answering).enumerate();
    let meant = answering.filter(|(_, id)| matches(&matcher, id, fleet.grains)).map(|(index, _)| index);
    let record_of = |launch: &_, chunk, step: &_| tally.step(launch, chunk, step, fleet.ids.len());
    let order = Order::read(fun, arg, fleet.padding, &record_of);
    let answer = match (Query::read(fun), order) {
        (Some(query), _) => Answer::Query(query),
        (None, Some(order)) => Answer::Chain(order),
        (None, None) => {
            let value = answer::usual(fun, arg, fleet.padding);
            Answer::Usual(Load::new(&answer::return_load(jid, &load, value, false)))
        }
    };
    Some(Job {
        record: tally.published(jid, origin, fleet.ids.len(), meant),
        answer,
        is_about_minion: answer::is_about_minion(fun),
        asks_ack,
        matcher,
        load,
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
pub(crate) mod tests {
    use super::*;

    fn load(jid: &str, fun: &str, tgt: Value, kind: &str) -> Map {
        let load = Value::map([
            ("jid", Value::from(jid)),
            ("fun", fun.into()),
            ("arg", Value::List(Vec::new())),
            ("tgt", tgt),
            ("tgt_type", kind.into()),
            ("start_event", true.into()),
            ("metadata", Value::map([("saltern", Value::map([("action", 7), ("attempt", 1)]))])),
        ]);
        load.as_map().unwrap().clone()
    }

    fn read_for_three(load: Map, tally: &Tally) -> Option<Job> {
        let ids: Vec<MinionId> = ["a1", "a2", "b1"].iter().map(|id| MinionId::new(id).unwrap()).collect();
        let grains = common_grains("3008.3");
        read(load, tally, &Fleet { ids: &ids, answering: 2, grains: &grains, padding: &ByteString::new() })
    }

    /// A job for all, for tests elsewhere.
    pub(crate) fn job(tally: &Tally, jid: &str, fun: &str) -> Arc<Job> {
        Arc::new(read_for_three(load(jid, fun, "*".into(), "glob"), tally).unwrap())
    }

    fn read_job(tgt: Value, kind: &str) -> Option<Job> {
        read_for_three(load("20261115200427443183", "test.ping", tgt, kind), &Tally::new(10))
    }

    #[test]
    fn a_job_knows_which_of_those_who_answer_it_means() {
        let meant = |tgt: Value, kind| {
            let job = read_job(tgt, kind).unwrap();
            (0..3).filter(|index| job.record.meant.has(*index)).collect::<Vec<_>>()
        };
        assert_eq!(meant("*".into(), "glob"), [0, 1]);
        assert_eq!(meant("a1".into(), "glob"), [0]);
        assert_eq!(meant("os:Debian".into(), "grain"), [0, 1]);
        assert_eq!(meant("id:a2".into(), "grain"), [1]);
        assert_eq!(meant(Value::list(["a2", "b1"]), "list"), [1]);
    }

    #[test]
    fn a_job_is_for_whom_its_target_means() {
        let (job, grains) = (read_job("a*".into(), "glob").unwrap(), common_grains("3008.3"));
        assert!(job.asks_ack);
        assert!(job.is_for(&MinionId::new("a2").unwrap(), &grains));
        assert!(!job.is_for(&MinionId::new("b1").unwrap(), &grains));
    }

    #[test]
    fn a_job_belongs_to_the_action_and_attempt_in_its_metadata() {
        let run = read_job("*".into(), "glob").unwrap().record.run.as_ref().map(|run| run.origin);
        assert_eq!(run, Some(Origin { action: 7, attempt: 1 }));
        let mut load = load("1", "test.ping", "*".into(), "glob");
        load.insert("metadata", "whatever");
        assert!(read_for_three(load, &Tally::new(10)).unwrap().record.run.is_none());
    }

    #[test]
    fn what_is_about_the_minion_is_no_work() {
        let job = |fun| read_for_three(load("1", fun, "*".into(), "glob"), &Tally::new(10)).unwrap();
        let (find, sync, ping) = (job("saltutil.find_job"), job("saltutil.sync_all"), job("test.ping"));
        assert!(find.is_about_minion && matches!(find.answer, Answer::Query(Query::FindJob)));
        assert!(sync.is_about_minion && matches!(sync.answer, Answer::Usual(_)));
        assert!(!ping.is_about_minion && matches!(ping.answer, Answer::Usual(_)));
    }

    #[test]
    fn what_is_not_a_job_is_nothing() {
        assert!(read_job("*".into(), "no such type").is_none());
        assert!(read_job(Value::Nil, "glob").is_none());
    }
}
