//! Schedules as JSON: what makes windows, or blackouts, of a calendar, and whom they hold for.

use super::Time;
use super::actions::read_minion;
use super::jobs::texts;
use crate::app;
use saltern_server::Error;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Schedules, in the order of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    /// The schedules
    pub schedules: Vec<Schedule>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its name; of one of kind `multi`, the SUMMARY of its events
    pub name: String,
    /// The organisation it belongs to
    pub org: String,
    /// What the events of its calendar are
    pub kind: ScheduleKind,
    /// The calendar; nothing: it is never open
    pub calendar: Option<String>,
    /// What happens outside of its windows
    pub away: Away,
    /// Whom it is assigned to, as far as you see them
    pub assigned_to: Subjects,
    /// The minions it holds for now, as far as you see them
    pub minions: Vec<String>,
    /// Why it has no times, if that is so: it is closed then
    pub problem: Option<String>,
    /// Its next time in words, in the zone of its calendar
    pub next: Option<String>,
    /// Since when
    pub created: Time,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// What the events of a calendar are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    /// Each is a window
    #[default]
    Single,
    /// Those that are called as the schedule is are windows: several schedules share a calendar
    Multi,
    /// Nothing may be changed while one lasts
    Blackout,
}

/// What happens outside of windows with what was to start there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Away {
    /// It waits for the next window
    #[default]
    Hold,
    /// It fails
    Fail,
}

/// Minions and groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Subjects {
    /// Minions, by their ids
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub minions: Vec<String>,
    /// Groups, by their names: whoever belongs to them
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub groups: Vec<String>,
}

/// A schedule to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Its name; of one of kind `multi`, the SUMMARY of its events
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// The organisation; nothing: one's own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// What the events of its calendar are
    #[serde(default)]
    pub kind: ScheduleKind,
    /// The calendar; nothing: it is never open
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
    /// What happens outside of its windows
    #[serde(default)]
    pub away: Away,
}

/// What a schedule is; what is left out is as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleContent {
    /// What the events of its calendar are
    #[serde(default)]
    pub kind: ScheduleKind,
    /// The calendar; nothing: it is never open
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
    /// What happens outside of its windows
    #[serde(default)]
    pub away: Away,
}

/// Most minions, and most groups, in one request.
const MOST: usize = 1_000;

impl ScheduleKind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Multi => "multi",
            Self::Blackout => "blackout",
        }
    }
}

impl Away {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Fail => "fail",
        }
    }
}

impl ScheduleContent {
    /// The domain's draft of that name.
    pub(crate) fn read(self, name: String, org: Option<String>) -> app::ScheduleDraft {
        let Self { kind, calendar, away } = self;
        app::ScheduleDraft { org, name, kind: kind.as_str().into(), calendar, away: away.as_str().into() }
    }
}

impl NewSchedule {
    /// The domain's draft.
    pub(crate) fn read(self) -> app::ScheduleDraft {
        let Self { name, org, kind, calendar, away } = self;
        ScheduleContent { kind, calendar, away }.read(name, org)
    }
}

impl Subjects {
    /// The domain's subjects.
    pub(crate) fn read(self) -> Result<Vec<app::Subject>, Error> {
        if self.minions.len() > MOST || self.groups.len() > MOST {
            return Err(Error::Invalid(format!("at most {MOST} minions and {MOST} groups at once")));
        }
        let minions = self.minions.iter().map(|minion| read_minion(minion).map(app::Subject::Minion));
        minions.chain(self.groups.into_iter().map(|group| Ok(app::Subject::Group(group)))).collect()
    }
}

impl From<app::ScheduleEntry> for Schedule {
    fn from(entry: app::ScheduleEntry) -> Self {
        let app::ScheduleEntry { schedule, assignments, minions, problem, next } = entry;
        let mut assigned_to = Subjects::default();
        for one in assignments {
            let list = if one.kind == "group" { &mut assigned_to.groups } else { &mut assigned_to.minions };
            list.push(one.subject);
        }
        Self {
            name: schedule.name,
            org: schedule.org,
            kind: match schedule.kind.as_str() {
                "multi" => ScheduleKind::Multi,
                "blackout" => ScheduleKind::Blackout,
                _ => ScheduleKind::Single,
            },
            calendar: schedule.calendar,
            away: if schedule.away == "fail" { Away::Fail } else { Away::Hold },
            assigned_to,
            minions: texts(&minions),
            problem,
            next,
            created: schedule.created.into(),
            version: schedule.version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minions_and_groups_are_told_apart() {
        let subjects = Subjects { minions: vec!["web1".into()], groups: vec!["db".into()] };
        let read = subjects.read().unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1], app::Subject::Group("db".into()));
        assert!(Subjects { minions: vec!["../x".into()], groups: vec![] }.read().is_err());
        assert!(Subjects { minions: vec![], groups: vec!["x".into(); MOST + 1] }.read().is_err());
    }

    #[test]
    fn a_schedule_is_of_a_known_kind() {
        let read = |json: &str| serde_json::from_str::<NewSchedule>(json);
        assert_eq!(read(r#"{"name": "n", "kind": "multi"}"#).unwrap().read().kind, "multi");
        assert_eq!(read(r#"{"name": "n"}"#).unwrap().read().away, "hold");
        assert!(read(r#"{"name": "n", "kind": "double"}"#).is_err());
        assert!(read(r#"{"name": "n", "away": "run"}"#).is_err());
    }
}
