//! What is known of a launch that is being carried out: its steps and plans, read once.
//!
//! Bounded: at most so many launches; the one that was not used for longest is read again when it is needed. What was heard of
//! steps while they ran is kept until their minion's chunk has ended, so that the answer, which tells all of it again, writes
//! only what is news.

use super::super::{Work, lock};
use crate::Error;
use crate::master::Master;
use saltern_core::chain::{Plan, Step};
use saltern_core::ids::{ActionId, Jid, LaunchId, MinionId};
use saltern_core::time::Timestamp;
use saltern_store::Launch;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Most launches kept.
const MOST: usize = 1_000;

/// A launch as the engine works with it.
pub(super) struct Going {
    pub(super) id: LaunchId,
    /// What minions know it by
    pub(super) key: Jid,
    pub(super) initiator: String,
    pub(super) origin: String,
    pub(super) org: String,
    pub(super) due: Timestamp,
    pub(super) deadline: Timestamp,
    pub(super) steps: Vec<GoingStep>,
    plans: Mutex<HashMap<String, Arc<Plan>>>,
    /// What was written already of steps that are told again: steps that were begun, and steps that have ended
    heard: Mutex<HashMap<MinionId, (Marks, Marks)>>,
}

/// A step with its action.
pub(super) struct GoingStep {
    pub(super) step: Step,
    pub(super) action: ActionId,
    pub(super) jid: Jid,
    pub(super) fun: String,
}

/// A set of step numbers.
#[derive(Clone, Copy, Default)]
struct Marks([u64; 4]);

impl Marks {
    /// Adds a number. What does not fit is never known.
    fn add(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

impl Going {
    /// The step of this number, which begins at 1.
    pub(super) fn step(&self, number: usize) -> Option<&GoingStep> {
        self.steps.get(number.checked_sub(1)?)
    }

    /// What a step is called in messages.
    pub(super) fn name(&self, number: usize) -> String {
        self.step(number).map_or_else(String::new, |step| format!("step {number} ({})", step.step.describe()))
    }

    /// Notes that a step was begun there. Called after it was written.
    pub(super) fn note_begun(&self, minion: &MinionId, number: usize) {
        lock(&self.heard).entry(minion.clone()).or_default().0.add(number);
    }

    /// Whether the beginning of a step there was written already.
    pub(super) fn has_begun(&self, minion: &MinionId, number: usize) -> bool {
        lock(&self.heard).get(minion).is_some_and(|(begun, _)| begun.has(number))
    }

    /// Notes that a step has ended there. Called after it was written.
    pub(super) fn note_ended(&self, minion: &MinionId, number: usize) {
        lock(&self.heard).entry(minion.clone()).or_default().1.add(number);
    }

    /// Whether the end of a step there was written already.
    pub(super) fn has_ended(&self, minion: &MinionId, number: usize) -> bool {
        lock(&self.heard).get(minion).is_some_and(|(_, ended)| ended.has(number))
    }

    /// A chunk has ended there: what was heard of it is not told again.
    pub(super) fn forget_heard(&self, minion: &MinionId) {
        lock(&self.heard).remove(minion);
    }
}

/// The launches in memory, each with when it was last used.
#[derive(Default)]
pub(super) struct Book {
    launches: Mutex<HashMap<LaunchId, (u64, Arc<Going>)>>,
    uses: AtomicU64,
}

impl Book {
    fn get(&self, id: LaunchId) -> Option<Arc<Going>> {
        let mut launches = lock(&self.launches);
        let (used, going) = launches.get_mut(&id)?;
        *used = self.uses.fetch_add(1, Relaxed);
        Some(going.clone())
    }

    fn insert(&self, going: Arc<Going>) -> Arc<Going> {
        let mut launches = lock(&self.launches);
        if launches.len() >= MOST
            && let Some(oldest) = launches.iter().min_by_key(|(_, (used, _))| *used).map(|(id, _)| *id)
        {
            launches.remove(&oldest);
        }
        launches.entry(going.id).or_insert((self.uses.fetch_add(1, Relaxed), going)).1.clone()
    }

    pub(super) fn remove(&self, id: LaunchId) {
        lock(&self.launches).remove(&id);
    }
}

impl Master {
    /// A launch as the engine works with it, from memory or from the tables.
    pub(super) async fn going(&self, id: LaunchId) -> Result<Option<Arc<Going>>, Error> {
        if let Some(going) = self.engine.chains.book.get(id) {
            return Ok(Some(going));
        }
        match self.store.launch(id).await? {
            Some(launch) => self.read_going(&launch).await.map(Some),
            None => Ok(None),
        }
    }

    async fn read_going(&self, launch: &Launch) -> Result<Arc<Going>, Error> {
        let broken = || Error::Internal(format!("launch {} cannot be read: its steps are broken", launch.id));
        let steps: Vec<Step> = serde_json::from_str(&launch.steps).map_err(|_| broken())?;
        let actions = self.store.launch_actions(launch.id).await?;
        if actions.len() != steps.len() {
            return Err(broken());
        }
        let steps = steps.into_iter().zip(actions).map(|(step, action)| {
            let jid = action.jid.ok_or_else(broken)?;
            let work = Work::read(&action)?;
            Ok(GoingStep { step, action: action.id, jid, fun: work.fun.names().join(",") })
        });
        let going = Going {
            id: launch.id,
            key: launch.key,
            initiator: launch.initiator.clone(),
            origin: launch.origin.clone(),
            org: launch.org.clone(),
            due: launch.due,
            deadline: launch.deadline,
            steps: steps.collect::<Result<_, Error>>()?,
            plans: Mutex::default(),
            heard: Mutex::default(),
        };
        Ok(self.engine.chains.book.insert(Arc::new(going)))
    }

    /// A plan of a launch.
    pub(super) async fn plan_of(&self, going: &Going, hash: &str) -> Result<Arc<Plan>, Error> {
        if let Some(plan) = lock(&going.plans).get(hash) {
            return Ok(plan.clone());
        }
        let broken = |what: &str| Error::Internal(format!("plan {hash} of launch {} {what}", going.id));
        let body = self.store.plan(hash).await?.ok_or_else(|| broken("is gone"))?;
        let plan = Arc::new(Plan::read(&body).map_err(|error| broken(&format!("cannot be read: {error}")))?);
        Ok(lock(&going.plans).entry(hash.to_owned()).or_insert(plan).clone())
    }
}
