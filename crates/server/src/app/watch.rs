//! Following one job until every minion has answered or there is no use in waiting longer.
//!
//! What is waited for is decided by what is known, not by a fixed time: a minion that has acknowledged is waited for as long
//! as it says that it is still at it; one that says nothing is given up after a while, with the reason.

use super::{App, Caller, ReturnEntry};
use crate::Error;
use crate::engine::{Request, Work};
use crate::master::{Member, Presence};
use saltern_core::event::{JobTag, JobTagKind};
use saltern_core::ids::{Jid, MinionId};
use saltern_core::run::{Reason, RunState};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{AckMethod, Event};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Instant;

/// How long minions are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long one that says nothing is waited for
    pub silent: Duration,
    /// How long one is given to say whether it still runs the job
    pub gather: Duration,
}

/// A step of a job, as it happens.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A minion has begun
    Acked(MinionId),
    /// A minion has answered
    Returned(Box<ReturnEntry>),
    /// Nothing more is waited for; these have not answered
    Done(Vec<Unanswered>),
}

/// A minion that did not answer.
#[derive(Clone, Debug)]
pub struct Unanswered {
    /// Which
    pub minion: MinionId,
    /// Why, as far as is known
    pub why: Why,
}

/// Why a minion did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is not connected since then
    Offline(Timestamp),
    /// It was not heard of since the server started; last seen then
    NotSeen(Timestamp),
    /// It is connected and can acknowledge, and did not
    NotAcknowledged,
    /// It acknowledged then, and is still at it
    Running(Timestamp),
    /// It acknowledged, and now says that it does not run this job: its agent was restarted, or the job was killed
    Gone,
    /// It is connected, cannot acknowledge, and said nothing
    Silent,
    /// It was given up: it never said that it began
    NotDelivered,
    /// It took longer than its `job_timeout`
    TimedOut,
    /// Somebody had it killed
    Stopped,
    /// Somebody cancelled it, or too many others had failed
    Cancelled,
    /// Its deadline passed before it could start
    Expired,
    /// Somebody declared it failed
    FailedByHand,
    /// It was not sent yet
    Waiting,
}

/// A job being followed.
pub struct Watch {
    app: App,
    jid: Jid,
    work: Arc<Work>,
    /// What the tags of this action's runs begin with
    run_tags: String,
    caller: Caller,
    wait: Patience,
    feed: broadcast::Receiver<Arc<[Event]>>,
    waiting: BTreeMap<MinionId, Standing>,
    ready: VecDeque<Progress>,
    /// When the silent are asked or given up next
    patience: Instant,
    probing: Option<Probe>,
    done: bool,
    /// Read the store again: the feed was too quick, or this is the start
    reload: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    acked: Option<Timestamp>,
    running: bool,
    gone: bool,
    /// It is not sent yet, so nothing can be heard of it
    queued: bool,
    /// How the engine ended it
    ended: Option<Reason>,
}

/// A question to the silent: do you still run it?
struct Probe {
    jid: Jid,
    asked: HashSet<MinionId>,
    until: Instant,
}

impl App {
    /// The usual patience, with the configured time for questions.
    pub fn patience(&self, silent: Duration) -> Patience {
        Patience { silent, gather: self.master.config.gather_job_timeout }
    }

    /// Follows a job, as far as the caller sees its minions.
    pub async fn watch(&self, caller: &Caller, jid: Jid, wait: Patience) -> Result<Watch, Error> {
        // Listen before looking, so that nothing falls between.
        let feed = self.master.store.feed();
        let missing = || Error::NotFound(format!("there is no job {jid}"));
        let job = self.job_summary(caller, jid).await?.ok_or_else(missing)?;
        let work = self.master.known_job(jid).await?.ok_or_else(missing)?.work.clone();
        let waiting = job.minions.into_iter().map(|minion| (minion, Standing::default())).collect();
        Ok(Watch {
            app: self.clone(),
            jid,
            work,
            run_tags: format!("saltern/run/{}/", job.action),
            caller: caller.clone(),
            wait,
            feed,
            waiting,
            ready: VecDeque::new(),
            patience: Instant::now() + wait.silent,
            probing: None,
            done: false,
            reload: true,
        })
    }
}

impl Watch {
    /// The next step; `None` after [`Progress::Done`].
    pub async fn next(&mut self) -> Option<Result<Progress, Error>> {
        loop {
            if let Some(progress) = self.ready.pop_front() {
                return Some(Ok(progress));
            }
            if self.done {
                return None;
            }
            if self.reload {
                if let Err(error) = self.read_store().await {
                    self.done = true;
                    return Some(Err(error));
                }
                continue;
            }
            if self.waiting.values().all(|standing| standing.ended.is_some()) {
                self.finish();
                continue;
            }
            let until = self.probing.as_ref().map_or(self.patience, |probe| probe.until);
            match tokio::time::timeout_at(until, self.feed.recv()).await {
                Ok(Ok(batch)) => {
                    for event in batch.iter() {
                        self.heed(event);
                    }
                }
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => self.reload = true,
                Ok(Err(broadcast::error::RecvError::Closed)) => self.finish(),
                Err(_) => {
                    if let Err(error) = self.out_of_patience().await {
                        self.done = true;
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    async fn read_store(&mut self) -> Result<(), Error> {
        self.reload = false;
        let detail = self.app.job(&self.caller, self.jid).await?;
        for run in &detail.runs {
            let Some(standing) = self.waiting.get_mut(&run.minion) else { continue };
            if run.state == RunState::PickedUp {
                standing.acked = standing.acked.or(run.picked_up);
            }
            standing.queued = run.state == RunState::Queued;
            standing.ended = run.reason.filter(|_| run.state.is_terminal());
        }
        for returned in detail.returns {
            if self.waiting.remove(&returned.minion).is_some() {
                self.ready.push_back(Progress::Returned(Box::new(returned)));
            }
        }
        Ok(())
    }

    fn heed(&mut self, event: &Event) {
        self.heed_run(event);
        let Some(JobTag { jid, kind }) = JobTag::parse(&event.event.tag) else { return };
        let Some(minion) = &event.event.minion else { return };
        if let Some(probe) = &mut self.probing
            && jid == probe.jid
            && matches!(kind, JobTagKind::Ret(_))
        {
            probe.asked.remove(minion);
            // A map that is not empty is a job under way. Anything else, an error text too, is not.
            let answer = crate::body::unpack(&event.event.body).ok().and_then(|load| load.get("return").cloned());
            let is_running = answer.as_ref().and_then(Value::as_map).is_some_and(|job| !job.is_empty());
            if let Some(standing) = self.waiting.get_mut(minion) {
                standing.running = is_running;
                standing.gone = !is_running;
            }
            return;
        }
        if jid != self.jid || !self.waiting.contains_key(minion) {
            return;
        }
        match kind {
            JobTagKind::Ack(_) => {
                if let Some(standing) = self.waiting.get_mut(minion)
                    && standing.acked.replace(event.event.at).is_none()
                {
                    self.ready.push_back(Progress::Acked(minion.clone()));
                }
            }
            JobTagKind::Ret(_) => {
                if let Ok(load) = crate::body::unpack(&event.event.body) {
                    let verdict = self.work.kind.judge(&self.work.params, &load);
                    let returned = ReturnEntry::new(minion.clone(), event.event.at, verdict, load);
                    self.ready.push_back(Progress::Returned(Box::new(returned)));
                }
                self.waiting.remove(minion);
            }
            _ => {}
        }
        self.patience = Instant::now() + self.wait.silent;
    }

    /// What the engine says of a run: ended without a return, or queued.
    fn heed_run(&mut self, event: &Event) {
        let Some(minion) = event.event.minion.as_ref().filter(|_| event.event.tag.starts_with(&self.run_tags)) else {
            return;
        };
        let Some(standing) = self.waiting.get_mut(minion) else { return };
        let Ok(body) = crate::body::unpack(&event.event.body) else { return };
        let word = |name: &str| body.get(name).and_then(Value::as_str);
        let state = word("state").and_then(RunState::parse);
        standing.queued = state == Some(RunState::Queued);
        standing.ended = word("reason").and_then(Reason::parse).filter(|_| state.is_some_and(RunState::is_terminal));
        if self.waiting.values().all(|standing| standing.ended.is_some()) {
            self.finish();
        }
    }

    /// Nothing was heard for a while: ask those who may still be at it, give up on the others.
    async fn out_of_patience(&mut self) -> Result<(), Error> {
        if self.probing.take().is_some() {
            // The answers are in. Those who still run it are waited for; a return may be right behind a "no".
            if self.waiting.iter().any(|(minion, standing)| standing.running || self.has_its_turn(minion, standing)) {
                self.waiting.values_mut().for_each(|standing| standing.running = false);
                self.patience = Instant::now() + self.wait.silent;
            } else {
                self.finish();
            }
            return Ok(());
        }
        let worth_asking: Vec<MinionId> = self
            .waiting
            .iter()
            .filter(|(minion, standing)| self.is_worth_asking(minion, standing))
            .map(|(minion, _)| minion.clone())
            .collect();
        // What is queued has its turn yet: a batch is waited for to its end.
        if worth_asking.is_empty() && self.waiting.iter().any(|(minion, standing)| self.has_its_turn(minion, standing))
        {
            self.patience = Instant::now() + self.wait.silent;
            self.reload = true;
            return Ok(());
        }
        if worth_asking.is_empty() {
            self.finish();
            return Ok(());
        }
        let target = Target::list(worth_asking.iter().map(MinionId::as_str));
        let question = Request::house(target, "saltutil.find_job", vec![self.jid.into()]);
        let Some(jid) = self.app.master.submit(question).await?.jid else { return Ok(()) };
        self.probing =
            Some(Probe { jid, asked: worth_asking.into_iter().collect(), until: Instant::now() + self.wait.gather });
        Ok(())
    }

    /// Whether it is queued and will be sent: a machine that is off may be off for days.
    fn has_its_turn(&self, minion: &MinionId, standing: &Standing) -> bool {
        let member = self.app.master.member(minion.as_str());
        let is_off = member.is_none_or(|member| matches!(member.facts().presence, Presence::Absent(_)));
        standing.queued && standing.ended.is_none() && !is_off
    }

    fn is_worth_asking(&self, minion: &MinionId, standing: &Standing) -> bool {
        if standing.queued || standing.ended.is_some() {
            return false;
        }
        let presence = self.app.master.member(minion.as_str()).map(|member| member.facts().presence);
        !matches!(presence, None | Some(Presence::Absent(_)))
    }

    fn finish(&mut self) {
        self.done = true;
        let unanswered = std::mem::take(&mut self.waiting).into_iter().map(|(minion, standing)| {
            let member = self.app.master.member(minion.as_str());
            Unanswered { why: why(standing, member.as_deref()), minion }
        });
        self.ready.push_back(Progress::Done(unanswered.collect()));
    }
}

fn why(standing: Standing, member: Option<&Member>) -> Why {
    let Some(member) = member else { return Why::Silent };
    let facts = member.facts();
    match standing.ended {
        None if standing.queued => match facts.presence {
            Presence::Absent(since) => return Why::Offline(since),
            Presence::Unknown | Presence::Present(_) => return Why::Waiting,
        },
        None | Some(Reason::Offline | Reason::ReturnedError) => {}
        Some(Reason::Lost) => return Why::Gone,
        Some(Reason::NotDelivered) => return Why::NotDelivered,
        Some(Reason::TimedOut) => return Why::TimedOut,
        Some(Reason::Stopped) => return Why::Stopped,
        Some(Reason::Cancelled | Reason::Budget | Reason::NotNeeded) => return Why::Cancelled,
        Some(Reason::Expired | Reason::Window) => return Why::Expired,
        Some(Reason::FailedByHand | Reason::Prerequisite | Reason::Refused) => return Why::FailedByHand,
    }
    match (standing, facts.presence) {
        (Standing { acked: Some(_), gone: true, .. }, _) => Why::Gone,
        (Standing { acked: Some(at), .. }, _) => Why::Running(at),
        (_, Presence::Absent(since)) => Why::Offline(since),
        (_, Presence::Unknown) => Why::NotSeen(facts.last_seen),
        (_, Presence::Present(_)) if facts.ack_method != AckMethod::None => Why::NotAcknowledged,
        (_, Presence::Present(_)) => Why::Silent,
    }
}
