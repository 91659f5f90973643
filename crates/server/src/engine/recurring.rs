//! What recurs: every planned instant of every definition is accounted for exactly once, whatever goes down in between.
//!
//! A definition has a `next` instant. To account for it is one transaction of the store: its row in `fires`, the move of
//! `next`, and the action or launch that was made, if one was. Whoever finds `next` moved on already has lost, and does
//! nothing. So two servers, a crash between any two lines here, or a clock that is put back cannot fire an instant twice; and
//! as `next` moves from each instant to the one after it, none is left without a row.
//!
//! The way of an instant: [`round`](Master::keep_recurring) finds the definitions whose `next` has come; [`plan`] decides
//! what is to become of each instant (on time, late, left out); [`fire`] makes the action under the owner's rights as they
//! are now ([`owner`]), on the minions that are there now ([`entity`]). [`digest`] tells how it ended.

mod choose;
mod definition;
mod digest;
mod entity;
mod fire;
mod instants;
mod owner;
mod plan;

mod tell;
mod what;

pub(crate) use definition::Definition;
pub use definition::{CatchUp, Overlap};
pub use entity::{EntityKind, EntityRef};
pub(crate) use fire::Fire;
pub use fire::PlannedFire;
pub(crate) use fire::left_out_of;
pub(crate) use instants::Round;
pub(crate) use owner::kept_owner;
pub(crate) use tell::{changed, handed_over};
pub use what::RecurringWhat;

use crate::master::Master;
use crate::{Error, clock};
use futures_util::StreamExt as _;
use saltern_core::ids::RecurringId;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Longest time without a look at the tables.
const LOOK: Duration = Duration::from_secs(5);
/// The same where other servers change them, too; and the pause after something that failed.
const SHORT_LOOK: Duration = Duration::from_secs(1);
/// Least time between two rounds.
const BETWEEN: Duration = Duration::from_millis(10);
/// Definitions read at once.
const PAGE: usize = 1_000;
/// Definitions that are fired, or told of, at the same time.
const AT_ONCE: usize = 64;

/// What is kept in memory of definitions: nothing but a bell.
#[derive(Default)]
pub(super) struct Recurrings {
    wake: Notify,
}

impl super::Engine {
    /// Definitions were changed: when the next of them fires is looked up again.
    pub(crate) fn recurrings_changed(&self) {
        self.recurrings.wake.notify_one();
    }
}

impl Master {
    /// Fires what is due until the server stops.
    pub(crate) async fn keep_recurring(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        loop {
            let pause = self.recurring_round().await.unwrap_or_else(|error| {
                tracing::error!(%error, "what recurs could not be looked at, it is tried again");
                SHORT_LOOK
            });
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.engine.recurrings.wake.notified() => {}
                () = tokio::time::sleep(pause.max(BETWEEN)) => {}
            }
        }
    }

    /// Accounts for everything that is due, and tells what has ended; returns how long there is nothing to do.
    async fn recurring_round(self: &Arc<Self>) -> Result<Duration, Error> {
        let longest = if self.engine.is_shared() { SHORT_LOOK } else { LOOK };
        // Others could do the same at the same time and nothing would be done twice; it would only be tried twice.
        if !self.engine.is_first(clock::now()) {
            return Ok(SHORT_LOOK);
        }
        let failed = self.account_for_due().await?;
        let is_more_to_tell = self.tell_digests().await?;
        if failed {
            return Ok(SHORT_LOOK);
        }
        if is_more_to_tell {
            return Ok(BETWEEN);
        }
        let next = self.store.next_fire().await?;
        Ok(next.map_or(longest, |next| next.since(clock::now()).min(longest)))
    }

    /// Accounts for every definition whose instant has come; tells whether one could not be, which is tried again.
    async fn account_for_due(self: &Arc<Self>) -> Result<bool, Error> {
        let mut failed: BTreeSet<RecurringId> = BTreeSet::new();
        let stop = self.tasks.stop_token();
        loop {
            let now = clock::now();
            if stop.is_cancelled() || !self.engine.is_first(now) {
                return Ok(!failed.is_empty());
            }
            // Those that failed are due, too, and must not hide the others.
            let mut page = self.store.due_recurrings(now, PAGE + failed.len()).await?;
            page.retain(|row| !failed.contains(&row.id));
            if page.is_empty() {
                return Ok(!failed.is_empty());
            }
            // Who is in a group, and what an owner may do, is found out once for the whole page.
            let round = Round::new(now);
            let settling = page.into_iter().map(|row| {
                let round = &round;
                async move { (row.id, self.account_for(round, row).await) }
            });
            let mut settled = futures_util::stream::iter(settling).buffer_unordered(AT_ONCE);
            while let Some((id, settled)) = settled.next().await {
                if let Err(error) = settled {
                    tracing::error!(recurring = %id, %error, "an instant could not be accounted for, it is tried again");
                    failed.insert(id);
                }
            }
        }
    }
}
