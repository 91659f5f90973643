//! The life of one light minion: one task, two connections, and little memory of its own.

use crate::answer;
use crate::link::{GaveUp, Link, Rejected};
use crate::load::Load;
use crate::options::Acks;
use crate::publications::{Job, grains_of};
use crate::swarm::Shared;
use crate::tally::Record;
use crate::wire::{self, Connection};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use saltern_core::event;
use saltern_core::ids::Jid;
use saltern_core::value::Value;
use saltern_wire::crypto;
use saltern_wire::envelope;
use saltern_wire::zmtp;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many jobs a minion remembers, to know one that comes again (`minion_jid_queue_hwm`).
const REMEMBERED: usize = 100;
/// How many jobs a minion is at, at once; further ones wait in the connection.
const MOST_AT_ONCE: usize = 100;
/// How long before it subscribes again when that failed.
const RESUBSCRIBE: Duration = Duration::from_secs(1);
/// How long a slow reader takes for a publication.
const SLOW: Duration = Duration::from_secs(1);

/// A light minion.
struct Minion {
    swarm: Arc<Shared>,
    index: usize,
    link: Link,
    /// The last jobs it took up
    known: VecDeque<Arc<Record>>,
    /// Those that take their time
    at_work: FuturesUnordered<BoxFuture<'static, Delivery>>,
    running: Vec<Arc<Record>>,
}

/// A job that has reached the minion.
struct Delivery {
    job: Arc<Job>,
    at: Instant,
}

/// What happens next to a minion that listens.
enum Next {
    Publication(Result<Bytes, zmtp::Error>),
    Done(Delivery),
    ConnectionLost,
    Churn,
}

/// Why a minion stops listening.
enum Ended {
    /// The master is gone, or has cut it off
    Lost,
    /// It was told to lose its connections
    Churned,
}

/// Lives until it is dropped, or until the master says that it does not want this minion.
pub(crate) async fn live(swarm: Arc<Shared>, index: usize) {
    wait_for_turn(&swarm, index).await;
    let mut minion = Minion {
        link: Link::new(swarm.clone(), index),
        swarm,
        index,
        known: VecDeque::new(),
        at_work: FuturesUnordered::new(),
        running: Vec::new(),
    };
    minion.keep_connected().await;
}

/// The first one meets the master alone: from it the others know the master's key, as minions do that were there before.
async fn wait_for_turn(swarm: &Shared, index: usize) {
    if index == 0 {
        return;
    }
    swarm.first_contact.cancelled().await;
    if swarm.options.sign_in_rate > 0.0 {
        tokio::time::sleep(Duration::from_secs_f64(index as f64 / swarm.options.sign_in_rate)).await;
    }
}

impl Minion {
    async fn keep_connected(&mut self) {
        let (mut was_let_in, mut was_ready) = (false, false);
        loop {
            if let Err(Rejected) = self.link.sign_in().await {
                return;
            }
            if !std::mem::replace(&mut was_let_in, true) {
                self.swarm.tally.has_signed_in();
            }
            let Ok(publications) = self.link.subscribe().await else {
                tokio::time::sleep(RESUBSCRIBE).await;
                continue;
            };
            self.announce(!was_ready).await;
            if !std::mem::replace(&mut was_ready, true) {
                self.swarm.tally.is_ready();
            }
            let is_slow = !self.swarm.options.idle && self.index >= self.swarm.options.answering();
            let ended = match is_slow {
                true => self.read_slowly(publications).await,
                false => self.listen(publications).await,
            };
            if matches!(ended, Ended::Churned) {
                self.swarm.tally.churned.add();
            }
            self.link.forget();
        }
    }

    /// Pillar at the first start, and the word that it is up.
    async fn announce(&mut self, is_first: bool) {
        let (pillar, start_event) = (self.swarm.options.pillar, self.swarm.options.start_event);
        if pillar && is_first {
            let grains = grains_of(&self.link.id, &self.swarm.grains);
            let fetched = self.link.fetch_pillar(grains).await;
            self.count(fetched, "pillar_given_up");
        }
        if start_event {
            let (tag, text) = (event::tag::minion_start(&self.link.id), format!("Minion {} started", self.link.id));
            let told = self.link.fire(tag, text.into()).await;
            self.count(told, "start_event_given_up");
        }
    }

    async fn listen(&mut self, mut publications: Connection) -> Ended {
        let options = &self.swarm.options;
        let (is_idle, per_minion) = (options.idle, options.churn / options.count as f64);
        let until_churn = (per_minion > 0.0).then(|| self.link.chance.next_event_secs(per_minion));
        let churn = async {
            match until_churn {
                Some(seconds) => tokio::time::sleep(Duration::from_secs_f64(seconds)).await,
                None => std::future::pending().await,
            }
        };
        let mut churn = std::pin::pin!(churn);
        loop {
            let next = tokio::select! {
                frame = wire::publication(&mut publications), if self.at_work.len() < MOST_AT_ONCE => {
                    Next::Publication(frame)
                }
                Some(delivery) = self.at_work.next() => Next::Done(delivery),
                () = self.link.stay_connected() => Next::ConnectionLost,
                () = &mut churn => Next::Churn,
            };
            match next {
                Next::Publication(Ok(_)) if is_idle => {}
                Next::Publication(Ok(frame)) => self.take(frame).await,
                Next::Publication(Err(error)) => {
                    self.swarm.tally.error(wire::kind(&error));
                    return Ended::Lost;
                }
                Next::Done(delivery) => self.send_return(delivery).await,
                // The next request opens another.
                Next::ConnectionLost => {}
                Next::Churn => return Ended::Churned,
            }
        }
    }

    async fn read_slowly(&mut self, mut publications: Connection) -> Ended {
        loop {
            tokio::time::sleep(SLOW).await;
            match wire::publication(&mut publications).await {
                Ok(_) => self.swarm.tally.slowly_read.add(),
                Err(_) => {
                    self.swarm.tally.cut_off.add();
                    return Ended::Lost;
                }
            }
        }
    }

    /// Does what a publication says, if it means this minion and is new to it.
    async fn take(&mut self, frame: Bytes) {
        let at = Instant::now();
        let Some(job) = self.open(frame).await else { return };
        if !self.takes_up(&job) {
            return;
        }
        self.swarm.tally.executes(&job.record, self.index);
        self.running.push(job.record.clone());
        self.acknowledge(&job).await;
        let (delivery, work) = (Delivery { job, at }, self.swarm.options.work);
        if work.is_zero() {
            self.send_return(delivery).await;
        } else {
            self.at_work.push(Box::pin(async move {
                tokio::time::sleep(work).await;
                delivery
            }));
        }
    }

    /// The job in a publication. One that cannot be opened costs a sign-in: the shared key may be a new one.
    async fn open(&mut self, frame: Bytes) -> Option<Arc<Job>> {
        for is_last in [false, true] {
            match self.swarm.open(&frame, &*self.swarm.access()?) {
                Ok(job) => return job,
                Err(envelope::Error::Crypto(crypto::Error::NotAuthentic)) if !is_last => {
                    self.swarm.tally.error("publication_under_another_key");
                    self.link.sign_in().await.ok()?;
                }
                Err(_) => self.swarm.tally.error("publication_refused"),
            }
        }
        None
    }

    fn takes_up(&mut self, job: &Job) -> bool {
        if !job.is_for(&self.link.id, &self.swarm.grains) {
            return false;
        }
        self.swarm.tally.delivered();
        if self.known.iter().rev().any(|record| Arc::ptr_eq(record, &job.record)) {
            self.swarm.tally.repeated.add();
            return false;
        }
        if self.known.len() == REMEMBERED {
            self.known.pop_front();
        }
        self.known.push_back(job.record.clone());
        true
    }

    async fn acknowledge(&mut self, job: &Job) {
        let is_wanted = match self.swarm.options.acks {
            Acks::Asked => job.asks_ack,
            Acks::Always => true,
            Acks::Never => false,
        };
        let Some(jid) = Jid::parse(&job.record.jid).filter(|_| is_wanted) else { return };
        if self.link.chance.happens(self.swarm.options.lose_acks) {
            self.swarm.tally.lost_acks.add();
            return;
        }
        let data = Value::map([("jid", Value::from(jid)), ("fun", job.fun.clone())]);
        let sent = self.link.fire(event::tag::job_ack(jid, &self.link.id), data).await;
        if sent.is_ok() {
            self.swarm.tally.acks.add();
        }
        self.count(sent, "ack_given_up");
    }

    async fn send_return(&mut self, Delivery { job, at }: Delivery) {
        let swarm = self.swarm.clone();
        swarm.tally.returns_sent.add();
        let sent = if self.link.chance.happens(swarm.options.fail_rate) {
            self.link.send(&Load::new(&answer::failure(&job))).await
        } else if let Some(usual) = &job.usual {
            self.link.send(usual).await
        } else {
            self.link.send(&Load::new(&answer::about_running(&job, &self.running))).await
        };
        if sent.is_ok() {
            swarm.tally.confirmed(&job.record, self.index, at.elapsed());
        }
        self.count(sent, "return_given_up");
        self.running.retain(|record| !Arc::ptr_eq(record, &job.record));
    }

    fn count(&self, outcome: Result<(), GaveUp>, error: &'static str) {
        if outcome.is_err() {
            self.swarm.tally.error(error);
        }
    }
}
