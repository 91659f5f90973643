//! The size of the tests, and the chance they draw from: whoever has the seed can have the same moments again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Whether the long forms were asked for.
pub(crate) fn is_long() -> bool {
    std::env::var("SALTERN_CHAOS").is_ok_and(|form| form == "long")
}

/// A number of the environment, or the one of the short or the long form.
pub(crate) fn size(name: &str, short: usize, long: usize) -> usize {
    let usual = if is_long() { long } else { short };
    let name = format!("SALTERN_CHAOS_{name}");
    match std::env::var(&name) {
        Ok(text) => text.parse().expect("a size in the environment is a number"),
        Err(_) => usual,
    }
}

/// The seed of the environment, or a fresh one.
pub(crate) fn seed() -> u64 {
    let fresh = RandomState::new().hash_one("chaos") as usize % 1_000_000;
    size("SEED", fresh, fresh) as u64
}

/// A sequence of pseudo-random numbers (SplitMix64).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A duration between two others.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        least + (most - least).mul_f64(part)
    }
}
