//! Groups of minions: some named one by one, some by a target expression, or both.

use crate::audit::AuditEntry;
use crate::counters;
use crate::db::{Effects, Locking, Operation, Row, Tx, locking, params};
use crate::versions::{self, Written};
use crate::{Error, Result, Store, organisations, recurring, states, users, windows};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;

/// One group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name, of which there is one in all organisations together
    pub name: String,
    /// The organisation it belongs to
    pub org: String,
    /// What it is, for people
    pub description: String,
    /// The type and the text of the expression that names members, if there is one
    pub target: Option<(String, String)>,
    /// Members by name; each once, sorted
    pub members: Vec<MinionId>,
    /// When it was made; kept as it is by later changes
    pub created: Timestamp,
    /// Its version; not what a change is decided by
    pub version: i64,
}

// The line break between members is a parameter: the databases have no common way to write one.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT g.name, g.org, g.description, g.target_type, g.target, g.created, g.version, \
             (SELECT string_agg(m.minion, ?1) FROM group_members m WHERE m.group_name = g.name) FROM groups g ",
            $rest
        )
    };
}

const ALL: &str = select!("ORDER BY g.name");
const ONE: &str = select!("WHERE g.name = ?2");
const VERSION: Locking = locking!("SELECT version FROM groups WHERE name = ?1");
const INSERT: &str = "INSERT INTO groups (name, org, description, target_type, target, created, version) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (name) DO NOTHING";
const UPDATE: &str = "UPDATE groups SET org = ?2, description = ?3, target_type = ?4, target = ?5, version = ?6 \
    WHERE name = ?1";
const DELETE: &str = "DELETE FROM groups WHERE name = ?1";
const CLEAR_MEMBERS: &str = "DELETE FROM group_members WHERE group_name = ?1";
const ADD_MEMBER: &str = "INSERT INTO group_members (group_name, minion) VALUES (?1, ?2)";

const RENEW_THOSE_WITH: &str = "UPDATE groups SET version = version + 1 \
    WHERE name IN (SELECT group_name FROM group_members WHERE minion = ?1)";
const REMOVE_MINION: &str = "DELETE FROM group_members WHERE minion = ?1";

/// Fails unless there is such a group; it cannot be removed before the commit.
pub(crate) async fn require(tx: &Tx<'_>, name: &str) -> Result<()> {
    match version(tx, name).await? {
        Some(_) => Ok(()),
        None => Err(Error::Invalid("there is no such group")),
    }
}

/// Takes a minion out of all groups that name it.
pub(crate) async fn forget_minion(tx: &Tx<'_>, minion: &MinionId) -> Result<()> {
    tx.execute(RENEW_THOSE_WITH, params![minion]).await?;
    tx.execute(REMOVE_MINION, params![minion]).await.map(drop)
}

async fn version(tx: &Tx<'_>, name: &str) -> Result<Option<i64>> {
    tx.query_locking(&VERSION, params![name]).await?.first().map(|row| row.int(0)).transpose()
}

struct Put {
    group: Group,
    expected: Option<i64>,
    audit: AuditEntry,
}

impl Operation for Put {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let Group { name, org, description, target, members, created, .. } = &self.group;
            let next = match versions::next(version(tx, name).await?, self.expected) {
                Ok(next) => next,
                Err(refused) => return Ok(refused),
            };
            organisations::require(tx, org).await?;
            let (kind, target) = target.as_ref().map(|(kind, target)| (kind, target)).unzip();
            if self.expected.is_some() {
                tx.execute(UPDATE, params![name, org, description, kind, target, next]).await?;
            } else if tx.execute(INSERT, params![name, org, description, kind, target, *created, next]).await? == 0 {
                return Ok(Written::Exists);
            }
            tx.execute(CLEAR_MEMBERS, params![name]).await?;
            let members: BTreeSet<&MinionId> = members.iter().collect();
            let rows = members.into_iter().map(|minion| params![name, minion]);
            tx.execute_many(ADD_MEMBER, rows.collect()).await?;
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
            users::revoke_group(tx, &self.name).await?;
            states::forget_group(tx, &self.name).await?;
            windows::forget_group(tx, &self.name).await?;
            recurring::forget_group(tx, &self.name).await?;
            tx.execute(CLEAR_MEMBERS, params![&self.name]).await?;
            tx.execute(DELETE, params![&self.name]).await?;
            counters::people_changed(tx, effects, &self.audit).await?;
            Ok(Written::Done(last))
        })
    }
}

impl Store {
    /// Every group, by name.
    pub async fn groups(&self) -> Result<Vec<Group>> {
        self.query(ALL, params!["\n"]).await?.into_iter().map(read).collect()
    }

    /// One group.
    pub async fn group(&self, name: &str) -> Result<Option<Group>> {
        self.query(ONE, params!["\n", name]).await?.into_iter().next().map(read).transpose()
    }

    /// Makes a group (`expected` nothing), or changes it; its members are then those that are given. [`Error::Invalid`]:
    /// there is no such organisation.
    pub async fn put_group(&self, group: Group, expected: Option<i64>, audit: AuditEntry) -> Result<Written> {
        self.write(Put { group, expected, audit }).await
    }

    /// Removes a group, what was granted on it and what was assigned to it; what recurs on it is stopped.
    pub async fn delete_group(&self, name: String, expected: Option<i64>, audit: AuditEntry) -> Result<Written> {
        self.write(Delete { name, expected, audit }).await
    }
}

fn read(mut row: Row) -> Result<Group> {
    let id = |id| MinionId::new(id).map_err(|_| Error::Shape { what: "group_members", column: 7 });
    let mut members =
        row.opt_text(7)?.iter().flat_map(|all| all.split('\n')).map(id).collect::<Result<Vec<MinionId>>>()?;
    members.sort();
    Ok(Group {
        name: row.text(0)?,
        org: row.text(1)?,
        description: row.text(2)?,
        target: row.opt_text(3)?.zip(row.opt_text(4)?),
        members,
        created: row.time(5)?,
        version: row.int(6)?,
    })
}
