//! The catalogue of states: named texts of an organisation, every version of them, and whom they are assigned to.

use crate::audit::AuditEntry;
use crate::counters::{self, Counter};
use crate::db::{Effects, Locking, Operation, Row, Tx, locking, params};
use crate::events::NewEvent;
use crate::versions::{self, Written};
use crate::{Error, Result, Store, organisations};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// How many versions of a state are kept; older ones go when a new one comes.
pub const KEPT_VERSIONS: i64 = 500;

/// One state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The organisation it belongs to
    pub org: String,
    /// Its name, of which there is one in the organisation
    pub name: String,
    /// What it is, for people
    pub description: String,
    /// The text that minions get
    pub content: String,
    /// Its version; not what a change is decided by
    pub version: i64,
    /// When it was made; kept as it is by later changes
    pub created: Timestamp,
    /// When it was last changed
    pub changed: Timestamp,
    /// Who changed it last
    pub changed_by: String,
}

/// One version of a state, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateVersion {
    /// Its number
    pub version: i64,
    /// Since when
    pub at: Timestamp,
    /// Who made it
    pub by: String,
}

/// What a state can be assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AssigneeKind {
    /// Every minion of the organisation
    Org,
    /// The minions that a group means
    Group,
    /// One minion
    Minion,
}

impl AssigneeKind {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Org => "org",
            Self::Group => "group",
            Self::Minion => "minion",
        }
    }

    /// Reads its word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Org, Self::Group, Self::Minion].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A state and what it is assigned to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateAssignment {
    /// The organisation of the state
    pub org: String,
    /// The state
    pub name: String,
    /// To what
    pub kind: AssigneeKind,
    /// Which one: its id or name
    pub subject: String,
}

/// What came of assigning a state, or of taking that back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// It is so now
    Done,
    /// It was so already
    Already,
    /// There is no such state
    Missing,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT org, name, description, content, version, created, changed, changed_by FROM states ", $rest)
    };
}

const ALL: &str = select!("ORDER BY org, name");
const VERSION: Locking = locking!("SELECT version FROM states WHERE org = ?1 AND name = ?2");
const INSERT: &str = "INSERT INTO states (org, name, description, content, version, created, changed, changed_by) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (org, name) DO NOTHING";
const UPDATE: &str = "UPDATE states SET description = ?3, content = ?4, version = ?5, changed = ?6, changed_by = ?7 \
    WHERE org = ?1 AND name = ?2";
const DELETE: &str = "DELETE FROM states WHERE org = ?1 AND name = ?2";

const ADD_VERSION: &str =
    "INSERT INTO state_versions (org, name, version, content, at, by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const FORGET_VERSIONS: &str = "DELETE FROM state_versions WHERE org = ?1 AND name = ?2 AND version <= ?3";
const DELETE_VERSIONS: &str = "DELETE FROM state_versions WHERE org = ?1 AND name = ?2";
const VERSIONS: &str = "SELECT version, at, by FROM state_versions WHERE org = ?1 AND name = ?2 AND version < ?3 \
    ORDER BY version DESC LIMIT ?4";
const ONE_VERSION: &str =
    "SELECT version, at, by, content FROM state_versions WHERE org = ?1 AND name = ?2 AND version = ?3";

const ASSIGNMENTS: &str = "SELECT org, name, kind, subject FROM state_assignments ORDER BY org, name, kind, subject";
const ASSIGN: &str = "INSERT INTO state_assignments (org, name, kind, subject) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (org, name, kind, subject) DO NOTHING";
const UNASSIGN: &str = "DELETE FROM state_assignments WHERE org = ?1 AND name = ?2 AND kind = ?3 AND subject = ?4";
const UNASSIGN_ALL: &str = "DELETE FROM state_assignments WHERE org = ?1 AND name = ?2";
const FORGET_SUBJECT: &str = "DELETE FROM state_assignments WHERE kind = ?1 AND subject = ?2";

/// Takes back what was assigned to a minion that is gone.
pub(crate) async fn forget_minion(tx: &Tx<'_>, minion: &MinionId) -> Result<()> {
    forget_subject(tx, AssigneeKind::Minion, minion.as_str()).await
}

/// Takes back what was assigned to a group that is gone.
pub(crate) async fn forget_group(tx: &Tx<'_>, group: &str) -> Result<()> {
    forget_subject(tx, AssigneeKind::Group, group).await
}

async fn forget_subject(tx: &Tx<'_>, kind: AssigneeKind, subject: &str) -> Result<()> {
    if tx.execute(FORGET_SUBJECT, params![kind.as_str(), subject]).await? > 0 {
        counters::take(tx, Counter::State, 1).await?;
    }
    Ok(())
}

async fn version(tx: &Tx<'_>, org: &str, name: &str) -> Result<Option<i64>> {
    tx.query_locking(&VERSION, params![org, name]).await?.first().map(|row| row.int(0)).transpose()
}

/// The catalogue was changed: that is audited, told, and counted so that other servers notice.
async fn changed(tx: &Tx<'_>, effects: &mut Effects, audit: &AuditEntry, event: NewEvent) -> Result<()> {
    counters::take(tx, Counter::State, 1).await?;
    effects.audit([audit]);
    effects.push(event);
    Ok(())
}

struct Put {
    state: State,
    expected: Option<i64>,
    audit: AuditEntry,
    event: Box<dyn Fn(i64) -> NewEvent + Send>,
}

impl Operation for Put {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let State { org, name, description, content, created, changed: at, changed_by: by, .. } = &self.state;
            let next = match versions::next(version(tx, org, name).await?, self.expected) {
                Ok(next) => next,
                Err(refused) => return Ok(refused),
            };
            organisations::require(tx, org).await?;
            if self.expected.is_some() {
                tx.execute(UPDATE, params![org, name, description, content, next, *at, by]).await?;
            } else {
                let row = params![org, name, description, content, next, *created, *at, by];
                if tx.execute(INSERT, row).await? == 0 {
                    return Ok(Written::Exists);
                }
            }
            tx.execute(ADD_VERSION, params![org, name, next, content, *at, by]).await?;
            tx.execute(FORGET_VERSIONS, params![org, name, next - KEPT_VERSIONS]).await?;
            changed(tx, effects, &self.audit, (self.event)(next)).await?;
            Ok(Written::Done(next))
        })
    }
}

struct Delete {
    org: String,
    name: String,
    expected: Option<i64>,
    audit: AuditEntry,
    event: NewEvent,
}

impl Operation for Delete {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let Self { org, name, expected, audit, event } = self;
            let last = match versions::removable(version(tx, org, name).await?, *expected) {
                Ok(last) => last,
                Err(refused) => return Ok(refused),
            };
            for statement in [UNASSIGN_ALL, DELETE_VERSIONS, DELETE] {
                tx.execute(statement, params![org, name]).await?;
            }
            changed(tx, effects, audit, event.clone()).await?;
            Ok(Written::Done(last))
        })
    }
}

struct Assign {
    wanted: StateAssignment,
    statement: &'static str,
    audit: AuditEntry,
    event: NewEvent,
}

impl Operation for Assign {
    type Output = Assigned;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Assigned>> {
        Box::pin(async move {
            let Self { wanted: StateAssignment { org, name, kind, subject }, statement, audit, event } = self;
            if version(tx, org, name).await?.is_none() {
                return Ok(Assigned::Missing);
            }
            if tx.execute(statement, params![org, name, kind.as_str(), subject]).await? == 0 {
                return Ok(Assigned::Already);
            }
            changed(tx, effects, audit, event.clone()).await?;
            Ok(Assigned::Done)
        })
    }
}

impl Store {
    /// Every state with its text, by organisation and name.
    pub async fn states(&self) -> Result<Vec<State>> {
        self.query(ALL, params![]).await?.into_iter().map(read).collect()
    }

    /// Every assignment, by organisation, state, kind and subject.
    pub async fn state_assignments(&self) -> Result<Vec<StateAssignment>> {
        self.query(ASSIGNMENTS, params![]).await?.into_iter().map(read_assignment).collect()
    }

    /// The versions of a state that are older than `before`, newest first, at most `limit`.
    pub async fn state_versions(&self, org: &str, name: &str, before: i64, limit: usize) -> Result<Vec<StateVersion>> {
        let rows = self.query(VERSIONS, params![org, name, before, limit]).await?;
        rows.into_iter().map(|mut row| read_version(&mut row)).collect()
    }

    /// One version of a state, with its text.
    pub async fn state_version(&self, org: &str, name: &str, version: i64) -> Result<Option<(StateVersion, String)>> {
        let rows = self.query(ONE_VERSION, params![org, name, version]).await?;
        let read = |mut row: Row| Ok((read_version(&mut row)?, row.text(3)?));
        rows.into_iter().next().map(read).transpose()
    }

    /// Makes a state (`expected` nothing), or changes it; its text is kept as a version. `event` makes what is told, with
    /// the version it has got. [`Error::Invalid`]: there is no such organisation.
    pub async fn put_state(
        &self,
        state: State,
        expected: Option<i64>,
        audit: AuditEntry,
        event: Box<dyn Fn(i64) -> NewEvent + Send>,
    ) -> Result<Written> {
        self.write(Put { state, expected, audit, event }).await
    }

    /// Removes a state, its versions, and it from whomever it was assigned to.
    pub async fn delete_state(
        &self,
        (org, name): (String, String),
        expected: Option<i64>,
        audit: AuditEntry,
        event: NewEvent,
    ) -> Result<Written> {
        self.write(Delete { org, name, expected, audit, event }).await
    }

    /// Assigns a state.
    pub async fn assign_state(&self, wanted: StateAssignment, audit: AuditEntry, event: NewEvent) -> Result<Assigned> {
        self.write(Assign { wanted, statement: ASSIGN, audit, event }).await
    }

    /// Takes an assignment back.
    pub async fn unassign_state(&self, gone: StateAssignment, audit: AuditEntry, event: NewEvent) -> Result<Assigned> {
        self.write(Assign { wanted: gone, statement: UNASSIGN, audit, event }).await
    }
}

fn read(mut row: Row) -> Result<State> {
    Ok(State {
        org: row.text(0)?,
        name: row.text(1)?,
        description: row.text(2)?,
        content: row.text(3)?,
        version: row.int(4)?,
        created: row.time(5)?,
        changed: row.time(6)?,
        changed_by: row.text(7)?,
    })
}

fn read_version(row: &mut Row) -> Result<StateVersion> {
    Ok(StateVersion { version: row.int(0)?, at: row.time(1)?, by: row.text(2)? })
}

fn read_assignment(mut row: Row) -> Result<StateAssignment> {
    let (org, name) = (row.text(0)?, row.text(1)?);
    let kind = AssigneeKind::parse(&row.text(2)?).ok_or(Error::Shape { what: "state_assignments", column: 2 })?;
    Ok(StateAssignment { org, name, kind, subject: row.text(3)? })
}
