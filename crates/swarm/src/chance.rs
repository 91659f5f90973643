//! Chance that can be repeated: every light minion draws from its own sequence, which its seed decides.

/// A sequence of pseudo-random numbers (SplitMix64): good enough for time-outs and failure rates, and eight bytes.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The sequence of one minion of one swarm.
    pub(crate) fn new(seed: u64, index: usize) -> Self {
        Self(seed ^ (index as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93))
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

    /// True so often.
    pub(crate) fn happens(&mut self, rate: f64) -> bool {
        rate > 0.0 && self.fraction() < rate
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
        let draw = |seed, index| (0..4).map(|_| 0).scan(Chance::new(seed, index), |chance, _| Some(chance.next()));
        assert!(draw(7, 3).eq(draw(7, 3)));
        assert!(!draw(7, 3).eq(draw(7, 4)));
        assert!(!draw(7, 3).eq(draw(8, 3)));
    }

    #[test]
    fn rates_are_kept_on_average() {
        let mut chance = Chance::new(1, 0);
        let hits = (0..10_000).filter(|_| chance.happens(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(!chance.happens(0.0) && chance.happens(1.0));
        let mean = (0..10_000).map(|_| chance.next_event_secs(4.0)).sum::<f64>() / 10_000.0;
        assert!((0.23..0.27).contains(&mean), "{mean}");
    }
}
