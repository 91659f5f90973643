//! Salt's presence events: who has come, who has gone, who is there.
//!
//! Presence itself is kept per minion (`member`), from authenticated connections. This only tells about it, once per round
//! and only where somebody asked for it (`presence_events`).

use super::{Master, Presence, entry};
use crate::clock;
use saltern_core::event::tag;
use saltern_core::ids::MinionId;
use saltern_core::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Time between two rounds; Salt's `loop_interval`.
const ROUND: Duration = Duration::from_secs(60);

impl Master {
    /// Logs presence until the server stops.
    pub(crate) async fn keep_presence_told(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        if !self.config.presence_events {
            return stop.cancelled().await;
        }
        let mut before = BTreeSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(ROUND) => {}
            }
            let present: BTreeSet<MinionId> = self.present().into_iter().collect();
            let list = |ids: Vec<&MinionId>| Value::list(ids);
            let (new, lost) =
                (present.difference(&before).collect::<Vec<_>>(), before.difference(&present).collect::<Vec<_>>());
            let now = clock::now();
            let mut events = Vec::new();
            if !new.is_empty() || !lost.is_empty() {
                let body = Value::map([("new", list(new)), ("lost", list(lost))]);
                events.push(entry(now, tag::PRESENCE_CHANGE.into(), body, None, None));
            }
            let body = Value::map([("present", list(present.iter().collect()))]);
            events.push(entry(now, tag::PRESENCE_PRESENT.into(), body, None, None));
            if let Err(error) = self.store.log_events(events).await {
                tracing::error!(%error, "cannot log who is present");
            }
            before = present;
        }
    }

    /// The minions that are there now.
    pub(crate) fn present(&self) -> Vec<MinionId> {
        let is_present = |member: &Arc<super::Member>| matches!(member.facts().presence, Presence::Present(_));
        self.members().into_iter().filter(is_present).map(|member| member.id.clone()).collect()
    }
}
