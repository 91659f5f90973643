//! What one light minion knows of a chunk: its steps in order, and what became of each.

use super::order::{Kind, Start, Step};
use crate::clock;
use crate::tally::Tally;
use bytestring::ByteString;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use std::sync::Arc;

/// How often a repeatable step is begun before it counts as interrupted all the same.
const TRIES: u32 = 3;

/// A chunk.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) order: Arc<Start>,
    pub(super) state: ChunkState,
    /// Whether a step of an earlier chunk has failed
    failed: bool,
    /// One for each step
    records: Vec<Record>,
    /// The job that works on it, or did last
    pub(super) worker: ByteString,
    /// The step that this job is at
    at: Option<usize>,
    /// How much of its progress this job has told
    told: u64,
}

/// How a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    Running,
    Rebooting,
    Updating,
    Done,
    Failed,
    Stopped,
    Cancelled,
}

/// What became of a step.
#[derive(Clone, Debug, Default)]
struct Record {
    state: StepState,
    ret: Option<Value>,
    retcode: Option<i64>,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    /// The boot in which a reboot was asked for
    boot_id: Option<ByteString>,
    tries: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StepState {
    #[default]
    Waiting,
    Started,
    Done,
    Failed,
    Skipped,
    Interrupted,
    Cancelled,
}

/// Progress that is to be told: the how-manieth of which job, and what it says.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) jid: ByteString,
    pub(crate) number: u64,
    pub(crate) data: Map,
}

impl Chunk {
    pub(super) fn new(order: Arc<Start>, failed: bool, worker: ByteString) -> Self {
        let records = vec![Record::default(); order.steps.len()];
        let failed = failed || order.failed;
        Self { order, state: ChunkState::Running, failed, records, worker, at: None, told: 0 }
    }

    /// Another job goes on with it.
    pub(super) fn resumes(&mut self, worker: ByteString) {
        (self.worker, self.at, self.told) = (worker, None, 0);
    }

    /// Whether a step is under way that has yet to end.
    pub(super) fn is_at_step(&self) -> bool {
        self.at.is_some()
    }

    /// Begins the next step that is to run, and tells of it; nothing if there is none.
    pub(super) fn begin(
        &mut self,
        is_cancelled: bool,
        boot: &ByteString,
        tally: &Tally,
        index: usize,
    ) -> Option<(Kind, Told)> {
        let order = self.order.clone();
        for (at, step) in order.steps.iter().enumerate() {
            let has_failed = self.has_failed();
            let record = self.records.get_mut(at)?;
            if record.state != StepState::Waiting {
                continue;
            }
            if is_cancelled {
                break;
            }
            if !step.after.may_run(has_failed) {
                record.state = StepState::Skipped;
                continue;
            }
            let boot_id = (step.kind == Kind::Reboot).then(|| boot.clone());
            let tries = record.tries + 1;
            let started = Some(clock::now());
            *record = Record { state: StepState::Started, started, tries, boot_id, ..Record::default() };
            // Once it was interrupted, and may be repeated: that is no second time.
            tally.begins_step(&step.record, index, tries > 1);
            self.at = Some(at);
            self.conclude(false);
            return self.tell(at).map(|told| (step.kind, told));
        }
        None
    }

    /// The step that is under way has done what it does, and tells of it; nothing if there is nothing to tell.
    pub(super) fn end(&mut self, fails: bool, is_cancelled: bool, tally: &Tally, index: usize) -> Option<Told> {
        let at = self.at.take()?;
        let order = self.order.clone();
        let (step, record) = (order.steps.get(at)?, self.records.get_mut(at)?);
        let fails = fails || step.fails;
        record.ret =
            Some(if fails && !step.fails { "ERROR: the swarm was told to fail".into() } else { step.ret.clone() });
        // A reboot is done when the machine is up again under another boot id.
        let is_open = step.kind == Kind::Reboot && !fails;
        if !is_open {
            record.state = if fails { StepState::Failed } else { StepState::Done };
            (record.retcode, record.ended) = (Some(fails.into()), Some(clock::now()));
        }
        if fails {
            tally.step_fails(&step.record, index);
        }
        self.conclude(is_cancelled);
        if is_open { None } else { self.tell(at) }
    }

    /// Decides what became of the steps that were under way. Nobody works on the chunk.
    pub(super) fn settle(&mut self, boot: &ByteString, is_cancelled: bool) {
        for (Step { kind, repeatable, .. }, record) in self.order.steps.iter().zip(&mut self.records) {
            if record.state != StepState::Started {
                continue;
            }
            let may_repeat = *repeatable && !is_cancelled && record.tries < TRIES;
            match kind {
                Kind::Reboot if record.boot_id.as_ref() != Some(boot) => {
                    (record.state, record.retcode, record.ended) = (StepState::Done, Some(0), Some(clock::now()));
                }
                Kind::Reboot if may_repeat && record.ret.is_none() => record.state = StepState::Waiting,
                Kind::Reboot => {}
                Kind::Update if !is_cancelled => {}
                _ if may_repeat => record.state = StepState::Waiting,
                _ => (record.state, record.ended) = (StepState::Interrupted, Some(clock::now())),
            }
        }
        self.conclude(is_cancelled);
    }

    /// Brings the chunk's state in line with that of its steps.
    pub(super) fn conclude(&mut self, is_cancelled: bool) {
        let mut pairs = self.order.steps.iter().zip(&self.records);
        let under_way = pairs.find(|(_, record)| record.state == StepState::Started).map(|(step, _)| step.kind);
        let is_cancelled = is_cancelled && under_way.is_none();
        let is_interrupted = self.has(StepState::Interrupted);
        if is_cancelled || is_interrupted {
            let end = if is_cancelled { StepState::Cancelled } else { StepState::Skipped };
            for record in self.records.iter_mut().filter(|record| record.state == StepState::Waiting) {
                record.state = end;
            }
        }
        self.state = match under_way {
            Some(Kind::Reboot) => ChunkState::Rebooting,
            Some(Kind::Update) => ChunkState::Updating,
            Some(Kind::Call | Kind::Check) => ChunkState::Running,
            None if self.has(StepState::Waiting) => ChunkState::Running,
            None if is_interrupted => ChunkState::Stopped,
            None if self.has_failed() => ChunkState::Failed,
            None if self.has(StepState::Cancelled) => ChunkState::Cancelled,
            None => ChunkState::Done,
        };
    }

    /// Whether a step has failed, here or in an earlier chunk.
    pub(super) fn has_failed(&self) -> bool {
        self.failed || self.has(StepState::Failed)
    }

    fn has(&self, state: StepState) -> bool {
        self.records.iter().any(|record| record.state == state)
    }

    /// The steps as an answer tells them.
    pub(super) fn steps(&self) -> Map {
        let pairs = self.order.steps.iter().zip(&self.records);
        pairs.map(|(step, record)| (step.id.clone().into(), record.told().into())).collect()
    }

    fn tell(&mut self, at: usize) -> Option<Told> {
        let (step, record) = (self.order.steps.get(at)?, self.records.get(at)?);
        self.told += 1;
        let mut data = Map::with_capacity(6);
        data.push("launch", self.order.launch.clone());
        data.push("chunk", self.order.chunk);
        data.push("step", step.id.clone());
        data.push("state", record.state.word());
        if let (Some(ret), Some(retcode)) = (&record.ret, record.retcode) {
            data.push("ret", ret.clone());
            data.push("retcode", retcode);
        }
        Some(Told { jid: self.worker.clone(), number: self.told, data })
    }
}

impl ChunkState {
    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Rebooting | Self::Updating)
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Rebooting => "rebooting",
            Self::Updating => "updating",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }
}

impl StepState {
    const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Started => "started",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Record {
    fn told(&self) -> Map {
        let mut told = Map::with_capacity(6);
        told.push("state", self.state.word());
        if let Some(ret) = &self.ret {
            told.push("ret", ret.clone());
        }
        if let Some(retcode) = self.retcode {
            told.push("retcode", retcode);
        }
        for (name, time) in [("started", self.started), ("ended", self.ended)] {
            if let Some(time) = time {
                told.push(name, time.stamp());
            }
        }
        if let Some(boot_id) = &self.boot_id {
            told.push("boot_id", boot_id.clone());
        }
        told
    }
}
