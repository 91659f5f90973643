//! Recurring actions: what is done again and again, on what, as whose work, and when it is next.
//!
//! `next` is the instant that is to be accounted for next. Whoever accounts for it moves it on ([`crate::fires`]), so of
//! several servers one does.

mod owners;

pub use owners::{Heir, HeirEvents};
pub(crate) use owners::{forget_group, forget_minion, hand_over};

use crate::audit::AuditEntry;
use crate::counters::{self, Counter};
use crate::db::{Effects, Locking, Operation, Param, Row, Tx, locking, params};
use crate::versions::{self, Written};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, MinionId, RecurringId};
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;

/// One recurring action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurring {
    /// Its id; given out when it is made
    pub id: RecurringId,
    /// Its name, of which there is one on what it is done on
    pub name: String,
    /// The organisation it belongs to
    pub org: String,
    /// What kind of thing it is done on: `minion`, `group`, `org` or `target`
    pub entity_kind: String,
    /// Which one
    pub entity: String,
    /// As whose work it is done
    pub owner: String,
    /// What the owner's rights are made of each time, as JSON text
    pub person: String,
    /// Who made it; kept as it is by later changes
    pub creator: String,
    /// What is done, as JSON text
    pub what: String,
    /// When
    pub cron: String,
    /// In which time zone that is meant
    pub zone: String,
    /// What `H` in `cron` is worked out from
    pub seed: String,
    /// Whether it is done at all; without, it has no next instant
    pub active: bool,
    /// Whether the next instant is left out
    pub skip_next: bool,
    /// Over how many seconds the minions are spread
    pub spread: i64,
    /// What happens where an earlier time has not ended: `skip`, `queue` or `allow`
    pub overlap: String,
    /// What happens with instants that nobody was there for: `none`, `once` or `all`
    pub catch_up: String,
    /// For how many seconds they are worth it
    pub catch_up_limit: i64,
    /// Whether minions outside of their maintenance window do it in their next one
    pub in_window: bool,
    /// Seconds after which whatever is still open ends; nothing: as configured
    pub deadline: Option<i64>,
    /// The rules it is carried out by, as JSON text
    pub policy: String,
    /// When it was made; kept as it is by later changes
    pub created: Timestamp,
    /// When it was last changed
    pub changed: Timestamp,
    /// Its version; not what a change is decided by
    pub version: i64,
    /// The instant that is to be accounted for next
    pub next: Option<Timestamp>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.name, r.org, r.entity_kind, r.entity, r.owner, r.person, r.creator, r.what, r.cron, r.zone, \
             r.seed, r.active, r.skip_next, r.spread, r.overlap, r.catch_up, r.catch_up_limit, r.in_window, r.deadline, \
             r.policy, r.created, r.changed, r.version, r.next FROM recurring r ",
            $rest
        )
    };
}

const ONE: &str = select!("WHERE r.id = ?1");
pub(crate) const PAGE: &str = select!("WHERE r.id > ?1 ORDER BY r.id LIMIT ?2");
pub(crate) const OF_ENTITY: &str = select!("WHERE r.entity_kind = ?1 AND r.entity = ?2 ORDER BY r.name");
pub(crate) const DUE: &str =
    select!("WHERE r.active = 1 AND r.next IS NOT NULL AND r.next <= ?1 ORDER BY r.next, r.id LIMIT ?2");
pub(crate) const NEXT: &str =
    "SELECT next FROM recurring WHERE active = 1 AND next IS NOT NULL ORDER BY next, id LIMIT ?1";
// What launches are made of, and what brings it to minions, is theirs.
pub(crate) const OPEN_RUNS: &str = "SELECT r.minion, CASE WHEN r.state = 'queued' AND r.deliveries = 0 THEN 0 ELSE 1 END \
    FROM actions a JOIN runs r ON r.action = a.id \
    WHERE a.recurring = ?1 AND a.ended IS NULL AND a.launch IS NULL AND r.ended IS NULL";
pub(crate) const EARLIER: &str = "SELECT r.minion FROM actions a JOIN recurring d ON d.id = a.recurring \
    JOIN runs r ON r.action = a.id WHERE a.recurring = ?1 AND a.id < ?2 AND d.overlap = 'queue' \
    AND a.ended IS NULL AND a.launch IS NULL AND r.ended IS NULL";
pub(crate) const OPEN_MINIONS: &str = "SELECT m.minion, CASE WHEN m.state = 'waiting' AND m.chunk = 1 THEN 0 ELSE 1 END \
    FROM launches l JOIN launch_minions m ON m.launch = l.id \
    WHERE l.recurring = ?1 AND l.ended IS NULL AND m.state <> 'ended'";

const VERSION: Locking = locking!("SELECT version FROM recurring WHERE id = ?1");
const NAMESAKE: &str = "SELECT 1 FROM recurring WHERE entity_kind = ?1 AND entity = ?2 AND name = ?3 AND id <> ?4";
const INSERT: &str = "INSERT INTO recurring (id, name, org, entity_kind, entity, owner, person, what, cron, zone, seed, \
    active, skip_next, spread, overlap, catch_up, catch_up_limit, in_window, deadline, policy, changed, next, \
    creator, created, version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
    ?19, ?20, ?21, ?22, ?23, ?24, 1) ON CONFLICT (entity_kind, entity, name) DO NOTHING";
const UPDATE: &str = "UPDATE recurring SET name = ?2, org = ?3, entity_kind = ?4, entity = ?5, owner = ?6, person = ?7, \
    what = ?8, cron = ?9, zone = ?10, seed = ?11, active = ?12, skip_next = ?13, spread = ?14, overlap = ?15, \
    catch_up = ?16, catch_up_limit = ?17, in_window = ?18, deadline = ?19, policy = ?20, changed = ?21, next = ?22, \
    version = ?23 WHERE id = ?1";
const DELETE: &str = "DELETE FROM recurring WHERE id = ?1";

impl Recurring {
    /// What both a new one and a changed one are written with. One that is not active has no next instant.
    fn values(&self, id: RecurringId) -> Vec<Param> {
        params![
            id,
            &self.name,
            &self.org,
            &self.entity_kind,
            &self.entity,
            &self.owner,
            &self.person,
            &self.what,
            &self.cron,
            &self.zone,
            &self.seed,
            self.active,
            self.skip_next,
            self.spread,
            &self.overlap,
            &self.catch_up,
            self.catch_up_limit,
            self.in_window,
            self.deadline,
            &self.policy,
            self.changed,
            self.next.filter(|_| self.active),
        ]
    }
}

async fn version(tx: &Tx<'_>, id: RecurringId) -> Result<Option<i64>> {
    tx.query_locking(&VERSION, params![id]).await?.first().map(|row| row.int(0)).transpose()
}

struct Create(Recurring, AuditEntry);

impl Operation for Create {
    type Output = Option<RecurringId>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Self::Output>> {
        Box::pin(async move {
            let Self(new, audit) = self;
            let id = RecurringId(counters::take(tx, Counter::Recurring, 1).await?);
            let mut values = new.values(id);
            values.extend(params![&new.creator, new.created]);
            if tx.execute(INSERT, values).await? == 0 {
                return Ok(None);
            }
            effects.audit([audit]);
            Ok(Some(id))
        })
    }
}

struct Put {
    recurring: Recurring,
    expected: i64,
    audit: AuditEntry,
}

impl Operation for Put {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let Recurring { id, name, entity_kind, entity, .. } = &self.recurring;
            let next = match versions::next(version(tx, *id).await?, Some(self.expected)) {
                Ok(next) => next,
                Err(refused) => return Ok(refused),
            };
            // Whoever gives one a name holds this counter to the commit: nobody can take the name in between.
            counters::take(tx, Counter::Recurring, 0).await?;
            if !tx.query(NAMESAKE, params![entity_kind, entity, name, *id]).await?.is_empty() {
                return Ok(Written::Exists);
            }
            let mut values = self.recurring.values(*id);
            values.extend(params![next]);
            tx.execute(UPDATE, values).await?;
            effects.audit([&self.audit]);
            Ok(Written::Done(next))
        })
    }
}

struct Delete {
    id: RecurringId,
    expected: i64,
    audit: AuditEntry,
}

impl Operation for Delete {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let last = match versions::removable(version(tx, self.id).await?, Some(self.expected)) {
                Ok(last) => last,
                Err(refused) => return Ok(refused),
            };
            tx.execute(DELETE, params![self.id]).await?;
            effects.audit([&self.audit]);
            Ok(Written::Done(last))
        })
    }
}

impl Store {
    /// One recurring action.
    pub async fn recurring(&self, id: RecurringId) -> Result<Option<Recurring>> {
        Ok(self.list_recurring(ONE, params![id]).await?.into_iter().next())
    }

    /// Recurring actions after `after` in the order of ids.
    pub async fn recurrings(&self, after: RecurringId, limit: usize) -> Result<Vec<Recurring>> {
        self.list_recurring(PAGE, params![after, limit]).await
    }

    /// Those that are done on this, by name.
    pub async fn recurrings_of(&self, entity_kind: &str, entity: &str) -> Result<Vec<Recurring>> {
        self.list_recurring(OF_ENTITY, params![entity_kind, entity]).await
    }

    /// Those whose next instant has come, the one that waits longest first.
    pub async fn due_recurrings(&self, now: Timestamp, limit: usize) -> Result<Vec<Recurring>> {
        self.list_recurring(DUE, params![now, limit]).await
    }

    /// The earliest instant that is to be accounted for.
    pub async fn next_fire(&self) -> Result<Option<Timestamp>> {
        self.query(NEXT, params![1]).await?.first().map_or(Ok(None), |row| row.opt_time(0))
    }

    /// Where earlier times of a recurring action have not ended, by minion, and whether they have begun there. A minion
    /// where one has and another has not comes twice.
    pub async fn pending_of(&self, recurring: RecurringId) -> Result<Vec<(MinionId, bool)>> {
        let mut rows = self.query(OPEN_RUNS, params![recurring]).await?;
        rows.extend(self.query(OPEN_MINIONS, params![recurring]).await?);
        let read = rows.into_iter().map(|mut row| Ok((row.minion(0)?, row.flag(1)?)));
        Ok(read.collect::<Result<BTreeSet<_>>>()?.into_iter().collect())
    }

    /// Where this action, one time of something that recurs, has to wait for an earlier one: where that has not ended, if one
    /// is to wait for the other.
    pub async fn behind_of(&self, recurring: RecurringId, action: ActionId) -> Result<BTreeSet<MinionId>> {
        self.query(EARLIER, params![recurring, action]).await?.into_iter().map(|mut row| row.minion(0)).collect()
    }

    /// Makes a recurring action; its id and version are not those that are given. Nothing: there is one of this name on what
    /// it is done on.
    pub async fn create_recurring(&self, recurring: Recurring, audit: AuditEntry) -> Result<Option<RecurringId>> {
        self.write(Create(recurring, audit)).await
    }

    /// Changes a recurring action. [`Written::Exists`]: there is another one of this name on what it is done on.
    pub async fn put_recurring(&self, recurring: Recurring, expected: i64, audit: AuditEntry) -> Result<Written> {
        self.write(Put { recurring, expected, audit }).await
    }

    /// Removes a recurring action. What it has done stays, and what became of its instants until that is too old.
    pub async fn delete_recurring(&self, id: RecurringId, expected: i64, audit: AuditEntry) -> Result<Written> {
        self.write(Delete { id, expected, audit }).await
    }

    async fn list_recurring(&self, sql: &'static str, values: Vec<Param>) -> Result<Vec<Recurring>> {
        self.query(sql, values).await?.into_iter().map(read).collect()
    }
}

fn read(mut row: Row) -> Result<Recurring> {
    Ok(Recurring {
        id: RecurringId(row.int(0)?),
        name: row.text(1)?,
        org: row.text(2)?,
        entity_kind: row.text(3)?,
        entity: row.text(4)?,
        owner: row.text(5)?,
        person: row.text(6)?,
        creator: row.text(7)?,
        what: row.text(8)?,
        cron: row.text(9)?,
        zone: row.text(10)?,
        seed: row.text(11)?,
        active: row.flag(12)?,
        skip_next: row.flag(13)?,
        spread: row.int(14)?,
        overlap: row.text(15)?,
        catch_up: row.text(16)?,
        catch_up_limit: row.int(17)?,
        in_window: row.flag(18)?,
        deadline: row.opt_int(19)?,
        policy: row.text(20)?,
        created: row.time(21)?,
        changed: row.time(22)?,
        version: row.int(23)?,
        next: row.opt_time(24)?,
    })
}
