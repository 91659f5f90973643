//! Brings the module that runs chunks to stock minions: once, when a chain is to start there.
//!
//! Native minions have it built in. What a minion has confirmed is believed until its agent is started anew: its cache may
//! have been emptied meanwhile.

use super::super::lock;
use super::super::silence::Question;
use crate::clock;
use crate::master::{Master, Member};
use saltern_core::ids::MinionId;
use saltern_store::AckMethod;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long minions that lack it are gathered into one sync.
const GATHER: Duration = Duration::from_millis(100);
/// Least time between two syncs to one minion.
const BETWEEN: Duration = Duration::from_secs(10);

impl Master {
    /// Whether a minion can run chunks. If it may lack the module, it is brought.
    pub(super) fn has_chain_module(self: &Arc<Self>, member: &Member) -> bool {
        {
            let mut facts = member.facts();
            if facts.ack_method == AckMethod::Native || facts.chain_module {
                return true;
            }
            let now = clock::now();
            if facts.chain_module_asked.is_some_and(|asked| now.since(asked) < BETWEEN) {
                return false;
            }
            facts.chain_module_asked = Some(now);
        }
        let is_first = {
            let mut lacking = lock(&self.engine.chains.lacking);
            lacking.insert(member.id.clone());
            lacking.len() == 1
        };
        if is_first {
            let master = self.clone();
            self.tasks.spawn(crate::tasks::Kind::Errand, "bring the chain module", async move {
                tokio::time::sleep(GATHER).await;
                let minions: BTreeSet<MinionId> = std::mem::take(&mut *lock(&master.engine.chains.lacking));
                master.ask(minions, "saltutil.sync_modules", Vec::new(), Question::ChainModule);
            });
        }
        false
    }

    /// A minion has what the last sync brought.
    pub(crate) fn chain_module_brought(&self, member: &Member) {
        member.facts().chain_module = true;
        self.engine.chains.wake_those(|open| open.expects);
    }

    /// The module is gone from a minion.
    pub(super) fn chain_module_lost(&self, member: &Member) {
        let mut facts = member.facts();
        facts.chain_module = false;
        facts.chain_module_asked = None;
    }
}
