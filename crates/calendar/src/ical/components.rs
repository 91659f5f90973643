//! From lines to components: the nesting of BEGIN and END, and a VEVENT's properties with their meaning.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use super::lines::{self, Line, quoted};
use super::rule::Rule;
use super::values::{Length, Written};
use super::work::Work;
use super::zones::{Place, ZoneText, Zones};
use super::{BadCalendar, Limits};

/// Components within components; iCal has three.
const DEEPEST: usize = 16;
/// The properties of an event that say when it is and which one it is. EXRULE is here to be refused.
const OF_EVENT: [&str; 13] = [
    "UID",
    "SUMMARY",
    "STATUS",
    "SEQUENCE",
    "DTSTAMP",
    "DTSTART",
    "DTEND",
    "DURATION",
    "RRULE",
    "RDATE",
    "EXDATE",
    "RECURRENCE-ID",
    "EXRULE",
];
const OF_ZONE: [&str; 2] = ["TZID", "X-LIC-LOCATION"];
const OF_OBSERVANCE: [&str; 5] = ["DTSTART", "RRULE", "RDATE", "TZOFFSETFROM", "TZOFFSETTO"];

/// What a text contains that matters here.
#[derive(Debug, Default)]
pub(super) struct Components {
    /// VEVENTs, each with the line where it begins.
    pub(super) events: Vec<(usize, Vec<Line>)>,
    pub(super) zones: Vec<ZoneText>,
    /// The zone of the whole calendar, as Google and others name it.
    pub(super) zone_name: Option<Line>,
}

impl Components {
    /// Sorts the lines of a text.
    pub(super) fn read(text: &str, limits: &Limits) -> Result<Self, BadCalendar> {
        let mut all = Components::default();
        let mut open: Vec<(usize, String)> = Vec::new();
        let mut is_calendar = false;
        for (number, text) in lines::unfold(text) {
            let line = lines::parse(number, &text)?;
            let component = line.value.trim().to_ascii_uppercase();
            match line.name.as_str() {
                "BEGIN" => {
                    is_calendar |= component == "VCALENDAR";
                    open.push((number, component));
                    all.begin(number, &open, limits)?;
                }
                "END" => match open.pop() {
                    Some((_, begun)) if begun == component => {}
                    Some((at, begun)) => {
                        let problem = format!("END:{} follows BEGIN:{}", quoted(&component), quoted(&begun));
                        return Err(line.bad(problem, format!("close what was begun in line {at} first")));
                    }
                    None => return Err(line.bad("END without BEGIN", "begin the component, or leave this line out")),
                },
                _ if open.is_empty() => return Err(no_calendar(number)),
                _ => all.property(line, &open),
            }
        }
        match open.first() {
            Some((at, begun)) => {
                let problem = format!("BEGIN:{} is never ended", quoted(begun));
                Err(BadCalendar::at(*at, problem, "the text seems to be cut off: get all of it"))
            }
            None if !is_calendar => Err(no_calendar(1)),
            None => Ok(all),
        }
    }

    fn begin(&mut self, number: usize, open: &[(usize, String)], limits: &Limits) -> Result<(), BadCalendar> {
        if open.len() > DEEPEST {
            return Err(BadCalendar::at(number, "too many components within each other", "end those that were begun"));
        }
        match path(open).as_slice() {
            ["VCALENDAR", "VEVENT"] => {
                if self.events.len() >= limits.events {
                    let problem = format!("the calendar has more than {} events", limits.events);
                    return Err(BadCalendar::at(number, problem, "leave out old ones, or split it"));
                }
                self.events.push((number, Vec::new()));
            }
            ["VCALENDAR", "VTIMEZONE"] => self.zones.push(ZoneText { line: number, ..ZoneText::default() }),
            ["VCALENDAR", "VTIMEZONE", "STANDARD" | "DAYLIGHT"] => {
                if let Some(zone) = self.zones.last_mut() {
                    zone.observances.push((number, Vec::new()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn property(&mut self, line: Line, open: &[(usize, String)]) {
        let path = path(open);
        let is_one_of = |names: &[&str]| names.contains(&line.name.as_str());
        let list = match path.as_slice() {
            ["VCALENDAR"] if line.name == "X-WR-TIMEZONE" => {
                self.zone_name = Some(line);
                return;
            }
            ["VCALENDAR", "VEVENT"] if is_one_of(&OF_EVENT) => self.events.last_mut().map(|(_, list)| list),
            ["VCALENDAR", "VTIMEZONE"] if is_one_of(&OF_ZONE) => self.zones.last_mut().map(|zone| &mut zone.properties),
            ["VCALENDAR", "VTIMEZONE", "STANDARD" | "DAYLIGHT"] if is_one_of(&OF_OBSERVANCE) => {
                self.zones.last_mut().and_then(|zone| zone.observances.last_mut()).map(|(_, list)| list)
            }
            _ => None,
        };
        if let Some(list) = list {
            list.push(line);
        }
    }
}

fn path(open: &[(usize, String)]) -> Vec<&str> {
    open.iter().map(|(_, name)| name.as_str()).collect()
}

fn no_calendar(line: usize) -> BadCalendar {
    BadCalendar::at(
        line,
        "this is not an iCal calendar",
        "it begins with BEGIN:VCALENDAR; a web page or a table will not do",
    )
}

/// A date or time with the clock it is read from.
#[derive(Debug, Clone)]
pub(super) struct When {
    pub(super) local: NaiveDateTime,
    pub(super) place: Place,
    pub(super) is_date: bool,
}

impl When {
    pub(super) fn instant(&self) -> i64 {
        self.place.instant(self.local)
    }
}

/// A VEVENT: a series, a single event, or the changed instance of a series.
#[derive(Debug)]
pub(super) struct Event {
    /// Where it begins.
    pub(super) line: usize,
    pub(super) uid: Option<String>,
    pub(super) summary: String,
    pub(super) is_cancelled: bool,
    /// SEQUENCE, then DTSTAMP: of two, the higher is the newer.
    pub(super) version: (i64, i64),
    pub(super) start: When,
    pub(super) length: Length,
    pub(super) rules: Vec<Rule>,
    /// Further instances, some with a length of their own.
    pub(super) extra: Vec<(When, Option<Length>)>,
    pub(super) excluded: Vec<When>,
    /// The instance that this one replaces, and whether it and all that follow.
    pub(super) replaces: Option<(When, bool)>,
}

impl Event {
    /// Makes sense of a VEVENT's properties.
    pub(super) fn read(
        at: usize,
        properties: &[Line],
        zones: &mut Zones,
        work: &mut Work,
    ) -> Result<Self, BadCalendar> {
        let one = |name: &str| properties.iter().find(|line| line.name == name);
        let many = |name: &'static str| properties.iter().filter(move |line| line.name == name);
        if let Some(line) = one("EXRULE") {
            return Err(line.bad("EXRULE is no longer a part of iCal", "write the exceptions as EXDATE"));
        }
        let start_line = one("DTSTART").ok_or_else(|| {
            BadCalendar::at(
                at,
                "the event has no DTSTART",
                "say when it begins: DTSTART;TZID=Europe/Berlin:20250131T220000",
            )
        })?;
        let start = when(start_line, &start_line.value, zones, work)?;
        let length = length(&start, one("DTEND"), one("DURATION"), zones, work)?;
        let rules = many("RRULE").map(Rule::parse).collect::<Result<Vec<_>, _>>()?;
        let mut extra = Vec::new();
        for line in many("RDATE") {
            for text in line.value.split(',') {
                let instance = instance(line, text, zones, work)?;
                if instance.0.is_date != start.is_date {
                    return Err(line.bad("RDATE and DTSTART differ in kind", "use dates, or times, for both"));
                }
                extra.push(instance);
            }
        }
        let mut excluded = Vec::new();
        for line in many("EXDATE") {
            for text in line.value.split(',').filter(|text| !text.trim().is_empty()) {
                excluded.push(when(line, text, zones, work)?);
            }
        }
        let replaces = match one("RECURRENCE-ID") {
            Some(line) => {
                let and_future = line.param("RANGE").is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
                Some((when(line, &line.value, zones, work)?, and_future))
            }
            None => None,
        };
        let stamp = one("DTSTAMP").and_then(|line| Written::parse(line.number, &line.value).ok());
        let stamp = stamp.map_or(i64::MIN, |stamp| Place::UTC.instant(local(stamp)));
        let text = |name: &str| one(name).map(|line| line.text().trim().to_owned());
        Ok(Event {
            line: at,
            uid: text("UID").filter(|uid| !uid.is_empty()),
            summary: text("SUMMARY").unwrap_or_default(),
            is_cancelled: text("STATUS").is_some_and(|status| status.eq_ignore_ascii_case("CANCELLED")),
            version: (one("SEQUENCE").and_then(|line| line.value.trim().parse().ok()).unwrap_or(0), stamp),
            start,
            length,
            rules,
            extra,
            excluded,
            replaces,
        })
    }
}

/// A value with the zone its line names.
fn when(line: &Line, text: &str, zones: &mut Zones, work: &mut Work) -> Result<When, BadCalendar> {
    work.step(line.number)?;
    let written = Written::parse(line.number, text)?;
    let place = match written {
        Written::Date(_) => Place::Known(zones.default),
        Written::Local(_) => zones.place(line, work)?,
        Written::Utc(_) => Place::UTC,
    };
    Ok(When { local: local(written), place, is_date: matches!(written, Written::Date(_)) })
}

fn local(written: Written) -> NaiveDateTime {
    match written {
        Written::Date(date) => NaiveDate::and_time(&date, NaiveTime::MIN),
        Written::Local(time) | Written::Utc(time) => time,
    }
}

/// How long an event lasts, by whichever property says it.
fn length(
    start: &When,
    end: Option<&Line>,
    duration: Option<&Line>,
    zones: &mut Zones,
    work: &mut Work,
) -> Result<Length, BadCalendar> {
    match (end, duration) {
        (Some(line), Some(_)) => Err(line.bad("the event has both DTEND and DURATION", "leave one of them out")),
        (Some(line), None) => until(line, start, &when(line, &line.value, zones, work)?),
        (None, Some(line)) => Length::parse(line.number, &line.value),
        (None, None) => Ok(Length::Nominal { days: i64::from(start.is_date), secs: 0 }),
    }
}

/// The length of what lasts from a start to an end.
fn until(line: &Line, start: &When, end: &When) -> Result<Length, BadCalendar> {
    if start.is_date != end.is_date {
        return Err(line.bad("the start and the end differ in kind", "use dates, or times, for both"));
    }
    let length = if start.is_date {
        Length::Nominal { days: (end.local - start.local).num_days(), secs: 0 }
    } else {
        Length::Exact(end.instant() - start.instant())
    };
    if length.secs() < 0 {
        return Err(line.bad("the event ends before it begins", "the end is the first moment after it"));
    }
    length.checked(line.number)
}

/// An item of RDATE: a start, or a period.
fn instance(
    line: &Line,
    text: &str,
    zones: &mut Zones,
    work: &mut Work,
) -> Result<(When, Option<Length>), BadCalendar> {
    let Some((start, end)) = text.split_once('/') else { return Ok((when(line, text, zones, work)?, None)) };
    let start = when(line, start, zones, work)?;
    let length = if end.trim_start().starts_with(['P', '+', '-']) {
        Length::parse(line.number, end)?
    } else {
        until(line, &start, &when(line, end, zones, work)?)?
    };
    Ok((start, Some(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Components, BadCalendar> {
        Components::read(text, &Limits { events: 2, ..Limits::default() })
    }

    #[test]
    fn properties_go_to_the_component_that_has_them() {
        let text = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nBEGIN:VALARM\nUID:2\nDURATION:PT1H\nEND:VALARM\nX-A:b\n\
                    SUMMARY:s\nEND:VEVENT\nBEGIN:VTODO\nUID:3\nEND:VTODO\nEND:VCALENDAR\n";
        let found = read(text).unwrap();
        let [(2, properties)] = found.events.as_slice() else { panic!("{found:?}") };
        assert_eq!(properties.iter().map(|line| line.value.as_str()).collect::<Vec<_>>(), ["1", "s"]);
    }

    #[test]
    fn broken_nesting_is_refused_at_its_line() {
        for (text, line) in [
            ("", 1),
            ("<html>", 1),
            ("BEGIN:VEVENT\nEND:VEVENT\n", 1),
            ("\nUID:1\n", 2),
            ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", 3),
            ("BEGIN:VCALENDAR\nEND:VCALENDAR\nEND:VCALENDAR\n", 3),
            ("BEGIN:VCALENDAR\nBEGIN:VEVENT\n", 1),
        ] {
            assert_eq!(read(text).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn the_number_of_events_and_the_depth_are_limited() {
        let events = "BEGIN:VEVENT\nEND:VEVENT\n".repeat(3);
        assert_eq!(read(&format!("BEGIN:VCALENDAR\n{events}END:VCALENDAR")).unwrap_err().line, 6);
        assert_eq!(read(&"BEGIN:X\n".repeat(100)).unwrap_err().line, 17);
    }
}
