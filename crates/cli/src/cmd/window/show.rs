//! Windows for people: schedules, calendars, minions, and what a change has touched.

use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{text, when};
use saltern_api::shape::{
    Calendar, CalendarDetail, MaintenanceMode, MinionWindows, Schedule, Subjects, TouchedRun, WindowsChanged,
};
use saltern_core::time::Timestamp;
use serde::Serialize;
use std::time::Duration;

/// Minions that are named; programs get all.
const NAMED: usize = 20;

/// All there is in an organisation.
#[derive(Debug, Serialize)]
pub(super) struct Overview {
    pub(super) schedules: Vec<Schedule>,
    pub(super) calendars: Vec<Calendar>,
    pub(super) maintenance: Vec<MaintenanceMode>,
}

impl Overview {
    pub(super) fn told(&self, now: Timestamp, style: Style) -> String {
        let mut parts = vec![schedules(&self.schedules, style), calendars(&self.calendars, now, style)];
        if !self.maintenance.is_empty() {
            parts.push(maintenance(&self.maintenance, now, style));
        }
        parts.join("\n\n")
    }
}

pub(super) fn schedules(all: &[Schedule], style: Style) -> String {
    let mut table = Table::new(&["SCHEDULE", "KIND", "CALENDAR", "AWAY", "FOR", "MINIONS", "NEXT"]);
    for one in all {
        let next = one.problem.as_ref().map(|problem| format!("closed: {problem}"));
        table.row([
            one.name.clone(),
            one.kind.as_str().to_owned(),
            one.calendar.clone().unwrap_or_default(),
            one.away.as_str().to_owned(),
            subjects(&one.assigned_to),
            one.minions.len().to_string(),
            next.or_else(|| one.next.clone()).unwrap_or_else(|| "none".to_owned()),
        ]);
    }
    table.show("There is no schedule; `saltern window schedule put` makes one.", style)
}

pub(super) fn schedule(one: &Schedule, now: Timestamp, style: Style) -> String {
    let mut known = vec![
        ("Organisation", one.org.clone()),
        ("Kind", one.kind.as_str().to_owned()),
        ("Calendar", one.calendar.clone().unwrap_or_else(|| "none: it is never open".to_owned())),
        (
            "Outside",
            if one.away.as_str() == "fail" { "what was to start fails" } else { "what was to start waits" }.to_owned(),
        ),
        ("Assigned to", subjects(&one.assigned_to)),
        ("Minions now", named(&one.minions)),
        ("Next", one.next.clone().unwrap_or_else(|| "none".to_owned())),
    ];
    if let Some(problem) = &one.problem {
        known.push(("Closed", problem.clone()));
    }
    known.extend([("Made", when::when(one.created.0, now)), ("Version", one.version.to_string())]);
    fields(&one.name, &known, style)
}

pub(super) fn calendars(all: &[Calendar], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["CALENDAR", "ZONE", "BYTES", "FROM", "REFRESH", "READ", "PROBLEM"]);
    for one in all {
        table.row([
            one.name.clone(),
            one.zone.clone(),
            one.size.to_string(),
            one.url.clone().unwrap_or_else(|| "a file".to_owned()),
            one.refresh.map_or_else(String::new, every),
            one.refreshed.map_or_else(String::new, |at| when::ago(at.0, now)),
            one.error.clone().unwrap_or_default(),
        ]);
    }
    table.show("There is no calendar; `saltern window calendar put` makes one.", style)
}

pub(super) fn calendar(detail: &CalendarDetail, now: Timestamp, style: Style) -> String {
    let one = &detail.calendar;
    let mut known = vec![
        ("Organisation", one.org.clone()),
        ("From", one.url.clone().unwrap_or_else(|| "a file".to_owned())),
        ("Zone", format!("{} where it names none", one.zone)),
        ("Refresh", one.refresh.map_or_else(|| "when somebody asks for it".to_owned(), every)),
    ];
    if let Some(at) = one.refreshed {
        known.push(("Read", when::when(at.0, now)));
    }
    if let Some(error) = &one.error {
        let tried = one.tried.map_or_else(String::new, |at| format!(" ({})", when::ago(at.0, now)));
        known.push(("Problem", format!("{error}{tried}; what was known holds")));
    }
    known.extend([
        ("Bytes", one.size.to_string()),
        ("Changed", when::when(one.changed.0, now)),
        ("Version", one.version.to_string()),
    ]);
    fields(&one.name, &known, style)
}

/// How a minion stands.
pub(super) fn minion(id: &str, windows: &MinionWindows, now: Timestamp, style: Style) -> String {
    let open = if windows.open { "may be changed now" } else { "may not be changed now" };
    let mut lines = vec![format!("{} {open}.", text::clean(id))];
    if let Some(mode) = &windows.maintenance {
        lines.push(format!(
            "It is in maintenance {}, by {}: {}",
            until(mode, now),
            text::clean(&mode.by),
            text::clean(&mode.why)
        ));
    }
    if windows.windows.is_empty() {
        let why = if windows.open { "It has no schedule." } else { "No window of it is known." };
        lines.push(if windows.maintenance.is_some() { "No window of it is known.".into() } else { why.into() });
        return lines.join("\n");
    }
    let mut table = Table::new(&["WINDOW", "BEGINS", "KIND", "SCHEDULE", "EVENT"]);
    for window in &windows.windows {
        let begins = if window.start.0 <= now { "now".to_owned() } else { when::ago(window.start.0, now) };
        let kind = if window.blackout { "blackout" } else { "window" };
        table.row([window.words.clone(), begins, kind.to_owned(), window.schedule.clone(), window.summary.clone()]);
    }
    lines.push(String::new());
    lines.push(table.show("", style));
    lines.join("\n")
}

pub(super) fn maintenance(modes: &[MaintenanceMode], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["IN MAINTENANCE", "SINCE", "UNTIL", "BY", "WHY"]);
    for mode in modes {
        table.row([
            mode.minion.clone(),
            when::ago(mode.since.0, now),
            mode.until.map_or_else(|| "somebody ends it".to_owned(), |until| when::when(until.0, now)),
            mode.by.clone(),
            mode.why.clone(),
        ]);
    }
    table.show("No minion is in maintenance.", style)
}

fn until(mode: &MaintenanceMode, now: Timestamp) -> String {
    mode.until
        .map_or_else(|| "until somebody ends it".to_owned(), |until| format!("until {}", when::when(until.0, now)))
}

/// What a change has come to.
pub(super) fn changed(changed: &WindowsChanged, done: &str, now: Timestamp, style: Style) -> String {
    match changed.touched.is_empty() {
        true => format!("{done}."),
        false => format!("{done}. It has touched work that waited:\n{}", touched(&changed.touched, now, style)),
    }
}

/// Waiting runs that are outside of their windows by a change.
pub(super) fn touched(runs: &[TouchedRun], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["ACTION", "NAME", "MINION", "DUE", "NEXT WINDOW"]);
    for run in runs {
        table.row([
            run.launch.map_or_else(|| run.action.to_string(), |launch| format!("{} (launch {launch})", run.action)),
            run.name.clone(),
            run.minion.clone(),
            when::when(run.due.0, now),
            run.next.map_or_else(|| "none".to_owned(), |next| when::when(next.0, now)),
        ]);
    }
    table.show("No work that waits would be outside of its window.", style)
}

fn subjects(to: &Subjects) -> String {
    let groups = to.groups.iter().map(|group| format!("group {group}"));
    let all: Vec<String> = groups.chain(to.minions.iter().cloned()).collect();
    if all.is_empty() { "nobody".to_owned() } else { named(&all) }
}

fn named(all: &[String]) -> String {
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
    format!("{}{more}", shown.join(", "))
}

fn every(seconds: i64) -> String {
    format!("every {}", when::span(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use saltern_api::shape::{Away, ScheduleKind, Time, Window};

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn at(text: &str) -> Time {
        Time(Timestamp::parse(text).unwrap())
    }

    pub(in super::super) fn nights() -> Schedule {
        Schedule {
            name: "web-nights".into(),
            org: "default".into(),
            kind: ScheduleKind::Single,
            calendar: Some("nights".into()),
            away: Away::Hold,
            assigned_to: Subjects { minions: vec!["db1".into()], groups: vec!["web".into()] },
            minions: vec!["db1".into(), "web1".into()],
            problem: None,
            next: Some("Sun 2026-11-22 02:00–04:00 CET".into()),
            created: Time(NOW),
            version: 3,
        }
    }

    #[test]
    fn a_schedule_tells_whom_it_is_for_and_when_it_is_open() {
        assert_eq!(
            schedules(&[nights()], Style::PLAIN),
            "\
SCHEDULE    KIND    CALENDAR  AWAY  FOR             MINIONS  NEXT
web-nights  single  nights    hold  group web, db1  2        Sun 2026-11-22 02:00–04:00 CET"
        );
        let closed = Schedule { problem: Some("its calendar nights is gone".into()), next: None, ..nights() };
        assert!(schedules(&[closed], Style::PLAIN).ends_with("closed: its calendar nights is gone"));
    }

    #[test]
    fn a_minion_tells_whether_it_may_be_changed_and_when() {
        let window = Window {
            start: at("2026-11-22T01:00:00Z"),
            end: at("2026-11-22T03:00:00Z"),
            summary: "patching".into(),
            schedule: "web-nights".into(),
            blackout: false,
            words: "Sun 2026-11-22 02:00–04:00 CET".into(),
        };
        let windows = MinionWindows { open: false, maintenance: None, windows: vec![window] };
        assert_eq!(
            minion("web1", &windows, NOW, Style::PLAIN),
            "\
web1 may not be changed now.

WINDOW                          BEGINS     KIND    SCHEDULE    EVENT
Sun 2026-11-22 02:00–04:00 CET  in 6 days  window  web-nights  patching"
        );
        let free = MinionWindows { open: true, maintenance: None, windows: vec![] };
        assert_eq!(minion("web1", &free, NOW, Style::PLAIN), "web1 may be changed now.\nIt has no schedule.");
    }

    #[test]
    fn a_change_tells_what_it_has_touched() {
        let run = TouchedRun {
            action: 7,
            name: "reboot".into(),
            launch: None,
            minion: "web1".into(),
            due: at("2026-11-15T20:00:00Z"),
            next: None,
        };
        let nothing = WindowsChanged { version: 2, touched: vec![] };
        assert_eq!(changed(&nothing, "Calendar c was changed", NOW, Style::PLAIN), "Calendar c was changed.");
        let some = WindowsChanged { version: 2, touched: vec![run] };
        let shown = changed(&some, "Calendar c was changed", NOW, Style::PLAIN);
        assert!(shown.starts_with("Calendar c was changed. It has touched work that waited:\nACTION  NAME"), "{shown}");
        assert!(shown.ends_with("7       reboot  web1    2026-11-15 20:00:00 UTC (in 3 min)  none"), "{shown}");
    }
}
