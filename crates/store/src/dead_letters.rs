//! What minions sent and nobody could make sense of: kept for a while, so that somebody can look at it.

use crate::counters::{self, Counter};
use crate::db::{Effects, Operation, Row, Tx, params};
use crate::{Body, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// One dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// When it came
    pub at: Timestamp,
    /// From whom, if that is known
    pub minion: Option<MinionId>,
    /// What it was taken for, e.g. `return`
    pub what: String,
    /// What is wrong with it
    pub error: String,
    /// What was sent, as far as it is kept
    pub body: Body,
}

const INSERT: &str = "INSERT INTO dead_letters (number, at, minion, what, error, encoding, body) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(crate) const BEFORE: &str = "SELECT number, at, minion, what, error, encoding, body FROM dead_letters \
    WHERE number < ?1 ORDER BY number DESC LIMIT ?2";

impl Operation for DeadLetter {
    type Output = ();
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let number = counters::take(tx, Counter::DeadLetter, 1).await?;
            let Self { at, minion, what, error, body } = self;
            let values = params![number, *at, minion.as_ref(), what, error, body.encoding, &body.bytes];
            tx.execute(INSERT, values).await.map(drop)
        })
    }
}

impl Store {
    /// Keeps a dead letter.
    pub async fn dead_letter(&self, letter: DeadLetter) -> Result<()> {
        self.write(letter).await
    }

    /// Dead letters older than number `before`, newest first, each with its number.
    pub async fn dead_letters(&self, before: i64, limit: usize) -> Result<Vec<(i64, DeadLetter)>> {
        self.query(BEFORE, params![before, limit]).await?.into_iter().map(read).collect()
    }
}

fn read(mut row: Row) -> Result<(i64, DeadLetter)> {
    let letter = DeadLetter {
        at: row.time(1)?,
        minion: row.opt_text(2)?.and_then(|id| MinionId::new(&id).ok()),
        what: row.text(3)?,
        error: row.text(4)?,
        body: Body { encoding: row.int(5)?, bytes: row.blob(6)? },
    };
    Ok((row.int(0)?, letter))
}
