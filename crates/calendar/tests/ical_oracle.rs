//! Calendars against Python: 300 generated ones have the windows that `icalendar` and `recurring-ical-events` find.
//!
//! The generator leaves out what the Python libraries get wrong by RFC 5545, or what it does not define; each place says so.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "ical_oracle/generator.rs"]
mod generator;

use generator::{Generated, Generator};
use saltern_calendar::ical::{Calendar, Limits};
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;
use saltern_testkit::oracle;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const CALENDARS: u64 = 300;

/// Start, end, summary, UID.
type Found = BTreeSet<(i64, i64, String, String)>;

#[test]
fn generated_calendars_expand_as_in_python() {
    let calendars: Vec<Generated> = (0..CALENDARS).map(|seed| Generator::new(seed).calendar()).collect();
    let question = |calendar: &Generated| json!({ "text": calendar.text, "zone": calendar.zone, "from": calendar.from, "to": calendar.to });
    let questions: Vec<Value> = calendars.iter().map(question).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ical_oracle.py");
    let Some(answer) = oracle::ask(&script, &Value::from(questions).to_string()) else { return };
    let theirs: Vec<Found> = serde_json::from_str(&answer).unwrap();
    assert_eq!(theirs.len(), calendars.len());

    let mut instances = 0;
    let mut differing = Vec::new();
    for (seed, (calendar, theirs)) in calendars.iter().zip(&theirs).enumerate() {
        let ours = windows(calendar);
        instances += ours.len();
        if ours != *theirs {
            differing.push(format!("calendar {seed}: {}\n{}", difference(&ours, theirs), calendar.text));
        }
    }
    assert!(differing.is_empty(), "{} calendars differ, the first:\n{}", differing.len(), differing[0]);
    assert!(instances > 10_000, "{instances} instances say little");
}

/// A comparison says something only about what is there to be compared.
#[test]
fn generated_calendars_have_all_that_events_can_have() {
    let calendars: Vec<Generated> = (0..CALENDARS).map(|seed| Generator::new(seed).calendar()).collect();
    let texts: Vec<String> = calendars.iter().map(|calendar| calendar.text.replace("\r\n ", "")).collect();
    for feature in [
        "DTEND;TZID=",
        "DTEND;VALUE=DATE",
        "DURATION:P1D",
        "DURATION:PT",
        "DTSTART:2",
        "RRULE:FREQ=YEARLY",
        "FREQ=MONTHLY",
        "FREQ=WEEKLY",
        "FREQ=DAILY",
        "FREQ=HOURLY",
        "FREQ=MINUTELY",
        "FREQ=SECONDLY",
        "COUNT=",
        "UNTIL=",
        "INTERVAL=2",
        "BYDAY=-",
        "BYMONTHDAY=",
        "BYMONTH=",
        "BYSETPOS=",
        "BYYEARDAY=",
        "BYWEEKNO=",
        "BYHOUR=",
        "BYMINUTE=",
        "WKST=SU",
        "RDATE;TZID=",
        "RDATE;VALUE=PERIOD",
        "RDATE;VALUE=DATE",
        "EXDATE;TZID=",
        "EXDATE;VALUE=DATE",
        "EXDATE:2",
        "RECURRENCE-ID;TZID=",
        "RECURRENCE-ID;VALUE=DATE",
        "RANGE=THISANDFUTURE",
        "STATUS:CANCELLED",
        "SEQUENCE:",
        "an older version",
        "Standard Time:",
        "BEGIN:VTIMEZONE",
    ] {
        let count = texts.iter().filter(|text| text.contains(feature)).count();
        assert!(count >= 3, "{feature} is in {count} calendars only");
    }
}

fn windows(calendar: &Generated) -> Found {
    let zone = Zone::parse(calendar.zone).unwrap();
    let read = Calendar::parse_in(&calendar.text, zone, &Limits::default());
    let read = read.unwrap_or_else(|error| panic!("{error}\n{}", calendar.text));
    let (from, to) = (Timestamp::from_secs(calendar.from), Timestamp::from_secs(calendar.to));
    let windows = read.windows(from, to, None).unwrap();
    windows.into_iter().map(|window| (window.start.secs(), window.end.secs(), window.summary, window.uid)).collect()
}

fn difference(ours: &Found, theirs: &Found) -> String {
    let show = |found: Option<&(i64, i64, String, String)>| match found {
        Some((start, end, summary, uid)) => {
            let time = |secs: &i64| Timestamp::from_secs(*secs).rfc3339();
            format!("{} to {} {summary:?} {uid}", time(start), time(end))
        }
        None => "nothing".to_owned(),
    };
    let only_ours = ours.difference(theirs);
    let only_theirs = theirs.difference(ours);
    let (n, m) = (only_ours.clone().count(), only_theirs.clone().count());
    let (first_ours, first_theirs) = (show(only_ours.clone().next()), show(only_theirs.clone().next()));
    format!("{n} only here, first {first_ours}; {m} only in Python, first {first_theirs}")
}
