//! A histogram of durations that many tasks add to without waiting for each other.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets per doubling: an error of at most 1/32.
const FINE: usize = 32;
/// From microseconds to about nine hours.
const DOUBLINGS: usize = 30;

/// Durations, counted in buckets that grow with them.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
    max_micros: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = (0..FINE * (DOUBLINGS + 1)).map(|_| AtomicU64::new(0)).collect();
        Self { buckets, max_micros: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Adds one.
    pub(crate) fn add(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket(micros)].fetch_add(1, Relaxed);
        self.max_micros.fetch_max(micros, Relaxed);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum()
    }

    /// The longest.
    pub(crate) fn max(&self) -> Duration {
        Duration::from_micros(self.max_micros.load(Relaxed))
    }

    /// The duration that this part of them does not exceed; none if there are none.
    pub(crate) fn quantile(&self, part: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let wanted = ((count as f64 * part).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += bucket.load(Relaxed);
            if seen >= wanted {
                return Some(Duration::from_micros(upper_end(index)).min(self.max()));
            }
        }
        Some(self.max())
    }
}

fn bucket(micros: u64) -> usize {
    let fine = FINE as u64;
    if micros < fine {
        return micros as usize;
    }
    let doubling = (micros / fine).ilog2() as usize;
    let within = (micros >> doubling) as usize - FINE;
    (FINE * (doubling + 1) + within).min(FINE * (DOUBLINGS + 1) - 1)
}

/// The largest value that falls into a bucket.
fn upper_end(index: usize) -> u64 {
    match index / FINE {
        0 => index as u64,
        row => (((FINE + index % FINE + 1) as u64) << (row - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bucket_that_is_close_to_it() {
        for micros in (0..10_000).chain([65_535, 1_000_000, 123_456_789]) {
            let end = upper_end(bucket(micros));
            assert!(end >= micros && end <= micros + micros / FINE as u64, "{micros} in a bucket to {end}");
        }
        assert_eq!(bucket(u64::MAX), FINE * (DOUBLINGS + 1) - 1);
    }

    #[test]
    fn quantiles_are_of_what_was_added() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for millis in 1..=100 {
            histogram.add(Duration::from_millis(millis));
        }
        let near = |part, millis: f64| {
            let found = histogram.quantile(part).unwrap().as_secs_f64() * 1_000.0;
            assert!((found / millis - 1.0).abs() < 0.05, "{part}: {found}");
        };
        near(0.5, 50.0);
        near(0.9, 90.0);
        near(0.99, 99.0);
        assert_eq!(histogram.quantile(1.0), Some(Duration::from_millis(100)));
        assert_eq!((histogram.count(), histogram.max()), (100, Duration::from_millis(100)));
    }
}
