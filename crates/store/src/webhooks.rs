//! Webhooks: who is told of which events by HTTP, how far that has got, and what could not be delivered.

use crate::audit::AuditEntry;
use crate::counters::{self, Counter};
use crate::db::{Effects, Locking, Operation, Param, Row, Tx, locking, params};
use crate::versions::{self, Written};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, Jid};
use saltern_core::time::Timestamp;
use std::fmt;

/// One webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id, given when it is made
    pub id: i64,
    /// What it is called
    pub name: String,
    /// Where events are sent to
    pub url: String,
    /// What they are signed with; never shown
    pub secret: String,
    /// Only events with such a tag, as a glob
    pub tag: String,
    /// Only of this job
    pub jid: Option<Jid>,
    /// Only of this action
    pub action: Option<ActionId>,
    /// Only of such minions, as a glob
    pub minion: Option<String>,
    /// Whose it is: it gets what he may see
    pub owner: String,
    /// Whether anything is sent
    pub active: bool,
    /// The number of the last event that was dealt with
    pub cursor: i64,
    /// How often the next event could not be delivered, one time after the other
    pub failures: i64,
    /// Not before then is it tried again
    pub next_try: Option<Timestamp>,
    /// Why it could not be delivered
    pub last_error: Option<String>,
    /// When it was made; kept as it is by later changes
    pub created: Timestamp,
    /// Its version, which progress does not change; not what a change is decided by
    pub version: i64,
}

/// An event that a webhook could not be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadDelivery {
    /// Which webhook
    pub webhook: i64,
    /// The number of the event
    pub number: i64,
    /// When it was given up
    pub at: Timestamp,
    /// How often it was tried
    pub attempts: i64,
    /// What the last failure was
    pub error: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, url, secret, tag, jid, action, minion, owner, active, cursor, failures, next_try, last_error, \
             created, version FROM webhooks ",
            $rest
        )
    };
}

const ALL: &str = select!("ORDER BY id");
const ONE: &str = select!("WHERE id = ?1");
const VERSION: Locking = locking!("SELECT version FROM webhooks WHERE id = ?1");
const INSERT: &str = "INSERT INTO webhooks (id, name, url, secret, tag, jid, action, minion, owner, active, cursor, failures, \
    next_try, last_error, created, version) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0, NULL, NULL, ?12, 1)";
// What is changed is tried at once: whoever changed it has probably mended it.
const UPDATE: &str = "UPDATE webhooks SET name = ?2, url = ?3, secret = ?4, tag = ?5, jid = ?6, action = ?7, minion = ?8, \
    owner = ?9, active = ?10, version = ?11, failures = 0, next_try = NULL, last_error = NULL WHERE id = ?1";
const DELETE: &str = "DELETE FROM webhooks WHERE id = ?1";
// Whoever delivers what has been changed meanwhile does not know its place any more.
const PROGRESS: &str =
    "UPDATE webhooks SET cursor = ?3, failures = ?4, next_try = ?5, last_error = ?6 WHERE id = ?1 AND version = ?2";
const MOVE: &str =
    "UPDATE webhooks SET cursor = ?2, version = ?3, failures = 0, next_try = NULL, last_error = NULL WHERE id = ?1";
const STOP: &str = "UPDATE webhooks SET active = 0, version = version + 1 WHERE owner = ?1 AND active = 1";

const ADD_DEAD: &str = "INSERT INTO webhook_dead (webhook, number, at, attempts, error) \
    SELECT id, ?2, ?3, ?4, ?5 FROM webhooks WHERE id = ?1 \
    ON CONFLICT (webhook, number) DO UPDATE SET at = excluded.at, attempts = excluded.attempts, error = excluded.error";
pub(crate) const DEAD: &str = "SELECT webhook, number, at, attempts, error FROM webhook_dead \
    WHERE webhook = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
const TAKE_DEAD: &str = "DELETE FROM webhook_dead WHERE webhook = ?1 AND number = ?2";
const CLEAR_DEAD: &str = "DELETE FROM webhook_dead WHERE webhook = ?1";

/// Stops the webhooks of a user who is no more. They stay, for others to look after.
pub(crate) async fn stop_those_of(tx: &Tx<'_>, owner: &str) -> Result<()> {
    tx.execute(STOP, params![owner]).await.map(drop)
}

struct Create(Webhook, AuditEntry);

impl Operation for Create {
    type Output = i64;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<i64>> {
        Box::pin(async move {
            let Self(webhook, audit) = self;
            let id = counters::take(tx, Counter::Webhook, 1).await?;
            let mut values = webhook.wanted(id);
            values.extend(params![webhook.cursor, webhook.created]);
            tx.execute(INSERT, values).await?;
            effects.audit([audit]);
            Ok(id)
        })
    }
}

struct Put {
    webhook: Webhook,
    expected: Option<i64>,
    audit: AuditEntry,
}

impl Operation for Put {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let found = version(tx, self.webhook.id).await?;
            let next = match versions::removable(found, self.expected) {
                Ok(last) => last + 1,
                Err(refused) => return Ok(refused),
            };
            let mut values = self.webhook.wanted(self.webhook.id);
            values.extend(params![next]);
            tx.execute(UPDATE, values).await?;
            effects.audit([&self.audit]);
            Ok(Written::Done(next))
        })
    }
}

struct Move(i64, i64, AuditEntry);

impl Operation for Move {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let Self(id, cursor, audit) = self;
            let next = match versions::removable(version(tx, *id).await?, None) {
                Ok(last) => last + 1,
                Err(refused) => return Ok(refused),
            };
            tx.execute(MOVE, params![*id, *cursor, next]).await?;
            effects.audit([audit]);
            Ok(Written::Done(next))
        })
    }
}

struct Delete {
    id: i64,
    expected: Option<i64>,
    audit: AuditEntry,
}

impl Operation for Delete {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let last = match versions::removable(version(tx, self.id).await?, self.expected) {
                Ok(last) => last,
                Err(refused) => return Ok(refused),
            };
            tx.execute(CLEAR_DEAD, params![self.id]).await?;
            tx.execute(DELETE, params![self.id]).await?;
            effects.audit([&self.audit]);
            Ok(Written::Done(last))
        })
    }
}

struct Change(&'static str, Vec<Param>);

impl Operation for Change {
    type Output = u64;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<u64>> {
        Box::pin(tx.execute(self.0, self.1.clone()))
    }
}

async fn version(tx: &Tx<'_>, id: i64) -> Result<Option<i64>> {
    tx.query_locking(&VERSION, params![id]).await?.first().map(|row| row.int(0)).transpose()
}

impl Webhook {
    /// What its owner decides, in the order of both statements.
    fn wanted(&self, id: i64) -> Vec<Param> {
        let Self { name, url, secret, tag, jid, action, minion, owner, active, .. } = self;
        params![id, name, url, secret, tag, *jid, *action, minion.as_ref(), owner, *active]
    }
}

impl Store {
    /// Every webhook, oldest first.
    pub async fn webhooks(&self) -> Result<Vec<Webhook>> {
        self.query(ALL, params![]).await?.into_iter().map(read).collect()
    }

    /// One webhook.
    pub async fn webhook(&self, id: i64) -> Result<Option<Webhook>> {
        self.query(ONE, params![id]).await?.into_iter().next().map(read).transpose()
    }

    /// Makes a webhook, which begins after event `cursor`; tells its id.
    pub async fn create_webhook(&self, webhook: Webhook, audit: AuditEntry) -> Result<i64> {
        self.write(Create(webhook, audit)).await
    }

    /// Changes what a webhook is for; `expected` nothing: whatever its version is. How far it has got stays as it is, and
    /// failures are forgotten.
    pub async fn put_webhook(&self, webhook: Webhook, expected: Option<i64>, audit: AuditEntry) -> Result<Written> {
        self.write(Put { webhook, expected, audit }).await
    }

    /// Removes a webhook and its dead deliveries.
    pub async fn delete_webhook(&self, id: i64, expected: Option<i64>, audit: AuditEntry) -> Result<Written> {
        self.write(Delete { id, expected, audit }).await
    }

    /// Lets a webhook go on after event `cursor`, forwards or backwards. Failures are forgotten.
    pub async fn move_webhook(&self, id: i64, cursor: i64, audit: AuditEntry) -> Result<Written> {
        self.write(Move(id, cursor, audit)).await
    }

    /// Notes how far a webhook of this version has got; `false`, and nothing is noted, if it has been changed meanwhile.
    pub async fn webhook_progress(
        &self,
        id: i64,
        version: i64,
        cursor: i64,
        failures: i64,
        next_try: Option<Timestamp>,
        last_error: Option<String>,
    ) -> Result<bool> {
        Ok(self.write(Change(PROGRESS, params![id, version, cursor, failures, next_try, last_error])).await? > 0)
    }

    /// Keeps an event that could not be delivered, if there still is such a webhook.
    pub async fn add_dead_delivery(&self, dead: DeadDelivery) -> Result<()> {
        let DeadDelivery { webhook, number, at, attempts, error } = dead;
        self.write(Change(ADD_DEAD, params![webhook, number, at, attempts, error])).await.map(drop)
    }

    /// The dead deliveries of a webhook after event `after`, in the order of events.
    pub async fn dead_deliveries(&self, webhook: i64, after: i64, limit: usize) -> Result<Vec<DeadDelivery>> {
        let rows = self.query(DEAD, params![webhook, after, limit]).await?;
        let read = |mut row: Row| {
            let (webhook, number, at, attempts) = (row.int(0)?, row.int(1)?, row.time(2)?, row.int(3)?);
            Ok(DeadDelivery { webhook, number, at, attempts, error: row.text(4)? })
        };
        rows.into_iter().map(read).collect()
    }

    /// Takes a dead delivery out, to try it again; tells whether there was one.
    pub async fn take_dead_delivery(&self, webhook: i64, number: i64) -> Result<bool> {
        Ok(self.write(Change(TAKE_DEAD, params![webhook, number])).await? > 0)
    }
}

fn read(mut row: Row) -> Result<Webhook> {
    Ok(Webhook {
        id: row.int(0)?,
        name: row.text(1)?,
        url: row.text(2)?,
        secret: row.text(3)?,
        tag: row.text(4)?,
        jid: row.opt_jid(5)?,
        action: row.opt_int(6)?.map(ActionId),
        minion: row.opt_text(7)?,
        owner: row.text(8)?,
        active: row.flag(9)?,
        cursor: row.int(10)?,
        failures: row.int(11)?,
        next_try: row.opt_time(12)?,
        last_error: row.opt_text(13)?,
        created: row.time(14)?,
        version: row.int(15)?,
    })
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may have a secret in it, too.
        let Self { id, name, tag, owner, active, cursor, failures, next_try, version, .. } = self;
        f.debug_struct("Webhook")
            .field("id", id)
            .field("name", name)
            .field("tag", tag)
            .field("owner", owner)
            .field("active", active)
            .field("cursor", cursor)
            .field("failures", failures)
            .field("next_try", next_try)
            .field("version", version)
            .finish_non_exhaustive()
    }
}
