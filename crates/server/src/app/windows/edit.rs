//! What can be changed about windows, and what such a change has to be like.

use super::zone;
use crate::Error;
use crate::app::organisations::check_name;
use crate::app::{App, Caller};
use crate::clock;
use crate::engine::LEAST_REFRESH;
use saltern_core::access::{Thing, Wish};
use saltern_core::ids::MinionId;
use saltern_store::{Assignment, Calendar, Schedule, WindowChange};

/// What a calendar is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalendarDraft {
    /// The organisation; nothing: his own
    pub org: Option<String>,
    /// Its name
    pub name: String,
    /// Its text; nothing: what is there, or what the URL leads to
    pub ical: Option<String>,
    /// Where it is read from
    pub url: Option<String>,
    /// The time zone of what names none; empty: UTC
    pub zone: String,
    /// After how many seconds it is read anew; nothing: when somebody asks for it
    pub refresh: Option<i64>,
}

/// What a schedule is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleDraft {
    /// The organisation; nothing: his own
    pub org: Option<String>,
    /// Its name; of a `multi` schedule, the SUMMARY of its events
    pub name: String,
    /// `single` (every event is a window), `multi` (those that are called as it is), `blackout` (every event closes)
    pub kind: String,
    /// Its calendar; nothing: it is never open
    pub calendar: Option<String>,
    /// What happens outside: `hold` (also if empty) or `fail`
    pub away: String,
}

/// Whom a schedule is assigned to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A minion
    Minion(MinionId),
    /// A group
    Group(String),
}

/// A change of windows. Organisations: nothing is his own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowEdit {
    /// Make or change a calendar
    PutCalendar(CalendarDraft),
    /// Remove a calendar; schedules that are made of it are closed then
    DeleteCalendar {
        /// Its organisation
        org: Option<String>,
        /// Its name
        name: String,
    },
    /// Make or change a schedule
    PutSchedule(ScheduleDraft),
    /// Remove a schedule with its assignments
    DeleteSchedule {
        /// Its organisation
        org: Option<String>,
        /// Its name
        name: String,
    },
    /// Have a schedule hold for these
    Assign {
        /// Its organisation
        org: Option<String>,
        /// Its name
        schedule: String,
        /// For whom
        to: Vec<Subject>,
    },
    /// Have it no longer hold for these
    Unassign {
        /// Its organisation
        org: Option<String>,
        /// Its name
        schedule: String,
        /// For whom
        from: Vec<Subject>,
    },
}

/// A change as the store takes it.
pub(super) struct Read {
    pub(super) change: WindowChange,
    pub(super) org: String,
    pub(super) verb: &'static str,
    pub(super) subjects: Vec<String>,
}

/// Longest name of a schedule, in bytes.
const LONGEST_NAME: usize = 128;
/// Most calendars or schedules of an organisation: they are held in memory.
const MOST: usize = 1_000;

impl WindowEdit {
    /// What it is about.
    pub(super) const fn what(&self) -> &'static str {
        match self {
            Self::PutCalendar(_) | Self::DeleteCalendar { .. } => "calendar",
            Self::PutSchedule(_) | Self::DeleteSchedule { .. } | Self::Assign { .. } | Self::Unassign { .. } => {
                "schedule"
            }
        }
    }

    /// Which one.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::PutCalendar(draft) => &draft.name,
            Self::PutSchedule(draft) => &draft.name,
            Self::DeleteCalendar { name, .. } | Self::DeleteSchedule { name, .. } => name,
            Self::Assign { schedule, .. } | Self::Unassign { schedule, .. } => schedule,
        }
    }

    fn org(&self) -> Option<&str> {
        match self {
            Self::PutCalendar(draft) => draft.org.as_deref(),
            Self::PutSchedule(draft) => draft.org.as_deref(),
            Self::DeleteCalendar { org, .. }
            | Self::DeleteSchedule { org, .. }
            | Self::Assign { org, .. }
            | Self::Unassign { org, .. } => org.as_deref(),
        }
    }
}

impl App {
    /// Checks a change: that he may make it, and that it is one.
    pub(super) async fn read_edit(
        &self,
        caller: &Caller,
        edit: WindowEdit,
        expected: Option<i64>,
    ) -> Result<Read, Error> {
        let org = self.org_he_knows(caller, edit.org())?;
        self.may(caller, &Wish::Manage(Thing::Windows { org: &org }))?;
        let mut change = WindowChange { at: clock::now(), ..WindowChange::default() };
        let mut subjects = Vec::new();
        let verb = match edit {
            WindowEdit::PutCalendar(draft) => {
                let calendar = self.read_calendar(org.clone(), draft, expected).await?;
                change.put_calendar = Some((calendar, expected));
                if expected.is_some() { "calendar.change" } else { "calendar.create" }
            }
            WindowEdit::PutSchedule(draft) => {
                change.put_schedule = Some((self.read_schedule(org.clone(), draft, expected)?, expected));
                if expected.is_some() { "schedule.change" } else { "schedule.create" }
            }
            WindowEdit::DeleteCalendar { name, .. } => {
                change.delete_calendar = Some((org.clone(), name, expected));
                "calendar.delete"
            }
            WindowEdit::DeleteSchedule { name, .. } => {
                change.delete_schedule = Some((org.clone(), name, expected));
                "schedule.delete"
            }
            WindowEdit::Assign { schedule, to, .. } => {
                change.assign = self.read_subjects(caller, &org, &schedule, &to, true)?;
                subjects = change.assign.iter().map(|one| format!("{} {}", one.kind, one.subject)).collect();
                "schedule.assign"
            }
            WindowEdit::Unassign { schedule, from, .. } => {
                change.unassign = self.read_subjects(caller, &org, &schedule, &from, false)?;
                subjects = change.unassign.iter().map(|one| format!("{} {}", one.kind, one.subject)).collect();
                "schedule.unassign"
            }
        };
        Ok(Read { change, org, verb, subjects })
    }

    async fn read_calendar(&self, org: String, draft: CalendarDraft, expected: Option<i64>) -> Result<Calendar, Error> {
        let CalendarDraft { name, ical, url, zone: zone_name, refresh, .. } = draft;
        check_name("calendar", &name)?;
        let zone = zone(&zone_name)?;
        if refresh.is_some_and(|refresh| refresh < LEAST_REFRESH) {
            return Err(Error::Invalid(format!("a calendar is read anew every {LEAST_REFRESH} seconds at most")));
        }
        if refresh.is_some() && url.is_none() {
            return Err(Error::Invalid("only a calendar that has a URL is read anew".into()));
        }
        if let Some(url) = &url {
            crate::webhooks::Address::parse_of("calendar", url)?;
        }
        let snapshot = self.master.windows.snapshot();
        let mut of_org = snapshot.data.calendars.iter().filter(|one| one.org == org);
        if expected.is_none() && of_org.clone().count() >= MOST {
            return Err(Error::Invalid(format!("an organisation has at most {MOST} calendars")));
        }
        let known = of_org.find(|one| one.name == name).filter(|_| expected.is_some()).cloned();
        let now = clock::now();
        let mut calendar = Calendar {
            org,
            name,
            url,
            ical: String::new(),
            zone: zone.name().to_owned(),
            refresh,
            refreshed: known.as_ref().and_then(|known| known.refreshed),
            tried: known.as_ref().and_then(|known| known.tried),
            error: None,
            created: known.as_ref().map_or(now, |known| known.created),
            changed: now,
            version: 0,
        };
        let invalid = |why: String| Error::Invalid(format!("calendar {:?}: {why}", calendar.name));
        let is_same_url = known.as_ref().is_some_and(|known| known.url == calendar.url);
        calendar.ical = match (ical, known) {
            (Some(text), _) => self.master.check_calendar(&calendar, text).await.map_err(invalid)?,
            (None, Some(known)) if is_same_url => {
                self.master.check_calendar(&calendar, known.ical).await.map_err(invalid)?
            }
            (None, _) if calendar.url.is_some() => {
                let text = self.master.fetch_calendar(&calendar).await.map_err(invalid)?;
                (calendar.refreshed, calendar.tried) = (Some(now), Some(now));
                text
            }
            (None, _) => return Err(invalid("give its text or a URL".into())),
        };
        Ok(calendar)
    }

    fn read_schedule(&self, org: String, draft: ScheduleDraft, expected: Option<i64>) -> Result<Schedule, Error> {
        let ScheduleDraft { name, kind, calendar, away, .. } = draft;
        // It may be a SUMMARY, in which people write what they like.
        let is_good = !name.is_empty()
            && name.len() <= LONGEST_NAME
            && name.trim() == name
            && !name.contains(['/', '?', '#'])
            && !name.contains(char::is_control);
        if !is_good {
            return Err(Error::Invalid(format!(
                "the name of a schedule is 1 to {LONGEST_NAME} bytes without / ? # and control characters"
            )));
        }
        if !["single", "multi", "blackout"].contains(&kind.as_str()) {
            return Err(Error::Invalid(format!("a schedule is single, multi or blackout, not {kind:?}")));
        }
        let away = if away.is_empty() { "hold".to_owned() } else { away };
        if !["hold", "fail"].contains(&away.as_str()) {
            return Err(Error::Invalid(format!("what is outside of a window is to hold or to fail, not to {away:?}")));
        }
        let snapshot = self.master.windows.snapshot();
        let has = |calendar: &String| snapshot.data.calendars.iter().any(|one| one.org == org && one.name == *calendar);
        if let Some(calendar) = calendar.as_ref().filter(|calendar| !has(calendar)) {
            return Err(Error::NotFound(format!("there is no calendar {calendar:?}")));
        }
        let of_org = snapshot.data.schedules.iter().filter(|one| one.org == org);
        if expected.is_none() && of_org.clone().count() >= MOST {
            return Err(Error::Invalid(format!("an organisation has at most {MOST} schedules")));
        }
        let known = of_org.clone().find(|one| one.name == name);
        let created = known.map_or_else(clock::now, |known| known.created);
        Ok(Schedule { org, name, kind, calendar, away, created, version: 0 })
    }

    fn read_subjects(
        &self,
        caller: &Caller,
        org: &str,
        schedule: &str,
        subjects: &[Subject],
        must_be_there: bool,
    ) -> Result<Vec<Assignment>, Error> {
        if subjects.is_empty() {
            return Err(Error::Invalid("name minions or groups".into()));
        }
        let windows = self.master.windows.snapshot();
        if !windows.data.schedules.iter().any(|one| one.org == org && one.name == schedule) {
            return Err(Error::NotFound(format!("there is no schedule {schedule:?}")));
        }
        let directory = self.master.directory.snapshot();
        let mut assignments = Vec::with_capacity(subjects.len());
        for subject in subjects {
            let (kind, name) = match subject {
                Subject::Minion(minion) => {
                    let is_there = caller.sight().sees(minion)
                        && directory.org_of(minion) == org
                        && self.master.member(minion.as_str()).is_some();
                    if must_be_there && !is_there {
                        return Err(Error::NotFound(format!("organisation {org:?} has no minion {minion}")));
                    }
                    ("minion", minion.to_string())
                }
                Subject::Group(name) => {
                    let is_there = directory.groups.get(name).is_some_and(|group| group.org == org);
                    if must_be_there && !is_there {
                        return Err(Error::NotFound(format!("organisation {org:?} has no group {name:?}")));
                    }
                    ("group", name.clone())
                }
            };
            assignments.push(Assignment {
                kind: kind.into(),
                subject: name,
                org: org.to_owned(),
                schedule: schedule.to_owned(),
            });
        }
        Ok(assignments)
    }
}
