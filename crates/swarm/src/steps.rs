//! What is remembered of each step of each launch: who has begun it, how often, and on whom it has failed.
//!
//! A launch has every step once, in whatever chunk and by whatever job it comes: a minion that begins one a second time has
//! done something twice, unless it was interrupted the first time and the step may be repeated.
//!
//! Invariant: never more steps than the swarm was told to keep jobs; the oldest go first.

use crate::counters::Marks;
use crate::records::lock;
use bytestring::ByteString;
use saltern_core::ids::MinionId;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// One step of a launch on one minion that has begun it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepEntry {
    /// The launch.
    pub launch: String,
    /// The chunk in which the step came first.
    pub chunk: i64,
    /// The step's id.
    pub step: String,
    /// The minion.
    pub minion: String,
    /// How often the minion has begun it.
    pub executed: u64,
    /// Whether it has failed there.
    pub failed: bool,
}

/// One step of a launch, and who has begun it.
#[derive(Debug)]
pub(crate) struct StepRecord {
    launch: ByteString,
    chunk: i64,
    step: ByteString,
    executed: Marks,
    pub(crate) failed: Marks,
    /// How often a minion has begun it after the first time
    again: Mutex<HashMap<usize, u64>>,
}

impl StepRecord {
    /// A minion begins it; tells whether for the first time.
    pub(crate) fn begins(&self, index: usize) -> bool {
        let is_first = self.executed.set(index);
        if !is_first {
            *lock(&self.again).entry(index).or_default() += 1;
        }
        is_first
    }

    fn entry(&self, index: usize, id: &MinionId) -> Option<StepEntry> {
        self.executed.has(index).then(|| StepEntry {
            launch: self.launch.to_string(),
            chunk: self.chunk,
            step: self.step.to_string(),
            minion: id.to_string(),
            executed: 1 + lock(&self.again).get(&index).copied().unwrap_or(0),
            failed: self.failed.has(index),
        })
    }
}

/// The steps that are kept.
#[derive(Debug)]
pub(crate) struct StepRecords {
    most: usize,
    steps: HashMap<(ByteString, ByteString), Arc<StepRecord>>,
    /// Oldest first
    order: VecDeque<Arc<StepRecord>>,
}

impl StepRecords {
    /// Keeps at most so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, steps: HashMap::new(), order: VecDeque::new() }
    }

    /// The record of a step, made if there is none.
    pub(crate) fn record(
        &mut self,
        launch: &ByteString,
        chunk: i64,
        step: &ByteString,
        minions: usize,
    ) -> Arc<StepRecord> {
        let key = (launch.clone(), step.clone());
        if let Some(known) = self.steps.get(&key) {
            return known.clone();
        }
        let record = Arc::new(StepRecord {
            launch: launch.clone(),
            chunk,
            step: step.clone(),
            executed: Marks::new(minions),
            failed: Marks::new(minions),
            again: Mutex::default(),
        });
        self.steps.insert(key, record.clone());
        self.order.push_back(record.clone());
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.steps.remove(&(oldest.launch.clone(), oldest.step.clone()));
        }
        record
    }

    /// All that are kept, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<StepRecord>> {
        self.order.iter().cloned().collect()
    }
}

/// The entries of steps on minions that have begun them.
pub(crate) fn entries(records: Vec<Arc<StepRecord>>, ids: &[MinionId]) -> impl Iterator<Item = StepEntry> {
    records.into_iter().flat_map(move |record| {
        let of_one = move |(index, id)| record.entry(index, id);
        ids.iter().enumerate().filter_map(of_one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_same_in_whatever_chunk_it_comes() {
        let mut steps = StepRecords::new(10);
        let first = steps.record(&"7".into(), 1, &"3".into(), 2);
        let again = steps.record(&"7".into(), 2, &"3".into(), 2);
        let other = steps.record(&"8".into(), 1, &"3".into(), 2);
        assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &other));
        assert_eq!([first.begins(1), again.begins(1), other.begins(1)], [true, false, true]);
        let ids = ["a", "b"].map(|id| MinionId::new(id).unwrap());
        let told: Vec<_> = entries(steps.all(), &ids).map(|e| (e.launch, e.chunk, e.minion, e.executed)).collect();
        assert_eq!(told, [("7".into(), 1, "b".into(), 2), ("8".into(), 1, "b".into(), 1)]);
    }

    #[test]
    fn steps_are_bounded_and_the_oldest_go_first() {
        let mut steps = StepRecords::new(2);
        let first = steps.record(&"7".into(), 1, &"1".into(), 1);
        for id in ["2", "3"] {
            steps.record(&"7".into(), 1, &id.into(), 1);
        }
        assert_eq!((steps.all().len(), steps.steps.len()), (2, 2));
        assert!(!Arc::ptr_eq(&first, &steps.record(&"7".into(), 1, &"1".into(), 1)));
    }
}
