//! How a light minion goes through its part of an action chain: steps take their time, progress is told, and a step that
//! reboots the machine or kills the agent takes the minion away for a while.

use super::{Minion, end_with, kill};
use crate::answer;
use crate::chain::{Chain, Kind, Order, Outcome, Reply, Told, Turn};
use crate::chance::{Chance, Purpose};
use crate::link::{Rejected, Sent};
use crate::load::Load;
use crate::publications::Job;
use crate::swarm::Shared;
use crate::work::{Fate, Running, Work};
use bytestring::ByteString;
use saltern_core::event;
use saltern_core::ids::Jid;
use std::sync::Arc;
use tokio::time::Instant;

/// A minion's part of action chains, and when it goes on.
pub(super) struct AtChain {
    part: Chain,
    /// Which steps fail
    steps: Chance,
    /// When the step that is under way ends
    pub(super) step_ends: Option<Instant>,
    /// What the minion is to do as soon as its return was sent
    pub(super) restart: Option<Restart>,
}

/// What starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Machine,
    Agent,
}

impl AtChain {
    pub(super) fn new(swarm: &Shared, index: usize) -> Self {
        Self {
            part: Chain::new(&swarm.ids[index]),
            steps: Chance::new(swarm.options.seed, index, Purpose::Steps),
            step_ends: None,
            restart: None,
        }
    }

    /// Goes on while the master is not there: what could be told is in the answer too.
    pub(super) fn go_on_unheard(&mut self, swarm: &Shared, index: usize, work: &mut Work) {
        while self.turn(swarm, index, work).1 {}
    }

    /// Ends a step or begins one. Gives what is to be told, and whether it goes on at once.
    fn turn(&mut self, swarm: &Shared, index: usize, work: &mut Work) -> (Option<Told>, bool) {
        self.step_ends = None;
        // One that was killed has no more turns.
        let Some(jid) = self.worker(work) else { return (None, false) };
        let options = &swarm.options;
        let fails = self.part.is_at_step() && self.steps.happens(options.fail_rate);
        match self.part.turn(fails, &swarm.tally, index) {
            Turn::Begun(Kind::Update, told) if options.update_restarts => {
                if let Some(running) = work.end(&jid) {
                    kill(swarm, index, running);
                }
                self.restart = Some(Restart::Agent);
                (Some(told), false)
            }
            Turn::Begun(_, told) => {
                let (hangs, takes_time) = (options.hangs(index), !options.step_work.is_zero());
                if takes_time && !hangs {
                    self.step_ends = Some(Instant::now() + options.step_work);
                }
                (Some(told), !hangs && !takes_time)
            }
            Turn::Ended(told) => (told, true),
            Turn::Over { outcome, reboots } => {
                if let Some(running) = work.end(&jid) {
                    answer(swarm, index, work, running, outcome);
                }
                self.restart = reboots.then_some(Restart::Machine);
                (None, false)
            }
        }
    }

    /// The job that works on the chunk.
    fn worker(&self, work: &Work) -> Option<ByteString> {
        self.part.worker().map(|(jid, _)| jid).filter(|jid| work.is_at(jid)).cloned()
    }
}

impl Minion {
    /// Does what a job of `saltern_chain` says.
    pub(super) async fn take_order(
        &mut self,
        job: &Arc<Job>,
        order: &Order,
        since: std::time::Instant,
        fate: Fate,
    ) -> Result<(), Rejected> {
        if let Order::Cancel { launch, kill: true } = order {
            self.kill_worker_of(launch);
        }
        // Asked before this job is one of those the minion is at: it may be the same one come again.
        let is_alive = self.chain.worker(&self.work).is_some();
        self.work.begin(Running::new(job.clone(), since, fate, &self.swarm.tally));
        self.acknowledge(job, fate).await;
        match self.chain.part.take(order, &job.record.jid, is_alive) {
            Reply::Work => self.go_on().await,
            Reply::Answer(outcome) => {
                if let Some(running) = self.work.end(&job.record.jid) {
                    answer(&self.swarm, self.index, &mut self.work, running, outcome);
                }
                self.send_unless_waiting().await
            }
        }
    }

    /// Goes on with the chunk until a step takes its time or nothing is left, and sends what is then to be returned.
    pub(super) async fn go_on(&mut self) -> Result<(), Rejected> {
        let mut is_heard = true;
        loop {
            let (told, goes_on) = self.chain.turn(&self.swarm, self.index, &mut self.work);
            // A master that does not hear now would only hold up the steps: the answer tells all of it.
            if let Some(told) = told.filter(|_| is_heard) {
                is_heard = self.tell(told).await?;
            }
            if !goes_on {
                break;
            }
        }
        self.send_unless_waiting().await
    }

    /// Is away for a while. What ran is killed, the jobs it knew are forgotten, and it has to sign in again; its chunk and
    /// the returns that the master has not confirmed are still there.
    pub(super) async fn start_again(&mut self, restart: Restart) {
        for running in self.work.start_again() {
            kill(&self.swarm, self.index, running);
        }
        self.link.start_again();
        (self.is_in, self.is_up, self.has_restarted, self.chain.step_ends) = (false, false, true, None);
        if restart == Restart::Machine {
            self.chain.part.boot();
        }
        self.swarm.tally.restarts.add();
        tokio::time::sleep(self.swarm.options.restart).await;
    }

    /// Tells the master of a step; whether it has heard.
    async fn tell(&mut self, told: Told) -> Result<bool, Rejected> {
        let Some(jid) = Jid::parse(&told.jid) else { return Ok(true) };
        let tag = event::tag::job_prog(jid, &self.link.id, told.number);
        Ok(self.link.fire_once(tag, told.data.into()).await? == Sent::Confirmed)
    }

    fn kill_worker_of(&mut self, launch: &ByteString) {
        let is_its = self.chain.part.worker().is_some_and(|(_, of)| of == launch);
        let worker = self.chain.worker(&self.work).filter(|_| is_its);
        if let Some(running) = worker.and_then(|jid| self.work.end(&jid)) {
            kill(&self.swarm, self.index, running);
        }
    }
}

/// A job of `saltern_chain` has come to its end.
fn answer(swarm: &Shared, index: usize, work: &mut Work, running: Running, outcome: Outcome) {
    let Outcome { value, is_failure } = outcome;
    if is_failure {
        running.job.record.failed.set(index);
    }
    end_with(swarm, index, work, running, |job| {
        Load::new(&answer::return_load(&job.record.jid, &job.load, value, is_failure))
    });
}
