//! Numbers that thousands of light minions add to at once: counters, peaks, one mark per minion.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many there are of something.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// One of those that were added does not count after all.
    pub(crate) fn take_back(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How many of something there are now, and how many there were at most.
#[derive(Debug, Default)]
pub(crate) struct Peak {
    now: AtomicU64,
    most: AtomicU64,
}

impl Peak {
    pub(crate) fn rise(&self) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(now, Relaxed);
    }

    pub(crate) fn fall(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    pub(crate) fn most(&self) -> u64 {
        self.most.load(Relaxed)
    }
}

/// One mark per minion. Takes up no room worth speaking of until the first is set: most jobs fail nowhere.
#[derive(Debug)]
pub(crate) struct Marks {
    minions: usize,
    words: OnceLock<Box<[AtomicU64]>>,
    count: Counter,
}

impl Marks {
    pub(crate) fn new(minions: usize) -> Self {
        Self { minions, words: OnceLock::new(), count: Counter::default() }
    }

    /// Marks a minion; tells whether it was not marked before.
    pub(crate) fn set(&self, index: usize) -> bool {
        let words = self.words.get_or_init(|| (0..self.minions.div_ceil(64)).map(|_| AtomicU64::new(0)).collect());
        let Some(word) = words.get(index / 64) else { return false };
        let is_new = word.fetch_or(bit(index), Relaxed) & bit(index) == 0;
        if is_new {
            self.count.add();
        }
        is_new
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        let word = self.words.get().and_then(|words| words.get(index / 64));
        word.is_some_and(|word| word.load(Relaxed) & bit(index) != 0)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }
}

fn bit(index: usize) -> u64 {
    1 << (index % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_new_once_and_nobody_elses() {
        let marks = Marks::new(100);
        assert!(!marks.has(70));
        assert!(marks.set(70) && !marks.set(70));
        assert!(marks.has(70) && !marks.has(6) && !marks.has(69));
        assert_eq!(marks.count(), 1);
    }

    #[test]
    fn a_peak_stays_when_the_number_falls() {
        let peak = Peak::default();
        peak.rise();
        peak.rise();
        peak.fall();
        peak.rise();
        peak.fall();
        assert_eq!((peak.now(), peak.most()), (1, 2));
    }
}
