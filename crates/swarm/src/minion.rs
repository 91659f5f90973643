//! The life of one light minion: one task, two connections, and little memory of its own.

mod chain;

use crate::answer;
use crate::chance::{Chance, Purpose};
use crate::link::{GaveUp, LAST_PAUSE, Link, Rejected, Sent, TRIES};
use crate::load::Load;
use crate::options::Acks;
use crate::publications::{Answer, Job, grains_of};
use crate::swarm::Shared;
use crate::wire::{self, Connection};
use crate::work::{Fate, Running, Work};
use bytes::Bytes;
use chain::{AtChain, Restart};
use saltern_core::event;
use saltern_core::ids::Jid;
use saltern_core::value::Value;
use saltern_wire::crypto;
use saltern_wire::envelope;
use saltern_wire::zmtp;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a slow reader takes for a publication.
const SLOW: Duration = Duration::from_secs(1);

/// A light minion.
struct Minion {
    swarm: Arc<Shared>,
    index: usize,
    link: Link,
    /// Which deliveries get lost
    deliveries: Chance,
    /// What becomes of executions
    executions: Chance,
    work: Work,
    chain: AtChain,
    /// Whether it was let in, and whether it is all the way up, since it was started
    is_in: bool,
    is_up: bool,
    /// Whether it was started more than once
    has_restarted: bool,
    /// When a return is sent again; nothing: no reason to wait
    send_again: Option<tokio::time::Instant>,
}

/// What happens next to a minion that listens.
enum Next {
    Publication(Result<Bytes, zmtp::Error>),
    Ended(Running),
    StepEnded,
    Send,
    ConnectionLost,
    Churn,
}

/// Why a minion stops listening.
enum Ended {
    /// The master is gone, or has cut it off
    Lost,
    /// It was told to lose its connections
    Churned,
    /// A step of a chain has it start again
    Restarts(Restart),
}

/// Lives until it is dropped, or until the master says that it does not want this minion.
pub(crate) async fn live(swarm: Arc<Shared>, index: usize) {
    wait_for_turn(&swarm, index).await;
    let chance = |purpose| Chance::new(swarm.options.seed, index, purpose);
    let mut minion = Minion {
        link: Link::new(swarm.clone(), index),
        chain: AtChain::new(&swarm, index),
        deliveries: chance(Purpose::Deliveries),
        executions: chance(Purpose::Executions),
        swarm,
        index,
        work: Work::default(),
        is_in: false,
        is_up: false,
        has_restarted: false,
        send_again: None,
    };
    // The master does not want it: a stock minion's process would end too.
    let Rejected = minion.keep_connected().await;
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
    async fn keep_connected(&mut self) -> Rejected {
        loop {
            let publications = match self.connect().await {
                Ok(publications) => publications,
                Err(rejected) => return rejected,
            };
            // One that comes back has not been started again, and does not say so: its jobs go on.
            if !self.is_up {
                self.announce().await;
                self.is_up = true;
                if !self.has_restarted {
                    self.swarm.tally.is_ready();
                }
            }
            let is_slow = !self.swarm.options.idle && self.index >= self.swarm.options.answering();
            let ended = match is_slow {
                true => Ok(self.read_slowly(publications).await),
                false => self.listen(publications).await,
            };
            match ended {
                Ok(Ended::Churned) => self.swarm.tally.churned.add(),
                Ok(Ended::Restarts(restart)) => self.start_again(restart).await,
                Ok(Ended::Lost) => self.link.rest(LAST_PAUSE / 2).await,
                Err(rejected) => return rejected,
            }
            self.link.hang_up();
        }
    }

    /// Subscribes, and when it has just been started signs in before. One that comes back keeps session and shared key as a stock minion
    /// does: it signs in anew only when a request is refused or a publication cannot be opened. What it is at goes on
    /// meanwhile: jobs end, and their returns wait.
    async fn connect(&mut self) -> Result<Connection, Rejected> {
        let Self { swarm, index, link, work, chain, is_in, has_restarted, .. } = self;
        let connecting = async {
            loop {
                if !*is_in {
                    link.sign_in().await?;
                    *is_in = true;
                    if !*has_restarted {
                        swarm.tally.has_signed_in();
                    }
                }
                match link.subscribe().await {
                    Ok(publications) => return Ok(publications),
                    Err(GaveUp) => link.rest(LAST_PAUSE).await,
                }
            }
        };
        let mut connecting = std::pin::pin!(connecting);
        loop {
            tokio::select! {
                connected = &mut connecting => return connected,
                Some(running) = work.ended() => end(swarm, *index, work, running),
                () = until(chain.step_ends), if chain.step_ends.is_some() => chain.go_on_unheard(swarm, *index, work),
            }
        }
    }

    /// Pillar, and the word that it is up.
    async fn announce(&mut self) {
        let (pillar, start_event) = (self.swarm.options.pillar, self.swarm.options.start_event);
        if pillar {
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

    async fn listen(&mut self, mut publications: Connection) -> Result<Ended, Rejected> {
        self.send_again = None;
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
            if let Some(restart) = self.chain.restart.take() {
                return Ok(Ended::Restarts(restart));
            }
            let next = tokio::select! {
                frame = wire::publication(&mut publications), if self.work.has_room() => Next::Publication(frame),
                Some(running) = self.work.ended() => Next::Ended(running),
                () = until(self.chain.step_ends), if self.chain.step_ends.is_some() => Next::StepEnded,
                () = until(self.send_again), if self.work.has_unsent() => Next::Send,
                () = self.link.stay_connected() => Next::ConnectionLost,
                () = &mut churn => Next::Churn,
            };
            match next {
                Next::Publication(Ok(_)) if is_idle => {}
                Next::Publication(Ok(frame)) => self.take(frame).await?,
                Next::Publication(Err(error)) => {
                    self.swarm.tally.error(wire::kind(&error));
                    return Ok(Ended::Lost);
                }
                Next::Ended(running) => {
                    end(&self.swarm, self.index, &mut self.work, running);
                    self.send_unless_waiting().await?;
                }
                Next::StepEnded => self.go_on().await?,
                Next::Send => self.send_return().await?,
                // The next request opens another.
                Next::ConnectionLost => {}
                Next::Churn => return Ok(Ended::Churned),
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
    async fn take(&mut self, frame: Bytes) -> Result<(), Rejected> {
        let since = Instant::now();
        let Some(job) = self.open(frame).await else { return Ok(()) };
        if !self.takes_up(&job) {
            return Ok(());
        }
        let swarm = self.swarm.clone();
        if !(job.may_come_again() && job.record.executed.has(self.index)) {
            swarm.tally.executes(&job.record, self.index);
        }
        let fate = Fate::draw(&mut self.executions, &swarm.options);
        if let Answer::Chain(order) = &job.answer {
            return self.take_order(&job, order, since, fate).await;
        }
        if job.is_about_minion {
            self.acknowledge(&job, fate).await;
            let load = self.answer(&job);
            queue_return(&swarm, &mut self.work, job, since, load);
            return self.send_unless_waiting().await;
        }
        let (jid, hangs) = (job.record.jid.clone(), swarm.options.hangs(self.index));
        if fate.fails && !hangs {
            job.record.failed.set(self.index);
        }
        self.work.begin(Running::new(job.clone(), since, fate, &swarm.tally));
        self.acknowledge(&job, fate).await;
        if hangs {
            return Ok(());
        }
        if !swarm.options.work.is_zero() {
            self.work.end_after(jid, swarm.options.work);
            return Ok(());
        }
        if let Some(running) = self.work.end(&jid) {
            end(&swarm, self.index, &mut self.work, running);
        }
        self.send_unless_waiting().await
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
        if self.deliveries.happens(self.swarm.options.drop_publications) {
            self.swarm.tally.dropped.add();
            return false;
        }
        let is_new = self.work.is_new(&job.record.jid);
        if !is_new {
            self.swarm.tally.repeated.add();
        }
        is_new
    }

    async fn acknowledge(&mut self, job: &Job, fate: Fate) {
        let is_wanted = match self.swarm.options.acks {
            Acks::Asked => job.asks_ack,
            Acks::Always => true,
            Acks::Never => false,
        };
        let Some(jid) = Jid::parse(&job.record.jid).filter(|_| is_wanted) else { return };
        if fate.loses_ack {
            self.swarm.tally.lost_acks.add();
            return;
        }
        let data = Value::map([("jid", Value::from(jid)), ("fun", job.load.get("fun").cloned().unwrap_or_default())]);
        let sent = self.link.fire(event::tag::job_ack(jid, &self.link.id), data).await;
        if sent.is_ok() {
            self.swarm.tally.acks.add();
        }
        self.count(sent, "ack_given_up");
    }

    /// What a job that is about the minion returns.
    fn answer(&mut self, job: &Job) -> Load {
        let query = match &job.answer {
            Answer::Usual(load) => return load.clone(),
            Answer::Query(query) => query,
            // Not about the minion itself: see `take_order`.
            Answer::Chain(_) => return Load::new(&answer::failure(job)),
        };
        let (value, ended) = query.answer(job.load.get("arg").unwrap_or(&Value::Nil), &mut self.work);
        if let Some(killed) = ended {
            kill(&self.swarm, self.index, killed);
        }
        Load::new(&answer::return_load(&job.record.jid, &job.load, value, false))
    }

    /// Sends a return at once, unless it is not yet time to try again.
    async fn send_unless_waiting(&mut self) -> Result<(), Rejected> {
        match self.send_again {
            None => self.send_return().await,
            Some(_) => Ok(()),
        }
    }

    /// Sends the oldest return. One that is not confirmed is sent again, for ever: an answered return must never be missing,
    /// and one that was given up could not be told from it.
    async fn send_return(&mut self) -> Result<(), Rejected> {
        let Some(unsent) = self.work.next_return() else { return Ok(()) };
        match self.link.send_once(&unsent.load).await? {
            Sent::Confirmed => {
                self.send_again = None;
                self.swarm.tally.confirmed(&unsent.job.record, self.index, unsent.since.elapsed());
                self.work.is_confirmed();
            }
            Sent::Unconfirmed => {
                unsent.tries += 1;
                self.swarm.tally.returns_repeated.add();
                if unsent.tries == TRIES {
                    self.swarm.tally.error("return_overdue");
                }
                self.send_again = Some(tokio::time::Instant::now() + self.link.chance.jitter(LAST_PAUSE));
            }
        }
        Ok(())
    }

    fn count(&self, outcome: Result<(), GaveUp>, error: &'static str) {
        if outcome.is_err() {
            self.swarm.tally.error(error);
        }
    }
}

/// A job has ended by itself.
fn end(swarm: &Shared, index: usize, work: &mut Work, running: Running) {
    let fails = running.fate.fails;
    end_with(swarm, index, work, running, |job| match &job.answer {
        Answer::Usual(load) if !fails => load.clone(),
        _ => Load::new(&answer::failure(job)),
    });
}

/// A job has ended: its return is to be sent, unless it is to be lost.
fn end_with(swarm: &Shared, index: usize, work: &mut Work, running: Running, load: impl FnOnce(&Job) -> Load) {
    let (job, since, fate) = running.end();
    if fate.loses_return {
        job.record.lost.set(index);
        swarm.tally.lost_returns.add();
        return;
    }
    let load = load(&job);
    queue_return(swarm, work, job, since, load);
}

/// A job was ended on the way: it returns nothing.
fn kill(swarm: &Shared, index: usize, running: Running) {
    running.job.record.killed.set(index);
    swarm.tally.killed.add();
}

fn queue_return(swarm: &Shared, work: &mut Work, job: Arc<Job>, since: Instant, load: Load) {
    swarm.tally.returns_sent.add();
    work.queue(job, since, load);
}

/// Ends when it is time; now, if no time is set.
async fn until(time: Option<tokio::time::Instant>) {
    if let Some(time) = time {
        tokio::time::sleep_until(time).await;
    }
}

#[cfg(test)]
mod tests;
