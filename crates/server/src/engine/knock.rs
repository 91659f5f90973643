//! Knocks at minions that seem to be away while something waits for them.
//!
//! A minion is taken for absent when its last authenticated connection closes. After a mere loss of the network it
//! subscribes again and has nothing to say, so nobody would ever know that it is back. A question that costs it nothing is
//! published to such minions, many in one: at once, then less and less often. An answer makes them present, and releases
//! what was held.

use super::{Request, lock};
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::ids::MinionId;
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longest time between two knocks.
const LONGEST: Duration = Duration::from_secs(300);
/// Most minions in one knock.
const MOST: usize = 1_000;

/// Whom to knock at next: at most one entry for each minion.
#[derive(Default)]
pub(super) struct Knocks(Mutex<HashMap<MinionId, Knock>>);

struct Knock {
    next: Timestamp,
    times: u32,
}

impl Knocks {
    /// Something waits for this minion, which is away.
    pub(super) fn add(&self, minion: &MinionId, now: Timestamp) {
        lock(&self.0).entry(minion.clone()).or_insert(Knock { next: now, times: 0 });
    }

    /// It is back.
    pub(super) fn remove(&self, minion: &MinionId) {
        lock(&self.0).remove(minion);
    }

    /// Those whose turn it is.
    fn due(&self, now: Timestamp) -> Vec<MinionId> {
        let mut due = Vec::new();
        for (minion, knock) in lock(&self.0).iter_mut().filter(|(_, knock)| knock.next <= now) {
            knock.next = now.plus(Duration::from_secs(1 << knock.times.min(9)).min(LONGEST));
            knock.times += 1;
            due.push(minion.clone());
        }
        due
    }
}

impl Master {
    /// Knocks where it is time.
    pub(super) async fn knock(self: &Arc<Self>) -> Result<(), Error> {
        let mut absent = Vec::new();
        for minion in self.engine.knocks.due(clock::now()) {
            // Whom nothing waits for any more is left alone.
            if self.store.open_runs_of(&minion).await?.is_empty() {
                self.engine.knocks.remove(&minion);
            } else {
                absent.push(minion);
            }
        }
        for part in absent.chunks(MOST) {
            let target = Target::list(part.iter().map(MinionId::as_str));
            match self.submit(Request::house(target, "test.ping", Vec::new())).await {
                // Their keys are gone.
                Err(Error::NotFound(_)) => part.iter().for_each(|minion| self.engine.knocks.remove(minion)),
                knocked => drop(knocked?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knocks_become_rarer_and_end_when_the_minion_is_back() {
        let (knocks, minion) = (Knocks::default(), MinionId::new("a").unwrap());
        let at = |seconds: i64| Timestamp::from_secs(1_800_000_000 + seconds);
        knocks.add(&minion, at(0));
        knocks.add(&minion, at(0));
        let heard: Vec<i64> = (0..20).filter(|second| !knocks.due(at(*second)).is_empty()).collect();
        assert_eq!(heard, [0, 1, 3, 7, 15]);
        knocks.remove(&minion);
        assert!(knocks.due(at(10_000)).is_empty());
    }
}
