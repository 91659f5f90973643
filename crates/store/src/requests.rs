//! Requests with an idempotency key: the first is carried out, and those that repeat it get its reply.

use crate::db::{Effects, Operation, Row, Tx, params};
use crate::{Body, Error, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::time::Timestamp;

/// What is to be done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is the first with this key: carry it out
    New,
    /// The first is still being carried out, or was when a server died
    Running,
    /// It has been carried out: this was said
    Done(Reply),
    /// The key was used for another request
    Other,
}

/// What was said to a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code
    pub status: i64,
    /// Headers that belong to it
    pub headers: Vec<(String, String)>,
    /// The body; not shown, it may have a new token in it
    pub body: Body,
}

/// Keys that are longer are refused: they are looked up by.
const LONGEST_KEY: usize = 255;

const INSERT: &str = "INSERT INTO requests (user_name, key, fingerprint, at, status, headers, encoding, body) \
    VALUES (?1, ?2, ?3, ?4, NULL, '[]', 0, ?5) ON CONFLICT (user_name, key) DO NOTHING";
const ONE: &str = "SELECT fingerprint, status, headers, encoding, body FROM requests WHERE user_name = ?1 AND key = ?2";
const END: &str = "UPDATE requests SET status = ?3, headers = ?4, encoding = ?5, body = ?6 \
    WHERE user_name = ?1 AND key = ?2 AND status IS NULL";
const DROP: &str = "DELETE FROM requests WHERE user_name = ?1 AND key = ?2";
const DROP_OF: &str = "DELETE FROM requests WHERE user_name = ?1";

/// Removes all requests of a user.
pub(crate) async fn forget_user(tx: &Tx<'_>, user: &str) -> Result<()> {
    tx.execute(DROP_OF, params![user]).await.map(drop)
}

struct Begin {
    user: String,
    key: String,
    fingerprint: [u8; 32],
    at: Timestamp,
}

impl Operation for Begin {
    type Output = Begun;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Begun>> {
        Box::pin(async move {
            let Self { user, key, fingerprint, at } = self;
            if key.len() > LONGEST_KEY {
                return Err(Error::Invalid("an idempotency key has at most 255 bytes"));
            }
            if tx.execute(INSERT, params![user, key, fingerprint, *at, Vec::new()]).await? > 0 {
                return Ok(Begun::New);
            }
            let found = tx.query(ONE, params![user, key]).await?.into_iter().next();
            // Removed between the two statements, by another server: its next repetition is a new one.
            let Some(mut row) = found else { return Ok(Begun::Running) };
            if row.hash(0)? != *fingerprint {
                return Ok(Begun::Other);
            }
            read_reply(row).map(|reply| reply.map_or(Begun::Running, Begun::Done))
        })
    }
}

struct End(String, String, Reply);

impl Operation for End {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Self(user, key, Reply { status, headers, body }) = self;
            let headers = serde_json::to_string(headers).map_err(|error| Error::Database(error.to_string()))?;
            tx.execute(END, params![user, key, *status, headers, body.encoding, &body.bytes]).await.map(drop)
        })
    }
}

struct Drop(String, String);

impl Operation for Drop {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move { tx.execute(DROP, params![&self.0, &self.1]).await.map(drop) })
    }
}

impl Store {
    /// Begins a request, unless it is one already. `fingerprint` is a hash of all that makes it this request.
    pub async fn begin_request(
        &self,
        user: String,
        key: String,
        fingerprint: [u8; 32],
        at: Timestamp,
    ) -> Result<Begun> {
        self.write(Begin { user, key, fingerprint, at }).await
    }

    /// Keeps what was said to a request that was begun. What has been said once stays.
    pub async fn end_request(&self, user: String, key: String, reply: Reply) -> Result<()> {
        self.write(End(user, key, reply)).await
    }

    /// Forgets a request that came to nothing: it may be tried again with the same key.
    pub async fn drop_request(&self, user: String, key: String) -> Result<()> {
        self.write(Drop(user, key)).await
    }
}

fn read_reply(mut row: Row) -> Result<Option<Reply>> {
    let Some(status) = row.opt_int(1)? else { return Ok(None) };
    let headers = serde_json::from_str(&row.text(2)?).map_err(|_| Error::Shape { what: "requests", column: 2 })?;
    Ok(Some(Reply { status, headers, body: Body { encoding: row.int(3)?, bytes: row.blob(4)? } }))
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}
