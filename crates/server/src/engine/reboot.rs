//! A reboot is proven by a changed boot id, never by a start event or a clock.
//!
//! The boot id is known before the machine is told to go down, and kept with the run; when the agent comes up it is asked
//! again. A service that was merely restarted has the same one, and the run goes on waiting.

use super::dispatch::transition;
use crate::Error;
use crate::master::{Master, Member};
use saltern_core::ids::ActionId;
use saltern_core::run::Input;
use saltern_core::time::Timestamp;
use saltern_store::Transition;
use std::sync::Arc;

impl Master {
    /// Keeps with each run which boot it was sent to.
    pub(super) async fn keep_boot_ids(&self, action: ActionId, members: &[Arc<Member>]) -> Result<(), Error> {
        for member in members {
            let Some(boot) = member.facts().current_boot().map(str::to_owned) else { continue };
            self.store
                .set_evidence(action, member.id.clone(), serde_json::json!({ "boot_id": boot }).to_string())
                .await?;
        }
        Ok(())
    }

    /// A minion has told its boot id.
    pub(crate) async fn learn_boot_id(
        self: &Arc<Self>,
        member: &Arc<Member>,
        boot: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let is_boot_id = (8..=64).contains(&boot.len()) && boot.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        if !is_boot_id {
            return Ok(());
        }
        let is_news = {
            let mut facts = member.facts();
            let is_news = facts.current_boot() != Some(boot);
            facts.boot_told = Some(now);
            if facts.boot_id.as_deref() != Some(boot) {
                // Whatever asked for a reboot has had it.
                facts.reboot_needed = facts.reboot_needed.filter(|_| facts.boot_id.is_none());
                facts.boot_id = Some(boot.to_owned());
                facts.dirty = true;
            }
            is_news
        };
        if is_news {
            self.engine.is_back(&member.id);
        }
        let mut proven = Vec::new();
        for (action, run) in self.store.open_runs_of(&member.id).await? {
            let Some(evidence) = run.evidence else { continue };
            let before = serde_json::from_str::<serde_json::Value>(&evidence).ok();
            let before = before.as_ref().and_then(|evidence| evidence.get("boot_id")?.as_str());
            if before.is_some_and(|before| before != boot) {
                let input = transition(action, &member.id, Input::Settled(true), now);
                proven.push(Transition { message: Some("Reboot completed.".into()), ..input });
            }
        }
        self.settle(proven).await
    }
}
