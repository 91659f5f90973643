//! Publishes what was claimed: one load per way of asking for acknowledgement, to exactly those who were claimed.
//!
//! Invariant: nobody gets a job that was not claimed for him. A short expression is published only where it means the
//! same minions as were claimed.

use super::Work;
use crate::master::acks::{self, Ask};
use crate::master::{Master, Member, entry};
use crate::{Error, clock};
use saltern_core::event;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::target::{Expression, TargetType};
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{AckMethod, NewEvent};
use saltern_wire::load::Publish;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to be published under one job id.
pub(super) struct Delivery<'a> {
    pub(super) work: &'a Work,
    pub(super) jid: Jid,
    pub(super) attempt: u32,
    /// Those who were claimed
    pub(super) members: &'a [Arc<Member>],
    /// Those whom the target means as well, and who must not get it
    pub(super) others: Option<&'a [MinionId]>,
}

/// Up to so many names may be left out of an expression; more, and the names of those who are meant are published.
const MOST_LEFT_OUT: usize = 50;

impl Master {
    /// Publishes it. When this returns, it has been handed to every subscriber.
    pub(super) async fn deliver(&self, delivery: &Delivery<'_>) -> Result<(), Error> {
        let loads = self.loads(delivery);
        self.engine.metrics.note_published();
        let now = clock::now();
        let tag = || event::tag::job_publish(delivery.jid);
        let told = |load: &Map| entry(now, tag(), Value::Map(load.clone()), None, Some(delivery.jid));
        let events = loads.iter().map(told).collect();
        // Side by side: what is told of a publication is of no use to the minions that wait for it.
        let (published, logged) = tokio::join!(self.publish(loads), self.store.log_events(events));
        logged?;
        published
    }

    /// Whether this minion is expected to acknowledge this action's jobs.
    pub(super) fn expects_ack(&self, work: &Work, member: &Member) -> bool {
        self.ask_of(work, member) != Ask::Nothing && member.facts().ack_method != AckMethod::None
    }

    /// How this minion is asked to acknowledge this action's jobs.
    fn ask_of(&self, work: &Work, member: &Member) -> Ask {
        let facts = member.facts();
        acks::ask(work.policy.ack, facts.ack_setting, self.config.job_ack, facts.ack_method)
    }

    fn loads(&self, delivery: &Delivery<'_>) -> Vec<Map> {
        let Delivery { work, jid, attempt, members, others } = delivery;
        let mut groups: BTreeMap<Ask, Vec<&MinionId>> = BTreeMap::new();
        for member in *members {
            groups.entry(self.ask_of(work, member)).or_default().push(&member.id);
        }
        let short = if groups.len() == 1 { expression(work, *others) } else { None };
        let metadata = (!work.internal).then(|| {
            let ours = Value::map([("action", Value::from(work.id.0)), ("attempt", i64::from(*attempt).into())]);
            let mut metadata = work.metadata.clone().unwrap_or_default();
            metadata.insert("saltern", ours);
            metadata
        });
        let load = |(ask, ids): (Ask, Vec<&MinionId>)| {
            let (tgt, tgt_type) = short.clone().unwrap_or_else(|| (Value::list(ids), "list"));
            let mut load = Publish::new(*jid, work.fun.clone(), work.arg.clone(), tgt, tgt_type);
            load.user = Some(work.user.as_str().into());
            load.ret = work.ret.as_str().into();
            load.metadata = metadata.clone();
            match ask {
                // Our own minions acknowledge unless told not to; stock ones ignore the field.
                Ask::Nothing => load.extra.push("job_ack", false),
                Ask::StartEvent => load.start_event = true,
                Ask::Executor => load.module_executors = vec![acks::EXECUTOR.into(), "direct_call".into()],
            }
            load.into_map()
        };
        groups.into_iter().map(load).collect()
    }
}

/// The target as it was given, where it means the same to a minion as here: who matches by id alone matches the same on both
/// sides, what depends on grains or pillar may be seen differently there. `others` are left out by name.
fn expression(work: &Work, others: Option<&[MinionId]>) -> Option<(Value, &'static str)> {
    let others = others?;
    let target = &work.target;
    if others.is_empty() {
        let by_id = matches!(target.kind, TargetType::Glob | TargetType::Pcre | TargetType::List);
        return by_id.then(|| (target.expression.to_value(), target.kind.as_str()));
    }
    match (&target.expression, target.kind) {
        (Expression::Text(glob), TargetType::Glob)
            if others.len() <= MOST_LEFT_OUT
                && !glob.contains(char::is_whitespace)
                && !glob.contains(['@', '(', ')']) =>
        {
            let names = others.iter().map(MinionId::as_str).collect::<Vec<_>>().join(",");
            Some((format!("{glob} and not L@{names}").into(), "compound"))
        }
        _ => None,
    }
}

/// `salt/job/<jid>/new`: whom a job is for.
pub(super) fn announce(work: &Work, jid: Jid, minions: &[MinionId], missing: &[String], now: Timestamp) -> NewEvent {
    let new = Value::map([
        ("jid", Value::from(jid)),
        ("tgt_type", work.target.kind.as_str().into()),
        ("tgt", work.target.expression.to_value()),
        ("user", work.user.as_str().into()),
        ("fun", work.fun.clone().into()),
        ("arg", Value::List(work.arg.clone())),
        ("minions", Value::list(minions)),
        ("missing", Value::list(missing)),
    ]);
    entry(now, event::tag::job_new(jid), new, None, Some(jid))
}
