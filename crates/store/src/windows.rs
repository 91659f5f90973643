//! Maintenance windows as they are kept: calendars, the schedules made of them, whom those are assigned to, and minions
//! whose windows somebody has opened by hand.
//!
//! It is little, and read as a whole; every change is counted, so that other servers notice. What a change does to work that
//! waits is written with it (`change`); what waits is found in `queue`.

mod change;
mod modes;
pub(crate) mod queue;

pub use change::{Refresh, WindowChange};
pub use modes::Mode;

use crate::counters::{self, Counter};
use crate::db::{Row, Tx, params};
use crate::{Result, Store};
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// A calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// The organisation it belongs to
    pub org: String,
    /// Its name, of which the organisation has one
    pub name: String,
    /// Where it comes from, if not from a person
    pub url: Option<String>,
    /// Its text
    pub ical: String,
    /// The time zone of what names none
    pub zone: String,
    /// After how many seconds it is read anew
    pub refresh: Option<i64>,
    /// When it was last read
    pub refreshed: Option<Timestamp>,
    /// When that was last tried
    pub tried: Option<Timestamp>,
    /// Why that failed, if it did
    pub error: Option<String>,
    /// When it was made; kept as it is by later changes
    pub created: Timestamp,
    /// When it was last changed
    pub changed: Timestamp,
    /// Its version; not what a change is decided by
    pub version: i64,
}

/// A schedule: which events of which calendar mean what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The organisation it belongs to
    pub org: String,
    /// Its name, of which the organisation has one
    pub name: String,
    /// `single`, `multi` or `blackout`
    pub kind: String,
    /// The calendar; there need not be one of this name
    pub calendar: Option<String>,
    /// What happens outside of a window: `hold` or `fail`
    pub away: String,
    /// When it was made; kept as it is by later changes
    pub created: Timestamp,
    /// Its version; not what a change is decided by
    pub version: i64,
}

/// A schedule that holds for somebody.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assignment {
    /// For what: `minion` or `group`
    pub kind: String,
    /// For which one
    pub subject: String,
    /// The organisation of the schedule
    pub org: String,
    /// The schedule
    pub schedule: String,
}

/// All that is kept about maintenance windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowData {
    /// How often anything of it was changed before it was read
    pub number: i64,
    /// By organisation and name
    pub calendars: Vec<Calendar>,
    /// By organisation and name
    pub schedules: Vec<Schedule>,
    /// By kind, subject, organisation and schedule
    pub assignments: Vec<Assignment>,
    /// By minion
    pub modes: Vec<Mode>,
}

const CALENDARS: &str = "SELECT org, name, url, ical, zone, refresh, refreshed, tried, error, created, changed, version \
    FROM calendars ORDER BY org, name";
const SCHEDULES: &str = "SELECT org, name, kind, calendar, away, created, version FROM schedules ORDER BY org, name";
const ASSIGNMENTS: &str =
    "SELECT kind, subject, org, schedule FROM schedule_assignments ORDER BY kind, subject, org, schedule";
const FORGET_FOREIGN: &str = "DELETE FROM schedule_assignments WHERE kind = 'minion' AND subject = ?1 AND org <> ?2";
const FORGET_SUBJECT: &str = "DELETE FROM schedule_assignments WHERE kind = ?1 AND subject = ?2";

/// Takes back what was assigned to a minion that is gone, and its mode.
pub(crate) async fn forget_minion(tx: &Tx<'_>, minion: &MinionId) -> Result<()> {
    let assigned = tx.execute(FORGET_SUBJECT, params!["minion", minion]).await?;
    let opened = tx.execute(modes::CLEAR, params![minion]).await?;
    if assigned + opened > 0 { changed(tx).await } else { Ok(()) }
}

/// Takes back what another organisation had assigned to a minion that has come to this one.
pub(crate) async fn moved(tx: &Tx<'_>, minion: &MinionId, org: &str) -> Result<()> {
    if tx.execute(FORGET_FOREIGN, params![minion, org]).await? > 0 { changed(tx).await } else { Ok(()) }
}

/// Takes back what was assigned to a group that is gone.
pub(crate) async fn forget_group(tx: &Tx<'_>, group: &str) -> Result<()> {
    if tx.execute(FORGET_SUBJECT, params!["group", group]).await? > 0 { changed(tx).await } else { Ok(()) }
}

/// Counts a change, so that other servers notice.
async fn changed(tx: &Tx<'_>) -> Result<()> {
    counters::take(tx, Counter::Windows, 1).await.map(drop)
}

impl Store {
    /// All that is kept about maintenance windows. What is changed while it is read shows in a counter that is greater than
    /// `number`.
    pub async fn window_data(&self) -> Result<WindowData> {
        let number = self.taken(Counter::Windows).await?;
        let calendars = self.query(CALENDARS, params![]).await?.into_iter().map(read_calendar);
        let schedules = self.query(SCHEDULES, params![]).await?.into_iter().map(read_schedule);
        let assignments = self.query(ASSIGNMENTS, params![]).await?.into_iter().map(read_assignment);
        let modes = self.query(modes::ALL, params![]).await?.into_iter().map(modes::read);
        Ok(WindowData {
            number,
            calendars: calendars.collect::<Result<_>>()?,
            schedules: schedules.collect::<Result<_>>()?,
            assignments: assignments.collect::<Result<_>>()?,
            modes: modes.collect::<Result<_>>()?,
        })
    }
}

fn read_calendar(mut row: Row) -> Result<Calendar> {
    Ok(Calendar {
        org: row.text(0)?,
        name: row.text(1)?,
        url: row.opt_text(2)?,
        ical: row.text(3)?,
        zone: row.text(4)?,
        refresh: row.opt_int(5)?,
        refreshed: row.opt_time(6)?,
        tried: row.opt_time(7)?,
        error: row.opt_text(8)?,
        created: row.time(9)?,
        changed: row.time(10)?,
        version: row.int(11)?,
    })
}

fn read_schedule(mut row: Row) -> Result<Schedule> {
    Ok(Schedule {
        org: row.text(0)?,
        name: row.text(1)?,
        kind: row.text(2)?,
        calendar: row.opt_text(3)?,
        away: row.text(4)?,
        created: row.time(5)?,
        version: row.int(6)?,
    })
}

fn read_assignment(mut row: Row) -> Result<Assignment> {
    Ok(Assignment { kind: row.text(0)?, subject: row.text(1)?, org: row.text(2)?, schedule: row.text(3)? })
}
