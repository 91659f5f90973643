//! Follows the log for one webhook and delivers what is for it, one event after the other.
//!
//! What the owner may see is decided anew every [`LOOK`], when rights change, and before every repetition: what was put on
//! hold while he lost his rights is not delivered. A courier ends when its webhook is changed; `run` sends out another one.

use super::backoff;
use super::{Message, taken};
use crate::app::{App, Caller, EventEntry, EventQuery};
use crate::{Error, clock};
use hyper::StatusCode;
use saltern_store::{DeadDelivery, Webhook, Written};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// For how long what the owner may see is believed, as for everybody who follows the log.
const LOOK: Duration = Duration::from_secs(2);

/// Events that were not for this webhook are noted as dealt with when there are so many of them,
const SKIPPED: i64 = 1_000;
/// or after so long: what is not noted is looked at again after a restart.
const NOTED: Duration = Duration::from_secs(30);

/// Delivers one version of a webhook.
pub(super) struct Courier {
    app: App,
    /// Its place is how far it has got; the store may be behind by events that were not for it
    webhook: Webhook,
    noted: (i64, Instant),
}

/// What follows from what was done.
enum Then {
    /// The next event
    GoOn,
    /// The same event, later
    Wait,
    /// Nothing: the webhook is not what it was, or not this server's
    End,
}

impl Courier {
    pub(super) fn new(app: App, webhook: Webhook) -> Self {
        let noted = (webhook.cursor, Instant::now());
        Self { app, webhook, noted }
    }

    /// Delivers until the webhook is changed.
    pub(super) async fn run(mut self) {
        if let Err(error) = self.deliver().await {
            tracing::warn!(webhook = self.webhook.id, %error, "a webhook has to wait");
        }
    }

    async fn deliver(&mut self) -> Result<(), Error> {
        let mut changes = self.app.access_changes();
        loop {
            if let Some(next_try) = self.webhook.next_try.take() {
                // Whatever the clock did meanwhile.
                tokio::time::sleep(next_try.since(clock::now()).min(backoff::LONGEST)).await;
            }
            changes.mark_unchanged();
            // Its owner may be another one of the same name by now; the webhook was stopped then.
            if !self.is_current().await? {
                return Ok(());
            }
            if self.app.suspension(&self.webhook.owner).is_some() {
                // It goes on when its owner is back.
                pause(&mut changes).await;
                continue;
            }
            let owner = self.app.owner(&self.webhook.owner).await?;
            if matches!(self.follow(&owner, &mut changes).await?, Then::End) {
                return Ok(());
            }
        }
    }

    /// Whether the webhook is still the one this courier was sent out with.
    async fn is_current(&self) -> Result<bool, Error> {
        let found = self.app.master.store.webhook(self.webhook.id).await?;
        Ok(found.is_some_and(|webhook| webhook.version == self.webhook.version))
    }

    /// Delivers what this caller may see, until that has to be looked at again.
    async fn follow(&mut self, owner: &Caller, changes: &mut watch::Receiver<u64>) -> Result<Then, Error> {
        let until = Instant::now() + LOOK;
        let mut events = self.app.events(owner, &self.query()).await?;
        if let Some((from, to)) = events.gap()
            && let Then::End = self.pass_over(from, to).await?
        {
            return Ok(Then::End);
        }
        while Instant::now() < until && !changes.has_changed().unwrap_or(true) {
            let event = tokio::select! {
                // What happened after its owner lost the right to see it is not for him.
                biased;
                _ = changes.changed() => break,
                event = events.next() => event,
                () = tokio::time::sleep_until(until) => break,
            };
            // The server stops.
            let Some(event) = event else { return Ok(Then::End) };
            match self.try_once(&event?).await? {
                Then::GoOn => {}
                then => return Ok(then),
            }
        }
        self.webhook.cursor = self.webhook.cursor.max(events.passed());
        let (place, at) = self.noted;
        if self.webhook.cursor - place >= SKIPPED || self.webhook.cursor > place && at.elapsed() >= NOTED {
            return self.note().await;
        }
        Ok(Then::GoOn)
    }

    fn query(&self) -> EventQuery {
        EventQuery {
            since: Some(self.webhook.cursor),
            tag: (self.webhook.tag != "*").then(|| self.webhook.tag.clone()),
            jid: self.webhook.jid,
            action: self.webhook.action,
            minion: self.webhook.minion.clone(),
            stored_only: false,
        }
    }

    /// Events are gone from the log that were not looked at: that is told, and it goes on after them.
    async fn pass_over(&mut self, from: i64, to: i64) -> Result<Then, Error> {
        tracing::warn!(webhook = self.webhook.id, from, to, "events were removed before a webhook has got to them");
        let error = format!("events {from} to {to} were removed from the log before it was their turn");
        self.put_aside(to, 0, error).await?;
        self.webhook.cursor = to;
        self.note().await
    }

    async fn try_once(&mut self, event: &EventEntry) -> Result<Then, Error> {
        if !self.app.master.engine.is_first(clock::now()) {
            return Ok(Then::End);
        }
        let message = Message::new(&self.webhook, event)?;
        let outcome = self.app.webhooks.send(&self.webhook, &message, self.app.master.config.webhook_timeout).await;
        if matches!(outcome, Ok(StatusCode::GONE)) {
            return self.retire().await;
        }
        match taken(outcome) {
            Ok(()) => {
                self.webhook.cursor = event.number;
                self.webhook.failures = 0;
                self.webhook.last_error = None;
                self.note().await
            }
            Err(error) => self.fail(event.number, error).await,
        }
    }

    async fn fail(&mut self, number: i64, error: String) -> Result<Then, Error> {
        let webhook = &mut self.webhook;
        webhook.failures += 1;
        tracing::debug!(webhook = webhook.id, event = number, failures = webhook.failures, error, "not delivered");
        webhook.last_error = Some(error.clone());
        if webhook.failures < self.app.master.config.webhook_tries {
            let pause = backoff::pause(webhook.failures, backoff::chance());
            webhook.next_try = Some(clock::now().plus(pause));
            return Ok(match self.note().await? {
                Then::End => Then::End,
                _ => Then::Wait,
            });
        }
        let attempts = std::mem::take(&mut webhook.failures);
        tracing::warn!(webhook = webhook.id, event = number, attempts, error, "an event for a webhook was put aside");
        self.put_aside(number, attempts, error).await?;
        self.webhook.cursor = number;
        self.note().await
    }

    async fn put_aside(&self, number: i64, attempts: i64, error: String) -> Result<(), Error> {
        let dead = DeadDelivery { webhook: self.webhook.id, number, at: clock::now(), attempts, error };
        Ok(self.app.master.store.add_dead_delivery(dead).await?)
    }

    /// The receiver wants nothing any more.
    async fn retire(&mut self) -> Result<Then, Error> {
        let Webhook { id, version, .. } = self.webhook;
        let server = Caller::administrator("saltern", "webhooks");
        let audit =
            server.audit("webhook.stop", &self.webhook.name, serde_json::json!({ "id": id, "reason": "410 Gone" }));
        let stopped = Webhook { active: false, ..self.webhook.clone() };
        let store = &self.app.master.store;
        if let Written::Done(version) = store.put_webhook(stopped, Some(version), audit).await? {
            tracing::info!(webhook = id, "a webhook was stopped: its receiver is gone");
            let why = "stopped: the receiver answered 410 Gone".to_owned();
            store.webhook_progress(id, version, self.webhook.cursor, 0, None, Some(why)).await?;
        }
        Ok(Then::End)
    }

    /// Writes down how far it has got.
    async fn note(&mut self) -> Result<Then, Error> {
        let Webhook { id, version, cursor, failures, next_try, ref last_error, .. } = self.webhook;
        let progress =
            self.app.master.store.webhook_progress(id, version, cursor, failures, next_try, last_error.clone());
        let is_current = progress.await?;
        self.noted = (cursor, Instant::now());
        Ok(if is_current { Then::GoOn } else { Then::End })
    }
}

/// Until rights have changed, or may have.
async fn pause(changes: &mut watch::Receiver<u64>) {
    tokio::select! {
        _ = changes.changed() => {}
        () = tokio::time::sleep(LOOK) => {}
    }
}
