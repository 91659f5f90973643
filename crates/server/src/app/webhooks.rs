//! Webhooks: who has which, what they are for, how far they have got, and what could not be delivered.
//!
//! Everybody looks after his own, a server admin after all. The owner is a user of the directory: whoever is known by a
//! log-in alone has no rights while he is away, and a webhook works while its owner is away.

use super::events::{Heard, Shaped, read};
use super::organisations::{check_name, written_or};
use super::viewer::Viewer;
use super::{App, Caller};
use crate::access::{Person, new_token};
use crate::config::Secret;
use crate::tasks::Kind;
use crate::webhooks::{Address, Message, redeliver, taken};
use crate::{Error, clock};
use saltern_core::access::{Scope, Thing, Wish};
use saltern_core::event::MAX_TAG;
use saltern_core::ids::{ActionId, Jid};
use saltern_core::time::Timestamp;
use saltern_store::{DeadDelivery, EventFilter, User, Webhook};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A webhook, without its secret.
#[derive(Clone)]
pub struct WebhookEntry {
    /// Its number
    pub id: i64,
    /// What it is called
    pub name: String,
    /// Where events are sent to; it may have a secret of the receiver in it
    pub url: String,
    /// Which events are sent
    pub filter: WebhookFilter,
    /// Whose it is: it gets what he may see
    pub owner: String,
    /// Whether it is to be sent anything
    pub active: bool,
    /// Why nothing is sent although it is active: its owner is away
    pub suspended: Option<String>,
    /// The number of the last event that was dealt with
    pub cursor: i64,
    /// How often the next event could not be delivered, one time after the other
    pub failures: i64,
    /// When it is tried again
    pub next_try: Option<Timestamp>,
    /// Why it could not be delivered, or why the webhook was stopped
    pub last_error: Option<String>,
    /// Since when there is one
    pub created: Timestamp,
    /// Counts the changes
    pub version: i64,
}

/// Which events are sent: those that match all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookFilter {
    /// Only tags that match this shell pattern
    pub tag: Option<String>,
    /// Only of this job
    pub jid: Option<Jid>,
    /// Only of this action
    pub action: Option<ActionId>,
    /// Only of minions whose id matches this shell pattern
    pub minion: Option<String>,
}

/// A webhook that is wanted.
#[derive(Clone)]
pub struct NewWebhook {
    /// What it is called
    pub name: String,
    /// Where events are sent to
    pub url: String,
    /// What they are signed with; nothing: a new secret
    pub secret: Option<Secret>,
    /// Which events
    pub filter: WebhookFilter,
    /// Whether it begins at once
    pub active: bool,
    /// Whose it is, if not his who makes it
    pub owner: Option<String>,
}

/// What a webhook is to be; nothing: as it is.
#[derive(Clone, Default)]
pub struct WebhookChange {
    /// What it is called
    pub name: Option<String>,
    /// Where events are sent to
    pub url: Option<String>,
    /// What they are signed with
    pub secret: Option<Secret>,
    /// Which events
    pub filter: Option<WebhookFilter>,
    /// Whether it is to be sent anything; it begins where it stopped
    pub active: Option<bool>,
    /// Whose it is
    pub owner: Option<String>,
}

/// Dead deliveries that are to be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichDead {
    /// Every one there is
    All,
    /// Those of the events with these numbers
    These(Vec<i64>),
}

/// What came of a test.
#[derive(Clone, Debug)]
pub struct WebhookTest {
    /// What the receiver answered
    pub status: Option<u16>,
    /// Why that is not what is expected
    pub error: Option<String>,
    /// How long it took
    pub took: Duration,
}

/// Most webhooks of one user.
const MOST_OF_ONE: usize = 50;
/// Most webhooks.
const MOST: usize = 1_000;
/// Most dead deliveries in one answer, and most that are named one by one.
const PAGE: usize = 1_000;
/// How long a secret is.
const SECRET: std::ops::RangeInclusive<usize> = 16..=256;

impl App {
    /// The webhooks he looks after, oldest first.
    pub async fn webhooks(&self, caller: &Caller) -> Result<Vec<WebhookEntry>, Error> {
        let webhooks = self.master.store.webhooks().await?.into_iter();
        Ok(webhooks.filter(|webhook| is_his(caller, &webhook.owner)).map(|webhook| self.entry(webhook)).collect())
    }

    /// One webhook.
    pub async fn webhook(&self, caller: &Caller, id: i64) -> Result<WebhookEntry, Error> {
        self.known_webhook(caller, id).await.map(|webhook| self.entry(webhook))
    }

    /// Makes a webhook, which begins with the next event. Its secret is told now and never again.
    pub async fn create_webhook(&self, caller: &Caller, wanted: NewWebhook) -> Result<(WebhookEntry, Secret), Error> {
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let owner = wanted.owner.unwrap_or_else(|| caller.who.clone());
        self.check_owner(caller, &owner)?;
        let all = self.master.store.webhooks().await?;
        if all.len() >= MOST || all.iter().filter(|webhook| webhook.owner == owner).count() >= MOST_OF_ONE {
            return Err(Error::Conflict(format!(
                "there are {MOST} webhooks at most, and {MOST_OF_ONE} of one user; delete one first"
            )));
        }
        let secret = match wanted.secret {
            Some(secret) => secret,
            None => new_token()?.0.as_str().into(),
        };
        let fresh = Webhook {
            id: 0,
            name: wanted.name,
            url: wanted.url,
            secret: secret.reveal().to_owned(),
            tag: String::new(),
            jid: None,
            action: None,
            minion: None,
            owner,
            active: wanted.active,
            cursor: self.master.store.last_event().await?,
            failures: 0,
            next_try: None,
            last_error: None,
            created: clock::now(),
            version: 1,
        };
        let fresh = with_filter(fresh, wanted.filter)?;
        let audit = caller.audit("webhook.create", &fresh.name, detail(&fresh)?);
        let id = self.master.store.create_webhook(fresh.clone(), audit).await?;
        self.webhooks.wake();
        Ok((self.entry(Webhook { id, ..fresh }), secret))
    }

    /// Changes a webhook. What failed before is tried again at once.
    pub async fn change_webhook(
        &self,
        caller: &Caller,
        id: i64,
        change: WebhookChange,
        expected: i64,
    ) -> Result<WebhookEntry, Error> {
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let mut webhook = self.known_webhook(caller, id).await?;
        let begins = change.active == Some(true) && !webhook.active;
        webhook.name = change.name.unwrap_or(webhook.name);
        webhook.url = change.url.unwrap_or(webhook.url);
        webhook.active = change.active.unwrap_or(webhook.active);
        if let Some(secret) = &change.secret {
            secret.reveal().clone_into(&mut webhook.secret);
        }
        if let Some(filter) = change.filter {
            webhook = with_filter(webhook, filter)?;
        }
        match change.owner {
            Some(owner) if owner != webhook.owner => {
                webhook.owner = owner;
                self.check_owner(caller, &webhook.owner)?;
            }
            _ if begins => self.check_owner(caller, &webhook.owner)?,
            _ => {}
        }
        let audit = caller.audit("webhook.change", &webhook.name, detail(&webhook)?);
        let written = self.master.store.put_webhook(webhook, Some(expected), audit).await?;
        written_or(written, "webhook", &id.to_string())?;
        self.webhooks.wake();
        self.webhook(caller, id).await
    }

    /// Removes a webhook and its dead deliveries.
    pub async fn delete_webhook(&self, caller: &Caller, id: i64, expected: i64) -> Result<(), Error> {
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let webhook = self.known_webhook(caller, id).await?;
        let audit = caller.audit("webhook.delete", &webhook.name, serde_json::json!({ "id": id }));
        let written = self.master.store.delete_webhook(id, Some(expected), audit).await?;
        written_or(written, "webhook", &id.to_string())?;
        self.webhooks.wake();
        Ok(())
    }

    /// Events that could not be delivered, after number `after`, in their order.
    pub async fn dead_deliveries(
        &self,
        caller: &Caller,
        id: i64,
        after: i64,
        limit: usize,
    ) -> Result<Vec<DeadDelivery>, Error> {
        self.known_webhook(caller, id).await?;
        Ok(self.master.store.dead_deliveries(id, after, limit.clamp(1, PAGE)).await?)
    }

    /// Sends dead deliveries again, beside whatever else is under way. Those that arrive are gone from the list; the others
    /// say there what the matter was.
    pub async fn redeliver(&self, caller: &Caller, id: i64, which: WhichDead) -> Result<(), Error> {
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let webhook = self.known_webhook(caller, id).await?;
        if let Some(reason) = self.suspension(&webhook.owner) {
            return Err(Error::Conflict(reason));
        }
        if let WhichDead::These(numbers) = &which {
            if numbers.len() > PAGE {
                return Err(Error::Invalid(format!("name at most {PAGE} events, or ask for all")));
            }
            for number in numbers {
                let found = self.master.store.dead_deliveries(id, number.saturating_sub(1), 1).await?;
                if found.first().is_none_or(|dead| dead.number != *number) {
                    return Err(Error::NotFound(format!("webhook {id} has no dead delivery of event {number}")));
                }
            }
        }
        let under_way = || Error::Conflict(format!("dead deliveries of webhook {id} are being sent again already"));
        let round = self.webhooks.begin_round(id).ok_or_else(under_way)?;
        let shown = match &which {
            WhichDead::All => serde_json::json!("all"),
            WhichDead::These(numbers) => serde_json::json!(numbers),
        };
        let detail = serde_json::json!({ "id": id, "events": shown });
        self.master.store.record_audit(caller.audit("webhook.redeliver", &webhook.name, detail)).await?;
        self.master.tasks.spawn(Kind::Errand, "webhook redelivery", redeliver(self.clone(), round, which));
        Ok(())
    }

    /// Lets a webhook go on with event `from`, whether it has had it or not; `from` may be the number of the next event.
    pub async fn replay(&self, caller: &Caller, id: i64, from: i64) -> Result<WebhookEntry, Error> {
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let webhook = self.known_webhook(caller, id).await?;
        let last = self.master.store.last_event().await?;
        if from < 1 || from > last.saturating_add(1) {
            return Err(Error::Invalid(format!("events have numbers from 1 to {last}")));
        }
        let audit = caller.audit("webhook.replay", &webhook.name, serde_json::json!({ "id": id, "from": from }));
        let written = self.master.store.move_webhook(id, from - 1, audit).await?;
        written_or(written, "webhook", &id.to_string())?;
        self.webhooks.wake();
        self.webhook(caller, id).await
    }

    /// Sends an event that never happened, now and once, whether or not the webhook is active.
    pub async fn test_webhook(&self, caller: &Caller, id: i64) -> Result<WebhookTest, Error> {
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let webhook = self.known_webhook(caller, id).await?;
        let audit = caller.audit("webhook.test", &webhook.name, serde_json::json!({ "id": id }));
        self.master.store.record_audit(audit).await?;
        let message = Message::sample(&webhook, clock::now())?;
        let began = Instant::now();
        let outcome = self.webhooks.send(&webhook, &message, self.master.config.webhook_timeout).await;
        let status = outcome.as_ref().ok().map(|status| status.as_u16());
        Ok(WebhookTest { status, error: taken(outcome).err(), took: began.elapsed() })
    }

    /// Why nothing is delivered for this owner, if nothing is.
    pub(crate) fn suspension(&self, owner: &str) -> Option<String> {
        match self.master.directory.snapshot().users.get(owner) {
            None => Some(format!("its owner {owner:?} is not a user any more")),
            Some(User { disabled: true, .. }) => Some(format!("its owner {owner:?} is disabled")),
            Some(_) => None,
        }
    }

    /// The owner of a webhook as he would be if he looked himself.
    pub(crate) async fn owner(&self, name: &str) -> Result<Caller, Error> {
        let auth = self.auth_of(name).ok_or_else(|| Error::NotFound(format!("there is no user {name:?}")))?;
        let person = Person { name: name.to_owned(), auth, groups: Vec::new(), scope: Scope::Read };
        Ok(Caller::with_rights("webhook", self.master.rights(&person).await?))
    }

    /// One event, as far as he may see it.
    pub(crate) async fn event_for(
        &self,
        caller: &Caller,
        number: i64,
    ) -> Result<Option<crate::app::EventEntry>, Error> {
        let found = self.master.store.events_after(number - 1, &EventFilter::default(), 1).await?;
        let Some(event) = found.into_iter().find(|event| event.number == number) else { return Ok(None) };
        let heard = Arc::new(Heard { entry: read(event)?, shaped: Shaped::default() });
        let seen = Viewer::new(self.clone(), caller.clone()).see(&heard).await?;
        Ok(seen.map(|heard| heard.entry.clone()))
    }

    /// One that is not his is one that does not exist.
    async fn known_webhook(&self, caller: &Caller, id: i64) -> Result<Webhook, Error> {
        let found = self.master.store.webhook(id).await?.filter(|webhook| is_his(caller, &webhook.owner));
        found.ok_or_else(|| Error::NotFound(format!("there is no webhook {id}")))
    }

    /// Whether he may give webhooks to this user, who must be one that can have some.
    fn check_owner(&self, caller: &Caller, owner: &str) -> Result<(), Error> {
        let is_himself = owner == caller.who;
        match self.suspension(owner) {
            None if is_his(caller, owner) => Ok(()),
            Some(_) if caller.rights.server_admin && !is_himself => {
                Err(Error::Conflict(format!("there is no user {owner:?} who is not disabled; name another owner")))
            }
            _ if is_himself => Err(Error::Invalid(
                "a webhook belongs to a user of the directory, and you are none: name its owner, or make a user".into(),
            )),
            _ => Err(Error::Forbidden("only a server admin gives webhooks to others".into())),
        }
    }

    fn entry(&self, webhook: Webhook) -> WebhookEntry {
        let Webhook { id, name, url, tag, jid, action, minion, owner, active, cursor, .. } = webhook;
        let Webhook { failures, next_try, last_error, created, version, .. } = webhook;
        WebhookEntry {
            id,
            name,
            url,
            filter: WebhookFilter { tag: Some(tag).filter(|tag| tag != EVERY_TAG), jid, action, minion },
            suspended: self.suspension(&owner),
            owner,
            active,
            cursor,
            failures,
            next_try,
            last_error,
            created,
            version,
        }
    }
}

/// The pattern of a webhook that is for every tag.
const EVERY_TAG: &str = "*";

/// Somebody of the same name whom another way of logging in has vouched for is somebody else: only who is in the directory
/// has an organisation.
fn is_his(caller: &Caller, owner: &str) -> bool {
    caller.rights.server_admin || caller.who == owner && !caller.rights.org.is_empty()
}

fn with_filter(webhook: Webhook, filter: WebhookFilter) -> Result<Webhook, Error> {
    let WebhookFilter { tag, jid, action, minion } = filter;
    if [&tag, &minion].into_iter().flatten().any(|pattern| pattern.is_empty() || pattern.len() > MAX_TAG) {
        return Err(Error::Invalid(format!("a pattern has 1 to {MAX_TAG} bytes")));
    }
    let tag = tag.unwrap_or_else(|| EVERY_TAG.to_owned());
    Ok(Webhook { tag, jid, action, minion, ..webhook })
}

/// What the audit log tells of it, if it is one that can be. The secret is not in it, nor is more of the address than its host.
fn detail(webhook: &Webhook) -> Result<serde_json::Value, Error> {
    check_name("webhook", &webhook.name)?;
    if !SECRET.contains(&webhook.secret.len()) {
        return Err(Error::Invalid(format!("a secret has {} to {} bytes", SECRET.start(), SECRET.end())));
    }
    let address = Address::parse(&webhook.url)?;
    Ok(serde_json::json!({
        "id": Some(webhook.id).filter(|id| *id != 0),
        "to": address.place(),
        "owner": webhook.owner,
        "active": webhook.active,
        "tag": webhook.tag,
        "jid": webhook.jid.map(|jid| jid.to_string()),
        "action": webhook.action.map(|action| action.0),
        "minion": webhook.minion,
    }))
}
