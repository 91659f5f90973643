//! The only way onto the publish port: stored first, then sealed once, signed once and handed to every subscriber.
//!
//! A job's load is stored with it as it will be published. After a crash, what was stored and not yet marked as published
//! goes out again under the same job id; minions ignore a job id they have seen.

use super::acks::{self, Ask};
use super::jobs::{Known, Purpose};
use super::{Master, Member, entry};
use crate::{Error, clock};
use bytes::Bytes;
use saltern_core::event;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::target::{Target, TargetType};
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{AuditEntry, NewAction, NewJob};
use saltern_wire::crypto::SigAlgo;
use saltern_wire::envelope;
use saltern_wire::limits::Decode;
use saltern_wire::load::{Fun, Publish};
use saltern_wire::msgpack;
use saltern_wire::zmtp::publisher;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How long stock minions take at most to subscribe again.
const RECONNECT: Duration = Duration::from_secs(12);

/// What somebody wants done.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) target: Target,
    pub(crate) fun: Fun,
    pub(crate) arg: Vec<Value>,
    pub(crate) user: String,
    pub(crate) origin: String,
    /// The job's own word on acknowledgement
    pub(crate) ack: Option<bool>,
    pub(crate) metadata: Option<Map>,
    /// Returners that minions call themselves
    pub(crate) ret: String,
    pub(crate) purpose: Purpose,
}

impl Submission {
    /// Housekeeping of the server itself: not acknowledged, not audited, not listed.
    pub(crate) fn internal(target: Target, fun: &str, arg: Vec<Value>) -> Self {
        Self {
            target,
            fun: Fun::from(fun),
            arg,
            user: "saltern".into(),
            origin: "server".into(),
            ack: Some(false),
            metadata: None,
            ret: String::new(),
            purpose: Purpose::Internal,
        }
    }
}

/// A job that was accepted: it is in the database.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) jid: Jid,
    pub(crate) action: ActionId,
    pub(crate) minions: Vec<MinionId>,
    pub(crate) missing: Vec<String>,
}

/// The way to the thread that seals and signs. One thread, so publications go out in the order of their serials.
#[derive(Clone)]
pub(crate) struct Publisher {
    queue: mpsc::Sender<Publication>,
}

/// What waits to be published.
pub(crate) type PublishQueue = mpsc::Receiver<Publication>;

/// The parts of one job, and whom to tell when they have gone out.
pub(crate) type Publication = (Vec<Map>, oneshot::Sender<()>);

impl Publisher {
    /// Makes the queue; the thread is started with [`run`] when the master exists.
    pub(crate) fn new() -> (Self, PublishQueue) {
        let (queue, waiting) = mpsc::channel(256);
        (Self { queue }, waiting)
    }
}

/// Seals, signs and publishes until the server stops. `serial` is the first of a range reserved for this start.
pub(crate) async fn run(master: Arc<Master>, port: publisher::Publisher, mut serial: i64, mut waiting: PublishQueue) {
    let stop = master.tasks.stop_token();
    loop {
        let (loads, done) = tokio::select! {
            () = stop.cancelled() => return,
            next = waiting.recv() => match next { Some(next) => next, None => return },
        };
        let (sealer, port) = (master.clone(), port.clone());
        let first = serial;
        serial += i64::try_from(loads.len()).unwrap_or(0);
        // An RSA signature takes a millisecond: not on the threads that serve connections.
        let published = tokio::task::spawn_blocking(move || {
            let ring = sealer.ring();
            for (serial, mut load) in (first..).zip(loads) {
                load.insert("serial", serial);
                match envelope::publication(&ring.shared, &sealer.rsa, SigAlgo::default(), &load) {
                    Ok(frame) => drop(port.publish(frame)),
                    Err(error) => tracing::error!(%error, "cannot seal a publication"),
                }
            }
        })
        .await;
        if published.is_ok() {
            let _ = done.send(());
        }
    }
}

impl Master {
    /// A job id nobody has.
    pub(crate) fn next_jid(&self, now: Timestamp) -> Jid {
        self.jids.lock().unwrap_or_else(PoisonError::into_inner).next(now)
    }

    /// Accepts a job: resolves its target, stores it, publishes it.
    pub(crate) async fn submit(self: &Arc<Self>, submission: Submission) -> Result<Accepted, Error> {
        let (members, missing) = self.resolve(&submission.target).await?;
        if members.is_empty() {
            return Err(Error::NotFound(format!(
                "no accepted minion matches {} {}",
                submission.target.kind, submission.target.expression
            )));
        }
        let now = clock::now();
        let jid = self.next_jid(now);
        let minions: Vec<MinionId> = members.iter().map(|member| member.id.clone()).collect();
        let loads = self.loads(&submission, jid, &members)?;
        let internal = submission.purpose == Purpose::Internal;
        let fun = super::returns::name(&submission.fun);
        let job = NewJob {
            jid,
            action: self.action(&submission, &fun, now),
            minions: minions.clone(),
            missing: missing.clone(),
            load: msgpack::encode(&Value::list(loads.iter().cloned())),
            events: announce(&submission, jid, &minions, &missing, &loads, now),
            audit: (!internal).then(|| AuditEntry {
                at: now,
                who: submission.user.clone(),
                origin: submission.origin.clone(),
                what: "job.run".into(),
                subject: jid.to_string(),
                detail: serde_json::json!({ "fun": fun, "minions": minions.len() }).to_string(),
            }),
        };
        // Known before it is published: a quick minion answers before this function returns.
        let action = self.store.create_job(job).await?;
        self.jobs.insert(jid, Arc::new(Known::new(action, fun, internal, minions.clone())));
        self.publish(jid, loads).await?;
        Ok(Accepted { jid, action, minions, missing })
    }

    /// Publishes what a crash kept from going out.
    pub(crate) async fn publish_leftovers(self: Arc<Self>) {
        if let Err(error) = self.try_publish_leftovers().await {
            tracing::error!(%error, "cannot publish the jobs that the last stop left behind");
        }
    }

    async fn try_publish_leftovers(&self) -> Result<(), Error> {
        let jobs = self.store.unpublished_jobs(10_000).await?;
        if jobs.is_empty() {
            return Ok(());
        }
        // Stock minions come back to the publish port within 11 seconds; what goes out before that does not reach them.
        let stop = self.tasks.stop_token();
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(RECONNECT) => {}
        }
        for job in jobs {
            let load = msgpack::decode(Bytes::from(job.load), &Decode::after_auth());
            let loads = load.ok().and_then(|load| load.as_list().map(<[Value]>::to_vec)).unwrap_or_default();
            let loads = loads.into_iter().filter_map(|load| load.as_map().cloned()).collect();
            tracing::info!(jid = %job.jid, "publishing a job that was accepted before the last stop");
            self.publish(job.jid, loads).await?;
        }
        Ok(())
    }

    async fn publish(&self, jid: Jid, loads: Vec<Map>) -> Result<(), Error> {
        let (done, published) = oneshot::channel();
        self.publisher.queue.send((loads, done)).await.map_err(|_| Error::Stopping)?;
        published.await.map_err(|_| Error::Stopping)?;
        Ok(self.store.mark_published(jid, clock::now()).await?)
    }

    fn action(&self, submission: &Submission, fun: &str, now: Timestamp) -> NewAction {
        NewAction {
            kind: "function".into(),
            fun: fun.to_owned(),
            arg: json(&Value::List(submission.arg.clone())),
            target: json(&submission.target.expression.to_value()),
            target_type: submission.target.kind.as_str().into(),
            initiator: submission.user.clone(),
            created: now,
            due: now,
            deadline: now.plus(self.config.job_deadline),
            internal: submission.purpose == Purpose::Internal,
        }
    }

    /// One load per way of asking for acknowledgement: usually one, two for a mixed fleet.
    fn loads(&self, submission: &Submission, jid: Jid, members: &[Arc<Member>]) -> Result<Vec<Map>, Error> {
        let mut groups: BTreeMap<Ask, Vec<&MinionId>> = BTreeMap::new();
        for member in members {
            let facts = member.facts();
            let ask = acks::ask(submission.ack, facts.ack_setting, self.config.job_ack, facts.ack_method);
            groups.entry(ask).or_default().push(&member.id);
        }
        // Whoever matches by id alone matches the same on both sides, so the short expression is enough; what depends on
        // grains or pillar may be seen differently by the minion, so it gets the names that were resolved here.
        let whole = groups.len() == 1
            && matches!(submission.target.kind, TargetType::Glob | TargetType::Pcre | TargetType::List);
        let load = |(ask, ids): (Ask, Vec<&MinionId>)| {
            let (tgt, tgt_type) = if whole {
                (submission.target.expression.to_value(), submission.target.kind.as_str())
            } else {
                (Value::list(ids), "list")
            };
            let mut load = Publish::new(jid, submission.fun.clone(), submission.arg.clone(), tgt, tgt_type);
            load.user = Some(submission.user.as_str().into());
            load.ret = submission.ret.as_str().into();
            load.metadata = submission.metadata.clone();
            match ask {
                // Our own minions acknowledge unless told not to; stock ones ignore the field.
                Ask::Nothing => load.extra.push("job_ack", false),
                Ask::StartEvent => load.start_event = true,
                Ask::Executor => load.module_executors = vec![acks::EXECUTOR.into(), "direct_call".into()],
            }
            load.into_map()
        };
        Ok(groups.into_iter().map(load).collect())
    }
}

/// `salt/job/<jid>/new` and, per part, `salt/job/<jid>/publish`.
fn announce(
    submission: &Submission,
    jid: Jid,
    minions: &[MinionId],
    missing: &[String],
    loads: &[Map],
    now: Timestamp,
) -> Vec<saltern_store::NewEvent> {
    let new = Value::map([
        ("jid", Value::from(jid)),
        ("tgt_type", submission.target.kind.as_str().into()),
        ("tgt", submission.target.expression.to_value()),
        ("user", submission.user.as_str().into()),
        ("fun", submission.fun.clone().into()),
        ("arg", Value::List(submission.arg.clone())),
        ("minions", Value::list(minions)),
        ("missing", Value::list(missing)),
    ]);
    let mut events = vec![entry(now, event::tag::job_new(jid), new, None, Some(jid))];
    let published = |load: &Map| entry(now, event::tag::job_publish(jid), Value::Map(load.clone()), None, Some(jid));
    events.extend(loads.iter().map(published));
    events
}

fn json(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
