//! Windows in words, in the zone of their calendar.

use super::Windows;
use super::timetable::Span;
use saltern_calendar::zone::Zone;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use std::time::Duration;

/// As long as this, a weekday says which day is meant.
const A_WEEK: Duration = Duration::from_secs(6 * 86_400);

impl Windows {
    /// When a minion's window opens next, `Sun 2026-11-22 02:00–04:00 CET`.
    pub(crate) fn next_in_words(&self, minion: &MinionId, at: Timestamp) -> String {
        let snapshot = self.snapshot();
        match snapshot.window_from(minion, at) {
            Some((span, hours)) => span_in_words(span, hours.table.zone),
            None => match snapshot.opening_far(minion, at) {
                super::Opening::Closed(Some(next)) => instant(next, Zone::UTC),
                super::Opening::Closed(None) => format!("none{}", self.problem(minion)),
                super::Opening::Open => "now".into(),
            },
        }
    }

    /// What a run on this minion waits for whose window is closed; `due`: what it was moved to.
    pub(in crate::engine) fn why_waiting(&self, minion: &MinionId, due: Option<Timestamp>, now: Timestamp) -> String {
        if self.is_blacked_out(minion) {
            return "it waits until the minion may be changed: it is in `blackout`".into();
        }
        let snapshot = self.snapshot();
        let from = due.filter(|due| *due > now).unwrap_or(now);
        if let Some((span, hours)) = snapshot.window_from(minion, from) {
            let zone = hours.table.zone;
            return format!("it waits for window {} (schedule {})", soon(span.start, zone, now), hours.name);
        }
        match snapshot.opening_far(minion, from) {
            super::Opening::Open => "its window is open, and it is about to be looked at".into(),
            super::Opening::Closed(Some(next)) => {
                format!("it waits for the end of a blackout {}", soon(next, Zone::UTC, now))
            }
            super::Opening::Closed(None) => {
                format!("it waits for a window of this minion, and there is none{}", self.problem(minion))
            }
        }
    }

    /// Why a run has failed that found the window closed.
    pub(in crate::engine) fn why_outside(&self, minion: &MinionId, now: Timestamp) -> String {
        format!(
            "its maintenance window was closed when it could have started; next: {}",
            self.next_in_words(minion, now)
        )
    }

    /// Why a minion has no window, if that is known.
    fn problem(&self, minion: &MinionId) -> String {
        let snapshot = self.snapshot();
        let rules = snapshot.rules(minion);
        let mut hours = rules.into_iter().flat_map(|rules| rules.windows.iter().chain(&rules.blackouts));
        let found = hours.find_map(|hours| Some(format!(" (schedule {}: {})", hours.name, hours.table.problem()?)));
        found.unwrap_or_default()
    }
}

/// `Sun 2026-11-22 02:00–04:00 CET`.
pub(crate) fn span_in_words(span: Span, zone: Zone) -> String {
    let (start, end) = (zone.local(span.start), zone.local(span.end));
    let end = if start.date() == end.date() { end.format("%H:%M") } else { end.format("%a %Y-%m-%d %H:%M") };
    format!("{}–{end} {}", start.format("%a %Y-%m-%d %H:%M"), zone.abbreviation(span.start))
}

fn instant(at: Timestamp, zone: Zone) -> String {
    format!("{} {}", zone.local(at).format("%a %Y-%m-%d %H:%M"), zone.abbreviation(at))
}

/// `Sunday 02:00 CET`, with the date if that is far away.
fn soon(at: Timestamp, zone: Zone, now: Timestamp) -> String {
    let form = if at.since(now) <= A_WEEK { "%A %H:%M" } else { "%A %Y-%m-%d %H:%M" };
    format!("{} {}", zone.local(at).format(form), zone.abbreviation(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_told_in_the_zone_of_their_calendar() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let prague = Zone::parse("Europe/Prague").unwrap();
        let span = Span { start: at("2026-11-22T01:00:00Z"), end: at("2026-11-22T03:00:00Z") };
        assert_eq!(span_in_words(span, prague), "Sun 2026-11-22 02:00–04:00 CET");
        let long = Span { end: at("2026-11-23T03:00:00Z"), ..span };
        assert_eq!(span_in_words(long, prague), "Sun 2026-11-22 02:00–Mon 2026-11-23 04:00 CET");
        assert_eq!(soon(span.start, prague, at("2026-11-20T00:00:00Z")), "Sunday 02:00 CET");
        assert_eq!(soon(span.start, prague, at("2026-11-01T00:00:00Z")), "Sunday 2026-11-22 02:00 CET");
    }
}
