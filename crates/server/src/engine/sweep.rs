//! Ends what is past its deadline. It needs no wake-up, and nothing but the tables: whatever died, this goes on.

use crate::master::Master;
use crate::{Error, clock};
use saltern_core::run::Input;
use saltern_store::Verb;
use std::sync::Arc;

/// Most actions ended in one go.
const MOST: usize = 100;

impl Master {
    /// Ends every open run of actions whose deadline has passed.
    pub(super) async fn end_overdue(self: &Arc<Self>) -> Result<(), Error> {
        loop {
            let now = clock::now();
            let overdue = self.store.overdue_actions(now, MOST).await?;
            let done = overdue.len() < MOST;
            for action in overdue {
                let verb = Verb {
                    action: action.id,
                    minions: None,
                    only_failed: false,
                    input: Input::Deadline,
                    at: now,
                    message: Some(format!("its deadline was {}", action.new.deadline.rfc3339())),
                    deadline: None,
                    audit: None,
                };
                let ended = self.store.apply(verb).await?;
                if !action.new.internal && !ended.is_empty() {
                    tracing::info!(action = %action.id, runs = ended.len(), "the deadline ended it");
                }
                self.engine.tracker().forget(action.id);
                self.engine.wake(action.id);
            }
            if done {
                return Ok(());
            }
        }
    }
}
