//! How long a webhook waits after a failure: longer each time, and never in step with others.

use std::time::Duration;

/// The pause after the first failure.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause.
pub(super) const LONGEST: Duration = Duration::from_secs(600);

/// The pause after so many failures in a row, at least one. `chance` is evenly spread over all its values: receivers that
/// were down get their senders back one by one.
pub(super) fn pause(failures: i64, chance: u32) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1).clamp(0, 30)).unwrap_or(0);
    let whole = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let half = whole / 2;
    half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

/// A number that nobody can guess; without randomness all wait the same time.
pub(super) fn chance() -> u32 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u32::from_ne_bytes(bytes),
        Err(_) => u32::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let longest: Vec<u64> = (1..=12).map(|failures| pause(failures, u32::MAX).as_secs()).collect();
        assert_eq!(longest, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(pause(i64::MAX, u32::MAX), LONGEST);
        assert_eq!(pause(0, u32::MAX), FIRST);
    }

    #[test]
    fn chance_takes_up_to_half_of_a_pause_away() {
        for failures in 1..20 {
            let (short, long) = (pause(failures, 0), pause(failures, u32::MAX));
            assert_eq!(short * 2, long);
            let some = pause(failures, u32::MAX / 3);
            assert!(short < some && some < long);
        }
    }
}
