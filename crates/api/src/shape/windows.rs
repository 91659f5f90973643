//! Maintenance windows as JSON: how a minion stands, what a change does to work that waits, and maintenance by hand.

use super::{NewCalendar, NewSchedule, Subjects, Time};
use crate::app;
use saltern_server::Error;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What becomes of work that waits, and would be outside of its window by a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Nothing is changed
    #[default]
    Refuse,
    /// It is cancelled, on those minions
    Cancel,
    /// It waits for the next window of each minion
    Next,
}

/// A change of windows: one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowChange {
    /// A calendar is made or changed
    PutCalendar(NewCalendar),
    /// A calendar is removed
    DeleteCalendar(Named),
    /// A schedule is made or changed
    PutSchedule(NewSchedule),
    /// A schedule is removed
    DeleteSchedule(Named),
    /// A schedule is assigned
    Assign(Assigned),
    /// An assignment is taken back
    Unassign(Assigned),
}

/// A calendar or a schedule by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its name
    pub name: String,
    /// The organisation; nothing: one's own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
}

/// A schedule and whom it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Assigned {
    /// The schedule
    pub schedule: String,
    /// The organisation; nothing: one's own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// For whom
    pub to: Subjects,
}

/// What a change of windows has come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WindowsChanged {
    /// The version of what was changed
    pub version: i64,
    /// The waiting runs that it touched
    pub touched: Vec<TouchedRun>,
}

/// What a change of windows would touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TouchedList {
    /// The waiting runs that would be outside of their windows
    pub touched: Vec<TouchedRun>,
}

/// A waiting run that is outside of its window by a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TouchedRun {
    /// Of which action; of a launch, its first step there
    pub action: i64,
    /// What that is called
    pub name: String,
    /// The launch it is a part of
    pub launch: Option<i64>,
    /// On which minion
    pub minion: String,
    /// When it would start
    pub due: Time,
    /// When the minion's next window opens then; nothing: never, as far as is known
    pub next: Option<Time>,
}

/// How a minion stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MinionWindows {
    /// Whether it may be changed now
    pub open: bool,
    /// The maintenance mode it is in
    pub maintenance: Option<MaintenanceMode>,
    /// Its next windows and blackouts; those that are under way come first. None, and open: it may always be changed
    pub windows: Vec<Window>,
}

/// A time in which a minion may be changed or, of a blackout, may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Window {
    /// Its first moment
    pub start: Time,
    /// The first moment after it
    pub end: Time,
    /// The event's summary
    pub summary: String,
    /// The schedule it is of
    pub schedule: String,
    /// Whether the minion may not be changed then
    pub blackout: bool,
    /// In words, in the zone of its calendar
    pub words: String,
}

/// Minions that are in maintenance by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceList {
    /// Those that you see
    pub maintenance: Vec<MaintenanceMode>,
}

/// A minion that is in maintenance by hand: whatever its schedules say, it may be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceMode {
    /// Which one
    pub minion: String,
    /// Who has put it there
    pub by: String,
    /// Why
    pub why: String,
    /// Since when
    pub since: Time,
    /// Until when; nothing: until somebody ends it
    pub until: Option<Time>,
}

/// A minion is put into maintenance by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Maintenance {
    /// Why
    #[schema(min_length = 1, max_length = 1000)]
    pub why: String,
    /// Until when; nothing: until somebody ends it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Strategy {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Cancel => "cancel",
            Self::Next => "next",
        }
    }
}

impl From<Strategy> for app::Strategy {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Refuse => Self::Refuse,
            Strategy::Cancel => Self::Cancel,
            Strategy::Next => Self::Next,
        }
    }
}

impl WindowChange {
    /// The domain's change.
    pub(crate) fn read(self) -> Result<app::WindowEdit, Error> {
        Ok(match self {
            Self::PutCalendar(calendar) => app::WindowEdit::PutCalendar(calendar.read()),
            Self::DeleteCalendar(Named { name, org }) => app::WindowEdit::DeleteCalendar { org, name },
            Self::PutSchedule(schedule) => app::WindowEdit::PutSchedule(schedule.read()),
            Self::DeleteSchedule(Named { name, org }) => app::WindowEdit::DeleteSchedule { org, name },
            Self::Assign(Assigned { schedule, org, to }) => app::WindowEdit::Assign { org, schedule, to: to.read()? },
            Self::Unassign(Assigned { schedule, org, to }) => {
                app::WindowEdit::Unassign { org, schedule, from: to.read()? }
            }
        })
    }
}

impl From<app::WindowsChanged> for WindowsChanged {
    fn from(changed: app::WindowsChanged) -> Self {
        Self { version: changed.version, touched: changed.touched.into_iter().map(Into::into).collect() }
    }
}

impl From<app::Touched> for TouchedRun {
    fn from(touched: app::Touched) -> Self {
        Self {
            action: touched.action.0,
            name: touched.name,
            launch: touched.launch.map(|launch| launch.0),
            minion: touched.minion.to_string(),
            due: touched.due.into(),
            next: touched.next.map(Into::into),
        }
    }
}

impl From<app::MinionWindows> for MinionWindows {
    fn from(windows: app::MinionWindows) -> Self {
        let window = |window: app::MinionWindow| Window {
            start: window.start.into(),
            end: window.end.into(),
            summary: window.summary,
            schedule: window.schedule,
            blackout: window.is_blackout,
            words: window.words,
        };
        Self {
            open: windows.is_open,
            maintenance: windows.mode.map(Into::into),
            windows: windows.windows.into_iter().map(window).collect(),
        }
    }
}

impl From<app::Mode> for MaintenanceMode {
    fn from(mode: app::Mode) -> Self {
        Self {
            minion: mode.minion.to_string(),
            by: mode.by,
            why: mode.why,
            since: mode.since.into(),
            until: mode.until.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<app::WindowEdit, String> {
        let change: WindowChange = serde_json::from_str(json).map_err(|error| error.to_string())?;
        change.read().map_err(|error| error.to_string())
    }

    #[test]
    fn a_change_is_one_of_six() {
        for json in [
            r#"{"put_calendar": {"name": "c", "url": "https://example.org/c.ics", "refresh": 3600}}"#,
            r#"{"delete_calendar": {"name": "c"}}"#,
            r#"{"put_schedule": {"name": "s", "calendar": "c"}}"#,
            r#"{"delete_schedule": {"name": "s", "org": "north"}}"#,
            r#"{"assign": {"schedule": "s", "to": {"minions": ["web1"]}}}"#,
            r#"{"unassign": {"schedule": "s", "to": {"groups": ["web"]}}}"#,
        ] {
            assert!(read(json).is_ok(), "{json}: {:?}", read(json));
        }
        for bad in [
            r#"{}"#,
            r#"{"put_calendar": {"name": "c"}, "delete_schedule": {"name": "s"}}"#,
            r#"{"assign": {"schedule": "s", "to": {"minion": ["web1"]}}}"#,
            r#"{"assign": {"schedule": "s", "to": {"minions": ["../x"]}}}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
