//! Whatever a text contains, reading it comes to an end without a panic, and so does asking; and the answers agree.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "ical_oracle/generator.rs"]
mod generator;

use std::time::{Duration, Instant};

use generator::Generator;
use proptest::prelude::*;
use saltern_calendar::ical::{Calendar, FeedEvent, Limits, write};
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;

/// More than any answer takes in a build without optimisation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const REAL: [&str; 4] = [
    include_str!("ical/outlook.ics"),
    include_str!("ical/exchange.ics"),
    include_str!("ical/google.ics"),
    include_str!("ical/evolution.ics"),
];

/// What may stand in a calendar, so that chance finds its way into the parts that matter.
const WORDS: [&str; 22] = [
    "RRULE:FREQ=SECONDLY\r\n",
    "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;COUNT=9\r\n",
    "FREQ=MINUTELY",
    "INTERVAL=1000000",
    ";BYSETPOS=-366",
    "BYSECOND=60",
    "COUNT=4294967295",
    "99991231T235959",
    "00000101T000000Z",
    "BEGIN:VEVENT\r\n",
    "END:VEVENT\r\n",
    ";TZID=",
    ";VALUE=DATE",
    "DURATION:P99999D\r\n",
    "RDATE:20250101T000000Z/P1D,20250102T000000Z\r\n",
    "EXDATE:",
    "\r\n ",
    "\"",
    ":",
    ";",
    "é",
    "TZOFFSETTO:-2359\r\n",
];

fn ask_everything(text: &str, from: i64, to: i64) {
    let begun = Instant::now();
    let limits = Limits { instances: 20_000, ..Limits::default() };
    if let Ok(calendar) = Calendar::parse_in(text, Zone::parse("America/Santiago").unwrap(), &limits) {
        let _ = calendar.windows(Timestamp(from), Timestamp(to), None);
        let _ = calendar.is_open(Timestamp(from), None);
        let _ = calendar.next_opening(Timestamp(to), Some("Nightly"));
        let _ = calendar.summaries();
    }
    assert!(begun.elapsed() < PATIENCE, "{:?} for\n{text}", begun.elapsed());
}

proptest! {
    #[test]
    fn arbitrary_text_is_read_or_refused(text in any::<String>(), from in any::<i64>(), to in any::<i64>()) {
        ask_everything(&text, from, to);
        ask_everything(&format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{text}\nEND:VEVENT\nEND:VCALENDAR\n"), from, to);
    }

    #[test]
    fn an_event_of_arbitrary_words_is_read_or_refused(
        words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..12),
        start in 0_i64..4_000_000_000_000_000,
    ) {
        let words = words.concat();
        let text = format!("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:20250105T020000Z\r\n{words}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n");
        ask_everything(&text, start, start + 40_000_000_000_000);
    }

    #[test]
    fn a_damaged_calendar_is_read_or_refused(
        which in 0..REAL.len(),
        damages in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..40, proptest::sample::select(&WORDS[..])), 1..6),
        start in any::<i64>(),
    ) {
        let mut text: Vec<char> = REAL[which].chars().collect();
        for (place, removed, word) in damages {
            let at = place.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, word.chars());
        }
        ask_everything(&text.iter().collect::<String>(), start, start.saturating_add(40_000_000_000_000));
    }

    #[test]
    fn the_answers_of_a_calendar_agree(seed in 1000_u64..1_000_000) {
        let made = Generator::new(seed).calendar();
        let calendar = Calendar::parse_in(&made.text, Zone::parse(made.zone).unwrap(), &Limits::default()).unwrap();
        let (from, to) = (Timestamp::from_secs(made.from), Timestamp::from_secs(made.to));
        let windows = calendar.windows(from, to, None).unwrap();
        prop_assert!(windows.is_sorted());
        for window in windows.iter().take(5) {
            prop_assert!(window.start < window.end && window.start < to && window.end > from);
            for time in [window.start, Timestamp(window.end.0 - 1)] {
                prop_assert_eq!(calendar.is_open(time, Some(&window.summary)), Ok(true));
            }
            if window.end < to {
                let is_open = windows.iter().any(|other| other.start <= window.end && window.end < other.end);
                prop_assert_eq!(calendar.is_open(window.end, None), Ok(is_open));
            }
            let next = windows.iter().find(|other| other.start >= window.end);
            if let Some(next) = next {
                prop_assert_eq!(calendar.next_opening(window.end, None), Ok(Some(next.clone())));
            }
        }
        // A part of the span has a part of the windows.
        let middle = Timestamp(from.0 / 2 + to.0 / 2);
        let later: Vec<_> = windows.iter().filter(|window| window.end > middle).cloned().collect();
        prop_assert_eq!(calendar.windows(middle, to, None).unwrap(), later);
    }

    #[test]
    fn a_feed_is_read_back(summary in "[^\u{0}-\u{1f}\u{7f}-\u{9f}]{0,200}", start in 0_i64..4_000_000_000, secs in 1_i64..1_000_000) {
        let (from, to) = (Timestamp::from_secs(start), Timestamp::from_secs(start + secs));
        let event = FeedEvent { uid: "u".into(), start: from, end: to, summary: summary.clone(), description: summary.clone() };
        let calendar = Calendar::parse(&write(&[event], &summary), &Limits::default()).unwrap();
        let windows = calendar.windows(from, to, None).unwrap();
        prop_assert_eq!(windows.len(), 1);
        prop_assert_eq!((windows[0].start, windows[0].end, windows[0].summary.as_str()), (from, to, summary.trim()));
    }
}
