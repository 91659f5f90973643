//! Forgets what is old: finished actions and launches with everything that came of them, events, runner calls, dead letters.
//!
//! By action and not by row, in small steps with pauses in between, so that nobody else waits for the database long.

use crate::master::Master;
use crate::{Error, clock};
use saltern_core::ids::Jid;
use saltern_core::time::Timestamp;
use saltern_store::Deleted;
use std::sync::Arc;
use std::time::Duration;

/// Time between two rounds.
const ROUND: Duration = Duration::from_secs(60);
/// Rows removed in one step.
const STEP: usize = 1_000;
/// Actions looked up at once.
const ACTIONS: usize = 100;
/// Most dead letters kept.
const MOST_LETTERS: usize = 100_000;
/// Pause between two steps: the writer belongs to others meanwhile.
const PAUSE: Duration = Duration::from_millis(20);
/// Housekeeping is of no interest for longer than this.
const HOUSE: Duration = Duration::from_secs(3600);

impl Master {
    /// Forgets what is old until the server stops.
    pub(crate) async fn keep_forgetting(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(ROUND) => {}
            }
            if let Err(error) = self.forget_old().await {
                tracing::error!(%error, "cannot remove what is old");
            }
        }
    }

    /// One round.
    pub(crate) async fn forget_old(&self) -> Result<(), Error> {
        let now = clock::now();
        let stop = self.tasks.stop_token();
        let config = &self.config;
        let limit = |time: Duration| if time.is_zero() { Timestamp(0) } else { now.minus(time) };
        let most = |count: usize| if count == 0 { usize::MAX >> 1 } else { count };
        let oldest = limit(config.keep_jobs);
        while !stop.is_cancelled() {
            let mut old = self.store.finished_housekeeping(now.minus(HOUSE), ACTIONS).await?;
            if old.is_empty() {
                old = self.store.finished_actions(oldest, ACTIONS).await?;
            }
            if old.is_empty() {
                let excess = self.store.finished_count_excess(most(config.keep_actions)).await?;
                old = self.store.finished_actions(now, excess.min(ACTIONS)).await?;
            }
            if old.is_empty() {
                break;
            }
            for action in old {
                while !stop.is_cancelled() && self.store.purge_action(action, STEP).await? == Deleted::More {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        while !stop.is_cancelled() && self.store.purge_launches(oldest, STEP).await? > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        while !stop.is_cancelled() && self.store.purge_fires(oldest, STEP).await? == STEP {
            tokio::time::sleep(PAUSE).await;
        }
        let (before, keep) = (limit(config.keep_events), most(config.keep_events_count));
        while !stop.is_cancelled() && self.store.purge_events(before, keep, STEP).await? == STEP {
            tokio::time::sleep(PAUSE).await;
        }
        while !stop.is_cancelled() && self.store.purge_calls(Jid::at(oldest), STEP).await? == STEP {
            tokio::time::sleep(PAUSE).await;
        }
        while !stop.is_cancelled() && self.store.purge_dead_deliveries(oldest, STEP).await? == STEP {
            tokio::time::sleep(PAUSE).await;
        }
        while !stop.is_cancelled() && self.store.purge_dead_letters(oldest, MOST_LETTERS, STEP).await? == STEP {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}
