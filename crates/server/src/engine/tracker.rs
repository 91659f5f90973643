//! The runs in progress: how many, whose, and when something was last heard of each.
//!
//! Everything that takes a place is here, so the limits are kept here: of the server, and of each lane. Held in memory and
//! read back from the tables at the start; at most as large as the limits allow.
//!
//! Invariant: places in use = places reserved + runs tracked; a place is reserved before its claim is committed.

use super::Work;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::time::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// One run in progress.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    pub(super) jid: Jid,
    /// When this attempt was first published, and last
    pub(super) sent: Timestamp,
    pub(super) delivered: Timestamp,
    pub(super) deliveries: u32,
    pub(super) picked_up: Option<Timestamp>,
    /// When something was last heard of it, or it was last asked
    pub(super) heard: Timestamp,
    pub(super) asked: Option<Timestamp>,
    /// How often in a row the minion said that it does not run it
    pub(super) strikes: u32,
    /// Whether an acknowledgement is expected
    pub(super) acks: bool,
    /// Read back at the start: whether it was published before the stop is not known
    pub(super) recovered: bool,
    /// Somebody wants it killed
    pub(super) stopping: bool,
}

/// The runs in progress of one action.
pub(super) struct InProgress {
    pub(super) work: Arc<Work>,
    pub(super) runs: HashMap<MinionId, Tracked>,
    /// When places became free that are not to be filled at once
    cooling: VecDeque<Timestamp>,
    /// When a run last ended
    pub(super) last_ended: Option<Timestamp>,
    /// Sum and number of the times that runs took
    took: (Duration, u32),
}

/// All runs in progress.
pub(super) struct Tracker {
    actions: HashMap<ActionId, InProgress>,
    lanes: [usize; 2],
    limit: usize,
    bucket: Bucket,
}

/// Tokens for starts: `rate` per second, at most a second's worth saved.
struct Bucket {
    rate: f64,
    tokens: f64,
    at: Timestamp,
}

/// Which lane a run is in: people who wait do not queue behind large actions.
const fn lane(interactive: bool) -> usize {
    interactive as usize
}

impl Tracked {
    /// A run that was published just now.
    pub(super) fn new(jid: Jid, deliveries: u32, acks: bool, now: Timestamp) -> Self {
        Self {
            jid,
            sent: now,
            delivered: now,
            deliveries,
            picked_up: None,
            heard: now,
            asked: None,
            strikes: 0,
            acks,
            recovered: false,
            stopping: false,
        }
    }
}

impl Tracker {
    /// `limit` places in each lane, `rate` starts per second; 0 is no limit.
    pub(super) fn new(limit: usize, rate: usize) -> Self {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let bucket = Bucket { rate: rate as f64, tokens: rate as f64, at: Timestamp(0) };
        Self { actions: HashMap::new(), lanes: [0, 0], limit, bucket }
    }

    /// Takes up to `wanted` places; gives how many.
    pub(super) fn reserve(&mut self, interactive: bool, wanted: usize, now: Timestamp) -> usize {
        let used = &mut self.lanes[lane(interactive)];
        let free = self.limit.saturating_sub(*used);
        let granted = wanted.min(free).min(self.bucket.available(now));
        *used += granted;
        self.bucket.take(granted);
        granted
    }

    /// How many places of a lane are free.
    pub(super) fn free(&self, interactive: bool) -> usize {
        self.limit.saturating_sub(self.lanes[lane(interactive)])
    }

    /// Whether starts are held back by their rate.
    pub(super) fn is_rated(&mut self, now: Timestamp) -> bool {
        self.bucket.available(now) == 0
    }

    /// Gives reserved places back.
    pub(super) fn unreserve(&mut self, interactive: bool, places: usize) {
        let used = &mut self.lanes[lane(interactive)];
        *used = used.saturating_sub(places);
    }

    /// Fills a reserved place.
    pub(super) fn fill(&mut self, work: &Arc<Work>, minion: MinionId, run: Tracked) {
        let entry = self.actions.entry(work.id).or_insert_with(|| InProgress {
            work: work.clone(),
            runs: HashMap::new(),
            cooling: VecDeque::new(),
            last_ended: None,
            took: (Duration::ZERO, 0),
        });
        if entry.runs.insert(minion, run).is_some() {
            // It had a place already.
            self.unreserve(work.policy.interactive, 1);
        }
    }

    /// Takes a place without asking: for what was in progress before the start.
    pub(super) fn restore(&mut self, work: &Arc<Work>, minion: MinionId, run: Tracked) {
        self.lanes[lane(work.policy.interactive)] += 1;
        self.fill(work, minion, run);
    }

    /// Frees the place of a run; tells whether it had one, and whether a batch has no more in progress.
    pub(super) fn remove(&mut self, action: ActionId, minion: &MinionId, now: Timestamp) -> (bool, bool) {
        let Some(entry) = self.actions.get_mut(&action) else { return (false, false) };
        let Some(run) = entry.runs.remove(minion) else { return (false, false) };
        let is_last_of_batch = entry.runs.is_empty() && entry.work.policy.batch.is_some();
        entry.last_ended = Some(now);
        entry.took.0 += now.since(run.picked_up.unwrap_or(run.sent));
        entry.took.1 += 1;
        if entry.work.policy.batch.is_some_and(|batch| !batch.wait.is_zero()) {
            entry.cooling.push_back(now);
        }
        let interactive = entry.work.policy.interactive;
        // Waves and batches ask when the last run ended, so such an action stays while it has runs to start.
        if entry.runs.is_empty() && entry.work.policy.waves.is_empty() && entry.cooling.is_empty() {
            self.actions.remove(&action);
        }
        self.unreserve(interactive, 1);
        (true, is_last_of_batch)
    }

    /// Forgets an action that has no more to do.
    pub(super) fn forget(&mut self, action: ActionId) {
        if let Some(entry) = self.actions.remove(&action) {
            self.unreserve(entry.work.policy.interactive, entry.runs.len());
        }
    }

    pub(super) fn get_mut(&mut self, action: ActionId, minion: &MinionId) -> Option<&mut Tracked> {
        self.actions.get_mut(&action)?.runs.get_mut(minion)
    }

    pub(super) fn action(&self, action: ActionId) -> Option<&InProgress> {
        self.actions.get(&action)
    }

    pub(super) fn actions(&mut self) -> impl Iterator<Item = (&ActionId, &mut InProgress)> {
        self.actions.iter_mut()
    }

    /// Runs in progress, of all actions.
    pub(super) fn len(&self) -> usize {
        self.lanes.iter().sum()
    }

    /// How many places of an action are free but not to be filled yet, and when the first may be.
    pub(super) fn cooling(&mut self, action: ActionId, now: Timestamp) -> (usize, Option<Timestamp>) {
        let Some(entry) = self.actions.get_mut(&action) else { return (0, None) };
        let Some(wait) = entry.work.policy.batch.map(|batch| batch.wait) else { return (0, None) };
        while entry.cooling.front().is_some_and(|freed| freed.plus(wait) <= now) {
            entry.cooling.pop_front();
        }
        (entry.cooling.len(), entry.cooling.front().map(|freed| freed.plus(wait)))
    }
}

impl InProgress {
    /// How long its runs have taken so far, if any has ended.
    pub(super) fn mean(&self) -> Option<Duration> {
        (self.took.1 > 0).then(|| self.took.0 / self.took.1)
    }
}

impl Bucket {
    fn available(&mut self, now: Timestamp) -> usize {
        if self.rate <= 0.0 {
            return usize::MAX;
        }
        self.tokens = (self.tokens + now.since(self.at).as_secs_f64() * self.rate).min(self.rate.max(1.0));
        self.at = self.at.max(now);
        self.tokens as usize
    }

    fn take(&mut self, tokens: usize) {
        if self.rate > 0.0 {
            self.tokens -= tokens as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(1_800_000_000 + seconds)
    }

    #[test]
    fn no_more_places_are_given_than_there_are() {
        let mut tracker = Tracker::new(10, 0);
        assert_eq!(tracker.reserve(false, 7, at(0)), 7);
        assert_eq!(tracker.reserve(false, 7, at(0)), 3);
        assert_eq!(tracker.reserve(false, 7, at(0)), 0);
        tracker.unreserve(false, 4);
        assert_eq!(tracker.reserve(false, 7, at(0)), 4);
    }

    #[test]
    fn who_waits_has_a_lane_of_his_own() {
        let mut tracker = Tracker::new(10, 0);
        assert_eq!(tracker.reserve(false, 100, at(0)), 10);
        assert_eq!(tracker.reserve(true, 5, at(0)), 5);
    }

    #[test]
    fn starts_are_held_to_their_rate() {
        let mut tracker = Tracker::new(0, 10);
        assert_eq!(tracker.reserve(false, 100, at(0)), 10);
        assert_eq!(tracker.reserve(false, 100, at(0)), 0);
        assert!(tracker.is_rated(at(0)));
        assert_eq!(tracker.reserve(false, 100, Timestamp(at(0).0 + 500_000)), 5);
        assert_eq!(tracker.reserve(false, 100, at(100)), 10, "no more than a second's worth is saved");
    }
}
