//! Due times and durations as a person writes them.
//!
//! A local time that a change of clocks skips is read as if the clocks had not changed yet, so it falls as long after the
//! change as it would have: 02:30 becomes 03:30. One that comes twice is the first. RFC 5545 says the same of calendars.
//!
//! Not here: what "now" is, and which zone is the machine's own. Whoever asks says both.

use crate::time::Timestamp;
use chrono::{Datelike, FixedOffset, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;
use std::time::Duration;

/// Reads a due time: an instant with its offset, a date and time in `zone`, a time from `now` on such as `+90m`, or `now`.
pub fn due(text: &str, zone: Zone, now: Timestamp) -> Result<Timestamp, BadTime> {
    let text = text.trim();
    if text == "now" {
        return Ok(now);
    }
    if let Some(after) = text.strip_prefix('+') {
        return match duration(after) {
            Err(BadTime::Duration(_)) => Err(BadTime::Due(shown(text))),
            read => read.map(|after| now.plus(after)),
        };
    }
    let (date, zone) = match split_offset(text) {
        Some((date, offset)) => (date, Zone::Offset(offset)),
        None => (text, zone),
    };
    let date = date_and_time(date).ok_or_else(|| BadTime::Due(shown(text)))?;
    if !YEARS.contains(&date.year()) {
        return Err(BadTime::Range);
    }
    zone.instant(date).ok_or(BadTime::Range)
}

/// Reads a duration: `90`, `90s`, `5m`, `2h30m`, `1d`, `2w`.
pub fn duration(text: &str) -> Result<Duration, BadTime> {
    let text = text.trim();
    let wrong = || BadTime::Duration(shown(text));
    let number = |digits: &str| {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        digits.parse::<u64>().map_err(|_| BadTime::Range)
    };
    // A number alone is seconds; after a unit it would be a unit forgotten.
    let Some(_) = text.find(|c: char| !c.is_ascii_digit()) else { return within_bounds(number(text)?) };
    let (mut rest, mut seconds, mut units) = (text, 0_u64, UNITS.as_slice());
    while !rest.is_empty() {
        let (digits, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
        // From large to small and each once: `30m2h` is more likely a slip than meant.
        let unit = after.chars().next().ok_or_else(wrong)?;
        let at = units.iter().position(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let part = number(digits)?.checked_mul(units[at].1).ok_or(BadTime::Range)?;
        seconds = seconds.checked_add(part).ok_or(BadTime::Range)?;
        units = &units[at + 1..];
        rest = &after[unit.len_utf8()..];
    }
    within_bounds(seconds)
}

/// Where a local time is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// So far from UTC, all year
    Offset(FixedOffset),
    /// A zone of the IANA database, with its changes of clocks
    Named(Tz),
}

/// Why a time cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    /// Not a due time
    #[error(
        "{0:?} is not a time: write 2026-12-01T04:00:00+01:00, 2026-12-01 04:00 (in the zone given), +90m, +2h30m, +1d or now"
    )]
    Due(String),
    /// Not a duration
    #[error("{0:?} is not a duration: write 90, 90s, 5m, 2h30m, 1d or 2w")]
    Duration(String),
    /// Not a time zone
    #[error("{0:?} is not a time zone: write UTC, +01:00, or a name such as Europe/Berlin")]
    Zone(String),
    /// Too far away
    #[error("a time must lie between 1970 and 9999, and a duration be at most a century")]
    Range,
}

/// From large to small.
const UNITS: [(char, u64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];
/// A century: what is longer is a slip.
const LONGEST: u64 = 3_155_760_000;
const YEARS: std::ops::RangeInclusive<i32> = 1970..=9999;
/// The longest gap there was, when Samoa left out a day; and an hour.
const LONGEST_GAP_HOURS: i64 = 25;

impl Zone {
    /// UTC.
    pub const UTC: Self = Self::Named(Tz::UTC);

    /// Reads `UTC`, an offset, or a name of the IANA database.
    pub fn parse(name: &str) -> Result<Self, BadTime> {
        let name = name.trim();
        if name.eq_ignore_ascii_case("z") || name.eq_ignore_ascii_case("utc") {
            return Ok(Self::UTC);
        }
        match offset(name) {
            Some(offset) => Ok(Self::Offset(offset)),
            None => name.parse().map(Self::Named).map_err(|_| BadTime::Zone(shown(name))),
        }
    }

    /// When this date and time is there.
    fn instant(self, date: NaiveDateTime) -> Option<Timestamp> {
        let utc = date.checked_sub_offset(match self {
            Self::Offset(offset) => offset,
            Self::Named(zone) => offset_at(zone, date)?,
        })?;
        Some(Timestamp(utc.and_utc().timestamp_micros()))
    }
}

impl std::fmt::Display for Zone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Offset(offset) => offset.fmt(f),
            Self::Named(zone) => f.write_str(zone.name()),
        }
    }
}

/// The offset to read a local time with: in a gap that of the time before it, where there are two the earlier.
fn offset_at(zone: Tz, date: NaiveDateTime) -> Option<FixedOffset> {
    match zone.offset_from_local_datetime(&date) {
        LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => Some(offset.fix()),
        LocalResult::None => (1..=LONGEST_GAP_HOURS).find_map(|hours| {
            let before = date.checked_sub_signed(TimeDelta::hours(hours))?;
            zone.offset_from_local_datetime(&before).latest().map(|offset| offset.fix())
        }),
    }
}

fn within_bounds(seconds: u64) -> Result<Duration, BadTime> {
    if seconds > LONGEST { Err(BadTime::Range) } else { Ok(Duration::from_secs(seconds)) }
}

fn date_and_time(text: &str) -> Option<NaiveDateTime> {
    // A year is four digits: with fewer, day and year have changed places.
    if text.find('-') != Some(4) {
        return None;
    }
    let text = text.replacen(['T', 't'], " ", 1);
    let forms = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
    forms.iter().find_map(|form| NaiveDateTime::parse_from_str(&text, form).ok())
}

/// The date, and the offset at its end if there is one.
fn split_offset(text: &str) -> Option<(&str, FixedOffset)> {
    if let Some(date) = text.strip_suffix(['Z', 'z']) {
        return Some((date, FixedOffset::east_opt(0)?));
    }
    // The minus signs of the date come before the colon of its time.
    let time = text.find(':')?;
    let at = time + text.get(time..)?.find(['+', '-'])?;
    Some((text.get(..at)?.trim_end(), offset(text.get(at..)?)?))
}

/// `+01:00`, `-0530`
fn offset(text: &str) -> Option<FixedOffset> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = digits.split_once(':').or_else(|| digits.split_at_checked(2))?;
    let two = |text: &str| {
        let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_two.then(|| text.parse::<i32>().ok())?
    };
    let (hours, minutes) = (two(hours)?, two(minutes).filter(|minutes| *minutes < 60)?);
    FixedOffset::east_opt(sign * (hours * 3600 + minutes * 60))
}

/// What a person wrote, no longer than an error has room for.
fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_secs(1_790_000_000);

    fn berlin() -> Zone {
        Zone::parse("Europe/Berlin").unwrap()
    }

    fn read(text: &str, zone: Zone) -> Result<String, BadTime> {
        due(text, zone, NOW).map(Timestamp::rfc3339)
    }

    #[test]
    fn an_offset_in_the_text_wins_over_the_zone() {
        for text in
            ["2026-12-01T04:00:00+05:30", "2026-12-01 04:00 +0530", "2026-11-30T22:30:00Z", "2026-11-30T17:30-05:00"]
        {
            assert_eq!(read(text, berlin()).unwrap(), "2026-11-30T22:30:00Z", "{text}");
        }
    }

    #[test]
    fn a_time_without_offset_is_in_the_zone() {
        for text in ["2026-12-01 04:00", "2026-12-01T04:00:00", " 2026-12-01 04:00:00.0 "] {
            assert_eq!(read(text, berlin()).unwrap(), "2026-12-01T03:00:00Z", "{text}");
        }
        assert_eq!(read("2026-07-01 04:00", berlin()).unwrap(), "2026-07-01T02:00:00Z");
        assert_eq!(read("2026-07-01 04:00", Zone::UTC).unwrap(), "2026-07-01T04:00:00Z");
        assert_eq!(read("2026-07-01 04:00", Zone::parse("-03:30").unwrap()).unwrap(), "2026-07-01T07:30:00Z");
    }

    #[test]
    fn a_time_that_is_skipped_comes_as_long_after_the_change() {
        // 02:00 becomes 03:00.
        assert_eq!(read("2026-03-29 02:00", berlin()).unwrap(), "2026-03-29T01:00:00Z");
        assert_eq!(read("2026-03-29 02:30", berlin()).unwrap(), "2026-03-29T01:30:00Z");
        assert_eq!(read("2026-03-29 03:30", berlin()).unwrap(), "2026-03-29T01:30:00Z");
    }

    #[test]
    fn a_day_that_is_skipped_is_the_next() {
        let apia = Zone::parse("Pacific/Apia").unwrap();
        assert_eq!(read("2011-12-30 12:00", apia).unwrap(), read("2011-12-31 12:00", apia).unwrap());
    }

    #[test]
    fn a_time_that_comes_twice_is_the_first() {
        // 03:00 becomes 02:00: 02:30 is 00:30Z, and again 01:30Z.
        assert_eq!(read("2026-10-25 02:30", berlin()).unwrap(), "2026-10-25T00:30:00Z");
    }

    #[test]
    fn relative_times_count_from_now() {
        assert_eq!(due("now", Zone::UTC, NOW), Ok(NOW));
        for (text, seconds) in [("+90", 90), ("+90m", 5400), ("+2h30m", 9000), ("+1d", 86_400)] {
            assert_eq!(due(text, Zone::UTC, NOW), Ok(NOW.plus(Duration::from_secs(seconds))), "{text}");
        }
    }

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, seconds) in
            [("90", 90), ("90s", 90), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("1w2d3h4m5s", 788_645), ("0", 0)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_told_which_forms_there_are() {
        for text in ["", "m", "5x", "30m2h", "5m5m", "-5m", "+5m", "1.5h", "5 m", "2h30", "٣m"] {
            let error = duration(text).unwrap_err();
            assert_eq!(error, BadTime::Duration(text.into()));
            assert!(error.to_string().contains("2h30m"), "{error}");
        }
    }

    #[test]
    fn what_is_not_a_time_is_told_which_forms_there_are() {
        for text in [
            "",
            "tomorrow",
            "04:00",
            "2026-12-01",
            "2026-13-01 04:00",
            "2026-02-30 04:00",
            "01-12-2026 04:00",
            "2026-12-01 04:00+99:00",
            "+",
            "+x",
        ] {
            let error = read(text, Zone::UTC).unwrap_err();
            assert_eq!(error, BadTime::Due(text.into()));
            assert!(error.to_string().contains("+90m"), "{error}");
        }
    }

    #[test]
    fn what_is_too_far_away_is_refused() {
        for text in ["1969-12-31 23:59", "+99999999999999999999", "+99999999999999999w", "+101w99999999999999d"] {
            assert_eq!(read(text, Zone::UTC), Err(BadTime::Range), "{text}");
        }
        assert_eq!(duration("3155760001"), Err(BadTime::Range));
    }

    #[test]
    fn zones_are_utc_offsets_or_names() {
        assert_eq!(Zone::parse("utc"), Ok(Zone::UTC));
        assert_eq!(Zone::parse("+01:00").unwrap().to_string(), "+01:00");
        assert_eq!(berlin().to_string(), "Europe/Berlin");
        for bad in ["", "Europe/Atlantis", "local", "+1", "+01:60", "+0é0", "+01:", "é"] {
            assert_eq!(Zone::parse(bad), Err(BadTime::Zone(bad.into())), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,30}|[-+0-9TZ: ]{0,30}|[0-9wdhms+]{0,12}") {
            let _ = (due(&text, berlin(), NOW), duration(&text), Zone::parse(&text));
        }

        #[test]
        fn every_instant_reads_back(seconds in 0_i64..253_370_000_000) {
            let instant = Timestamp::from_secs(seconds);
            prop_assert_eq!(due(&instant.rfc3339(), berlin(), NOW), Ok(instant));
        }

        /// Between two local times an hour apart lie no more than two hours, and never less than none.
        #[test]
        fn local_times_keep_their_order(minutes in 0_i64..15_000_000) {
            let local = |minutes: i64| Timestamp::from_secs(minutes * 60).rfc3339().trim_end_matches('Z').to_owned();
            let read = |minutes| due(&local(minutes), berlin(), NOW).unwrap();
            let (earlier, later) = (read(minutes), read(minutes + 60));
            prop_assert!(later >= earlier && later.since(earlier) <= Duration::from_secs(7200));
        }
    }
}
