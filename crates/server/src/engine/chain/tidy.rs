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

/// Minions whose part of a launch is over, by what they know it by.
#[derive(Default)]
pub(super) struct Tidy(Mutex<BTreeMap<Jid, BTreeSet<MinionId>>>);

impl Master {
    /// A minion's part is over and told: its store is cleared soon.
    pub(super) fn tidy_later(self: &Arc<Self>, going: &Going, minion: &MinionId) {
        let key = going.key;
        let is_first = {
            let mut tidy = lock(&self.engine.chains.tidy.0);
            let minions = tidy.entry(key).or_default();
            minions.insert(minion.clone());
            minions.len() == 1
        };
        if is_first {
            let master = self.clone();
            self.tasks.spawn(crate::tasks::Kind::Errand, "clear what is over", async move {
                tokio::time::sleep(GATHER).await;
                let minions = lock(&master.engine.chains.tidy.0).remove(&key).unwrap_or_default();
                master.tell_chain(minions, "saltern_chain.clear", vec![key.to_string().into()]).await;
            });
        }
    }

    /// A launch is over here while a minion may still be at it: it is stopped there and cleared.
    pub(super) fn abandon_on(self: &Arc<Self>, going: &Going, minions: &[MinionId]) {
        self.abandon(going.key, minions);
    }

    pub(super) fn abandon(self: &Arc<Self>, key: Jid, minions: &[MinionId]) {
        let (master, minions) = (self.clone(), minions.iter().cloned().collect::<BTreeSet<_>>());
        self.tasks.spawn(crate::tasks::Kind::Errand, "end what was given up", async move {
            let launch = Value::from(key.to_string());
            master.tell_chain(minions.clone(), "saltern_chain.stop", vec![launch.clone()]).await;
            // The kill needs a moment before the store is free.
            tokio::time::sleep(GATHER).await;
            master.tell_chain(minions, "saltern_chain.clear", vec![launch, true.into()]).await;
        });
    }

    async fn tell_chain(self: &Arc<Self>, minions: BTreeSet<MinionId>, fun: &str, arg: Vec<Value>) {
        let is_there = |minion: &MinionId| self.member(minion.as_str()).is_some_and(|member| self.is_there(&member));
        let there: Vec<MinionId> = minions.into_iter().filter(is_there).collect();
        if there.is_empty() {
            return;
        }
        let target = Target::list(there.iter().map(MinionId::as_str));
        if let Err(error) = self.submit(Request::house(target, fun, arg)).await {
            tracing::warn!(fun, minions = there.len(), %error, "minions could not be told about a chain that is over");
        }
    }
}
