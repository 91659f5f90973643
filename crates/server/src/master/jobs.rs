//! The jobs that minions may still speak about, in memory: whom each was for, and what for.
//!
//! A cache of the store, bounded; what it no longer has is read back. A return or acknowledgement is believed only from a
//! minion the job was for.

use super::Master;
use crate::Error;
use crate::engine::Work;
use saltern_core::ids::{Jid, MinionId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most jobs kept in memory.
const MOST_JOBS: usize = 20_000;
/// Most minion names kept in memory over all jobs.
const MOST_NAMES: usize = 4_000_000;

/// A job that minions may speak about.
pub(crate) struct Known {
    pub(crate) work: Arc<Work>,
    /// Sorted
    minions: Arc<[MinionId]>,
}

#[derive(Default)]
pub(super) struct JobCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    jobs: HashMap<Jid, Arc<Known>>,
    order: VecDeque<Jid>,
    names: usize,
}

impl Known {
    pub(crate) fn new(work: Arc<Work>, mut minions: Vec<MinionId>) -> Self {
        minions.sort_unstable();
        Self { work, minions: minions.into() }
    }

    pub(crate) fn is_for(&self, minion: &MinionId) -> bool {
        self.minions.binary_search(minion).is_ok()
    }
}

impl JobCache {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, jid: Jid, known: Arc<Known>) {
        let mut entries = self.lock();
        entries.names += known.minions.len();
        if entries.jobs.insert(jid, known).is_none() {
            entries.order.push_back(jid);
        }
        while entries.order.len() > MOST_JOBS || (entries.names > MOST_NAMES && entries.order.len() > 1) {
            let Some(oldest) = entries.order.pop_front() else { break };
            if let Some(gone) = entries.jobs.remove(&oldest) {
                entries.names = entries.names.saturating_sub(gone.minions.len());
            }
        }
    }

    fn get(&self, jid: Jid) -> Option<Arc<Known>> {
        self.lock().jobs.get(&jid).cloned()
    }
}

impl Master {
    /// The job of this id, from memory or from the store.
    pub(crate) async fn known_job(&self, jid: Jid) -> Result<Option<Arc<Known>>, Error> {
        if let Some(known) = self.jobs.get(jid) {
            return Ok(Some(known));
        }
        let Some(job) = self.store.job(jid).await? else { return Ok(None) };
        let Some(action) = self.store.action(job.action).await? else { return Ok(None) };
        let known = Arc::new(Known::new(Work::read(&action)?, job.minions));
        self.jobs.insert(jid, known.clone());
        Ok(Some(known))
    }

    /// Takes note of a job before it is published.
    pub(crate) fn remember_job(&self, jid: Jid, known: Arc<Known>) {
        self.jobs.insert(jid, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    fn known(ids: &[&str]) -> Known {
        let ids = ids.iter().map(|id| MinionId::new(id).unwrap());
        Known::new(Work::sample(), ids.collect())
    }

    #[test]
    fn the_cache_is_bounded() {
        let cache = JobCache::default();
        for number in 0..MOST_JOBS as i64 + 5 {
            cache.insert(Jid::at(Timestamp(number)), Arc::new(known(&["a"])));
        }
        assert_eq!(cache.lock().jobs.len(), MOST_JOBS);
        assert_eq!(cache.lock().names, MOST_JOBS);
        assert!(cache.get(Jid::at(Timestamp(0))).is_none());
    }

    #[test]
    fn a_job_knows_whom_it_is_for() {
        let ids = ["b", "a"].map(|id| MinionId::new(id).unwrap());
        let known = known(&["b", "a"]);
        assert!(known.is_for(&ids[0]) && known.is_for(&ids[1]));
        assert!(!known.is_for(&MinionId::new("c").unwrap()));
    }
}
