//! Calendars as the programs of the field write them, and the windows a person finds in them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use saltern_calendar::ical::{Calendar, Limits, Window};
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;

const OUTLOOK: &str = include_str!("ical/outlook.ics");
const EXCHANGE: &str = include_str!("ical/exchange.ics");
const GOOGLE: &str = include_str!("ical/google.ics");
const EVOLUTION: &str = include_str!("ical/evolution.ics");

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn read(text: &str) -> Calendar {
    // As it comes from the net: with CRLF, and a byte order mark from Windows.
    let text = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    Calendar::parse_in(&text, Zone::parse("Europe/Berlin").unwrap(), &Limits::default()).unwrap()
}

fn shown(windows: Vec<Window>) -> Vec<String> {
    let show = |time: Timestamp| time.rfc3339()[5..16].to_owned();
    windows.into_iter().map(|w| format!("{} {} {}", show(w.start), show(w.end), w.summary)).collect()
}

fn of_2025(calendar: &Calendar, summary: Option<&str>) -> Vec<String> {
    shown(calendar.windows(at("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"), summary).unwrap())
}

#[test]
fn outlook_with_the_second_tuesday_one_excluded_and_one_moved() {
    let windows = of_2025(&read(OUTLOOK), None);
    let expected = [
        "01-14T21:00 01-15T01:00 Patch Tuesday",
        "03-12T21:00 03-13T01:00 Patch Tuesday",
        "04-08T20:00 04-09T00:00 Patch Tuesday",
        "05-13T20:00 05-14T00:00 Patch Tuesday",
    ];
    assert_eq!(windows[..4], expected);
    assert_eq!((windows.len(), windows[9].as_str()), (11, "11-11T21:00 11-12T01:00 Patch Tuesday"));
}

#[test]
fn exchange_with_its_own_zone_and_several_schedules_in_one_calendar() {
    let calendar = read(EXCHANGE);
    assert_eq!(calendar.summaries().into_iter().collect::<Vec<_>>(), ["Core Server Window", "SAP Maintenance Window"]);
    let sap = of_2025(&calendar, Some("SAP Maintenance Window"));
    let expected = [
        "03-23T00:00 03-23T02:00 SAP Maintenance Window",
        "03-30T00:00 03-30T02:00 SAP Maintenance Window",
        "04-05T23:00 04-06T01:00 SAP Maintenance Window",
    ];
    assert_eq!(sap, expected);
    assert_eq!(of_2025(&calendar, Some("Core Server Window")), ["04-04T22:00 04-06T22:00 Core Server Window"]);
    assert_eq!(of_2025(&calendar, Some("core server window")), Vec::<String>::new());
    assert_eq!(of_2025(&calendar, None).len(), 4);
}

#[test]
fn google_with_a_zone_for_all_day_events_and_an_instance_moved_to_another_day() {
    let expected = [
        "07-04T04:00 07-06T04:00 Long weekend",
        "10-26T05:00 10-26T07:00 Weekly window",
        "11-02T05:00 11-02T07:00 Weekly window",
        "11-10T06:00 11-10T08:00 Weekly window, moved",
        "11-16T06:00 11-16T08:00 Weekly window",
    ];
    assert_eq!(of_2025(&read(GOOGLE), None), expected);
}

#[test]
fn evolution_with_prefixed_zones_and_durations_across_the_change_of_clocks() {
    // The clocks go forward in the night to 30 March: six hours are six, while two days are by the clock.
    let expected = [
        "03-28T17:00 03-31T04:00 Weekend",
        "03-28T22:00 03-29T04:00 Nightly",
        "03-29T22:00 03-30T04:00 Nightly",
        "03-30T21:00 03-31T03:00 Nightly",
    ];
    assert_eq!(of_2025(&read(EVOLUTION), None), expected);
}
