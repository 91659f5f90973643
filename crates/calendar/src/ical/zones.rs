//! Which zone a TZID means: one of the IANA database under any of its usual names, or the rules of a VTIMEZONE.
//!
//! The database is preferred to a VTIMEZONE of the same name: calendars carry old rules for years, and Outlook's never had
//! more than the current ones. A zone's own rules are only read when an event needs them.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use saltern_core::time::Timestamp;

use super::expand::Recurrence;
use super::lines::{Line, quoted};
use super::rule::Rule;
use super::values::{self, Written};
use super::work::Work;
use super::{BadCalendar, windows_names};
use crate::zone::{Resolved, Zone};

/// Changes of the clocks are worked out for these years; before and after them the offset stays as it is.
const YEARS: (i32, i32) = (1970, 2100);
/// No real zone changes its clocks more often in that time.
const MOST_ONSETS: u32 = 2000;

/// The clock that an event's local times are read from.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// A zone of the IANA database.
    Known(Zone),
    /// A zone that the calendar itself describes.
    Described(Arc<Described>),
}

impl Place {
    /// Universal time.
    pub(super) const UTC: Place = Place::Known(Zone::UTC);

    /// The instant of a local time, in seconds. A time that occurs twice is the first, and one that the clocks skip is
    /// read with the offset before the gap (RFC 5545, 3.3.5).
    pub(super) fn instant(&self, local: NaiveDateTime) -> i64 {
        match self {
            Place::Known(zone) => match zone.resolve(local) {
                Resolved::Once(at) | Resolved::Twice(at, _) => at.secs(),
                Resolved::Skipped(jump) => {
                    let before = zone.offset_secs(Timestamp(jump.micros().saturating_sub(1)));
                    local.and_utc().timestamp() - i64::from(before)
                }
            },
            Place::Described(zone) => local.and_utc().timestamp() - zone.offset_at_local(local),
        }
    }

    /// What the clock shows at an instant.
    pub(super) fn local(&self, secs: i64) -> NaiveDateTime {
        match self {
            Place::Known(zone) => zone.local(Timestamp::from_secs(secs)),
            Place::Described(zone) => {
                let shown = secs.saturating_add(zone.offset_at(secs));
                DateTime::from_timestamp(shown, 0).map_or(NaiveDateTime::MIN, |time| time.naive_utc())
            }
        }
    }
}

/// The rules of a VTIMEZONE, worked out.
#[derive(Debug)]
pub(super) struct Described {
    /// Changes of the offset, the earliest first; never empty.
    onsets: Vec<Onset>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Onset {
    at: i64,
    before: i64,
    after: i64,
}

impl Described {
    fn offset_at(&self, secs: i64) -> i64 {
        let passed = self.onsets.partition_point(|onset| onset.at <= secs);
        self.offset_after(passed)
    }

    fn offset_at_local(&self, local: NaiveDateTime) -> i64 {
        let shown = local.and_utc().timestamp();
        // By the old offset, so that a local time that comes twice is still before the change.
        let passed = self.onsets.partition_point(|onset| onset.at + onset.before <= shown);
        match passed.checked_sub(1).map(|last| self.onsets[last]) {
            Some(onset) if shown < onset.at + onset.after => onset.before,
            _ => self.offset_after(passed),
        }
    }

    fn offset_after(&self, passed: usize) -> i64 {
        match passed.checked_sub(1) {
            Some(last) => self.onsets[last].after,
            None => self.onsets.first().map_or(0, |onset| onset.before),
        }
    }
}

/// A VTIMEZONE as it is written.
#[derive(Debug, Default)]
pub(super) struct ZoneText {
    pub(super) line: usize,
    pub(super) properties: Vec<Line>,
    /// Its STANDARD and DAYLIGHT parts, with the lines where they begin.
    pub(super) observances: Vec<(usize, Vec<Line>)>,
}

/// The zones of one calendar.
#[derive(Debug)]
pub(super) struct Zones {
    /// The zone of times that name none.
    pub(super) default: Zone,
    texts: HashMap<String, ZoneText>,
    places: HashMap<String, Place>,
}

impl Zones {
    /// The zones that these texts describe.
    pub(super) fn new(default: Zone, texts: Vec<ZoneText>) -> Self {
        let named = |text: ZoneText| Some((value_of(&text.properties, "TZID")?, text));
        Zones { default, texts: texts.into_iter().filter_map(named).collect(), places: HashMap::new() }
    }

    /// The zone that a property names, or the default.
    pub(super) fn place(&mut self, line: &Line, work: &mut Work) -> Result<Place, BadCalendar> {
        let Some(name) = line.param("TZID").map(str::trim).filter(|name| !name.is_empty()) else {
            return Ok(Place::Known(self.default));
        };
        if let Some(place) = self.places.get(name) {
            return Ok(place.clone());
        }
        let text = self.texts.get(name);
        let location = text.and_then(|text| value_of(&text.properties, "X-LIC-LOCATION"));
        let location = location.as_deref();
        let place = match (known(name).or_else(|| location.and_then(known)), text) {
            (Some(zone), _) => Place::Known(zone),
            (None, Some(text)) => Place::Described(Arc::new(describe(text, work)?)),
            (None, None) => {
                let problem = format!("the time zone {} is not known", quoted(name));
                return Err(line.bad(problem, "use a name such as Europe/Berlin, or add its VTIMEZONE to the calendar"));
            }
        };
        self.places.insert(name.to_owned(), place.clone());
        Ok(place)
    }
}

/// The zone of the database that a TZID means.
pub(super) fn known(name: &str) -> Option<Zone> {
    if let Ok(zone) = Zone::parse(name) {
        return Some(zone);
    }
    if let Some(zone) = windows_names::iana_name(name) {
        return Zone::parse(zone).ok();
    }
    // `/freeassociation.sourceforge.net/Europe/Berlin`, `/mozilla.org/20070129_1/America/Argentina/Salta`: the last
    // parts are the name.
    let mut rest = name.strip_prefix('/')?;
    while let Some((_, after)) = rest.split_once('/') {
        if let Ok(zone) = Zone::parse(after) {
            return Some(zone);
        }
        rest = after;
    }
    None
}

fn describe(text: &ZoneText, work: &mut Work) -> Result<Described, BadCalendar> {
    let mut onsets = Vec::new();
    for (line, properties) in &text.observances {
        observe(*line, properties, work, &mut onsets)?;
    }
    onsets.sort_unstable();
    onsets.dedup();
    if onsets.is_empty() {
        let hint = "give it a STANDARD part with DTSTART, TZOFFSETFROM and TZOFFSETTO";
        return Err(BadCalendar::at(text.line, "the VTIMEZONE has no rules", hint));
    }
    Ok(Described { onsets })
}

/// Adds the changes that a STANDARD or DAYLIGHT part tells of.
fn observe(at: usize, lines: &[Line], work: &mut Work, onsets: &mut Vec<Onset>) -> Result<(), BadCalendar> {
    let named = |name: &str| lines.iter().filter(move |line| line.name == name).collect::<Vec<_>>();
    let needed = |name: &str| {
        named(name).first().copied().ok_or_else(|| {
            BadCalendar::at(at, format!("this part of the VTIMEZONE has no {name}"), format!("add its {name}"))
        })
    };
    let start = needed("DTSTART")?;
    let start = local_time(Written::parse(start.number, &start.value)?);
    let offset = |line: &Line| values::parse_offset(line.number, &line.value);
    let (before, after) = (offset(needed("TZOFFSETFROM")?)?, offset(needed("TZOFFSETTO")?)?);

    let mut changes = vec![start];
    for line in named("RDATE") {
        for text in line.value.split(',') {
            work.step(line.number)?;
            changes.push(local_time(Written::parse(line.number, text)?));
        }
    }
    for line in named("RRULE") {
        // An UNTIL in UTC is compared by the offset that ends with the change.
        let mut rule = Rule::parse(line)?;
        if let Some(Written::Utc(until)) = rule.until {
            rule.until = Some(Written::Utc(values::later(until, before)));
        }
        let first = |year| NaiveDate::from_ymd_opt(year, 1, 1).map_or(start, |day| day.and_time(Default::default()));
        let mut most = work.part(MOST_ONSETS);
        let recurrence = Recurrence::new(rule, start, false, &Place::UTC, 0, &mut most)?;
        recurrence.starts(&Place::UTC, first(YEARS.0), first(YEARS.1), &mut most, &mut |change| {
            changes.push(change);
            true
        })?;
        work.join(&most);
    }
    let onset = |change: NaiveDateTime| Onset { at: change.and_utc().timestamp() - before, before, after };
    onsets.extend(changes.into_iter().map(onset));
    Ok(())
}

fn local_time(written: Written) -> NaiveDateTime {
    match written {
        Written::Date(date) => date.and_time(Default::default()),
        Written::Local(time) | Written::Utc(time) => time,
    }
}

fn value_of(properties: &[Line], name: &str) -> Option<String> {
    properties.iter().find(|line| line.name == name).map(|line| line.text().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> NaiveDateTime {
        local_time(Written::parse(1, text).unwrap())
    }

    #[test]
    fn zones_are_found_under_their_usual_names() {
        let berlin = Zone::parse("Europe/Berlin").ok();
        for name in [
            "Europe/Berlin",
            "europe/berlin",
            "W. Europe Standard Time",
            "/freeassociation.sourceforge.net/Europe/Berlin",
            "/freeassociation.sourceforge.net/Tzfile/Europe/Berlin",
            "/mozilla.org/20070129_1/Europe/Berlin",
        ] {
            assert_eq!(known(name), berlin, "{name}");
        }
        let salta = Zone::parse("America/Argentina/Salta").ok();
        assert_eq!(known("/citadel.org/20190914_1/America/Argentina/Salta"), salta);
        assert_eq!(known("/x.org/Nowhere"), None);
        assert_eq!(known("Nowhere/City"), None);
    }

    #[test]
    fn skipped_and_repeated_local_times_follow_the_standard_in_both_kinds_of_zone() {
        let onset = |at: &str, before, after| Onset { at: time(at).and_utc().timestamp(), before, after };
        let onsets = vec![onset("20250330T010000", 3600, 7200), onset("20251026T010000", 7200, 3600)];
        let described = Place::Described(Arc::new(Described { onsets }));
        let known = Place::Known(Zone::parse("Europe/Berlin").unwrap());
        for (local, utc) in [
            ("20250330T015959", "20250330T005959"),
            ("20250330T023000", "20250330T013000"),
            ("20250330T030000", "20250330T010000"),
            ("20251026T023000", "20251026T003000"),
            ("20251026T030000", "20251026T020000"),
            ("20250101T000000", "20241231T230000"),
        ] {
            for place in [&described, &known] {
                assert_eq!(place.instant(time(local)), time(utc).and_utc().timestamp(), "{local} {place:?}");
            }
        }
        let winter = time("20251026T010000").and_utc().timestamp();
        assert_eq!(described.local(winter), time("20251026T020000"));
        assert_eq!(described.local(winter - 1), time("20251026T025959"));
    }
}
