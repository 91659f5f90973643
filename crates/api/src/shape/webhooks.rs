//! Webhooks as JSON.

use super::Time;
use super::jobs::read_jid;
use saltern_core::ids::ActionId;
use saltern_server::{Error, app};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Webhooks, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookList {
    /// The webhooks
    pub webhooks: Vec<Webhook>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// A webhook, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Webhook {
    /// Its number
    pub id: i64,
    /// What it is called
    pub name: String,
    /// Where events are sent to
    pub url: String,
    /// Which events are sent
    pub filter: WebhookFilter,
    /// Whose it is: it gets what this user may see
    pub owner: String,
    /// Whether it is to be sent anything
    pub active: bool,
    /// Why nothing is sent although it is active
    pub suspended: Option<String>,
    /// The number of the last event that was dealt with
    pub cursor: i64,
    /// How often the next event could not be delivered, one time after the other
    pub failures: i64,
    /// When it is tried again
    pub next_try: Option<Time>,
    /// Why it could not be delivered
    pub last_error: Option<String>,
    /// Since when
    pub created: Time,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// Which events are sent: those that match all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookFilter {
    /// Only tags that match this shell pattern
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only of this job
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9]{20}$")]
    pub jid: Option<String>,
    /// Only of this action
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub action: Option<i64>,
    /// Only of minions whose id matches this shell pattern
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minion: Option<String>,
}

/// A webhook to be made.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// What it is called: letters, digits and `- _ . @`
    #[schema(pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,63}$")]
    pub name: String,
    /// Where events are sent to: `http` or `https`
    pub url: String,
    /// What they are signed with; nothing: a new secret is made
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = Password, write_only, min_length = 16, max_length = 256)]
    pub secret: Option<String>,
    /// Which events; nothing: all that the owner may see
    #[serde(default)]
    pub filter: WebhookFilter,
    /// Whether it begins at once
    #[serde(default = "yes")]
    pub active: bool,
    /// Whose it is; nothing: your own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// What a webhook is to be; what is left out stays as it is.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookChange {
    /// What it is called
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where events are sent to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What they are signed with
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = Password, write_only, min_length = 16, max_length = 256)]
    pub secret: Option<String>,
    /// Which events; all of it is replaced
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<WebhookFilter>,
    /// Whether it is to be sent anything; it begins where it stopped
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// Whose it is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A new webhook, with its secret: it is told now and never again.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct CreatedWebhook {
    /// What its events are signed with
    pub secret: String,
    /// The webhook
    #[serde(flatten)]
    pub webhook: Webhook,
}

/// Events that could not be delivered, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadDeliveryList {
    /// The deliveries
    pub dead_deliveries: Vec<DeadDelivery>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// An event that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadDelivery {
    /// The number of the event
    pub number: i64,
    /// When it was given up
    pub at: Time,
    /// How often it was tried
    pub attempts: i64,
    /// What the last failure was
    pub error: String,
}

/// Which dead deliveries are to be sent again: exactly one of `events` and `all`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Redelivery {
    /// Those of the events with these numbers
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub events: Option<Vec<i64>>,
    /// Every one there is
    #[serde(default)]
    pub all: bool,
}

/// From where a webhook is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The number of the first event that is sent
    #[schema(minimum = 1)]
    pub from: i64,
}

/// What came of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WebhookTest {
    /// What the receiver answered
    pub status: Option<u16>,
    /// Why that is not what is expected
    pub error: Option<String>,
    /// How many seconds it took
    pub took: f64,
}

const fn yes() -> bool {
    true
}

impl WebhookFilter {
    fn read(self) -> Result<app::WebhookFilter, Error> {
        if self.action.is_some_and(|id| id < 1) {
            return Err(Error::Invalid("action is the id of one: a number from 1 on".into()));
        }
        Ok(app::WebhookFilter {
            tag: self.tag,
            jid: self.jid.as_deref().map(read_jid).transpose()?,
            action: self.action.map(ActionId),
            minion: self.minion,
        })
    }
}

impl NewWebhook {
    /// The domain's words for it.
    pub(crate) fn read(self) -> Result<app::NewWebhook, Error> {
        Ok(app::NewWebhook {
            name: self.name,
            url: self.url,
            secret: self.secret.as_deref().map(Into::into),
            filter: self.filter.read()?,
            active: self.active,
            owner: self.owner,
        })
    }
}

impl WebhookChange {
    /// The domain's words for it.
    pub(crate) fn read(self) -> Result<app::WebhookChange, Error> {
        Ok(app::WebhookChange {
            name: self.name,
            url: self.url,
            secret: self.secret.as_deref().map(Into::into),
            filter: self.filter.map(WebhookFilter::read).transpose()?,
            active: self.active,
            owner: self.owner,
        })
    }
}

impl Redelivery {
    /// The domain's words for it.
    pub(crate) fn read(self) -> Result<app::WhichDead, Error> {
        match (self.events, self.all) {
            (Some(numbers), false) if !numbers.is_empty() => Ok(app::WhichDead::These(numbers)),
            (None, true) => Ok(app::WhichDead::All),
            _ => Err(Error::Invalid("give exactly one of events and all".into())),
        }
    }
}

impl From<app::WebhookEntry> for Webhook {
    fn from(entry: app::WebhookEntry) -> Self {
        let app::WebhookFilter { tag, jid, action, minion } = entry.filter;
        Self {
            id: entry.id,
            name: entry.name,
            url: entry.url,
            filter: WebhookFilter {
                tag,
                jid: jid.map(|jid| jid.to_string()),
                action: action.map(|action| action.0),
                minion,
            },
            owner: entry.owner,
            active: entry.active,
            suspended: entry.suspended,
            cursor: entry.cursor,
            failures: entry.failures,
            next_try: entry.next_try.map(Time),
            last_error: entry.last_error,
            created: entry.created.into(),
            version: entry.version,
        }
    }
}

impl From<app::DeadDelivery> for DeadDelivery {
    fn from(dead: app::DeadDelivery) -> Self {
        Self { number: dead.number, at: dead.at.into(), attempts: dead.attempts, error: dead.error }
    }
}

impl From<app::WebhookTest> for WebhookTest {
    fn from(test: app::WebhookTest) -> Self {
        Self { status: test.status, error: test.error, took: test.took.as_secs_f64() }
    }
}
