//! The times that a calendar names, expanded once for a year and a month ahead, so that asking for one is a binary search.

use saltern_calendar::ical::{self, Limits};
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a calendar may cost.
pub(crate) const LIMITS: Limits = Limits { bytes: 5_000_000, events: 10_000, instances: 100_000 };

/// Answers about instants beyond the horizon that are kept.
const REMEMBERED: usize = 1_000;
const DAY: Duration = Duration::from_secs(86_400);
/// How far ahead times are expanded: thirteen months.
const AHEAD: Duration = Duration::from_secs(396 * 86_400);
/// How far back, so that what has just ended is known.
const BACK: Duration = Duration::from_secs(7 * 86_400);

/// From its first moment until just before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

/// The times of the events of a calendar, or of those with one summary.
pub(crate) struct Timetable {
    pub(crate) zone: Zone,
    made: Timestamp,
    summary: Option<String>,
    times: Result<Times, String>,
    far: Mutex<Far>,
}

/// What was found out beyond the horizon: thousands of minions that share a schedule ask for the same instant.
#[derive(Default)]
struct Far {
    spans: HashMap<Timestamp, Option<Span>>,
    starts: HashMap<Timestamp, Option<Timestamp>>,
}

struct Times {
    calendar: Arc<ical::Calendar>,
    /// Rising, apart from each other
    spans: Vec<Span>,
    from: Timestamp,
    to: Timestamp,
    /// The first that begins after all of them
    beyond: Option<Timestamp>,
}

impl Timetable {
    /// Expands a calendar.
    pub(super) fn new(
        calendar: Result<Arc<ical::Calendar>, String>,
        zone: Zone,
        summary: Option<String>,
        now: Timestamp,
    ) -> Self {
        let times = calendar.and_then(|calendar| Times::new(calendar, summary.as_deref(), now));
        Self { zone, made: now, summary, times, far: Mutex::default() }
    }

    /// One that is never open, for this reason.
    pub(super) fn without_calendar(why: &str, now: Timestamp) -> Self {
        Self::new(Err(why.to_owned()), Zone::UTC, None, now)
    }

    /// Whether it is worth keeping.
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.made) < DAY && self.made <= now
    }

    /// Why there are no times in it.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.times.as_ref().err().map(String::as_str)
    }

    /// The time that an instant is in.
    pub(crate) fn span_at(&self, at: Timestamp) -> Option<Span> {
        let times = self.times.as_ref().ok()?;
        let holds = |span: &Span| span.start <= at && at < span.end;
        if (times.from..times.to).contains(&at) {
            let index = times.spans.partition_point(|span| span.end <= at);
            return times.spans.get(index).copied().filter(holds);
        }
        let mut far = self.far();
        *remembered(&mut far.spans, at, || {
            let windows = times.calendar.windows(at, at.plus(Duration::from_secs(1)), self.summary.as_deref());
            merged(windows.ok()?).into_iter().find(holds)
        })
    }

    /// When the next time begins that is later than an instant.
    pub(crate) fn next_start(&self, after: Timestamp) -> Option<Timestamp> {
        let times = self.times.as_ref().ok()?;
        if after < times.to {
            let index = times.spans.partition_point(|span| span.start <= after);
            return times.spans.get(index).map(|span| span.start).or(times.beyond);
        }
        let mut far = self.far();
        *remembered(&mut far.starts, after, || {
            let next = times.calendar.next_opening(Timestamp(after.0.saturating_add(1)), self.summary.as_deref());
            next.ok().flatten().map(|window| window.start)
        })
    }

    fn far(&self) -> MutexGuard<'_, Far> {
        self.far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there was a time between these instants, both included.
    pub(super) fn was_open(&self, from: Timestamp, to: Timestamp) -> bool {
        self.span_at(from).is_some() || self.next_start(from).is_some_and(|start| start <= to)
    }

    /// The end of what was expanded: what is asked beyond costs an expansion.
    pub(super) fn horizon(&self) -> Option<Timestamp> {
        self.times.as_ref().ok().map(|times| times.to)
    }

    /// The events themselves, of a part of time.
    pub(crate) fn windows(&self, from: Timestamp, to: Timestamp) -> Vec<ical::Window> {
        let Ok(times) = &self.times else { return Vec::new() };
        times.calendar.windows(from, to, self.summary.as_deref()).unwrap_or_default()
    }
}

impl Times {
    fn new(calendar: Arc<ical::Calendar>, summary: Option<&str>, now: Timestamp) -> Result<Self, String> {
        let (from, to) = (now.minus(BACK), now.plus(AHEAD));
        let told = |error: ical::BadCalendar| error.to_string();
        let spans = merged(calendar.windows(from, to, summary).map_err(told)?);
        let beyond = calendar.next_opening(to, summary).map_err(told)?.map(|window| window.start);
        Ok(Self { calendar, spans, from, to, beyond })
    }
}

/// What was found out before, else what is found out now. Few are kept: they are asked for in a row.
fn remembered<T>(known: &mut HashMap<Timestamp, T>, at: Timestamp, find: impl FnOnce() -> T) -> &T {
    if known.len() >= REMEMBERED && !known.contains_key(&at) {
        known.clear();
    }
    known.entry(at).or_insert_with(find)
}

/// What overlaps or touches becomes one.
fn merged(windows: Vec<ical::Window>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::with_capacity(windows.len());
    for ical::Window { start, end, .. } in windows {
        match spans.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => spans.push(Span { start, end }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAILY: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n\
        DTSTART:20260101T020000Z\r\nDTEND:20260101T040000Z\r\nRRULE:FREQ=DAILY\r\nSUMMARY:a\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn daily(now: &str) -> Timetable {
        let calendar = ical::Calendar::parse(DAILY, &LIMITS).map(Arc::new).map_err(|error| error.to_string());
        Timetable::new(calendar, Zone::UTC, None, at(now))
    }

    #[test]
    fn it_is_open_from_the_first_moment_until_just_before_the_end() {
        let table = daily("2026-06-01T00:00:00Z");
        let is_open = |text: &str| table.span_at(at(text)).is_some();
        assert!(!is_open("2026-06-02T01:59:59.999999Z"));
        assert!(is_open("2026-06-02T02:00:00Z"));
        assert!(is_open("2026-06-02T03:59:59.999999Z"));
        assert!(!is_open("2026-06-02T04:00:00Z"));
        assert_eq!(table.next_start(at("2026-06-02T02:00:00Z")), Some(at("2026-06-03T02:00:00Z")));
    }

    #[test]
    fn what_is_beyond_the_horizon_is_still_right() {
        let table = daily("2026-06-01T00:00:00Z");
        assert!(table.span_at(at("2031-06-02T03:00:00Z")).is_some());
        assert!(table.span_at(at("2031-06-02T05:00:00Z")).is_none());
        assert_eq!(table.next_start(at("2031-06-02T05:00:00Z")), Some(at("2031-06-03T02:00:00Z")));
    }

    #[test]
    fn it_is_made_anew_after_a_day_and_when_the_clock_was_put_back() {
        let table = daily("2026-06-01T00:00:00Z");
        assert!(table.is_fresh(at("2026-06-01T23:00:00Z")));
        assert!(!table.is_fresh(at("2026-06-02T00:00:01Z")));
        assert!(!table.is_fresh(at("2026-05-31T00:00:00Z")));
    }
}
