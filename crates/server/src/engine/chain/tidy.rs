//! Leaves nothing behind on minions: what they keep of a chunk is removed when its launch is over there.
//!
//! Many minions in one job. A minion that misses it loses nothing: the next chain replaces what it keeps.

use super::super::{Request, lock};
use super::book::Going;
use crate::master::Master;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::target::Target;
use saltern_core::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long minions whose part is over are gathered into one job.
const GATHER: Duration = Duration::from_millis(500);

/// Minions whose part of a launch is over, by what they know it by, and whether they may still be at it.
#[derive(Default)]
pub(super) struct Tidy(Mutex<BTreeMap<(Jid, bool), BTreeSet<MinionId>>>);

impl Master {
    /// A minion's part is over and told: its store is cleared soon.
    pub(super) fn tidy_later(self: &Arc<Self>, going: &Going, minion: &MinionId) {
        self.gather(going.key, false, std::slice::from_ref(minion));
    }

    /// A launch is over here while a minion may still be at it: it is stopped there and cleared.
    pub(super) fn abandon(self: &Arc<Self>, key: Jid, minions: &[MinionId]) {
        self.gather(key, true, minions);
    }

    fn gather(self: &Arc<Self>, key: Jid, at_work: bool, minions: &[MinionId]) {
        let is_first = {
            let mut tidy = lock(&self.engine.chains.tidy.0);
            let gathered = tidy.entry((key, at_work)).or_default();
            let is_first = gathered.is_empty();
            gathered.extend(minions.iter().cloned());
            is_first && !gathered.is_empty()
        };
        if is_first {
            let master = self.clone();
            self.tasks.spawn(crate::tasks::Kind::Errand, "clear what is over", async move {
                tokio::time::sleep(GATHER).await;
                let minions = lock(&master.engine.chains.tidy.0).remove(&(key, at_work)).unwrap_or_default();
                let launch = Value::from(key.to_string());
                if at_work {
                    master.tell_chain(&minions, "saltern_chain.stop", vec![launch.clone()]).await;
                    // The kill needs a moment before the store is free.
                    tokio::time::sleep(GATHER).await;
                }
                let arg = if at_work { vec![launch, true.into()] } else { vec![launch] };
                master.tell_chain(&minions, "saltern_chain.clear", arg).await;
            });
        }
    }

    /// Whether a minion can be told something, here or by another server.
    pub(super) fn is_reachable(&self, minion: &MinionId) -> bool {
        self.engine.is_elsewhere(minion) || self.member(minion.as_str()).is_some_and(|member| self.is_there(&member))
    }

    async fn tell_chain(self: &Arc<Self>, minions: &BTreeSet<MinionId>, fun: &str, arg: Vec<Value>) {
        let there: Vec<&MinionId> = minions.iter().filter(|minion| self.is_reachable(minion)).collect();
        if there.is_empty() {
            return;
        }
        let target = Target::list(there.iter().map(|minion| minion.as_str()));
        if let Err(error) = self.submit(Request::house(target, fun, arg)).await {
            tracing::warn!(fun, minions = there.len(), %error, "minions could not be told about a chain that is over");
        }
    }
}
