//! One reader of the event log: what he may see of each event, as long as his token is good.

use super::events::{EventEntry, Heard, Shaped};
use super::{App, Caller};
use crate::Error;
use saltern_core::access::{Audience, Sight, audience, narrow};
use saltern_core::ids::{ActionId, Jid};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often a reader's rights are looked at when nothing tells of a change: tokens end, other servers take them back.
const LOOK: Duration = Duration::from_secs(2);

/// Answers about jobs and actions that are remembered.
const MOST: usize = 1_000;

/// A reader.
pub(super) struct Viewer {
    app: App,
    caller: Caller,
    changes: watch::Receiver<u64>,
    next_look: tokio::time::Instant,
    jobs: HashMap<Jid, bool>,
    actions: HashMap<ActionId, bool>,
}

impl Viewer {
    pub(super) fn new(app: App, caller: Caller) -> Self {
        let changes = app.access_changes();
        let next_look = tokio::time::Instant::now() + LOOK;
        Self { app, caller, changes, next_look, jobs: HashMap::new(), actions: HashMap::new() }
    }

    /// Whether nothing needs to be looked at.
    pub(super) fn sees_everything(&self) -> bool {
        *self.caller.sight() == Sight::All && self.caller.rights.hears_server()
    }

    /// Waits until his rights may have changed. Whoever stops waiting loses nothing: [`Self::is_due`] says it again.
    pub(super) async fn changed(&mut self) {
        if self.caller.is_permanent() {
            return std::future::pending().await;
        }
        tokio::select! {
            _ = self.changes.changed() => self.next_look = tokio::time::Instant::now(),
            () = tokio::time::sleep_until(self.next_look) => {}
        }
    }

    /// Whether his rights may have changed since they were looked at.
    pub(super) fn is_due(&self) -> bool {
        let is_told = || self.changes.has_changed().unwrap_or(true);
        !self.caller.is_permanent() && (is_told() || tokio::time::Instant::now() >= self.next_look)
    }

    /// Looks at his rights; `false` if he has none any more.
    pub(super) async fn look(&mut self) -> bool {
        if self.changes.has_changed().is_err() {
            return false;
        }
        // Before they are looked at: what changes meanwhile is looked at again.
        self.changes.mark_unchanged();
        let Ok(caller) = self.app.again(&self.caller).await else { return false };
        self.next_look = tokio::time::Instant::now() + LOOK;
        self.jobs.clear();
        self.actions.clear();
        self.caller = caller;
        true
    }

    /// What he may see of an event: it as it is, a part of it, or nothing.
    pub(super) async fn see(&mut self, heard: &Arc<Heard>) -> Result<Option<Arc<Heard>>, Error> {
        if self.sees_everything() {
            return Ok(Some(heard.clone()));
        }
        let EventEntry { tag, minion, jid, data, .. } = &heard.entry;
        let audience = audience(tag, minion.as_ref(), *jid, data);
        let sees = match audience {
            Audience::Minion(id) => self.caller.sight().sees(&id),
            Audience::Minions(ids) => ids.iter().any(|id| self.caller.sight().sees(id)),
            Audience::Everybody => true,
            Audience::Person(user) => user == self.caller.who || self.caller.rights.hears_server(),
            Audience::Server => self.caller.rights.hears_server(),
            Audience::Job(jid) => self.sees_job(jid).await?,
            Audience::Action(id) => self.sees_action(id).await?,
        };
        Ok(sees.then(|| self.part_of(heard)))
    }

    /// An event without the minions he does not see.
    fn part_of(&self, heard: &Arc<Heard>) -> Arc<Heard> {
        if *self.caller.sight() == Sight::All {
            return heard.clone();
        }
        let mut entry = heard.entry.clone();
        narrow(&mut entry.data, self.caller.sight());
        Arc::new(Heard { entry, shaped: Shaped::default() })
    }

    async fn sees_job(&mut self, jid: Jid) -> Result<bool, Error> {
        if let Some(known) = self.jobs.get(&jid) {
            return Ok(*known);
        }
        let sees = self.app.job_summary(&self.caller, jid).await?.is_some();
        if self.jobs.len() >= MOST {
            self.jobs.clear();
        }
        self.jobs.insert(jid, sees);
        Ok(sees)
    }

    async fn sees_action(&mut self, id: ActionId) -> Result<bool, Error> {
        if let Some(known) = self.actions.get(&id) {
            return Ok(*known);
        }
        let sees = match self.app.action(&self.caller, id).await {
            Ok(_) => true,
            Err(Error::NotFound(_)) => false,
            Err(error) => return Err(error),
        };
        if self.actions.len() >= MOST {
            self.actions.clear();
        }
        self.actions.insert(id, sees);
        Ok(sees)
    }
}
