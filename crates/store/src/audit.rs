//! Who changed what, when and from where. Rows are only ever added, in the transaction of the change itself.
//!
//! Each entry has a hash that covers the one before it ([`chain`]), and the last one is written down a second time as the
//! head: what is changed, taken out or put in afterwards shows.
//!
//! The entries of a whole group of writes are added together, just before its commit ([`append`]): the head is read once,
//! and on PostgreSQL it is locked from there to the commit, so that several servers add to one chain. A group that is
//! rolled back takes its numbers with it, and leaves no gap.

mod chain;

pub use chain::{AuditBreak, AuditCheck, link};

use crate::db::{Effects, Locking, Operation, Param, Row, Tx, locking, params, storable};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::time::Timestamp;

/// One entry of the audit log.
///
/// Who, from where, what and to what are kept up to 250 characters each: they are looked up by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When
    pub at: Timestamp,
    /// The user or program
    pub who: String,
    /// The address or socket it came from
    pub origin: String,
    /// What was done, as `noun.verb`
    pub what: String,
    /// What it was done to
    pub subject: String,
    /// Particulars, as JSON text
    pub detail: String,
}

/// Which entries are wanted; what is not given does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only by this user or program
    pub who: Option<String>,
    /// Only this, or whatever was done to such a noun: `key` is `key.accept`, too
    pub what: Option<String>,
    /// Only what was done to this
    pub subject: Option<String>,
}

/// An entry with its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLink {
    /// Its number, from 1 on without a gap
    pub number: i64,
    /// The entry
    pub entry: AuditEntry,
    /// Its hash, which covers the one before it
    pub hash: [u8; 32],
}

/// The end of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) number: i64,
    pub(crate) hash: [u8; 32],
}

/// Entries from before there was a chain, a page at a time: the pages are read with [`AFTER`] and written as they come out
/// of [`Rechain::page`], each row with [`Rechain::WRITE`], and at the end the head with [`Rechain::HEAD`].
///
/// Only ever used by the migration that made the chain. Whoever took entries without a hash for old ones later on would bless
/// what somebody has forged.
#[derive(Default)]
pub(crate) struct Rechain(Head);

/// How many characters are kept of what is looked up by.
const SHORT: usize = 250;

const INSERT: &str = "INSERT INTO audit (number, at, who, origin, what, subject, detail, hash) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const HEAD: Locking = locking!("SELECT number, hash FROM audit_head WHERE place = 0");
const LAST: &str = "SELECT coalesce(max(number), 0) FROM audit";
const SET_HEAD: &str = "INSERT INTO audit_head (place, number, hash) VALUES (0, ?1, ?2) \
    ON CONFLICT (place) DO UPDATE SET number = excluded.number, hash = excluded.hash";

macro_rules! select {
    ($rest:expr) => {
        concat!("SELECT number, at, who, origin, what, subject, detail, hash FROM audit WHERE ", $rest)
    };
}

macro_rules! page {
    ($which:literal) => {
        select!(concat!(
            $which,
            " AND number < ?1 AND (?5 = '' OR what = ?5 OR substr(what, 1, length(?5) + 1) = ?5 || '.') \
             ORDER BY number DESC LIMIT ?2"
        ))
    };
}

pub(crate) const PAGE: &str = page!("?3 = '' AND ?4 = ''");
pub(crate) const PAGE_BY_WHO: &str = page!("who = ?3 AND ?4 = ''");
pub(crate) const PAGE_BY_SUBJECT: &str = page!("subject = ?4 AND (?3 = '' OR who = ?3)");
pub(crate) const AFTER: &str = select!("number > ?1 ORDER BY number LIMIT ?2");

/// Numbers the entries, chains them and writes them, all of a group of writes at once.
pub(crate) async fn append(tx: &Tx<'_>, entries: Vec<AuditEntry>) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut head = match tx.query_locking(&HEAD, params![]).await?.into_iter().next() {
        Some(row) => read_head(row)?,
        // Somebody removed it. Work goes on; that the next entry covers none of those before it stays visible for good.
        None => {
            Head { number: tx.query(LAST, params![]).await?.first().map_or(Ok(0), |row| row.int(0))?, hash: [0; 32] }
        }
    };
    let rows = entries.into_iter().map(|entry| {
        let entry = entry.stored();
        head = head.then(head.number + 1, &entry);
        let AuditEntry { at, who, origin, what, subject, detail } = entry;
        params![head.number, at, who, origin, what, subject, detail, &head.hash]
    });
    tx.execute_many(INSERT, rows.collect()).await?;
    tx.execute(SET_HEAD, params![head.number, &head.hash]).await.map(drop)
}

impl Rechain {
    /// Entries in a page.
    pub(crate) const PAGE: usize = 1000;
    pub(crate) const WRITE: &str = "UPDATE audit SET hash = ?2 WHERE number = ?1";
    pub(crate) const HEAD: &str = SET_HEAD;

    /// What the next page is read with.
    pub(crate) fn next(&self) -> Vec<Param> {
        params![self.0.number, Self::PAGE]
    }

    /// Ties the entries of a page to those before.
    pub(crate) fn page(&mut self, rows: Vec<Row>) -> Result<Vec<Vec<Param>>> {
        let tied = rows.into_iter().map(|row| {
            let AuditLink { number, entry, .. } = read(row)?;
            self.0 = self.0.then(number, &entry);
            Ok(params![number, &self.0.hash])
        });
        tied.collect()
    }

    /// The head after the last page.
    pub(crate) fn head(&self) -> Vec<Param> {
        params![self.0.number, &self.0.hash]
    }
}

impl Head {
    /// The head once this entry has been added.
    pub(crate) fn then(&self, number: i64, entry: &AuditEntry) -> Self {
        Self { number, hash: link(&self.hash, number, entry) }
    }
}

impl AuditEntry {
    /// The entry as it will be read again: what is hashed is what is kept.
    fn stored(self) -> Self {
        let short = |text: String| match text.char_indices().nth(SHORT) {
            Some((end, _)) => storable(text[..end].to_owned()),
            None => storable(text),
        };
        Self {
            at: self.at,
            who: short(self.who),
            origin: short(self.origin),
            what: short(self.what),
            subject: short(self.subject),
            detail: storable(self.detail),
        }
    }
}

impl Operation for AuditEntry {
    type Output = ();
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, _tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        effects.audit([self]);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Store {
    /// Adds an entry that belongs to no other write.
    pub async fn record_audit(&self, entry: AuditEntry) -> Result<()> {
        self.write(entry).await
    }

    /// Entries older than number `before`, newest first, each with its number.
    pub async fn audit_page(&self, before: i64, limit: usize, filter: &AuditFilter) -> Result<Vec<(i64, AuditEntry)>> {
        let AuditFilter { who, what, subject } = filter;
        let statement = match (who, subject) {
            (_, Some(_)) => PAGE_BY_SUBJECT,
            (Some(_), None) => PAGE_BY_WHO,
            (None, None) => PAGE,
        };
        let text = |wanted: &Option<String>| wanted.clone().unwrap_or_default();
        let rows = self.query(statement, params![before, limit, text(who), text(subject), text(what)]).await?;
        rows.into_iter().map(|row| read(row).map(|link| (link.number, link.entry))).collect()
    }

    /// Entries after number `after`, oldest first, with their hashes: what the chain is checked by.
    pub async fn audit_links(&self, after: i64, limit: usize) -> Result<Vec<AuditLink>> {
        self.query(AFTER, params![after, limit]).await?.into_iter().map(read).collect()
    }

    /// Number and hash of the last entry, as they are written down apart from it: 0 and zeros before the first. Nothing only
    /// if somebody removed them.
    pub async fn audit_head(&self) -> Result<Option<(i64, [u8; 32])>> {
        let head = self.query(HEAD.sqlite, params![]).await?.into_iter().next().map(read_head).transpose()?;
        Ok(head.map(|head| (head.number, head.hash)))
    }
}

pub(crate) fn read(mut row: Row) -> Result<AuditLink> {
    let entry = AuditEntry {
        at: row.time(1)?,
        who: row.text(2)?,
        origin: row.text(3)?,
        what: row.text(4)?,
        subject: row.text(5)?,
        detail: row.text(6)?,
    };
    Ok(AuditLink { number: row.int(0)?, entry, hash: row.hash(7)? })
}

fn read_head(mut row: Row) -> Result<Head> {
    Ok(Head { number: row.int(0)?, hash: row.hash(1)? })
}
