//! Windows in YAML files: calendars, schedules, and whom they are for. What `window apply -f` reads.

use crate::documents::{self, only, shown};
use crate::failure::Failure;
use saltern_api::shape::{Away, CalendarContent, ScheduleContent, ScheduleKind, Subjects};
use saltern_calendar::zone::Zone;
use saltern_core::action::schedule;
use saltern_core::value::{Map, Value};
use serde::Deserialize;
use std::path::Path;

/// What a document is.
const FORM: &str = "a document is a map with a list of `calendars`, a list of `schedules`, or both";

/// All that files say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) calendars: Vec<(String, CalendarContent)>,
    pub(super) schedules: Vec<PlannedSchedule>,
}

/// A schedule and whom it is to be for; nothing: whom it is for already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedSchedule {
    pub(super) name: String,
    pub(super) content: ScheduleContent,
    pub(super) assigned_to: Option<Subjects>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CalendarEntry {
    name: String,
    /// A file, from the folder of the file that names it on
    file: Option<String>,
    ical: Option<String>,
    url: Option<String>,
    /// Seconds, or text such as `6h`
    #[serde(default)]
    refresh: Value,
    zone: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleEntry {
    name: String,
    #[serde(default)]
    kind: ScheduleKind,
    calendar: Option<String>,
    #[serde(default)]
    away: Away,
    minions: Option<Vec<String>>,
    groups: Option<Vec<String>>,
}

/// Reads all there is in these files; `-` is standard input.
pub(super) fn read_all(files: &[String]) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    for file in files {
        read(file, &documents::content(file)?, &mut plan)?;
    }
    Ok(plan)
}

fn read(file: &str, text: &str, plan: &mut Plan) -> Result<(), Failure> {
    let folder = Path::new(file).parent().filter(|_| file != "-").unwrap_or(Path::new(""));
    let documents = documents::read(file, text, FORM)?;
    if documents.is_empty() {
        return Err(Failure::usage(format!("{} has no calendar and no schedule", shown(file))));
    }
    for document in documents {
        let at_line = |error: String| document.wrong(error);
        only(&document.map, &["calendars", "schedules"]).map_err(at_line)?;
        for value in items(&document.map, "calendars").map_err(at_line)? {
            let (name, content) = calendar(value, folder).map_err(at_line)?;
            if plan.calendars.iter().any(|(other, _)| *other == name) {
                return Err(document.wrong(format!("the calendar {name:?} is there twice")));
            }
            plan.calendars.push((name, content));
        }
        for value in items(&document.map, "schedules").map_err(at_line)? {
            let schedule = schedule_of(value).map_err(at_line)?;
            if plan.schedules.iter().any(|other| other.name == schedule.name) {
                return Err(document.wrong(format!("the schedule {:?} is there twice", schedule.name)));
            }
            plan.schedules.push(schedule);
        }
    }
    Ok(())
}

fn items<'a>(map: &'a Map, key: &str) -> Result<&'a [Value], String> {
    match map.get(key) {
        None | Some(Value::Nil) => Ok(&[]),
        Some(Value::List(items)) => Ok(items),
        Some(_) => Err(format!("`{key}` is a list")),
    }
}

/// What an entry is called, for errors.
fn called(value: &Value) -> &str {
    value.get("name").and_then(Value::as_str).unwrap_or("?")
}

fn calendar(value: &Value, folder: &Path) -> Result<(String, CalendarContent), String> {
    let of = |error: String| format!("calendar {:?}: {error}", called(value));
    let entry: CalendarEntry = documents::typed(value).map_err(of)?;
    let ical = match (entry.file, entry.ical, &entry.url) {
        (Some(file), None, None) => {
            let path = folder.join(file).display().to_string();
            Some(documents::content(&path).map_err(|failure| of(failure.to_string()))?)
        }
        (None, Some(text), None) => Some(text),
        (None, None, Some(_)) => None,
        _ => return Err(of("it comes from one of `file`, `ical` and `url`".into())),
    };
    let refresh = match (&entry.refresh, &entry.url) {
        (Value::Nil, _) => None,
        (_, None) => return Err(of("only what has a `url` is read anew".into())),
        (text, Some(_)) => {
            let read = schedule::duration(&text.key_text()).map_err(|error| of(error.to_string()))?;
            Some(i64::try_from(read.as_secs()).unwrap_or(i64::MAX))
        }
    };
    let zone = entry.zone.map(|zone| Zone::parse(&zone).map(|zone| zone.name().to_owned()));
    let zone = zone.transpose().map_err(|error| of(error.to_string()))?;
    Ok((entry.name, CalendarContent { ical, url: entry.url, zone, refresh }))
}

fn schedule_of(value: &Value) -> Result<PlannedSchedule, String> {
    let entry: ScheduleEntry =
        documents::typed(value).map_err(|error| format!("schedule {:?}: {error}", called(value)))?;
    let ScheduleEntry { name, kind, calendar, away, minions, groups } = entry;
    let assigned_to = (minions.is_some() || groups.is_some())
        .then(|| Subjects { minions: minions.unwrap_or_default(), groups: groups.unwrap_or_default() });
    Ok(PlannedSchedule { name, content: ScheduleContent { kind, calendar, away }, assigned_to })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: &str = "\
calendars:
- name: company
  url: https://cal.example.org/ops.ics
  refresh: 6h
- name: nights
  file: nights.ics
  zone: europe/prague
schedules:
- name: SAP Maintenance Window
  kind: multi
  calendar: company
  groups: [sap]
- {name: freeze, kind: blackout, calendar: nights, away: fail}
";

    fn plan(text: &str) -> Result<Plan, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("nights.ics"), "BEGIN:VCALENDAR\r\n").unwrap();
        let file = dir.path().join("windows.yml");
        std::fs::write(&file, text).unwrap();
        read_all(&[file.display().to_string()]).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_file_has_calendars_and_schedules() {
        let plan = plan(WINDOWS).unwrap();
        let (name, company) = &plan.calendars[0];
        assert_eq!((name.as_str(), company.refresh, company.ical.as_deref()), ("company", Some(21_600), None));
        let (_, nights) = &plan.calendars[1];
        assert_eq!(
            (nights.zone.as_deref(), nights.ical.as_deref()),
            (Some("Europe/Prague"), Some("BEGIN:VCALENDAR\r\n"))
        );
        assert_eq!(plan.schedules[0].assigned_to.as_ref().unwrap().groups, ["sap"]);
        assert_eq!((plan.schedules[1].content.away, &plan.schedules[1].assigned_to), (Away::Fail, &None));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (bad, word) in [
            ("calendars: 5\n", "line 1: `calendars` is a list"),
            ("calendar: []\n", "`calendar` is not known here"),
            ("calendars:\n- {name: a}\n", "calendar \"a\": it comes from one of"),
            ("calendars:\n- {name: a, file: nights.ics, url: 'http://x/'}\n", "it comes from one of"),
            ("calendars:\n- {name: a, file: gone.ics}\n", "gone.ics"),
            ("calendars:\n- {name: a, file: nights.ics, refresh: 6h}\n", "read anew"),
            ("calendars:\n- {name: a, url: 'http://x/', refresh: often}\n", "often"),
            ("calendars:\n- {name: a, url: 'http://x/', zone: Europe/Pragu}\n", "Europe/Prague"),
            ("schedules:\n- {name: a, kind: double}\n", "schedule \"a\": unknown variant `double`"),
            ("schedules:\n- {name: a}\n- {name: a}\n", "twice"),
            ("", "no calendar and no schedule"),
        ] {
            let error = plan(bad).unwrap_err();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }
}
