//! Chance that can be repeated: every light minion draws from sequences of its own, which the seed decides.
//!
//! What is drawn when something happens on the wire must not depend on how often a request was tried meanwhile, so each
//! purpose has its own sequence.

use std::time::Duration;

/// A sequence of pseudo-random numbers (SplitMix64): good enough for time-outs and failure rates, and eight bytes.
#[derive(Debug)]
pub(crate) struct Chance(u64);

/// What a sequence is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// How long to wait: drawn as often as it takes
    Timing = 0,
    /// One draw for each delivery
    Deliveries = 1,
    /// The same number of draws for each execution
    Executions = 2,
    /// One draw for each step of a chain
    Steps = 3,
}

impl Chance {
    /// The sequence that one minion of one swarm has for a purpose.
    pub(crate) fn new(seed: u64, index: usize, purpose: Purpose) -> Self {
        let minion = (index as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
        Self(seed ^ minion ^ (purpose as u64).wrapping_mul(0xa076_1d64_78bd_642f))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True so often. Draws in any case: whether something else may happen does not change what does.
    pub(crate) fn happens(&mut self, rate: f64) -> bool {
        self.fraction() < rate
    }

    /// From half of a duration to all of it, so that those who wait for the same do not all come back at once.
    pub(crate) fn jitter(&mut self, most: Duration) -> Duration {
        most.mul_f64(0.5 + self.fraction() / 2.0)
    }

    /// How long until the next of events that come `per_second` on average.
    pub(crate) fn next_event_secs(&mut self, per_second: f64) -> f64 {
        -(1.0 - self.fraction()).ln() / per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_neighbours_differ() {
        let draw = |seed, index, purpose| {
            let mut chance = Chance::new(seed, index, purpose);
            [chance.next(), chance.next(), chance.next(), chance.next()]
        };
        let drawn = draw(7, 3, Purpose::Timing);
        assert_eq!(drawn, draw(7, 3, Purpose::Timing));
        assert_ne!(drawn, draw(7, 4, Purpose::Timing));
        assert_ne!(drawn, draw(8, 3, Purpose::Timing));
        assert_ne!(drawn, draw(7, 3, Purpose::Deliveries));
    }

    #[test]
    fn rates_are_kept_on_average() {
        let mut chance = Chance::new(1, 0, Purpose::Timing);
        let hits = (0..10_000).filter(|_| chance.happens(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(!chance.happens(0.0) && chance.happens(1.0));
        let mean = (0..10_000).map(|_| chance.next_event_secs(4.0)).sum::<f64>() / 10_000.0;
        assert!((0.23..0.27).contains(&mean), "{mean}");
    }

    #[test]
    fn one_rate_does_not_change_what_is_drawn_for_the_other() {
        let draw = |first: f64| {
            let mut chance = Chance::new(1, 0, Purpose::Executions);
            (0..100).map(|_| (chance.happens(first), chance.happens(0.5)).1).collect::<Vec<_>>()
        };
        assert_eq!(draw(0.0), draw(0.9));
    }

    #[test]
    fn jitter_is_at_least_half_and_at_most_all() {
        let mut chance = Chance::new(1, 0, Purpose::Timing);
        let most = Duration::from_secs(1);
        assert!((0..1_000).map(|_| chance.jitter(most)).all(|wait| wait >= most / 2 && wait <= most));
    }
}
