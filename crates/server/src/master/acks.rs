//! How each kind of minion is made to say that it has begun a job.
//!
//! Salt 3008 and newer have a field for it, `start_event`. Older stock minions get a small executor of ours, synced when
//! they come up. A job that names an executor which the minion does not have is *not run* by it, so the executor is named
//! only towards minions that have confirmed it, and a job for both kinds is published in two parts.

use super::{Master, Member};
use crate::clock;
use crate::engine::Request;
use saltern_core::ids::MinionId;
use saltern_core::target::Target;
use saltern_core::value::Value;
use saltern_store::AckMethod;
use saltern_wire::load::Return;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The executor's name, as jobs name it.
pub(crate) const EXECUTOR: &str = "saltern_ack";

/// The function that brings it to a minion.
pub(super) const SYNC: &str = "saltutil.sync_executors";

/// The executor, as the file server offers it in every environment: were it missing in one, a sync from there would
/// remove it from the minion.
pub(crate) const EXECUTOR_FILE: (&str, &[u8]) = ("_executors/saltern_ack.py", include_bytes!("saltern_ack.py"));

/// Least time between two syncs to one minion: whatever it says of itself, it is not sent one after the other.
const BETWEEN_SYNCS: Duration = Duration::from_secs(5);

/// Time until a minion that has not confirmed it is offered it again.
const BETWEEN_OFFERS: Duration = Duration::from_secs(60);

/// How long minions that come up are gathered into one sync. Every publication goes to every subscriber, so one job per
/// minion would cost a fleet that starts at once the square of its size.
const GATHER_SYNCS: Duration = Duration::from_millis(200);

/// The minions that wait for the next sync.
#[derive(Default)]
pub(super) struct Syncs(Mutex<BTreeSet<MinionId>>);

impl Syncs {
    /// Adds a minion; tells whether it is the first, and somebody has to see to it.
    fn add(&self, id: MinionId) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(id);
        waiting.len() == 1
    }

    fn take(&self) -> BTreeSet<MinionId> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// First line of Salt that has `start_event`.
const START_EVENT_FROM: u32 = 3008;

/// How the jobs of one publish ask for acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ask {
    /// Nothing is asked
    Nothing,
    /// `start_event`; older minions ignore it
    StartEvent,
    /// Our executor
    Executor,
}

/// What to ask of a minion, given what the job, the minion's setting and the server say, in this order.
pub(crate) fn ask(job: Option<bool>, minion: Option<bool>, server: bool, method: AckMethod) -> Ask {
    if !job.or(minion).unwrap_or(server) {
        return Ask::Nothing;
    }
    match method {
        AckMethod::Executor => Ask::Executor,
        // Whoever has no way to acknowledge ignores the field, and may share the publish with those who have.
        AckMethod::StartEvent | AckMethod::Native | AckMethod::None => Ask::StartEvent,
    }
}

/// The way a stock minion of this version can acknowledge, before anything is synced to it.
pub(super) fn method_of(version: &str, now: AckMethod) -> AckMethod {
    let line = version.split('.').next().and_then(|line| line.parse::<u32>().ok());
    match (line, now) {
        (Some(line), _) if line >= START_EVENT_FROM => AckMethod::StartEvent,
        (_, AckMethod::Executor) => AckMethod::Executor,
        _ => AckMethod::None,
    }
}

/// Whether a return says that the job was not run because the executor is gone.
pub(super) fn says_executor_is_missing(returned: &Return) -> bool {
    returned.value().as_str().is_some_and(|text| text.contains("Executor 'saltern_ack' is not available"))
}

impl Master {
    /// Brings the executor to a minion that needs it. Called when it comes up; costs nothing for the others.
    pub(super) fn prepare_acks(self: &Arc<Self>, member: &Arc<Member>) {
        let wanted = {
            let mut facts = member.facts();
            // Its cache may have been emptied while it was down: until it confirms, the executor is not named.
            if facts.ack_method == AckMethod::Executor {
                facts.ack_method = AckMethod::None;
                facts.dirty = true;
            }
            let now = clock::now();
            let is_due = facts.sync_asked.is_none_or(|asked| now.since(asked) >= BETWEEN_SYNCS);
            let wanted =
                is_due && facts.ack_method == AckMethod::None && facts.ack_setting.unwrap_or(self.config.job_ack);
            if wanted {
                facts.sync_asked = Some(now);
            }
            wanted
        };
        if !wanted || !self.syncs.add(member.id.clone()) {
            return;
        }
        let master = self.clone();
        self.tasks.spawn(crate::tasks::Kind::Errand, "sync the ack executor", async move {
            tokio::time::sleep(GATHER_SYNCS).await;
            let ids = master.syncs.take();
            let target = Target::list(ids.iter().map(MinionId::as_str));
            if let Err(error) = master.submit(Request::house(target, SYNC, Vec::new())).await {
                tracing::warn!(minions = ids.len(), %error, "cannot sync the ack executor");
            }
        });
    }

    /// Offers the executor again to a minion that seems to have missed it; once in a while, as it may not want it.
    pub(super) fn offer_acks_again(self: &Arc<Self>, member: &Arc<Member>) {
        let is_time = {
            let facts = member.facts();
            let waited = facts.sync_asked.is_some_and(|asked| clock::now().since(asked) >= BETWEEN_OFFERS);
            facts.ack_method == AckMethod::None && waited
        };
        if is_time {
            self.prepare_acks(member);
        }
    }

    /// A minion has confirmed that it has the executor.
    pub(super) fn ack_prepared(&self, member: &Arc<Member>) {
        let mut facts = member.facts();
        if facts.ack_method == AckMethod::None {
            facts.ack_method = AckMethod::Executor;
            facts.dirty = true;
            self.learned.notify_one();
        }
    }

    /// The executor is gone from a minion: stop naming it, and bring it back.
    pub(super) fn ack_executor_lost(self: &Arc<Self>, member: &Arc<Member>) {
        // Only where it was named: any return may say these words, also that of the sync itself.
        if member.facts().ack_method != AckMethod::Executor {
            return;
        }
        tracing::warn!(minion = %member.id, "the ack executor is gone from it, syncing it again");
        self.prepare_acks(member);
    }

    /// Notes a minion's Salt version, from its grains.
    pub(super) fn note_version(&self, member: &Arc<Member>, grains: &Value) {
        let Some(version) = grains.get("saltversion").and_then(Value::as_str) else { return };
        let mut facts = member.facts();
        let is_native = grains.get("saltern_version").is_some();
        let method = if is_native { AckMethod::Native } else { method_of(version, facts.ack_method) };
        if facts.version.as_deref() != Some(version) || facts.ack_method != method {
            facts.version = Some(version.to_owned());
            facts.ack_method = method;
            facts.dirty = true;
            self.learned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_speaks_before_the_minion_and_the_minion_before_the_server() {
        let method = AckMethod::StartEvent;
        assert_eq!(ask(Some(false), Some(true), true, method), Ask::Nothing);
        assert_eq!(ask(None, Some(false), true, method), Ask::Nothing);
        assert_eq!(ask(None, None, true, method), Ask::StartEvent);
        assert_eq!(ask(Some(true), Some(false), false, method), Ask::StartEvent);
    }

    #[test]
    fn the_executor_is_named_only_where_it_is_known_to_be() {
        assert_eq!(ask(None, None, true, AckMethod::None), Ask::StartEvent);
        assert_eq!(ask(None, None, true, AckMethod::Executor), Ask::Executor);
    }

    #[test]
    fn minions_that_come_up_together_share_one_sync() {
        let syncs = Syncs::default();
        let id = |text| MinionId::new(text).unwrap();
        assert!(syncs.add(id("a")));
        assert!(!syncs.add(id("b")));
        assert_eq!(syncs.take().len(), 2);
        assert!(syncs.add(id("a")), "the next one begins anew");
    }

    #[test]
    fn methods_follow_the_version() {
        assert_eq!(method_of("3008.3", AckMethod::None), AckMethod::StartEvent);
        assert_eq!(method_of("3006.28", AckMethod::None), AckMethod::None);
        assert_eq!(method_of("3006.28", AckMethod::Executor), AckMethod::Executor);
        assert_eq!(method_of("3008.3", AckMethod::Executor), AckMethod::StartEvent);
        assert_eq!(method_of("odd", AckMethod::None), AckMethod::None);
    }
}
