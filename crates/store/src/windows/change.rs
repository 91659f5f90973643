//! Changes of maintenance windows, with what they do to work that waits: all of it, or nothing.

use super::queue::Moves;
use super::{Assignment, Calendar, Schedule, changed};
use crate::audit::AuditEntry;
use crate::db::{Effects, Locking, Operation, Tx, locking, params};
use crate::events::NewEvent;
use crate::launches::{MinionMove, MinionMoves};
use crate::transit::{self, Transition};
use crate::versions::{self, Written};
use crate::{Result, Store, organisations};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, MinionId};
use saltern_core::run::Input;
use saltern_core::time::Timestamp;
use std::time::Duration;

/// A change of maintenance windows. Most have one part, and whatever work it touches.
#[derive(Clone, Debug, Default)]
pub struct WindowChange {
    /// The calendar as it is to be, and the version that is there; nothing: it is new
    pub put_calendar: Option<(Calendar, Option<i64>)>,
    /// The organisation and name of a calendar that goes, and the version that is there; nothing: whichever. Schedules that
    /// are made of it stay
    pub delete_calendar: Option<(String, String, Option<i64>)>,
    /// The schedule as it is to be, and the version that is there; nothing: it is new
    pub put_schedule: Option<(Schedule, Option<i64>)>,
    /// The organisation and name of a schedule that goes with its assignments, and the version that is there; nothing:
    /// whichever
    pub delete_schedule: Option<(String, String, Option<i64>)>,
    /// For whom schedules hold now, if they did not
    pub assign: Vec<Assignment>,
    /// For whom they no longer do
    pub unassign: Vec<Assignment>,
    /// Queued runs that are cancelled; those that were sent meanwhile are not
    pub cancel: Vec<(ActionId, MinionId)>,
    /// Parts of launches that end with it where they have not begun; those that have meanwhile do not
    pub parts: Vec<MinionMove>,
    /// Queued runs that wait for another window, and when that opens; not those that were sent meanwhile
    pub moves: Vec<(ActionId, MinionId, Timestamp)>,
    /// How long after their window opens those may still begin: the deadlines of their actions are raised to that
    pub grace: Duration,
    /// What to say about runs that are cancelled or moved
    pub message: String,
    /// The audit entries to add with it
    pub audit: Vec<AuditEntry>,
    /// Now
    pub at: Timestamp,
}

/// What came of reading a calendar anew.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// The organisation of the calendar
    pub org: String,
    /// Its name
    pub name: String,
    /// Where it was read from
    pub url: String,
    /// Its text, or why it could not be had
    pub outcome: Result<String, String>,
    /// When
    pub at: Timestamp,
    /// What is told if its text has changed, or if it failed for another reason than the last time
    pub events: Vec<NewEvent>,
}

const CALENDAR_VERSION: Locking = locking!("SELECT version FROM calendars WHERE org = ?1 AND name = ?2");
const INSERT_CALENDAR: &str = "INSERT INTO calendars (org, name, url, ical, zone, refresh, refreshed, tried, error, \
    changed, version, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const UPDATE_CALENDAR: &str = "UPDATE calendars SET url = ?3, ical = ?4, zone = ?5, refresh = ?6, refreshed = ?7, \
    tried = ?8, error = ?9, changed = ?10, version = ?11 WHERE org = ?1 AND name = ?2";
const DELETE_CALENDAR: &str = "DELETE FROM calendars WHERE org = ?1 AND name = ?2";

const SCHEDULE_VERSION: Locking = locking!("SELECT version FROM schedules WHERE org = ?1 AND name = ?2");
const INSERT_SCHEDULE: &str = "INSERT INTO schedules (org, name, kind, calendar, away, version, created) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const UPDATE_SCHEDULE: &str =
    "UPDATE schedules SET kind = ?3, calendar = ?4, away = ?5, version = ?6 WHERE org = ?1 AND name = ?2";
const DELETE_SCHEDULE: &str = "DELETE FROM schedules WHERE org = ?1 AND name = ?2";

const ASSIGN: &str = "INSERT INTO schedule_assignments (kind, subject, org, schedule) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (kind, subject, org, schedule) DO NOTHING";
const UNASSIGN: &str =
    "DELETE FROM schedule_assignments WHERE kind = ?1 AND subject = ?2 AND org = ?3 AND schedule = ?4";
const UNASSIGN_ALL: &str = "DELETE FROM schedule_assignments WHERE org = ?1 AND schedule = ?2";

const KNOWN: Locking = locking!("SELECT ical, error FROM calendars WHERE org = ?1 AND name = ?2 AND url = ?3");
const READ: &str = "UPDATE calendars SET ical = ?3, refreshed = ?4, tried = ?4, error = NULL, version = version + ?5 \
    WHERE org = ?1 AND name = ?2";
const FAILED: &str = "UPDATE calendars SET tried = ?3, error = ?4 WHERE org = ?1 AND name = ?2";

async fn version(tx: &Tx<'_>, of: &Locking, org: &str, name: &str) -> Result<Option<i64>> {
    tx.query_locking(of, params![org, name]).await?.first().map(|row| row.int(0)).transpose()
}

impl WindowChange {
    /// The versions that the parts get, or why one of them may not be written. Before anything is, so that all or nothing is.
    async fn decide(&self, tx: &Tx<'_>) -> Result<Result<Versions, Written>> {
        let mut versions = Versions::default();
        if let Some((calendar, expected)) = &self.put_calendar {
            let found = version(tx, &CALENDAR_VERSION, &calendar.org, &calendar.name).await?;
            match versions::next(found, *expected) {
                Ok(next) => versions.calendar = next,
                Err(refused) => return Ok(Err(refused)),
            }
            organisations::require(tx, &calendar.org).await?;
        }
        if let Some((org, name, expected)) = &self.delete_calendar {
            match versions::removable(version(tx, &CALENDAR_VERSION, org, name).await?, *expected) {
                Ok(last) => versions.last = last,
                Err(refused) => return Ok(Err(refused)),
            }
        }
        if let Some((schedule, expected)) = &self.put_schedule {
            let found = version(tx, &SCHEDULE_VERSION, &schedule.org, &schedule.name).await?;
            match versions::next(found, *expected) {
                Ok(next) => versions.schedule = next,
                Err(refused) => return Ok(Err(refused)),
            }
            organisations::require(tx, &schedule.org).await?;
        }
        if let Some((org, name, expected)) = &self.delete_schedule {
            match versions::removable(version(tx, &SCHEDULE_VERSION, org, name).await?, *expected) {
                Ok(last) => versions.last = last,
                Err(refused) => return Ok(Err(refused)),
            }
        }
        for Assignment { org, schedule, .. } in &self.assign {
            let is_new = self.put_schedule.as_ref().is_some_and(|(put, _)| put.org == *org && put.name == *schedule);
            match version(tx, &SCHEDULE_VERSION, org, schedule).await? {
                Some(found) => versions.last = found,
                None if is_new => {}
                None => return Ok(Err(Written::Missing)),
            }
        }
        Ok(Ok(versions))
    }

    /// Writes the parts.
    async fn write(&self, tx: &Tx<'_>, versions: &Versions) -> Result<()> {
        if let Some((calendar, expected)) = &self.put_calendar {
            put_calendar(tx, calendar, versions.calendar, expected.is_none()).await?;
        }
        if let Some((schedule, expected)) = &self.put_schedule {
            put_schedule(tx, schedule, versions.schedule, expected.is_none()).await?;
        }
        if let Some((org, name, _)) = &self.delete_calendar {
            tx.execute(DELETE_CALENDAR, params![org, name]).await?;
        }
        if let Some((org, name, _)) = &self.delete_schedule {
            tx.execute(UNASSIGN_ALL, params![org, name]).await?;
            tx.execute(DELETE_SCHEDULE, params![org, name]).await?;
        }
        let row = |one: &Assignment| params![&one.kind, &one.subject, &one.org, &one.schedule];
        tx.execute_many(ASSIGN, self.assign.iter().map(row).collect()).await?;
        tx.execute_many(UNASSIGN, self.unassign.iter().map(row).collect()).await.map(drop)
    }

    /// Does to work that waits what the change does to it.
    async fn touch(&self, tx: &Tx<'_>, effects: &mut Effects) -> Result<()> {
        let Self { moves, grace, at, message, .. } = self;
        Moves { runs: moves, grace: *grace, at: *at, message }.apply(tx, effects).await?;
        let cancelled = self.cancel.iter().map(|(action, minion)| Transition {
            action: *action,
            minion: minion.clone(),
            input: Input::Cancel,
            at: *at,
            message: Some(message.clone()),
            evidence: None,
        });
        let cancelled: Vec<Transition> = cancelled.collect();
        transit::happen_all(tx, effects, &cancelled.iter().collect::<Vec<_>>()).await?;
        MinionMoves(self.parts.clone()).apply(tx, effects).await.map(drop)
    }
}

/// What the parts of a change are written as.
#[derive(Default)]
struct Versions {
    calendar: i64,
    schedule: i64,
    /// That of what goes, or of what is assigned
    last: i64,
}

impl Versions {
    fn told(&self) -> i64 {
        [self.calendar, self.schedule].into_iter().find(|version| *version > 0).unwrap_or(self.last)
    }
}

async fn put_calendar(tx: &Tx<'_>, calendar: &Calendar, version: i64, is_new: bool) -> Result<()> {
    let c = calendar;
    let mut values = params![
        &c.org,
        &c.name,
        c.url.as_ref(),
        &c.ical,
        &c.zone,
        c.refresh,
        c.refreshed,
        c.tried,
        c.error.as_ref(),
        c.changed,
        version
    ];
    if is_new {
        values.extend(params![c.created]);
    }
    tx.execute(if is_new { INSERT_CALENDAR } else { UPDATE_CALENDAR }, values).await.map(drop)
}

async fn put_schedule(tx: &Tx<'_>, schedule: &Schedule, version: i64, is_new: bool) -> Result<()> {
    let Schedule { org, name, kind, calendar, away, created, .. } = schedule;
    let mut values = params![org, name, kind, calendar.as_ref(), away, version];
    if is_new {
        values.extend(params![*created]);
    }
    tx.execute(if is_new { INSERT_SCHEDULE } else { UPDATE_SCHEDULE }, values).await.map(drop)
}

impl Operation for WindowChange {
    type Output = Written;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            // Whoever changes windows holds this counter to the commit: what is not there yet nobody else can make meanwhile.
            changed(tx).await?;
            let versions = match self.decide(tx).await? {
                Ok(versions) => versions,
                Err(refused) => return Ok(refused),
            };
            self.write(tx, &versions).await?;
            self.touch(tx, effects).await?;
            effects.audit(&self.audit);
            Ok(Written::Done(versions.told()))
        })
    }
}

impl Operation for Refresh {
    type Output = bool;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Self { org, name, url, outcome, at, events } = self;
            let rows = tx.query_locking(&KNOWN, params![org, name, url]).await?;
            let Some(mut row) = rows.into_iter().next() else { return Ok(false) };
            let (known, error) = (row.text(0)?, row.opt_text(1)?);
            let (is_changed, is_news) = match outcome {
                Ok(text) => {
                    let is_changed = *text != known;
                    tx.execute(READ, params![org, name, text, *at, is_changed]).await?;
                    (is_changed, is_changed || error.is_some())
                }
                Err(why) => {
                    tx.execute(FAILED, params![org, name, *at, why]).await?;
                    (false, error.as_ref() != Some(why))
                }
            };
            if is_news {
                changed(tx).await?;
                effects.log(events);
            }
            Ok(is_changed)
        })
    }
}

impl Store {
    /// Changes maintenance windows and the work that waits for them, all or nothing. Tells the version of what was written;
    /// of assignments alone, that of the schedule. [`Written::Missing`]: also if what is assigned is not there.
    /// [`crate::Error::Invalid`]: there is no such organisation.
    pub async fn change_windows(&self, change: WindowChange) -> Result<Written> {
        self.write(change).await
    }

    /// Notes what came of reading a calendar anew; tells whether its text is another now. Nothing is noted of one that is
    /// gone, or comes from somewhere else now.
    pub async fn note_refresh(&self, refresh: Refresh) -> Result<bool> {
        self.write(refresh).await
    }
}
