//! Users and what was granted to them.

use crate::audit::AuditEntry;
use crate::counters;
use crate::db::{Effects, Locking, Operation, Row, Tx, locking, params};
use crate::recurring::{self, Heir};
use crate::versions::{self, Written};
use crate::{Error, Result, Store, groups, organisations, requests, tokens, webhooks};
use futures_util::future::LocalBoxFuture;
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;
use std::fmt;

/// One user.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name he signs in with
    pub name: String,
    /// The organisation he belongs to
    pub org: String,
    /// Who vouches for him: `local`, or the name of another system
    pub auth: String,
    /// The hash of his password, in PHC form; never shown
    pub password: Option<String>,
    /// What people call him
    pub full_name: String,
    /// Whether he is kept out
    pub disabled: bool,
    /// When he was entered; kept as it is by later changes
    pub created: Timestamp,
    /// Its version; not what a change is decided by
    pub version: i64,
    /// What was granted, as `role` or `role:group`; each once, sorted
    pub grants: Vec<String>,
}

// The line break between grants is a parameter: the databases have no common way to write one.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT u.name, u.org, u.auth, u.password, u.full_name, u.disabled, u.created, u.version, \
             (SELECT string_agg(g.role, ?1) FROM grants g WHERE g.user_name = u.name) FROM users u ",
            $rest
        )
    };
}

const ALL: &str = select!("ORDER BY u.name");
const ONE: &str = select!("WHERE u.name = ?2");
const LOCKED: Locking = locking!(select!("WHERE u.name = ?2"), " OF u");
const INSERT: &str = "INSERT INTO users (name, org, auth, password, full_name, disabled, created, version) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (name) DO NOTHING";
const UPDATE: &str = "UPDATE users SET org = ?2, auth = ?3, password = ?4, full_name = ?5, disabled = ?6, version = ?7 \
    WHERE name = ?1";
const DELETE: &str = "DELETE FROM users WHERE name = ?1";
const CLEAR_GRANTS: &str = "DELETE FROM grants WHERE user_name = ?1";
const GRANT: &str = "INSERT INTO grants (user_name, role, group_name) VALUES (?1, ?2, ?3)";

const RENEW_GRANTED: &str = "UPDATE users SET version = version + 1 \
    WHERE name IN (SELECT user_name FROM grants WHERE group_name = ?1)";
const REVOKE_GROUP: &str = "DELETE FROM grants WHERE group_name = ?1";

/// Takes back what was granted on a group that is being removed: another group of that name is another group.
pub(crate) async fn revoke_group(tx: &Tx<'_>, group: &str) -> Result<()> {
    tx.execute(RENEW_GRANTED, params![group]).await?;
    tx.execute(REVOKE_GROUP, params![group]).await.map(drop)
}

struct Put {
    user: User,
    expected: Option<i64>,
    audit: AuditEntry,
}

impl Put {
    /// What is granted, each once, and on which group.
    fn grants(&self) -> Result<BTreeSet<(&str, Option<&str>)>> {
        let grants = self.user.grants.iter().map(|grant| {
            if grant.is_empty() || grant.contains('\n') {
                return Err(Error::Invalid("a grant is one line: a role, or a role and a group"));
            }
            Ok((grant.as_str(), grant.split_once(':').map(|(_, group)| group)))
        });
        grants.collect()
    }
}

impl Operation for Put {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let User { name, org, auth, password, full_name, disabled, created, .. } = &self.user;
            let found = locked(tx, name).await?;
            let next = match versions::next(found.as_ref().map(|user| user.version), self.expected) {
                Ok(next) => next,
                Err(refused) => return Ok(refused),
            };
            organisations::require(tx, org).await?;
            let grants = self.grants()?;
            for group in grants.iter().filter_map(|(_, group)| *group).collect::<BTreeSet<_>>() {
                groups::require(tx, group).await?;
            }
            let password = password.as_ref();
            if let Some(old) = found {
                let values = params![name, org, auth, password, full_name, *disabled, next];
                tx.execute(UPDATE, values).await?;
                let is_same = old.grants.iter().eq(grants.iter().map(|(grant, _)| *grant));
                if !is_same || old.password.as_ref() != password || old.disabled != *disabled {
                    tokens::end_sessions(tx, name).await?;
                }
            } else {
                let values = params![name, org, auth, password, full_name, *disabled, *created, next];
                if tx.execute(INSERT, values).await? == 0 {
                    return Ok(Written::Exists);
                }
            }
            tx.execute(CLEAR_GRANTS, params![name]).await?;
            let rows = grants.into_iter().map(|(grant, group)| params![name, grant, group]);
            tx.execute_many(GRANT, rows.collect()).await?;
            counters::people_changed(tx, effects, &self.audit).await?;
            Ok(Written::Done(next))
        })
    }
}

struct Delete {
    name: String,
    expected: Option<i64>,
    heir: Option<Heir>,
    audit: AuditEntry,
}

impl Operation for Delete {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            let found = locked(tx, &self.name).await?.map(|user| user.version);
            let last = match versions::removable(found, self.expected) {
                Ok(last) => last,
                Err(refused) => return Ok(refused),
            };
            // Whoever gets this name later is somebody else: nothing of the old one may be left for him.
            tx.execute(CLEAR_GRANTS, params![&self.name]).await?;
            tokens::forget_user(tx, &self.name).await?;
            requests::forget_user(tx, &self.name).await?;
            webhooks::stop_those_of(tx, &self.name).await?;
            recurring::hand_over(tx, effects, &self.name, self.heir.as_ref()).await?;
            tx.execute(DELETE, params![&self.name]).await?;
            counters::people_changed(tx, effects, &self.audit).await?;
            Ok(Written::Done(last))
        })
    }
}

async fn locked(tx: &Tx<'_>, name: &str) -> Result<Option<User>> {
    tx.query_locking(&LOCKED, params!["\n", name]).await?.into_iter().next().map(read).transpose()
}

impl Store {
    /// Every user, by name.
    pub async fn users(&self) -> Result<Vec<User>> {
        self.query(ALL, params!["\n"]).await?.into_iter().map(read).collect()
    }

    /// One user.
    pub async fn user(&self, name: &str) -> Result<Option<User>> {
        self.query(ONE, params!["\n", name]).await?.into_iter().next().map(read).transpose()
    }

    /// Enters a user (`expected` nothing), or changes him. With another password, other grants, or once he is disabled or
    /// no longer so, he has to sign in anew: his sessions end. [`Error::Invalid`]: there is no such organisation, or no such
    /// group as one of the grants names.
    pub async fn put_user(&self, user: User, expected: Option<i64>, audit: AuditEntry) -> Result<Written> {
        self.write(Put { user, expected, audit }).await
    }

    /// Removes a user with his grants, his tokens of all kinds and his requests; his webhooks are stopped. His recurring
    /// actions are the heir's then; without one they are stopped, too.
    pub async fn delete_user(
        &self,
        name: String,
        expected: Option<i64>,
        heir: Option<Heir>,
        audit: AuditEntry,
    ) -> Result<Written> {
        self.write(Delete { name, expected, heir, audit }).await
    }
}

fn read(mut row: Row) -> Result<User> {
    let mut grants: Vec<String> = row.opt_text(8)?.iter().flat_map(|all| all.split('\n')).map(str::to_owned).collect();
    grants.sort();
    Ok(User {
        name: row.text(0)?,
        org: row.text(1)?,
        auth: row.text(2)?,
        password: row.opt_text(3)?,
        full_name: row.text(4)?,
        disabled: row.flag(5)?,
        created: row.time(6)?,
        version: row.int(7)?,
        grants,
    })
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, org, auth, password, full_name, disabled, created, version, grants } = self;
        f.debug_struct("User")
            .field("name", name)
            .field("org", org)
            .field("auth", auth)
            .field("password", &password.as_ref().map(|_| "***"))
            .field("full_name", full_name)
            .field("disabled", disabled)
            .field("created", created)
            .field("version", version)
            .field("grants", grants)
            .finish()
    }
}
