//! A light minion's part of action chains, by the contract of `saltern_chain`: chunk by chunk, nothing twice, and always
//! known how far it got. What a real machine keeps on its disk is kept here, and outlives what plays a reboot.
//!
//! Pure: time passes, jobs end and progress is sent elsewhere (`minion::chain`).

mod chunk;
mod order;
#[cfg(test)]
mod tests;

pub(crate) use chunk::Told;
pub(crate) use order::{Kind, Order};

use crate::tally::Tally;
use bytestring::ByteString;
use chunk::{Chunk, ChunkState};
use order::Start;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many cancelled launches are remembered.
const REMEMBERED: usize = 50;

/// What one minion knows of chains.
#[derive(Debug)]
pub(crate) struct Chain {
    minion: MinionId,
    boots: u64,
    boot_id: ByteString,
    kept: Option<Chunk>,
    cancelled: VecDeque<ByteString>,
}

/// What becomes of an order.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It is answered at once
    Answer(Outcome),
    /// The job goes on with the chunk, turn by turn
    Work,
}

/// What a job of `saltern_chain` returns.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) value: Value,
    pub(crate) is_failure: bool,
}

/// What happens next to a chunk.
#[derive(Debug)]
pub(crate) enum Turn {
    /// A step has begun
    Begun(Kind, Told),
    /// The step has ended; a reboot, which has not, tells nothing
    Ended(Option<Told>),
    /// Nothing is left to do in this chunk: the job returns, and if the machine reboots, it does so now
    Over { outcome: Outcome, reboots: bool },
}

impl Chain {
    pub(crate) fn new(minion: &MinionId) -> Self {
        let mut chain = Self {
            minion: minion.clone(),
            boots: 0,
            boot_id: ByteString::new(),
            kept: None,
            cancelled: VecDeque::new(),
        };
        chain.boot();
        chain
    }

    /// The machine comes up, under a boot id of its own.
    pub(crate) fn boot(&mut self) {
        self.boots += 1;
        self.boot_id = format!("{}-boot-{}", self.minion, self.boots).into();
    }

    /// The job that works on the chunk, or did last; with its launch.
    pub(crate) fn worker(&self) -> Option<(&ByteString, &ByteString)> {
        self.kept.as_ref().map(|kept| (&kept.worker, &kept.order.launch))
    }

    /// Does what the job `jid` says. `is_alive`: another job works on the chunk that is kept.
    pub(crate) fn take(&mut self, order: &Order, jid: &ByteString, is_alive: bool) -> Reply {
        let answer = match order {
            Order::Start(start) => match self.start(start, jid, is_alive) {
                Some(refusal) => refusal,
                None => return Reply::Work,
            },
            Order::Resume => {
                self.settle_unless(is_alive);
                match &mut self.kept {
                    Some(chunk) if !is_alive && chunk.state == ChunkState::Running => {
                        chunk.resumes(jid.clone());
                        return Reply::Work;
                    }
                    _ => self.view(self.kept.as_ref(), is_alive),
                }
            }
            Order::Status => {
                let mut seen = self.kept.clone();
                if let Some(seen) = seen.as_mut().filter(|_| !is_alive) {
                    seen.settle(&self.boot_id, self.is_cancelled(&seen.order.launch));
                }
                self.view(seen.as_ref(), is_alive)
            }
            Order::Cancel { launch, .. } => self.cancel(launch, is_alive),
            Order::Clear { launch, force } => self.clear(launch.as_ref(), *force, is_alive),
            Order::Wrong(text) => {
                return Reply::Answer(Outcome { value: text.as_str().into(), is_failure: true });
            }
        };
        Reply::Answer(Outcome::new(answer))
    }

    /// Whether a step is under way that has yet to end.
    pub(crate) fn is_at_step(&self) -> bool {
        self.kept.as_ref().is_some_and(Chunk::is_at_step)
    }

    /// Ends the step that is under way, or begins the next one. `fails`: chance has it that the step fails.
    pub(crate) fn turn(&mut self, fails: bool, tally: &Tally, index: usize) -> Turn {
        let is_cancelled = self.kept.as_ref().is_some_and(|chunk| self.is_cancelled(&chunk.order.launch));
        let mut is_rebooting = false;
        if let Some(chunk) = &mut self.kept {
            if chunk.is_at_step() {
                return Turn::Ended(chunk.end(fails, is_cancelled, tally, index));
            }
            if let Some((kind, told)) = chunk.begin(is_cancelled, &self.boot_id, tally, index) {
                return Turn::Begun(kind, told);
            }
            chunk.conclude(is_cancelled);
            is_rebooting = chunk.state == ChunkState::Rebooting;
        }
        Turn::Over { outcome: Outcome::new(self.view(self.kept.as_ref(), false)), reboots: is_rebooting }
    }

    /// Begins a chunk; or the answer, if it does not.
    fn start(&mut self, start: &Arc<Start>, jid: &ByteString, is_alive: bool) -> Option<Map> {
        self.settle_unless(is_alive);
        let mut failed = false;
        if let Some(kept) = &self.kept {
            // An update that killed its agent is judged by the check that begins the next chunk.
            let is_open = kept.state.is_open();
            let may_follow = !is_open || (kept.state == ChunkState::Updating && !is_alive);
            let is_same = kept.order.launch == start.launch;
            let word = match (is_same, start.chunk.cmp(&kept.order.chunk)) {
                (true, std::cmp::Ordering::Equal) => return Some(self.view(Some(kept), is_alive)),
                (true, std::cmp::Ordering::Less) => Some("past"),
                (true, std::cmp::Ordering::Greater) => (!may_follow).then_some("not_yet"),
                (false, _) => is_open.then_some("busy"),
            };
            if let Some(word) = word {
                return Some(self.error(word, kept));
            }
            failed = is_same && (kept.has_failed() || kept.state == ChunkState::Stopped);
        }
        if self.is_cancelled(&start.launch) {
            let mut refusal = nobodys("cancelled");
            refusal.insert("launch", start.launch.clone());
            refusal.insert("chunk", start.chunk);
            return Some(refusal);
        }
        self.kept = Some(Chunk::new(start.clone(), failed, jid.clone()));
        None
    }

    fn cancel(&mut self, launch: &ByteString, is_alive: bool) -> Map {
        self.cancelled.retain(|known| known != launch);
        if self.cancelled.len() == REMEMBERED {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back(launch.clone());
        if self.kept.as_ref().is_some_and(|kept| kept.order.launch == *launch) {
            self.settle_unless(is_alive);
            return self.view(self.kept.as_ref(), is_alive);
        }
        // Nothing of it is here, and nothing of it will run.
        let mut answer = self.view(None, false);
        answer.insert("launch", launch.clone());
        answer.insert("state", ChunkState::Cancelled.word());
        answer.insert("cancelled", true);
        answer
    }

    fn clear(&mut self, launch: Option<&ByteString>, force: bool, is_alive: bool) -> Map {
        let mut answer = self.view(None, false);
        if self.kept.as_ref().is_some_and(|kept| launch.is_none_or(|launch| kept.order.launch == *launch)) {
            self.settle_unless(is_alive);
        }
        let Some(kept) = &self.kept else {
            answer.insert("cleared", Value::Nil);
            return answer;
        };
        if launch.is_some_and(|launch| kept.order.launch != *launch) {
            return self.error("other", kept);
        }
        if is_alive || (kept.state.is_open() && !force) {
            return self.error("open", kept);
        }
        answer.insert("cleared", kept.order.launch.clone());
        self.kept = None;
        answer
    }

    /// Decides what became of the chunk, unless somebody works on it.
    fn settle_unless(&mut self, is_alive: bool) {
        let is_cancelled = self.kept.as_ref().is_some_and(|chunk| self.is_cancelled(&chunk.order.launch));
        if let Some(chunk) = self.kept.as_mut().filter(|_| !is_alive) {
            chunk.settle(&self.boot_id, is_cancelled);
        }
    }

    fn is_cancelled(&self, launch: &ByteString) -> bool {
        self.cancelled.contains(launch)
    }

    /// The answer that tells how a chunk stands.
    fn view(&self, chunk: Option<&Chunk>, is_alive: bool) -> Map {
        let state = chunk.map(|chunk| chunk.state);
        let mut answer = Map::with_capacity(8);
        answer.push("launch", chunk.map(|chunk| chunk.order.launch.clone()));
        answer.push("chunk", chunk.map(|chunk| chunk.order.chunk));
        answer.push("state", state.map_or("none", ChunkState::word));
        answer.push("boot_id", self.boot_id.clone());
        answer.push("alive", is_alive && state.is_some_and(ChunkState::is_open));
        answer.push("cancelled", chunk.is_some_and(|chunk| self.is_cancelled(&chunk.order.launch)));
        answer.push("steps", chunk.map(Chunk::steps).unwrap_or_default());
        answer
    }

    fn error(&self, word: &str, chunk: &Chunk) -> Map {
        let mut answer = nobodys(word);
        answer.insert("launch", chunk.order.launch.clone());
        answer.insert("chunk", chunk.order.chunk);
        answer.insert("state", chunk.state.word());
        answer.insert("boot_id", self.boot_id.clone());
        answer
    }
}

impl Outcome {
    fn new(answer: Map) -> Self {
        let is_bad = |state: &Value| matches!(state.as_str(), Some("failed" | "stopped"));
        let is_failure = answer.get("error").is_some() || answer.get("state").is_some_and(is_bad);
        Self { value: answer.into(), is_failure }
    }
}

/// An error about no chunk in particular.
fn nobodys(word: &str) -> Map {
    let mut answer = Map::with_capacity(5);
    answer.push("error", word);
    answer.push("launch", Value::Nil);
    answer.push("chunk", Value::Nil);
    answer
}
