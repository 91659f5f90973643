//! How many runs of one action may start now, by its own rules: batch, waves, budget. Pure.
//!
//! Not here: the limits of the server, which all actions share (`tracker`).

use saltern_core::action::{OverBudget, Policy};
use saltern_core::run::WaitingFor;
use saltern_core::time::Timestamp;

/// Where an action stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) total: usize,
    /// Not begun, or waiting to be tried again
    pub(super) queued: usize,
    pub(super) in_progress: usize,
    pub(super) failed: usize,
    /// Those of `failed` whose minion was not reached
    pub(super) unreachable: usize,
    /// Places that are free but not to be filled yet, and when the first may be
    pub(super) cooling: (usize, Option<Timestamp>),
    pub(super) last_ended: Option<Timestamp>,
}

/// What may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// So many
    For(usize),
    /// None: it waits for this, and is to be looked at again then, or when something has happened
    None(WaitingFor, Option<Timestamp>),
    /// None: too many have failed
    OverBudget(OverBudget),
}

/// How many runs may start now.
pub(super) fn room(policy: &Policy, progress: &Progress, now: Timestamp) -> Room {
    if let Some(budget) = policy.budget {
        let failures = progress.failed.saturating_sub(progress.unreachable);
        let too_many = failures > budget.failures.allowed_of(progress.total);
        let too_far = budget.unreachable.is_some_and(|size| progress.unreachable > size.allowed_of(progress.total));
        if too_many || too_far {
            return Room::OverBudget(budget.then);
        }
    }
    let mut most = usize::MAX;
    if let Some(batch) = policy.batch {
        let (cooling, until) = progress.cooling;
        most = batch.size.of(progress.total).max(1).saturating_sub(progress.in_progress + cooling);
        if most == 0 {
            return Room::None(WaitingFor::Slot, until);
        }
    }
    match wave(policy, progress, now) {
        Ok(left) => Room::For(most.min(left)),
        Err(until) => Room::None(WaitingFor::Wave, until),
    }
}

/// How many the wave that is on still takes, or when to look again.
fn wave(policy: &Policy, progress: &Progress, now: Timestamp) -> Result<usize, Option<Timestamp>> {
    let begun = progress.total.saturating_sub(progress.queued);
    let ended = begun.saturating_sub(progress.in_progress);
    let mut before = 0;
    for wave in &policy.waves {
        let upto = wave.size.of(progress.total).clamp(before, progress.total);
        if begun < upto {
            return if ended >= before { Ok(upto - begun) } else { Err(None) };
        }
        if ended < upto {
            return Err(None);
        }
        // This wave is done; the next begins after its soak time.
        if begun == upto && upto < progress.total {
            let until = progress.last_ended.unwrap_or(now).plus(wave.soak);
            if until > now {
                return Err(Some(until));
            }
        }
        before = upto;
    }
    Ok(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::action::{Batch, Budget, Size, Wave};
    use std::time::Duration;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000);

    fn progress(total: usize, queued: usize, in_progress: usize) -> Progress {
        Progress { total, queued, in_progress, failed: 0, unreachable: 0, cooling: (0, None), last_ended: Some(NOW) }
    }

    #[test]
    fn a_batch_is_a_sliding_window() {
        let policy =
            Policy { batch: Some(Batch { size: Size::Percent(10), wait: Duration::ZERO }), ..Policy::default() };
        assert_eq!(room(&policy, &progress(100, 100, 0), NOW), Room::For(10));
        assert_eq!(room(&policy, &progress(100, 90, 7), NOW), Room::For(3));
        assert_eq!(room(&policy, &progress(100, 90, 10), NOW), Room::None(WaitingFor::Slot, None));
        assert_eq!(room(&policy, &progress(3, 3, 0), NOW), Room::For(1), "a part of few is one");
    }

    #[test]
    fn places_cool_down() {
        let policy =
            Policy { batch: Some(Batch { size: Size::Count(2), wait: Duration::from_secs(5) }), ..Policy::default() };
        let later = NOW.plus(Duration::from_secs(3));
        let cooling = Progress { cooling: (2, Some(later)), ..progress(10, 8, 0) };
        assert_eq!(room(&policy, &cooling, NOW), Room::None(WaitingFor::Slot, Some(later)));
    }

    #[test]
    fn a_wave_begins_when_the_one_before_is_done_and_has_soaked() {
        let soak = Duration::from_secs(60);
        let waves = vec![Wave { size: Size::Count(1), soak }, Wave { size: Size::Percent(50), soak: Duration::ZERO }];
        let policy = Policy { waves, ..Policy::default() };
        assert_eq!(room(&policy, &progress(10, 10, 0), NOW), Room::For(1));
        assert_eq!(room(&policy, &progress(10, 9, 1), NOW), Room::None(WaitingFor::Wave, None));
        let soaking = NOW.plus(soak);
        assert_eq!(room(&policy, &progress(10, 9, 0), NOW), Room::None(WaitingFor::Wave, Some(soaking)));
        assert_eq!(room(&policy, &progress(10, 9, 0), soaking), Room::For(4));
        assert_eq!(room(&policy, &progress(10, 5, 3), soaking), Room::None(WaitingFor::Wave, None));
        assert_eq!(room(&policy, &progress(10, 5, 0), soaking), Room::For(usize::MAX), "what is left is the last wave");
    }

    #[test]
    fn too_many_failures_hold_the_rest_and_the_unreachable_count_apart() {
        let budget = Budget { failures: Size::Count(2), unreachable: Some(Size::Percent(50)), then: OverBudget::Stop };
        let policy = Policy { budget: Some(budget), ..Policy::default() };
        let failed = |failed, unreachable| Progress { failed, unreachable, ..progress(10, 5, 0) };
        assert_eq!(room(&policy, &failed(2, 0), NOW), Room::For(usize::MAX));
        assert_eq!(room(&policy, &failed(3, 0), NOW), Room::OverBudget(OverBudget::Stop));
        assert_eq!(room(&policy, &failed(5, 5), NOW), Room::For(usize::MAX));
        assert_eq!(room(&policy, &failed(6, 6), NOW), Room::OverBudget(OverBudget::Stop));
    }
}
