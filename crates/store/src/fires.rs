//! The planned instants of recurring actions, and what became of each: exactly one row for each of them.
//!
//! To account for an instant is to move the recurring action on from it and to write its row, in the transaction of what is
//! done then. Of several servers that try, one moves it on; the others change nothing.

use crate::counts::Counts;
use crate::db::{Effects, Operation, Param, Row, Tx, params};
use crate::events::NewEvent;
use crate::{Error, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, LaunchId, RecurringId};
use saltern_core::time::Timestamp;

/// What became of a planned instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// Of which recurring action
    pub recurring: RecurringId,
    /// Which instant
    pub planned: Timestamp,
    /// `fired`, `skipped`, `missed` or `refused`
    pub outcome: String,
    /// Why, for people
    pub why: String,
    /// When it was accounted for
    pub at: Timestamp,
    /// The action that was made
    pub action: Option<ActionId>,
    /// The launch that was made
    pub launch: Option<LaunchId>,
    /// On how many minions
    pub minions: i64,
    /// How many were left out
    pub skipped: i64,
    /// Who was left out and why, as JSON text
    pub detail: String,
    /// Whether it was fired after it should have been
    pub late: bool,
}

/// A planned instant that is to be accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FireSlot {
    /// Of which recurring action
    pub recurring: RecurringId,
    /// Which instant: what is next for it now
    pub planned: Timestamp,
    /// What is next then
    pub next: Option<Timestamp>,
    /// Whether this was the one to be left out
    pub clear_skip_next: bool,
    /// Why, for people
    pub why: String,
    /// How many minions are left out
    pub skipped: i64,
    /// Who is left out and why, as JSON text
    pub detail: String,
    /// Whether it is fired after it should have been
    pub late: bool,
}

/// What an instant was fired as.
pub(crate) enum Work {
    Action(ActionId),
    Launch(LaunchId),
}

/// Words the events of instants once it is known which of them are accounted for now.
pub type FireEvents = Box<dyn Fn(&[bool]) -> Vec<NewEvent> + Send>;

// Somebody may have seen that the next one is to be left out: a change of that is a change of the version.
const MOVE_ON: &str = "UPDATE recurring SET version = version + ?4, next = ?3, \
    skip_next = CASE WHEN ?4 > 0 THEN 0 ELSE skip_next END WHERE id = ?1 AND next = ?2";
const INSERT: &str = "INSERT INTO fires (recurring, planned, outcome, why, at, action, launch, minions, skipped, detail, \
    late, digested) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (recurring, planned) DO NOTHING";

macro_rules! columns {
    () => {
        "f.recurring, f.planned, f.outcome, f.why, f.at, f.action, f.launch, f.minions, f.skipped, f.detail, f.late"
    };
}

/// How many columns that is.
const COLUMNS: usize = 11;

pub(crate) const BEFORE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM fires f WHERE f.recurring = ?1 AND f.planned < ?2 ORDER BY f.planned DESC LIMIT ?3"
);
// What was removed meanwhile has ended, and nobody knows how.
pub(crate) const UNDIGESTED: &str = concat!(
    "SELECT ",
    columns!(),
    ", coalesce(a.total, l.total, 0), coalesce(a.completed, l.completed, 0), coalesce(a.failed, l.failed, 0), \
     coalesce(a.unreachable, 0), coalesce(a.cancelled, l.cancelled_count, 0) \
     FROM fires f LEFT JOIN actions a ON a.id = f.action LEFT JOIN launches l ON l.id = f.launch \
     WHERE f.digested = 0 AND (a.id IS NULL OR a.ended IS NOT NULL) AND (l.id IS NULL OR l.ended IS NOT NULL) \
     ORDER BY f.recurring, f.planned LIMIT ?1"
);
const DIGEST: &str = "UPDATE fires SET digested = 1 WHERE recurring = ?1 AND planned = ?2 AND digested = 0";

impl FireSlot {
    fn moved_on(&self) -> Vec<Param> {
        params![self.recurring, self.planned, self.next, self.clear_skip_next]
    }

    fn row(&self, outcome: &str, at: Timestamp, work: Option<&Work>, minions: usize) -> Vec<Param> {
        let (action, launch) = match work {
            Some(Work::Action(action)) => (Some(*action), None),
            Some(Work::Launch(launch)) => (None, Some(*launch)),
            None => (None, None),
        };
        params![
            self.recurring,
            self.planned,
            outcome,
            &self.why,
            at,
            action,
            launch,
            minions,
            self.skipped,
            &self.detail,
            self.late,
            // Of what was not done there is nothing more to tell.
            work.is_none(),
        ]
    }
}

/// Accounts for an instant with the work that is done then; fails if somebody else has.
pub(crate) async fn fired(tx: &Tx<'_>, slot: &FireSlot, work: Work, minions: usize, at: Timestamp) -> Result<()> {
    if tx.execute(MOVE_ON, slot.moved_on()).await? == 0
        || tx.execute(INSERT, slot.row("fired", at, Some(&work), minions)).await? == 0
    {
        return Err(Error::FireTaken);
    }
    Ok(())
}

struct Account {
    slots: Vec<(FireSlot, &'static str)>,
    at: Timestamp,
    events: FireEvents,
}

impl Operation for Account {
    type Output = Vec<bool>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move {
            let moves = self.slots.iter().map(|(slot, _)| slot.moved_on()).collect();
            let moved = tx.execute_many(MOVE_ON, moves).await?;
            let mut accounted: Vec<bool> = moved.into_iter().map(|rows| rows > 0).collect();
            let own = self.slots.iter().zip(&accounted).filter(|(_, is_own)| **is_own);
            let rows = own.map(|((slot, outcome), _)| slot.row(outcome, self.at, None, 0)).collect();
            let written = tx.execute_many(INSERT, rows).await?;
            for (is_own, rows) in accounted.iter_mut().filter(|is_own| **is_own).zip(written) {
                *is_own = rows > 0;
            }
            if accounted.contains(&true) {
                effects.log(&(self.events)(&accounted));
            }
            Ok(accounted)
        })
    }
}

struct Digest {
    recurring: RecurringId,
    planned: Timestamp,
    events: Vec<NewEvent>,
}

impl Operation for Digest {
    type Output = bool;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let is_news = tx.execute(DIGEST, params![self.recurring, self.planned]).await? > 0;
            if is_news {
                effects.log(&self.events);
            }
            Ok(is_news)
        })
    }
}

impl Store {
    /// Accounts for instants at which nothing is done (`skipped`, `missed`, `refused`), in their order; several of one
    /// recurring action follow each other. Tells of each whether it was news: not if it is no longer what is next, or if
    /// there is a row of it already; in the latter case the recurring action is moved on all the same. `events` is asked
    /// only if any was.
    pub async fn account_fires(
        &self,
        slots: Vec<(FireSlot, &'static str)>,
        at: Timestamp,
        events: FireEvents,
    ) -> Result<Vec<bool>> {
        self.write(Account { slots, at, events }).await
    }

    /// What became of the instants of a recurring action before `before`, newest first.
    pub async fn fires(&self, recurring: RecurringId, before: Timestamp, limit: usize) -> Result<Vec<Fire>> {
        let rows = self.query(BEFORE, params![recurring, before, limit]).await?;
        rows.into_iter().map(|mut row| read(&mut row)).collect()
    }

    /// Instants whose action or launch has ended and of which that was not told, with how many minions ended how.
    pub async fn undigested_fires(&self, limit: usize) -> Result<Vec<(Fire, Counts)>> {
        let counted = |mut row: Row| Ok((read(&mut row)?, read_counts(&row)?));
        self.query(UNDIGESTED, params![limit]).await?.into_iter().map(counted).collect()
    }

    /// Tells how an instant ended; false if that was told before, and then `events` are not logged.
    pub async fn mark_digested(
        &self,
        recurring: RecurringId,
        planned: Timestamp,
        events: Vec<NewEvent>,
    ) -> Result<bool> {
        self.write(Digest { recurring, planned, events }).await
    }
}

fn read(row: &mut Row) -> Result<Fire> {
    Ok(Fire {
        recurring: RecurringId(row.int(0)?),
        planned: row.time(1)?,
        outcome: row.text(2)?,
        why: row.text(3)?,
        at: row.time(4)?,
        action: row.opt_int(5)?.map(ActionId),
        launch: row.opt_int(6)?.map(LaunchId),
        minions: row.int(7)?,
        skipped: row.int(8)?,
        detail: row.text(9)?,
        late: row.flag(10)?,
    })
}

fn read_counts(row: &Row) -> Result<Counts> {
    Ok(Counts {
        total: row.int(COLUMNS)?,
        completed: row.int(COLUMNS + 1)?,
        failed: row.int(COLUMNS + 2)?,
        unreachable: row.int(COLUMNS + 3)?,
        cancelled: row.int(COLUMNS + 4)?,
        ..Counts::default()
    })
}
