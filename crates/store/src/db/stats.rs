//! How the writer is doing: how long commits take, and how many writes share one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of a commit's time, in seconds.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];
/// Upper bounds of the writes in a commit.
const WRITES: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];

/// The writer's work since the store was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitStats {
    /// Commits
    pub commits: u64,
    /// Writes in them
    pub writes: u64,
    /// Time they took in all, from the first statement to the commit
    pub seconds_total: f64,
    /// Commits by the seconds they took
    pub latency: Vec<Bucket>,
    /// Commits by the number of their writes
    pub group_size: Vec<Bucket>,
}

/// How many were at most so much, and more than the bucket before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The most that falls into it; infinite for the last
    pub upto: f64,
    /// How many fell into it
    pub count: u64,
}

/// The same, counted by the writer while others read.
#[derive(Default)]
pub(super) struct Recorder {
    commits: AtomicU64,
    writes: AtomicU64,
    micros: AtomicU64,
    latency: [AtomicU64; SECONDS.len() + 1],
    group_size: [AtomicU64; WRITES.len() + 1],
}

impl Recorder {
    pub(super) fn record(&self, writes: usize, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.latency[bucket(&SECONDS, took.as_secs_f64())].fetch_add(1, Ordering::Relaxed);
        self.group_size[bucket(&WRITES, writes as f64)].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(super) fn read(&self) -> CommitStats {
        CommitStats {
            commits: self.commits(),
            writes: self.writes.load(Ordering::Relaxed),
            seconds_total: Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64(),
            latency: buckets(&SECONDS, &self.latency),
            group_size: buckets(&WRITES, &self.group_size),
        }
    }
}

fn bucket(bounds: &[f64], value: f64) -> usize {
    bounds.partition_point(|bound| *bound < value)
}

fn buckets(bounds: &[f64], counts: &[AtomicU64]) -> Vec<Bucket> {
    let bounds = bounds.iter().copied().chain([f64::INFINITY]);
    bounds.zip(counts).map(|(upto, count)| Bucket { upto, count: count.load(Ordering::Relaxed) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_counted_in_the_bucket_that_ends_with_it() {
        let recorder = Recorder::default();
        recorder.record(1, Duration::from_micros(400));
        recorder.record(2, Duration::from_millis(1));
        recorder.record(5000, Duration::from_secs(60));
        let stats = recorder.read();
        assert_eq!((stats.commits, stats.writes, stats.seconds_total), (3, 5003, 60.0014));
        let counts = |buckets: Vec<Bucket>| buckets.into_iter().map(|bucket| bucket.count).collect::<Vec<_>>();
        assert_eq!(counts(stats.latency), [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(counts(stats.group_size), [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
