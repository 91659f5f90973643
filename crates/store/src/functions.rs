//! What minions say about their functions, to be looked up and searched.
//!
//! Minions of one kind say the same, so it is kept once for each kind. What is searched is kept in small letters beside it:
//! the databases do not agree on what those are.

use crate::db::{Effects, Operation, Param, Row, Tx, params};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::time::Timestamp;

/// What one kind of minion says about one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionDoc {
    /// The function, e.g. `test.ping`
    pub name: String,
    /// The kind of minion, e.g. `3008.3 Debian`
    pub kind: String,
    /// Its documentation
    pub doc: String,
    /// Its parameters, as JSON text
    pub argspec: String,
    /// When that was asked for
    pub at: Timestamp,
}

/// How many words of a search are looked for; the statement has a place for each.
const WORDS: usize = 4;
/// A longer word is in no documentation, and more than SQLite takes as a pattern.
const LONGEST_WORD: usize = 200;

const CLEAR: &str = "DELETE FROM functions WHERE kind = ?1";
const PUT: &str = "INSERT INTO functions (name, kind, doc, argspec, at, words) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
    ON CONFLICT (name, kind) DO UPDATE SET doc = excluded.doc, argspec = excluded.argspec, at = excluded.at, \
    words = excluded.words";

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT f.name, f.kind, f.doc, f.argspec, f.at FROM functions f WHERE ", $rest)
    };
}

const OF_NAME: &str = select!("f.name = ?1 ORDER BY f.kind DESC");
// Of those that say something about a function, the last in the order of kinds, which begin with the version.
pub(crate) const SEARCH: &str = select!(
    "f.name > ?1 AND f.kind = (SELECT max(k.kind) FROM functions k WHERE k.name = f.name) \
     AND f.words LIKE ?3 ESCAPE '!' AND f.words LIKE ?4 ESCAPE '!' AND f.words LIKE ?5 ESCAPE '!' \
     AND f.words LIKE ?6 ESCAPE '!' ORDER BY f.name LIMIT ?2"
);

struct Put(String, Vec<FunctionDoc>);

impl Operation for Put {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Self(kind, docs) = self;
            tx.execute(CLEAR, params![kind]).await?;
            let row = |FunctionDoc { name, doc, argspec, at, .. }: &FunctionDoc| {
                let words = format!("{name}\n{doc}").to_lowercase();
                params![name, kind, doc, argspec, *at, words]
            };
            tx.execute_many(PUT, docs.iter().map(row).collect()).await.map(drop)
        })
    }
}

impl Store {
    /// Keeps what a kind of minion says about its functions, in place of all that it said before.
    pub async fn put_functions(&self, kind: String, docs: Vec<FunctionDoc>) -> Result<()> {
        self.write(Put(kind, docs)).await
    }

    /// Functions after `after` in the order of names (empty text: from the first), each once, at most `limit`: those whose
    /// name or documentation has all words of the search, of which the first four count.
    pub async fn functions(&self, search: &str, after: &str, limit: usize) -> Result<Vec<FunctionDoc>> {
        let words: Vec<String> = search.split_whitespace().take(WORDS).map(str::to_lowercase).collect();
        if words.iter().any(|word| word.len() > LONGEST_WORD) {
            return Ok(Vec::new());
        }
        let mut values = params![after, limit];
        values.extend(words.iter().map(|word| Param::from(containing(word))));
        values.resize(2 + WORDS, Param::from("%"));
        self.query(SEARCH, values).await?.into_iter().map(read).collect()
    }

    /// What is said about one function, by newer kinds of minions first.
    pub async fn function(&self, name: &str) -> Result<Vec<FunctionDoc>> {
        self.query(OF_NAME, params![name]).await?.into_iter().map(read).collect()
    }
}

/// The pattern of texts that have this word in them.
fn containing(word: &str) -> String {
    let mut pattern = String::from("%");
    for char in word.chars() {
        if matches!(char, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(char);
    }
    pattern + "%"
}

fn read(mut row: Row) -> Result<FunctionDoc> {
    Ok(FunctionDoc {
        name: row.text(0)?,
        kind: row.text(1)?,
        doc: row.text(2)?,
        argspec: row.text(3)?,
        at: row.time(4)?,
    })
}
