//! Tokens: sessions of those who signed in, and API tokens of programs. Their secrets are not here, only hashes of them.

use crate::audit::AuditEntry;
use crate::db::{Effects, Operation, Param, Row, Tx, params};
use crate::{Error, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::time::Timestamp;
use std::fmt;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Somebody signed in
    Session,
    /// Made for a program
    Api,
}

/// One token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is known by; no secret
    pub id: String,
    /// SHA-256 of its secret, which it is found by; never shown
    pub hash: [u8; 32],
    /// What it is for
    pub kind: TokenKind,
    /// Whose
    pub user: String,
    /// Who vouched for him
    pub auth: String,
    /// The groups that the other system said he is in
    pub groups: Vec<String>,
    /// What it is called by its owner
    pub name: String,
    /// What it may at most, in the words of `core::access`
    pub scope: String,
    /// When it was made
    pub created: Timestamp,
    /// From when on it is no longer valid
    pub expires: Timestamp,
    /// When it was last used (written with some delay)
    pub last_used: Option<Timestamp>,
    /// From where it was asked for
    pub origin: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, hash, kind, user_name, auth, groups, name, scope, created, expires, last_used, origin FROM tokens ",
            $rest
        )
    };
}

pub(crate) const BY_HASH: &str = select!("WHERE hash = ?1");
const BY_ID: &str = select!("WHERE id = ?1");
pub(crate) const PAGE: &str = select!("WHERE id > ?1 ORDER BY id LIMIT ?2");
pub(crate) const PAGE_OF_USER: &str = select!("WHERE user_name = ?3 AND id > ?1 ORDER BY id LIMIT ?2");
const INSERT: &str = "INSERT INTO tokens (id, hash, kind, user_name, auth, groups, name, scope, created, expires, last_used, \
    origin) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const DELETE: &str = "DELETE FROM tokens WHERE id = ?1";
const DELETE_OF: &str = "DELETE FROM tokens WHERE user_name = ?1";
const DELETE_KIND_OF: &str = "DELETE FROM tokens WHERE user_name = ?1 AND kind = ?2";
const TOUCH: &str = "UPDATE tokens SET last_used = ?2 WHERE id = ?1 AND (last_used IS NULL OR last_used < ?2)";

impl TokenKind {
    /// The word in the database and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Api => "api",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Session, Self::Api].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Ends a user's sessions.
pub(crate) async fn end_sessions(tx: &Tx<'_>, user: &str) -> Result<()> {
    tx.execute(DELETE_KIND_OF, params![user, TokenKind::Session.as_str()]).await.map(drop)
}

/// Removes all tokens of a user.
pub(crate) async fn forget_user(tx: &Tx<'_>, user: &str) -> Result<()> {
    tx.execute(DELETE_OF, params![user]).await.map(drop)
}

struct Put(Token, AuditEntry);

impl Operation for Put {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Self(token, audit) = self;
            let groups = serde_json::to_string(&token.groups).map_err(|error| Error::Database(error.to_string()))?;
            let values = params![
                &token.id,
                &token.hash,
                token.kind.as_str(),
                &token.user,
                &token.auth,
                groups,
                &token.name,
                &token.scope,
                token.created,
                token.expires,
                token.last_used,
                &token.origin,
            ];
            tx.execute(INSERT, values).await?;
            effects.audit([audit]);
            Ok(())
        })
    }
}

struct Delete(&'static str, Vec<Param>, AuditEntry);

impl Operation for Delete {
    type Output = u64;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<u64>> {
        Box::pin(async move {
            let removed = tx.execute(self.0, self.1.clone()).await?;
            effects.audit((removed > 0).then_some(&self.2));
            Ok(removed)
        })
    }
}

struct Touch(Vec<(String, Timestamp)>);

impl Operation for Touch {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        let rows = self.0.iter().map(|(id, at)| params![id, *at]).collect();
        Box::pin(async move { tx.execute_many(TOUCH, rows).await.map(drop) })
    }
}

impl Store {
    /// Keeps a new token.
    pub async fn put_token(&self, token: Token, audit: AuditEntry) -> Result<()> {
        self.write(Put(token, audit)).await
    }

    /// The token with this public id.
    pub async fn token_by_id(&self, id: &str) -> Result<Option<Token>> {
        self.query(BY_ID, params![id]).await?.into_iter().next().map(read).transpose()
    }

    /// The token with this hash, whether or not it is still valid.
    pub async fn token(&self, hash: &[u8; 32]) -> Result<Option<Token>> {
        self.query(BY_HASH, params![hash]).await?.into_iter().next().map(read).transpose()
    }

    /// Tokens after `after_id` in the order of ids (empty text: from the first), at most `limit`: all, or one user's.
    pub async fn tokens(&self, user: Option<&str>, after_id: &str, limit: usize) -> Result<Vec<Token>> {
        let rows = match user {
            None => self.query(PAGE, params![after_id, limit]).await?,
            Some(user) => self.query(PAGE_OF_USER, params![after_id, limit, user]).await?,
        };
        rows.into_iter().map(read).collect()
    }

    /// Removes a token; tells whether there was one, and only then adds the audit entry.
    pub async fn delete_token(&self, id: String, audit: AuditEntry) -> Result<bool> {
        Ok(self.write(Delete(DELETE, params![id], audit)).await? > 0)
    }

    /// Removes a user's tokens of one kind, or of all; tells how many. The audit entry is added if there were any.
    pub async fn delete_tokens_of(&self, user: String, kind: Option<TokenKind>, audit: AuditEntry) -> Result<usize> {
        let removed = match kind {
            Some(kind) => self.write(Delete(DELETE_KIND_OF, params![user, kind.as_str()], audit)).await?,
            None => self.write(Delete(DELETE_OF, params![user], audit)).await?,
        };
        Ok(usize::try_from(removed).unwrap_or(usize::MAX))
    }

    /// Notes when tokens were last used. Tokens that are gone stay gone.
    pub async fn touch_tokens(&self, mut used: Vec<(String, Timestamp)>) -> Result<()> {
        // Always in the same order: two servers that touch the same tokens are then not in each other's way.
        used.sort();
        self.write(Touch(used)).await
    }
}

fn read(mut row: Row) -> Result<Token> {
    let shape = |column| Error::Shape { what: "tokens", column };
    Ok(Token {
        id: row.text(0)?,
        hash: row.hash(1)?,
        kind: TokenKind::parse(&row.text(2)?).ok_or_else(|| shape(2))?,
        user: row.text(3)?,
        auth: row.text(4)?,
        groups: serde_json::from_str(&row.text(5)?).map_err(|_| shape(5))?,
        name: row.text(6)?,
        scope: row.text(7)?,
        created: row.time(8)?,
        expires: row.time(9)?,
        last_used: row.opt_time(10)?,
        origin: row.text(11)?,
    })
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, hash: _, kind, user, auth, groups, name, scope, created, expires, last_used, origin } = self;
        f.debug_struct("Token")
            .field("id", id)
            .field("kind", kind)
            .field("user", user)
            .field("auth", auth)
            .field("groups", groups)
            .field("name", name)
            .field("scope", scope)
            .field("created", created)
            .field("expires", expires)
            .field("last_used", last_used)
            .field("origin", origin)
            .finish_non_exhaustive()
    }
}
