//! Maintenance windows: calendars, schedules made of them, whom those are assigned to, and minions that are in maintenance.
//!
//! Everybody of an organisation sees them; its admins change them. A change tells what waiting work it touches, and does with
//! it what its [`Strategy`] says, or is not made.

mod edit;
mod feed;

pub use edit::{CalendarDraft, ScheduleDraft, Subject, WindowEdit};
pub use feed::FeedFilter;

use super::organisations::written_or;
use super::users::own_org;
use super::{App, Caller};
use crate::engine::{Strategy, Touched};
use crate::{Error, clock};
use saltern_calendar::zone::Zone;
use saltern_core::access::{Thing, Wish};
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_store::{Assignment, Calendar, Mode, Schedule};
use std::time::Duration;

/// A schedule with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEntry {
    /// As it was made
    pub schedule: Schedule,
    /// Whom it is assigned to
    pub assignments: Vec<Assignment>,
    /// The minions it holds for now, as far as the caller sees them
    pub minions: Vec<MinionId>,
    /// Why it has no times, if that is so
    pub problem: Option<String>,
    /// Its next time, in words
    pub next: Option<String>,
}

/// What a change has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowsChanged {
    /// The version of what was changed
    pub version: i64,
    /// The waiting runs that it touched
    pub touched: Vec<Touched>,
}

/// A time in which a minion may be changed, or, of a blackout, may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinionWindow {
    /// Its first moment
    pub start: Timestamp,
    /// The first moment after it
    pub end: Timestamp,
    /// The event's summary
    pub summary: String,
    /// The schedule it is of
    pub schedule: String,
    /// Whether the minion may not be changed then
    pub is_blackout: bool,
    /// In words, in the zone of its calendar
    pub words: String,
}

/// How a minion stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinionWindows {
    /// Whether it may be changed now
    pub is_open: bool,
    /// The maintenance mode it is in
    pub mode: Option<Mode>,
    /// Its next windows and blackouts; those that are under way come first
    pub windows: Vec<MinionWindow>,
}

/// How far windows of a minion are looked for.
const AHEAD: Duration = Duration::from_secs(396 * 86_400);
/// Most windows in one answer.
const MOST: usize = 1_000;
/// Longest reason, in bytes.
const LONGEST_REASON: usize = 1_000;

impl App {
    /// The calendars of an organisation (nothing: his own), in the order of names.
    pub fn calendars(&self, caller: &Caller, org: Option<&str>) -> Result<Vec<Calendar>, Error> {
        let org = self.org_he_knows(caller, org)?;
        let snapshot = self.master.windows.snapshot();
        let looks_after = self.may(caller, &Wish::Manage(Thing::Windows { org: &org })).is_ok();
        // What leads to a calendar may be what its owner is known by.
        let shown = |calendar: &Calendar| match looks_after {
            true => calendar.clone(),
            false => Calendar { url: calendar.url.as_ref().map(|_| "(not shown)".into()), ..calendar.clone() },
        };
        Ok(snapshot.data.calendars.iter().filter(|calendar| calendar.org == org).map(shown).collect())
    }

    /// One calendar.
    pub fn calendar(&self, caller: &Caller, org: Option<&str>, name: &str) -> Result<Calendar, Error> {
        let found = self.calendars(caller, org)?.into_iter().find(|calendar| calendar.name == name);
        found.ok_or_else(|| Error::NotFound(format!("there is no calendar {name:?}")))
    }

    /// The schedules of an organisation (nothing: his own), in the order of names.
    pub async fn schedules(&self, caller: &Caller, org: Option<&str>) -> Result<Vec<ScheduleEntry>, Error> {
        let org = self.org_he_knows(caller, org)?;
        let snapshot = self.master.windows.snapshot();
        let looks_after = self.may(caller, &Wish::Manage(Thing::Windows { org: &org })).is_ok();
        let sees = |one: &&Assignment| {
            looks_after || one.kind == "group" || MinionId::new(&one.subject).is_ok_and(|id| caller.sight().sees(&id))
        };
        let entry = |schedule: &Schedule| {
            let mine = |one: &&Assignment| one.org == schedule.org && one.schedule == schedule.name;
            let minions = snapshot.minions_of(&schedule.org, &schedule.name).into_iter();
            let table = snapshot.hours(&schedule.org, &schedule.name).map(|hours| &hours.table);
            let next = table.and_then(|table| {
                let (now, zone) = (clock::now(), table.zone);
                let span = table.span_at(now).or_else(|| table.span_at(table.next_start(now)?))?;
                Some(crate::engine::span_in_words(span, zone))
            });
            ScheduleEntry {
                schedule: schedule.clone(),
                assignments: snapshot.data.assignments.iter().filter(mine).filter(sees).cloned().collect(),
                minions: minions.filter(|id| caller.sight().sees(id)).cloned().collect(),
                problem: table.and_then(|table| table.problem()).map(str::to_owned),
                next,
            }
        };
        Ok(snapshot.data.schedules.iter().filter(|schedule| schedule.org == org).map(entry).collect())
    }

    /// One schedule.
    pub async fn schedule(&self, caller: &Caller, org: Option<&str>, name: &str) -> Result<ScheduleEntry, Error> {
        let found = self.schedules(caller, org).await?.into_iter().find(|entry| entry.schedule.name == name);
        found.ok_or_else(|| Error::NotFound(format!("there is no schedule {name:?}")))
    }

    /// Makes a change; `expected` is the version of what it changes, nothing where that is made.
    pub async fn change_windows(
        &self,
        caller: &Caller,
        edit: WindowEdit,
        expected: Option<i64>,
        strategy: Strategy,
    ) -> Result<WindowsChanged, Error> {
        let (what, name) = (edit.what(), edit.name().to_owned());
        let mut change = self.read_edit(caller, edit, expected).await?;
        let detail = serde_json::json!({ "org": change.org, "strategy": strategy, "subjects": change.subjects });
        change.change.audit = vec![caller.audit(change.verb, &name, detail)];
        let (written, touched) = self.master.change_windows(caller, change.change, strategy).await?;
        Ok(WindowsChanged { version: written_or(written, what, &name)?, touched })
    }

    /// The waiting runs that a change would touch; nothing is changed.
    pub async fn preview_change(
        &self,
        caller: &Caller,
        edit: WindowEdit,
        expected: Option<i64>,
    ) -> Result<Vec<Touched>, Error> {
        let change = self.read_edit(caller, edit, expected).await?;
        self.master.touched_by(&change.change).await
    }

    /// Reads a calendar anew from where it comes from, now. Where that fails, what was known holds.
    pub async fn refresh_calendar(
        &self,
        caller: &Caller,
        org: Option<&str>,
        name: &str,
        strategy: Strategy,
    ) -> Result<WindowsChanged, Error> {
        let org = self.org_he_knows(caller, org)?;
        self.may(caller, &Wish::Manage(Thing::Windows { org: &org }))?;
        let known = self.calendar(caller, Some(&org), name)?;
        if known.url.is_none() {
            return Err(Error::Conflict(format!("calendar {name:?} has no URL to be read from")));
        }
        match self.master.fetch_calendar(&known).await {
            Err(why) => {
                self.master.note_refresh(&known, Err(why.clone())).await?;
                self.master.reread_windows().await?;
                Err(Error::Conflict(format!("calendar {name:?} could not be read, what was known holds: {why}")))
            }
            Ok(ical) => {
                let (now, version) = (clock::now(), known.version);
                let fresh =
                    Calendar { ical, refreshed: Some(now), tried: Some(now), error: None, changed: now, ..known };
                let change = saltern_store::WindowChange {
                    put_calendar: Some((fresh, Some(version))),
                    audit: vec![caller.audit("calendar.refresh", name, serde_json::json!({ "org": org }))],
                    ..saltern_store::WindowChange::default()
                };
                let (written, touched) = self.master.change_windows(caller, change, strategy).await?;
                Ok(WindowsChanged { version: written_or(written, "calendar", name)?, touched })
            }
        }
    }

    /// How a minion stands, and its next `limit` windows from an instant on.
    pub async fn windows_of(
        &self,
        caller: &Caller,
        minion: &MinionId,
        from: Option<Timestamp>,
        limit: usize,
    ) -> Result<MinionWindows, Error> {
        self.check_seen(caller, minion)?;
        self.master.look_at_groups().await?;
        let now = clock::now();
        let from = from.unwrap_or(now);
        let snapshot = self.master.windows.snapshot();
        let mut windows = Vec::new();
        let hours = snapshot.rules(minion).into_iter().flat_map(|rules| rules.windows.iter().chain(&rules.blackouts));
        for hours in hours {
            windows.extend(hours.table.windows(from, from.plus(AHEAD)).into_iter().map(|window| {
                let span = crate::engine::Span { start: window.start, end: window.end };
                MinionWindow {
                    start: window.start,
                    end: window.end,
                    words: crate::engine::span_in_words(span, hours.table.zone),
                    summary: window.summary,
                    schedule: hours.name.clone(),
                    is_blackout: hours.is_blackout,
                }
            }));
        }
        windows.sort_by(|a, b| (a.start, a.end, &a.schedule).cmp(&(b.start, b.end, &b.schedule)));
        windows.truncate(limit.clamp(1, MOST));
        let is_open = self.master.windows.opening(minion, true, now) == crate::engine::Opening::Open;
        Ok(MinionWindows { is_open, mode: snapshot.mode(minion, now).cloned(), windows })
    }

    /// Opens the windows of minions by hand, for a reason, until then or until somebody closes them.
    pub async fn start_maintenance(
        &self,
        caller: &Caller,
        minions: &[MinionId],
        why: &str,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        let now = clock::now();
        if why.trim().is_empty() || why.len() > LONGEST_REASON {
            return Err(Error::Invalid(format!("maintenance needs a reason of at most {LONGEST_REASON} bytes")));
        }
        if until.is_some_and(|until| until <= now) {
            return Err(Error::Invalid("the end of the maintenance is over already".into()));
        }
        self.may_maintain(caller, minions)?;
        for minion in minions {
            let mode = Mode { minion: minion.clone(), by: caller.who.clone(), why: why.to_owned(), since: now, until };
            let detail = serde_json::json!({ "why": why, "until": until.map(Timestamp::rfc3339) });
            self.master.store.set_mode(mode, caller.audit("maintenance.on", minion.as_str(), detail)).await?;
        }
        self.master.reread_windows().await
    }

    /// Leaves minions to their schedules again; tells which were in maintenance.
    pub async fn end_maintenance(&self, caller: &Caller, minions: &[MinionId]) -> Result<Vec<MinionId>, Error> {
        self.may_maintain(caller, minions)?;
        let mut ended = Vec::new();
        for minion in minions {
            let audit = caller.audit("maintenance.off", minion.as_str(), serde_json::json!({}));
            if self.master.store.clear_mode(minion.clone(), audit).await? {
                ended.push(minion.clone());
            }
        }
        self.master.reread_windows().await?;
        Ok(ended)
    }

    /// The minions that are in maintenance by hand, as far as he sees them.
    pub fn maintenance(&self, caller: &Caller) -> Vec<Mode> {
        let snapshot = self.master.windows.snapshot();
        let now = clock::now();
        let is_on = |mode: &&Mode| snapshot.mode(&mode.minion, now).is_some() && caller.sight().sees(&mode.minion);
        snapshot.data.modes.iter().filter(is_on).cloned().collect()
    }

    fn may_maintain(&self, caller: &Caller, minions: &[MinionId]) -> Result<(), Error> {
        if minions.is_empty() {
            return Err(Error::Invalid("name the minions that are meant".into()));
        }
        let directory = self.master.directory.snapshot();
        for minion in minions {
            self.check_seen(caller, minion)?;
            self.may(caller, &Wish::Manage(Thing::Windows { org: directory.org_of(minion) }))?;
        }
        Ok(())
    }

    fn check_seen(&self, caller: &Caller, minion: &MinionId) -> Result<(), Error> {
        let is_seen = self.master.member(minion.as_str()).is_some() && caller.sight().sees(minion);
        if is_seen {
            Ok(())
        } else {
            Err(Error::NotFound(format!("there is no accepted minion {:?}", minion.as_str())))
        }
    }

    /// The organisation that is meant, if he may know of it.
    fn org_he_knows(&self, caller: &Caller, org: Option<&str>) -> Result<String, Error> {
        let own = own_org(caller);
        let org = org.filter(|org| !org.is_empty()).unwrap_or(&own);
        if org == own {
            return Ok(own);
        }
        Ok(self.organisation(caller, org)?.name)
    }
}

/// The zone of this name, in the words of its error if there is none.
fn zone(name: &str) -> Result<Zone, Error> {
    if name.is_empty() { Ok(Zone::UTC) } else { Zone::parse(name).map_err(|error| Error::Invalid(error.to_string())) }
}
