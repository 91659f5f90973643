//! Chains: templates of steps that are launched again and again, each with its owner.

use crate::audit::AuditEntry;
use crate::counters::{self, Counter};
use crate::db::{Effects, Locking, Operation, Row, Tx, locking, params};
use crate::versions::{self, Written};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::ChainId;
use saltern_core::time::Timestamp;

/// One chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its id; given out when it is made
    pub id: ChainId,
    /// Its name, of which its owner has one
    pub name: String,
    /// Whose it is
    pub owner: String,
    /// The organisation it belongs to
    pub org: String,
    /// What it is for, for people
    pub description: String,
    /// Whether others of its organisation may use it
    pub shared: bool,
    /// Its steps, as JSON text
    pub steps: String,
    /// When it was made; kept as it is by later changes
    pub created: Timestamp,
    /// When it was last changed
    pub changed: Timestamp,
    /// By whom
    pub changed_by: String,
    /// Its version; not what a change is decided by
    pub version: i64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT c.id, c.name, c.owner, c.org, c.description, c.shared, c.steps, c.created, c.changed, c.version, \
             c.changed_by \
             FROM chains c ",
            $rest
        )
    };
}

const ONE: &str = select!("WHERE c.id = ?1");
pub(crate) const PAGE: &str = select!("WHERE c.id > ?1 ORDER BY c.id LIMIT ?2");
pub(crate) const NAMED: &str = select!("WHERE c.name = ?1 ORDER BY c.id");
pub(crate) const KEPT: &str = "SELECT count(*), coalesce(sum(length(steps)), 0) FROM chains WHERE owner = ?1";
const VERSION: Locking = locking!("SELECT version FROM chains WHERE id = ?1");
const NAMESAKE: &str = "SELECT 1 FROM chains WHERE owner = ?1 AND name = ?2 AND id <> ?3";
const INSERT: &str = "INSERT INTO chains (id, name, owner, org, description, shared, steps, created, changed, version, \
    changed_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10) ON CONFLICT (owner, name) DO NOTHING";
const UPDATE: &str = "UPDATE chains SET name = ?2, owner = ?3, org = ?4, description = ?5, shared = ?6, steps = ?7, \
    changed = ?8, version = ?9, changed_by = ?10 WHERE id = ?1";
const DELETE: &str = "DELETE FROM chains WHERE id = ?1";

async fn version(tx: &Tx<'_>, id: ChainId) -> Result<Option<i64>> {
    tx.query_locking(&VERSION, params![id]).await?.first().map(|row| row.int(0)).transpose()
}

struct Create(Chain, AuditEntry);

impl Operation for Create {
    type Output = Option<ChainId>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Option<ChainId>>> {
        Box::pin(async move {
            let Self(Chain { name, owner, org, description, shared, steps, created, changed, changed_by, .. }, audit) =
                self;
            let id = counters::take(tx, Counter::Chain, 1).await?;
            let values = params![id, name, owner, org, description, *shared, steps, *created, *changed, changed_by];
            if tx.execute(INSERT, values).await? == 0 {
                return Ok(None);
            }
            effects.audit([audit]);
            Ok(Some(ChainId(id)))
        })
    }
}

struct Put {
    chain: Chain,
    expected: i64,
    audit: AuditEntry,
}

impl Operation for Put {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let Chain { id, name, owner, org, description, shared, steps, changed, changed_by, .. } = &self.chain;
            let next = match versions::next(version(tx, *id).await?, Some(self.expected)) {
                Ok(next) => next,
                Err(refused) => return Ok(refused),
            };
            // Whoever gives a chain a name holds this counter to the commit: nobody can take the name in between.
            counters::take(tx, Counter::Chain, 0).await?;
            if !tx.query(NAMESAKE, params![owner, name, *id]).await?.is_empty() {
                return Ok(Written::Exists);
            }
            let values = params![*id, name, owner, org, description, *shared, steps, *changed, next, changed_by];
            tx.execute(UPDATE, values).await?;
            effects.audit([&self.audit]);
            Ok(Written::Done(next))
        })
    }
}

struct Delete {
    id: ChainId,
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
    /// Chains after `after` in the order of ids.
    pub async fn chains(&self, after: ChainId, limit: usize) -> Result<Vec<Chain>> {
        self.query(PAGE, params![after, limit]).await?.into_iter().map(read).collect()
    }

    /// One chain.
    pub async fn chain(&self, id: ChainId) -> Result<Option<Chain>> {
        self.query(ONE, params![id]).await?.into_iter().next().map(read).transpose()
    }

    /// Every chain of this name, whoever it belongs to.
    pub async fn chains_named(&self, name: &str) -> Result<Vec<Chain>> {
        self.query(NAMED, params![name]).await?.into_iter().map(read).collect()
    }

    /// How many chains somebody has, and of how many characters their steps are.
    pub async fn chains_kept(&self, owner: &str) -> Result<(i64, i64)> {
        let kept = self.query(KEPT, params![owner]).await?;
        kept.first().map_or(Ok((0, 0)), |row| Ok((row.int(0)?, row.int(1)?)))
    }

    /// Makes a chain; its id and version are not those that are given. Nothing: its owner has one of this name.
    pub async fn create_chain(&self, chain: Chain, audit: AuditEntry) -> Result<Option<ChainId>> {
        self.write(Create(chain, audit)).await
    }

    /// Changes a chain. [`Written::Exists`]: its owner has another one of this name.
    pub async fn put_chain(&self, chain: Chain, expected: i64, audit: AuditEntry) -> Result<Written> {
        self.write(Put { chain, expected, audit }).await
    }

    /// Removes a chain. What was launched from it stays.
    pub async fn delete_chain(&self, id: ChainId, expected: i64, audit: AuditEntry) -> Result<Written> {
        self.write(Delete { id, expected, audit }).await
    }
}

fn read(mut row: Row) -> Result<Chain> {
    Ok(Chain {
        id: ChainId(row.int(0)?),
        name: row.text(1)?,
        owner: row.text(2)?,
        org: row.text(3)?,
        description: row.text(4)?,
        shared: row.flag(5)?,
        steps: row.text(6)?,
        created: row.time(7)?,
        changed: row.time(8)?,
        version: row.int(9)?,
        changed_by: row.text(10)?,
    })
}
