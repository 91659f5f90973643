//! Writes events as an iCal feed that other calendars can subscribe to.

use chrono::{DateTime, Utc};
use saltern_core::time::Timestamp;

/// A line has at most this many bytes before it is folded (RFC 5545, 3.1).
const LINE_BYTES: usize = 75;

/// An event of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEvent {
    /// Names the event for as long as it exists, also after it was changed.
    pub uid: String,
    /// When it begins, in whole seconds.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// Its one-line title.
    pub summary: String,
    /// More text, or nothing.
    pub description: String,
}

/// A calendar of that name with these events, all times in UTC. The same events give the same text: what would tell when it
/// was written (DTSTAMP) is the start of the event.
pub fn write(events: &[FeedEvent], name: &str) -> String {
    let mut feed = Feed::default();
    feed.line("BEGIN", "VCALENDAR");
    feed.line("VERSION", "2.0");
    feed.line("PRODID", "-//Saltern//Calendar//EN");
    feed.line("METHOD", "PUBLISH");
    // The name of RFC 7986, and the one that was used before it and still is.
    feed.text("NAME", name);
    feed.text("X-WR-CALNAME", name);
    for event in events {
        feed.line("BEGIN", "VEVENT");
        feed.text("UID", &event.uid);
        feed.line("DTSTAMP", &utc(event.start));
        feed.line("DTSTART", &utc(event.start));
        feed.line("DTEND", &utc(event.end));
        feed.text("SUMMARY", &event.summary);
        if !event.description.is_empty() {
            feed.text("DESCRIPTION", &event.description);
        }
        // A window does not make anybody busy.
        feed.line("TRANSP", "TRANSPARENT");
        feed.line("END", "VEVENT");
    }
    feed.line("END", "VCALENDAR");
    feed.0
}

#[derive(Default)]
struct Feed(String);

impl Feed {
    fn text(&mut self, name: &str, text: &str) {
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\\' | ';' | ',' => escaped.extend(['\\', c]),
                '\n' => escaped.push_str("\\n"),
                '\t' => escaped.push('\t'),
                c if c.is_control() => {}
                c => escaped.push(c),
            }
        }
        self.line(name, &escaped);
    }

    fn line(&mut self, name: &str, value: &str) {
        let mut used = 0;
        for c in name.chars().chain([':']).chain(value.chars()) {
            if used + c.len_utf8() > LINE_BYTES {
                self.0.push_str("\r\n ");
                used = 1;
            }
            self.0.push(c);
            used += c.len_utf8();
        }
        self.0.push_str("\r\n");
    }
}

fn utc(at: Timestamp) -> String {
    let time = DateTime::<Utc>::from_timestamp(at.secs(), 0).unwrap_or_default();
    time.format("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::super::{Calendar, Limits};
    use super::*;

    fn event(summary: &str) -> FeedEvent {
        let (start, end) = (Timestamp::from_secs(1_800_000_000), Timestamp::from_secs(1_800_007_200));
        FeedEvent { uid: "w1@saltern".into(), start, end, summary: summary.into(), description: "a\nb".into() }
    }

    #[test]
    fn a_feed_has_the_form_of_the_standard() {
        let expected = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Saltern//Calendar//EN\r\nMETHOD:PUBLISH\r\n\
                        NAME:Windows\\, all\r\nX-WR-CALNAME:Windows\\, all\r\nBEGIN:VEVENT\r\nUID:w1@saltern\r\n\
                        DTSTAMP:20270115T080000Z\r\nDTSTART:20270115T080000Z\r\nDTEND:20270115T100000Z\r\n\
                        SUMMARY:SAP\\; core\r\nDESCRIPTION:a\\nb\r\nTRANSP:TRANSPARENT\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        assert_eq!(write(&[event("SAP; core")], "Windows, all"), expected);
    }

    #[test]
    fn long_lines_are_folded_between_characters() {
        let long = "Wartungsfenster für Prüfstände ".repeat(9);
        let feed = write(&[event(&long)], "n");
        assert!(feed.split("\r\n").all(|line| line.len() <= LINE_BYTES), "{feed}");
        assert!(feed.contains("\r\n "));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let long = "a\\b; c, d\ne ".repeat(20);
        let feed = write(&[event(&long)], "n");
        let calendar = Calendar::parse(&feed, &Limits::default()).unwrap();
        let windows = calendar.windows(Timestamp::from_secs(0), Timestamp::from_secs(4_000_000_000), None).unwrap();
        assert_eq!(windows.len(), 1);
        assert_eq!((windows[0].start, windows[0].end), (event("").start, event("").end));
        assert_eq!((windows[0].summary.as_str(), windows[0].uid.as_str()), (long.trim(), "w1@saltern"));
    }
}
