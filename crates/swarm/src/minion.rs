//! The life of one light minion: one task, two connections, a few hundred bytes of memory of its own.

use crate::answer;
use crate::link::{GaveUp, Link, Rejected, kind};
use crate::options::Acks;
use crate::publications::{Job, grains_of};
use crate::swarm::Shared;
use crate::tally::Record;
use bytes::Bytes;
use bytestring::ByteString;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use saltern_core::event;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::value::Value;
use saltern_wire::crypto;
use saltern_wire::envelope;
use saltern_wire::zmtp::subscriber::Subscriber;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

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
    id: MinionId,
    link: Link,
    jobs: Mutex<Memory>,
}

/// What it remembers of jobs.
#[derive(Default)]
struct Memory {
    /// The last ones it took up
    known: VecDeque<Arc<Record>>,
    running: Vec<ByteString>,
}

/// A job that has reached the minion.
struct Delivery {
    job: Arc<Job>,
    at: Instant,
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
    let minion = Minion {
        id: swarm.ids[index].clone(),
        link: Link::new(swarm.clone(), index),
        swarm,
        index,
        jobs: Mutex::default(),
    };
    minion.wait_for_turn().await;
    let (sender, queue) = mpsc::channel(1);
    tokio::join!(minion.keep_connected(sender), minion.work(queue));
}

impl Minion {
    /// The first one meets the master alone: from it the others know the master's key, as minions do that were there before.
    async fn wait_for_turn(&self) {
        if self.index == 0 {
            return;
        }
        self.swarm.first_contact.cancelled().await;
        let rate = self.swarm.options.sign_in_rate;
        if rate > 0.0 {
            tokio::time::sleep(Duration::from_secs_f64(self.index as f64 / rate)).await;
        }
    }

    async fn keep_connected(&self, jobs: mpsc::Sender<Delivery>) {
        let (mut was_let_in, mut was_ready) = (false, false);
        loop {
            if let Err(Rejected) = self.link.sign_in(None).await {
                return;
            }
            if !std::mem::replace(&mut was_let_in, true) {
                self.swarm.tally.has_signed_in();
            }
            let Ok(subscriber) = self.link.subscribe().await else {
                tokio::time::sleep(RESUBSCRIBE).await;
                continue;
            };
            self.announce(!was_ready).await;
            if !std::mem::replace(&mut was_ready, true) {
                self.swarm.tally.is_ready();
            }
            let ended = if self.index < self.swarm.options.answering() || self.swarm.options.idle {
                self.listen(subscriber, &jobs).await
            } else {
                self.read_slowly(subscriber).await
            };
            if matches!(ended, Ended::Churned) {
                self.swarm.tally.churned.add();
            }
            self.link.forget();
        }
    }

    /// Pillar at the first start, and the word that it is up.
    async fn announce(&self, is_first: bool) {
        let options = &self.swarm.options;
        if options.pillar && is_first {
            self.count(self.link.fetch_pillar(grains_of(&self.id, &self.swarm.grains)).await, "pillar_given_up");
        }
        if options.start_event {
            let text = format!("Minion {} started", self.id);
            self.count(self.link.fire(event::tag::minion_start(&self.id), text.into()).await, "start_event_given_up");
        }
    }

    async fn listen(&self, mut subscriber: Subscriber, jobs: &mpsc::Sender<Delivery>) -> Ended {
        let options = &self.swarm.options;
        let per_minion = options.churn / options.count as f64;
        let until_churn = (per_minion > 0.0).then(|| self.link.chance(|chance| chance.next_event_secs(per_minion)));
        let churn = async {
            match until_churn {
                Some(seconds) => tokio::time::sleep(Duration::from_secs_f64(seconds)).await,
                None => std::future::pending().await,
            }
        };
        let mut churn = std::pin::pin!(churn);
        loop {
            let frame = tokio::select! {
                frame = subscriber.recv() => frame,
                () = &mut churn => return Ended::Churned,
            };
            let at = Instant::now();
            match frame {
                Ok(_) if options.idle => {}
                Ok(frame) => {
                    if let Some(job) = self.open(frame).await
                        && self.takes_up(&job)
                        && jobs.send(Delivery { job, at }).await.is_err()
                    {
                        return Ended::Lost;
                    }
                }
                Err(error) => {
                    self.swarm.tally.error(kind(&error));
                    return Ended::Lost;
                }
            }
        }
    }

    async fn read_slowly(&self, mut subscriber: Subscriber) -> Ended {
        loop {
            tokio::time::sleep(SLOW).await;
            match subscriber.recv().await {
                Ok(_) => self.swarm.tally.slowly_read.add(),
                Err(_) => {
                    self.swarm.tally.cut_off.add();
                    return Ended::Lost;
                }
            }
        }
    }

    /// The job in a publication. One that cannot be opened costs a sign-in: the shared key may be a new one.
    async fn open(&self, frame: Bytes) -> Option<Arc<Job>> {
        for is_last in [false, true] {
            let (access, session) = (self.link.access()?, self.link.session());
            match self.swarm.open(frame.clone(), &access) {
                Ok(job) => return job,
                Err(envelope::Error::Crypto(crypto::Error::NotAuthentic)) if !is_last => {
                    self.swarm.tally.error("publication_under_another_key");
                    self.link.sign_in(session.as_ref()).await.ok()?;
                }
                Err(_) => self.swarm.tally.error("publication_refused"),
            }
        }
        None
    }

    /// Whether the job means this minion, and is new to it.
    fn takes_up(&self, job: &Job) -> bool {
        if !job.is_for(&self.id, &self.swarm.grains) {
            return false;
        }
        self.swarm.tally.delivered();
        let mut memory = self.memory();
        if memory.known.iter().rev().any(|record| Arc::ptr_eq(record, &job.record)) {
            self.swarm.tally.repeated.add();
            return false;
        }
        if memory.known.len() == REMEMBERED {
            memory.known.pop_front();
        }
        memory.known.push_back(job.record.clone());
        true
    }

    /// Does the jobs, side by side. Where they take no time, one after the other is the same, and cheaper.
    async fn work(&self, mut queue: mpsc::Receiver<Delivery>) {
        if self.swarm.options.work.is_zero() {
            while let Some(delivery) = queue.recv().await {
                self.perform(delivery).await;
            }
            return;
        }
        let mut at_work = FuturesUnordered::new();
        loop {
            tokio::select! {
                next = queue.recv(), if at_work.len() < MOST_AT_ONCE => match next {
                    Some(delivery) => at_work.push(self.perform(delivery)),
                    None => break,
                },
                Some(()) = at_work.next() => {}
            }
        }
        while at_work.next().await.is_some() {}
    }

    async fn perform(&self, Delivery { job, at }: Delivery) {
        let (options, tally) = (&self.swarm.options, &self.swarm.tally);
        tally.executes(&job.record, self.index);
        self.memory().running.push(job.record.jid.clone());
        self.acknowledge(&job).await;
        if !options.work.is_zero() {
            tokio::time::sleep(options.work).await;
        }
        let is_failure = self.link.chance(|chance| chance.happens(options.fail_rate));
        let value = match is_failure {
            true => Value::from("ERROR: the swarm was told to fail"),
            false => answer::value(&job, &self.memory().running, &self.swarm.padding),
        };
        tally.returns_sent.add();
        let sent = self.link.send(answer::return_load(&job, &self.id, value, is_failure)).await;
        if sent.is_ok() {
            tally.confirmed(&job.record, self.index, at.elapsed());
        }
        self.count(sent, "return_given_up");
        self.memory().running.retain(|jid| *jid != job.record.jid);
    }

    async fn acknowledge(&self, job: &Job) {
        let options = &self.swarm.options;
        let is_wanted = match options.acks {
            Acks::Asked => job.asks_ack,
            Acks::Always => true,
            Acks::Never => false,
        };
        let Some(jid) = Jid::parse(&job.record.jid).filter(|_| is_wanted) else { return };
        if self.link.chance(|chance| chance.happens(options.lose_acks)) {
            self.swarm.tally.lost_acks.add();
            return;
        }
        let data = Value::map([("jid", Value::from(jid)), ("fun", job.fun.clone())]);
        let sent = self.link.fire(event::tag::job_ack(jid, &self.id), data).await;
        if sent.is_ok() {
            self.swarm.tally.acks.add();
        }
        self.count(sent, "ack_given_up");
    }

    fn count(&self, outcome: Result<(), GaveUp>, error: &'static str) {
        if outcome.is_err() {
            self.swarm.tally.error(error);
        }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
