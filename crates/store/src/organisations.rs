//! Organisations, and which minions belong to which.
//!
//! Whatever belongs to an organisation holds its row until the commit while it is written, so that nothing can come to belong
//! to one that is just being removed.

use crate::audit::AuditEntry;
use crate::counters;
use crate::db::{Effects, Locking, Operation, Row, Tx, locking, params};
use crate::versions::{self, Written};
use crate::{Error, Result, Store, windows};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// The organisation that is always there: minions that were put in no other belong to it.
pub const DEFAULT_ORGANISATION: &str = "default";

/// One organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// Its name
    pub name: String,
    /// What it is, for people
    pub description: String,
    /// When it was made; kept as it is by later changes
    pub created: Timestamp,
    /// Its version; not what a change is decided by
    pub version: i64,
}

const ALL: &str = "SELECT name, description, created, version FROM organisations ORDER BY name";
const VERSION: Locking = locking!("SELECT version FROM organisations WHERE name = ?1");
const INSERT: &str = "INSERT INTO organisations (name, description, created, version) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (name) DO NOTHING";
const UPDATE: &str = "UPDATE organisations SET description = ?2, version = ?3 WHERE name = ?1";
const DELETE: &str = "DELETE FROM organisations WHERE name = ?1";
const IN_USE: &str = "SELECT 1 FROM users WHERE org = ?1 UNION ALL SELECT 1 FROM groups WHERE org = ?1 \
    UNION ALL SELECT 1 FROM minion_orgs WHERE org = ?1 UNION ALL SELECT 1 FROM states WHERE org = ?1 \
    UNION ALL SELECT 1 FROM recurring WHERE org = ?1 UNION ALL SELECT 1 FROM calendars WHERE org = ?1 \
    UNION ALL SELECT 1 FROM schedules WHERE org = ?1 LIMIT 1";

const MINIONS: &str = "SELECT minion, org FROM minion_orgs ORDER BY minion";
const PUT_MINION: &str = "INSERT INTO minion_orgs (minion, org) VALUES (?1, ?2) \
    ON CONFLICT (minion) DO UPDATE SET org = excluded.org";
const REMOVE_MINION: &str = "DELETE FROM minion_orgs WHERE minion = ?1";

/// Fails unless there is such an organisation; it cannot be removed before the commit.
pub(crate) async fn require(tx: &Tx<'_>, name: &str) -> Result<()> {
    match version(tx, name).await? {
        Some(_) => Ok(()),
        None => Err(Error::Invalid("there is no such organisation")),
    }
}

async fn version(tx: &Tx<'_>, name: &str) -> Result<Option<i64>> {
    tx.query_locking(&VERSION, params![name]).await?.first().map(|row| row.int(0)).transpose()
}

struct Put {
    organisation: Organisation,
    expected: Option<i64>,
    audit: AuditEntry,
}

impl Operation for Put {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let Organisation { name, description, created, .. } = &self.organisation;
            let next = match versions::next(version(tx, name).await?, self.expected) {
                Ok(next) => next,
                Err(refused) => return Ok(refused),
            };
            if self.expected.is_some() {
                tx.execute(UPDATE, params![name, description, next]).await?;
            } else if tx.execute(INSERT, params![name, description, *created, next]).await? == 0 {
                return Ok(Written::Exists);
            }
            counters::people_changed(tx, effects, &self.audit).await?;
            Ok(Written::Done(next))
        })
    }
}

struct Delete {
    name: String,
    expected: Option<i64>,
    audit: AuditEntry,
}

impl Operation for Delete {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let last = match versions::removable(version(tx, &self.name).await?, self.expected) {
                Ok(last) => last,
                Err(refused) => return Ok(refused),
            };
            let is_needed = self.name == DEFAULT_ORGANISATION;
            if is_needed || !tx.query(IN_USE, params![&self.name]).await?.is_empty() {
                return Ok(Written::Exists);
            }
            tx.execute(DELETE, params![&self.name]).await?;
            counters::people_changed(tx, effects, &self.audit).await?;
            Ok(Written::Done(last))
        })
    }
}

struct Assign {
    minion: MinionId,
    org: String,
    audit: AuditEntry,
}

impl Operation for Assign {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            require(tx, &self.org).await?;
            if self.org == DEFAULT_ORGANISATION {
                tx.execute(REMOVE_MINION, params![&self.minion]).await?;
            } else {
                tx.execute(PUT_MINION, params![&self.minion, &self.org]).await?;
            }
            windows::moved(tx, &self.minion, &self.org).await?;
            counters::people_changed(tx, effects, &self.audit).await?;
            Ok(())
        })
    }
}

/// Forgets where a minion belongs.
pub(crate) async fn forget_minion(tx: &Tx<'_>, minion: &MinionId) -> Result<()> {
    tx.execute(REMOVE_MINION, params![minion]).await.map(drop)
}

impl Store {
    /// Every organisation, by name.
    pub async fn organisations(&self) -> Result<Vec<Organisation>> {
        self.query(ALL, params![]).await?.into_iter().map(read).collect()
    }

    /// Makes an organisation (`expected` nothing), or changes its description.
    pub async fn put_organisation(
        &self,
        organisation: Organisation,
        expected: Option<i64>,
        audit: AuditEntry,
    ) -> Result<Written> {
        self.write(Put { organisation, expected, audit }).await
    }

    /// Removes an organisation. [`Written::Exists`]: users, groups, states, minions, recurring
    /// actions, calendars or schedules belong to it, or it is the default one.
    pub async fn delete_organisation(&self, name: String, expected: Option<i64>, audit: AuditEntry) -> Result<Written> {
        self.write(Delete { name, expected, audit }).await
    }

    /// The minions that belong to another organisation than the default one, by id.
    pub async fn minion_orgs(&self) -> Result<Vec<(MinionId, String)>> {
        let rows = self.query(MINIONS, params![]).await?;
        rows.into_iter().map(|mut row| Ok((row.minion(0)?, row.text(1)?))).collect()
    }

    /// Puts a minion, known or not, into an organisation. [`Error::Invalid`]: there is no such organisation.
    pub async fn set_minion_org(&self, minion: MinionId, org: String, audit: AuditEntry) -> Result<()> {
        self.write(Assign { minion, org, audit }).await
    }
}

fn read(mut row: Row) -> Result<Organisation> {
    Ok(Organisation { name: row.text(0)?, description: row.text(1)?, created: row.time(2)?, version: row.int(3)? })
}
