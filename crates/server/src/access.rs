//! Who is who, and what he may do on the minions there are now.
//!
//! What may be done is decided in `core::access`; here is what it is decided from: the people, groups and organisations of the
//! database (`directory`), who shows which token (`tokens`), and whether a password is right (`passwords`).

mod directory;
mod passwords;
mod tokens;

pub(crate) use directory::{DEFAULT_ORG, Directory};
pub(crate) use passwords::Passwords;
pub(crate) use tokens::{Tokens, new_token};

use crate::clock;
use crate::master::Master;
use saltern_core::access::Scope;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether another server has changed something.
const LOOK: Duration = Duration::from_secs(1);

/// How often what was noted of tokens is written down, and old ones removed.
const TIDY: Duration = Duration::from_secs(60);

impl Master {
    /// Writes down when tokens were used, removes old ones, and notices what another server has changed. Runs until the
    /// server stops.
    pub(crate) async fn keep_tokens(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        let (mut look, mut tidy) = (tokio::time::interval(LOOK), tokio::time::interval(TIDY));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = look.tick() => {
                    if let Err(error) = self.directory.notice_changes(&self.store).await {
                        tracing::warn!(%error, "cannot look for changes of users and groups");
                    }
                    if let Err(error) = self.catalogue.notice_changes(&self.store).await {
                        tracing::warn!(%error, "cannot look for changes of the state catalogue");
                    }
                    continue;
                }
                _ = tidy.tick() => {}
            }
            let used = self.tokens.take_used();
            let tidied = async {
                if !used.is_empty() {
                    self.store.touch_tokens(used).await?;
                }
                let now = clock::now();
                self.store.purge_tokens(now, PURGED).await?;
                self.store.purge_requests(now.minus(REMEMBERED), PURGED).await
            };
            if let Err(error) = tidied.await {
                tracing::warn!(%error, "cannot tidy up tokens");
            }
        }
    }
}

/// Rows removed in one step.
const PURGED: usize = 1_000;

/// How long answers to requests with an idempotency key are remembered.
const REMEMBERED: Duration = Duration::from_secs(86_400);

/// Somebody whose name was proven, by a password or a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    /// His name
    pub(crate) name: String,
    /// What vouched for him: `local`, `pam`, `ldap`, …
    pub(crate) auth: String,
    /// The groups that it says he is in, for Salt's rules
    pub(crate) groups: Vec<String>,
    /// What the token he shows may be used for
    pub(crate) scope: Scope,
}
