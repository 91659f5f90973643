//! What a calendar answers, and what it refuses.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use saltern_calendar::ical::{BadCalendar, Calendar, Limits};
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// A calendar of these events; the first line of the first one is line 3.
fn text(events: &[&str]) -> String {
    let events: String = events.iter().map(|event| format!("BEGIN:VEVENT\n{event}\nEND:VEVENT\n")).collect();
    format!("BEGIN:VCALENDAR\n{events}END:VCALENDAR\n")
}

fn parse(events: &[&str]) -> Result<Calendar, BadCalendar> {
    Calendar::parse(&text(events), &Limits::default())
}

fn starts(calendar: &Calendar, from: &str, to: &str) -> Vec<String> {
    let windows = calendar.windows(at(from), at(to), None).unwrap();
    windows.into_iter().map(|window| format!("{} {}", &window.start.rfc3339()[5..16], window.summary)).collect()
}

const WEEKLY: &str = "UID:w\nSUMMARY:W\nDTSTART:20250105T020000Z\nDTEND:20250105T040000Z\nRRULE:FREQ=WEEKLY";
const JANUARY: (&str, &str) = ("2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z");

#[test]
fn a_window_is_open_from_its_start_until_just_before_its_end() {
    let calendar = parse(&[WEEKLY]).unwrap();
    for (time, open) in [
        ("2025-01-05T01:59:59.999999Z", false),
        ("2025-01-05T02:00:00Z", true),
        ("2025-01-05T03:59:59.999999Z", true),
        ("2025-01-05T04:00:00Z", false),
        ("2035-01-07T03:00:00Z", true),
        ("2024-12-29T03:00:00Z", false),
    ] {
        assert_eq!(calendar.is_open(at(time), None), Ok(open), "{time}");
        assert_eq!(calendar.is_open(at(time), Some("W")), Ok(open), "{time}");
        assert_eq!(calendar.is_open(at(time), Some("other")), Ok(false), "{time}");
    }
}

#[test]
fn a_window_that_began_before_the_span_and_still_lasts_is_in_it() {
    let calendar = parse(&[WEEKLY]).unwrap();
    assert_eq!(starts(&calendar, "2025-01-05T03:59:59Z", "2025-01-12T02:00:00Z"), ["01-05T02:00 W"]);
    assert_eq!(starts(&calendar, "2025-01-05T04:00:00Z", "2025-01-12T02:00:01Z"), ["01-12T02:00 W"]);
    assert_eq!(starts(&calendar, "2025-01-12T03:00:00Z", "2025-01-12T03:00:00Z"), Vec::<String>::new());
}

#[test]
fn overlapping_windows_are_given_as_they_are_and_empty_ones_not_at_all() {
    let other = "UID:o\nSUMMARY:O\nDTSTART:20250105T030000Z\nDURATION:PT2H";
    let empty = "UID:e\nSUMMARY:E\nDTSTART:20250105T030000Z";
    let calendar = parse(&[other, WEEKLY, empty]).unwrap();
    assert_eq!(starts(&calendar, "2025-01-05T00:00:00Z", "2025-01-06T00:00:00Z"), ["01-05T02:00 W", "01-05T03:00 O"]);
}

#[test]
fn the_next_opening_is_the_first_start_from_an_instant_on() {
    let far = "UID:f\nSUMMARY:F\nDTSTART:20250229T000000Z";
    assert!(parse(&[far]).is_err());
    let far = "UID:f\nSUMMARY:F\nDTSTART:20240229T000000Z\nDURATION:PT1H\nRRULE:FREQ=YEARLY";
    let calendar = parse(&[WEEKLY, far]).unwrap();
    let next =
        |time: &str, summary| calendar.next_opening(at(time), summary).unwrap().map(|window| window.start.rfc3339());
    assert_eq!(next("2025-01-05T02:00:00Z", None).unwrap(), "2025-01-05T02:00:00Z");
    assert_eq!(next("2025-01-05T02:00:00.000001Z", None).unwrap(), "2025-01-12T02:00:00Z");
    assert_eq!(next("2025-01-05T02:00:00Z", Some("F")).unwrap(), "2028-02-29T00:00:00Z");
    assert_eq!(next("2028-02-29T00:00:00Z", None).unwrap(), "2028-02-29T00:00:00Z");
    assert_eq!(next("2096-03-01T00:00:00Z", Some("F")), None);
    assert_eq!(next("2025-01-05T02:00:00Z", Some("other")), None);
}

#[test]
fn of_several_versions_the_newest_counts() {
    let old = "UID:w\nSUMMARY:old\nSEQUENCE:9\nDTSTART:20250106T020000Z\nDURATION:PT1H";
    let new = "UID:w\nSUMMARY:new\nSEQUENCE:10\nDTSTART:20250107T020000Z\nDURATION:PT1H";
    for events in [[old, new], [new, old]] {
        assert_eq!(starts(&parse(&events).unwrap(), JANUARY.0, JANUARY.1), ["01-07T02:00 new"]);
    }
    let moved = "UID:w\nRECURRENCE-ID:20250112T020000Z\nDTSTART:20250113T020000Z\nDURATION:PT1H\nSUMMARY:";
    let (first, second) = (format!("{moved}first\nSEQUENCE:1"), format!("{moved}second\nSEQUENCE:2"));
    let expected = ["01-05T02:00 W", "01-13T02:00 second", "01-19T02:00 W", "01-26T02:00 W"];
    for events in [[WEEKLY, &first, &second], [&second, WEEKLY, &first]] {
        assert_eq!(starts(&parse(&events).unwrap(), JANUARY.0, JANUARY.1), expected);
    }
}

#[test]
fn what_is_cancelled_is_no_window() {
    let one = "UID:w\nRECURRENCE-ID:20250112T020000Z\nDTSTART:20250112T020000Z\nDURATION:PT2H\nSTATUS:CANCELLED";
    let calendar = parse(&[WEEKLY, one]).unwrap();
    assert_eq!(starts(&calendar, JANUARY.0, JANUARY.1), ["01-05T02:00 W", "01-19T02:00 W", "01-26T02:00 W"]);
    assert_eq!(calendar.is_open(at("2025-01-12T03:00:00Z"), None), Ok(false));
    let following = one.replace("RECURRENCE-ID:", "RECURRENCE-ID;RANGE=THISANDFUTURE:");
    assert_eq!(starts(&parse(&[WEEKLY, &following]).unwrap(), JANUARY.0, JANUARY.1), ["01-05T02:00 W"]);
    let all = format!("{WEEKLY}\nSTATUS:CANCELLED");
    let calendar = parse(&[&all, &one.replace("\nSTATUS:CANCELLED", "")]).unwrap();
    assert_eq!(starts(&calendar, JANUARY.0, JANUARY.1), Vec::<String>::new());
    assert!(calendar.summaries().is_empty());
}

#[test]
fn times_without_a_zone_are_in_the_one_that_is_given() {
    let text = text(&[
        "UID:a\nSUMMARY:A\nDTSTART:20250701T100000\nDURATION:PT1H",
        "UID:b\nSUMMARY:B\nDTSTART;VALUE=DATE:20250702",
    ]);
    let calendar = Calendar::parse_in(&text, Zone::parse("Asia/Tokyo").unwrap(), &Limits::default()).unwrap();
    assert_eq!(starts(&calendar, "2025-06-01T00:00:00Z", "2025-08-01T00:00:00Z"), ["07-01T01:00 A", "07-01T15:00 B"]);
}

#[test]
fn an_all_day_series_takes_exceptions_with_a_midnight_as_outlook_writes_them() {
    let days = "UID:d\nSUMMARY:D\nDTSTART;VALUE=DATE:20250101\nRRULE:FREQ=DAILY;COUNT=4\n\
                EXDATE;TZID=America/New_York:20250102T000000";
    let moved = "UID:d\nSUMMARY:M\nRECURRENCE-ID;TZID=America/New_York:20250103T000000\nDTSTART;VALUE=DATE:20250110";
    let expected = ["01-01T00:00 D", "01-04T00:00 D", "01-10T00:00 M"];
    assert_eq!(starts(&parse(&[days, moved]).unwrap(), JANUARY.0, JANUARY.1), expected);
}

#[test]
fn a_bad_calendar_is_refused_with_the_line_and_a_hint() {
    let start = "DTSTART:20250105T020000Z";
    for (event, line, problem, hint) in [
        ("SUMMARY:x", 2, "no DTSTART", "DTSTART;TZID="),
        ("DTSTART:2025-01-05", 3, "`2025-01-05` is not a date", "20250131T220000Z"),
        ("DTSTART;TZID=Mars/Base:20250105T020000", 3, "`Mars/Base` is not known", "Europe/Berlin"),
        (&format!("{start}\nDTEND:20250105T010000Z"), 4, "ends before it begins", "first moment after"),
        (&format!("{start}\nDTEND;VALUE=DATE:20250106"), 4, "differ in kind", "for both"),
        (&format!("{start}\nDTEND:20250105T030000Z\nDURATION:PT1H"), 4, "both DTEND and DURATION", "leave one"),
        (&format!("{start}\nDURATION:1H"), 4, "`1H` is no duration", "PT2H"),
        (&format!("{start}\nRRULE:FREQ=WEEKLY;BYDAY=XX"), 4, "`BYDAY=XX`", "MO,TU"),
        (&format!("{start}\nEXRULE:FREQ=WEEKLY"), 4, "EXRULE", "EXDATE"),
        (&format!("{start}\nSUMMARY:a\nb"), 5, "`b` is not a line", "\\n"),
        (&format!("{start}\nRRULE:FREQ=SECONDLY"), 4, "more than 100000 instances", "less often"),
        (&format!("{start}\nRRULE:FREQ=DAILY;COUNT=3000000"), 4, "more than 100000 instances", "less often"),
        ("DTSTART;VALUE=DATE:20250105\nRRULE:FREQ=HOURLY", 4, "within a day", "DAILY"),
    ] {
        let error = parse(&[event]).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.problem.contains(problem) && error.hint.contains(hint), "{error}");
        assert!(error.to_string().starts_with(&format!("line {line}: ")), "{error}");
    }
}

#[test]
fn size_events_and_instances_are_limited() {
    let text = text(&[WEEKLY, &WEEKLY.replace("UID:w", "UID:v")]);
    let small = Limits { bytes: text.len() - 1, ..Limits::default() };
    assert!(Calendar::parse(&text, &small).unwrap_err().problem.contains("bytes"));
    let few = Limits { events: 1, ..Limits::default() };
    assert!(Calendar::parse(&text, &few).unwrap_err().problem.contains("more than 1 events"));
    let short = Limits { instances: 100, ..Limits::default() };
    let calendar = Calendar::parse(&text, &short).unwrap();
    assert!(calendar.windows(at("2025-01-01T00:00:00Z"), at("2025-06-01T00:00:00Z"), None).is_ok());
    let error = calendar.windows(at("2025-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"), None).unwrap_err();
    assert!(error.problem.contains("100 instances") && error.line > 1, "{error}");
    assert_eq!(calendar.is_open(at("2055-01-03T03:00:00Z"), None), Ok(true));
}

#[test]
fn a_calendar_as_large_as_allowed_answers() {
    let events: Vec<String> = (0..10_000)
        .map(|n| WEEKLY.replace("UID:w", &format!("UID:{n}")).replace("SUMMARY:W", &format!("SUMMARY:{n}")))
        .collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let calendar = parse(&events).unwrap();
    assert_eq!(calendar.is_open(at("2035-01-07T03:00:00Z"), Some("9999")), Ok(true));
    assert_eq!(calendar.is_open(at("2035-01-08T03:00:00Z"), None), Ok(false));
    let next = calendar.next_opening(at("2035-01-08T03:00:00Z"), None).unwrap().unwrap();
    assert_eq!(next.start, at("2035-01-14T02:00:00Z"));
}

#[test]
fn a_window_at_a_time_that_the_clocks_skip_opens_later_and_one_that_comes_twice_opens_once() {
    let nightly = "UID:n\nSUMMARY:N\nDTSTART;TZID=Europe/Berlin:20250101T023000\nDURATION:PT1H\nRRULE:FREQ=DAILY";
    let calendar = parse(&[nightly]).unwrap();
    let spring = ["03-29T01:30 N", "03-30T01:30 N", "03-31T00:30 N"];
    assert_eq!(starts(&calendar, "2025-03-29T00:00:00Z", "2025-03-31T12:00:00Z"), spring);
    let autumn = ["10-25T00:30 N", "10-26T00:30 N", "10-27T01:30 N"];
    assert_eq!(starts(&calendar, "2025-10-25T00:00:00Z", "2025-10-27T12:00:00Z"), autumn);
}
