//! The values that say when: DATE, DATE-TIME, DURATION, PERIOD and UTC offsets (RFC 5545, 3.3).

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

use super::BadCalendar;
use super::lines::quoted;
use super::zones::Place;

/// No event may last longer; also what keeps sums of times in range.
const LONGEST_DAYS: i64 = 36_525;

/// A date, or a date with a time, as it is written: a zone is still to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// `20250131`.
    Date(NaiveDate),
    /// `20250131T220000`.
    Local(NaiveDateTime),
    /// `20250131T220000Z`.
    Utc(NaiveDateTime),
}

impl Written {
    /// Reads one of the three forms.
    pub(super) fn parse(line: usize, text: &str) -> Result<Self, BadCalendar> {
        parse_written(text.trim()).ok_or_else(|| {
            let problem = format!("{} is not a date or time", quoted(text));
            BadCalendar::at(line, problem, "write 20250131, 20250131T220000 or 20250131T220000Z")
        })
    }
}

/// How long an instance lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// So many seconds, whatever the clocks do meanwhile: what a DTEND means (RFC 5545, 3.8.5.3).
    Exact(i64),
    /// So many days by the local clock, then so many seconds: what a DURATION means.
    Nominal { days: i64, secs: i64 },
}

impl Length {
    /// The end of what begins at this local time.
    pub(super) fn end(self, place: &Place, start: NaiveDateTime) -> i64 {
        match self {
            Length::Exact(secs) => place.instant(start) + secs,
            Length::Nominal { days, secs } => place.instant(later(start, days * 86_400)) + secs,
        }
    }

    /// About how long that is; a change of the clocks comes on top.
    pub(super) fn secs(self) -> i64 {
        match self {
            Length::Exact(secs) => secs,
            Length::Nominal { days, secs } => days * 86_400 + secs,
        }
    }

    /// Refuses what is longer than any event is.
    pub(super) fn checked(self, line: usize) -> Result<Self, BadCalendar> {
        if self.secs() > LONGEST_DAYS * 86_400 {
            return Err(BadCalendar::at(line, "the event lasts longer than 100 years", "give it an earlier end"));
        }
        Ok(self)
    }

    /// Reads a DURATION: `P1W`, `P1DT12H`, `PT90M`.
    pub(super) fn parse(line: usize, text: &str) -> Result<Self, BadCalendar> {
        let bad = |why: &str| {
            BadCalendar::at(
                line,
                format!("{} is {why}", quoted(text)),
                "write PT2H, P1DT12H or P1W, never less than zero",
            )
        };
        let text = text.trim();
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let rest = rest.strip_prefix('P').ok_or_else(|| bad("no duration"))?;
        let (date, time) = rest.split_once('T').map_or((rest, None), |(date, time)| (date, Some(time)));
        let days = amounts(date, &[('W', 7), ('D', 1)]).ok_or_else(|| bad("no duration"))?;
        let secs = match time {
            Some(time) if !time.is_empty() => amounts(time, &[('H', 3600), ('M', 60), ('S', 1)]),
            Some(_) => None,
            None => Some(0),
        };
        let secs = secs.filter(|_| !rest.is_empty()).ok_or_else(|| bad("no duration"))?;
        if negative && (days, secs) != (0, 0) {
            return Err(bad("a negative duration"));
        }
        Length::Nominal { days, secs }.checked(line)
    }
}

/// Reads an offset from UTC in seconds: `+0100`, `-033000`.
pub(super) fn parse_offset(line: usize, text: &str) -> Result<i64, BadCalendar> {
    let parse = || {
        let (sign, digits) = match text.trim().split_at_checked(1)? {
            ("+", digits) => (1, digits),
            ("-", digits) => (-1, digits),
            _ => return None,
        };
        let number = |at: usize| digits.get(at..at + 2).and_then(decimal).filter(|&n| n < 60);
        let secs = match digits.len() {
            4 => 0,
            6 => number(4)?,
            _ => return None,
        };
        let hours = number(0).filter(|&hours| hours < 24)?;
        Some(sign * (hours * 3600 + number(2)? * 60 + secs))
    };
    let bad = || BadCalendar::at(line, format!("{} is not an offset from UTC", quoted(text)), "write +0100 or -0330");
    parse().ok_or_else(bad)
}

/// A local time moved by so many seconds; it stays where it is at the ends of the calendar.
pub(super) fn later(time: NaiveDateTime, secs: i64) -> NaiveDateTime {
    TimeDelta::try_seconds(secs).and_then(|by| time.checked_add_signed(by)).unwrap_or(time)
}

fn parse_written(text: &str) -> Option<Written> {
    let date = text.get(..8)?;
    let number = |at: usize, len: usize| text.get(at..at + len).and_then(decimal).and_then(|n| u32::try_from(n).ok());
    let year = i32::try_from(decimal(&date[..4])?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, number(4, 2)?, number(6, 2)?)?;
    if text.len() == 8 {
        return Some(Written::Date(date));
    }
    let (time, utc) = match text.get(8..)?.strip_prefix('T')?.as_bytes() {
        [_, _, _, _, _, _, b'Z'] => (number(9, 6)?, true),
        [_, _, _, _, _, _] => (number(9, 6)?, false),
        _ => return None,
    };
    // A leap second is allowed to be written, and is the second before it here.
    let second = if time % 100 == 60 { 59 } else { time % 100 };
    let time = date.and_time(NaiveTime::from_hms_opt(time / 10_000, time / 100 % 100, second)?);
    Some(if utc { Written::Utc(time) } else { Written::Local(time) })
}

/// The sum of amounts such as `1H30M`, each unit at most once and in this order.
fn amounts(text: &str, units: &[(char, i64)]) -> Option<i64> {
    let (mut rest, mut sum) = (text, 0_i64);
    for &(unit, worth) in units {
        if let Some((digits, after)) = rest.split_once(unit) {
            sum = sum.checked_add(decimal(digits)?.checked_mul(worth)?)?;
            rest = after;
        }
    }
    rest.is_empty().then_some(sum)
}

/// A number of up to nine digits and nothing else: `parse` alone would take a sign.
fn decimal(digits: &str) -> Option<i64> {
    let plain = (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_of_a_time_are_told_apart() {
        let day = NaiveDate::from_ymd_opt(2025, 1, 31).unwrap();
        let time = day.and_hms_opt(22, 0, 5).unwrap();
        assert_eq!(Written::parse(1, "20250131").unwrap(), Written::Date(day));
        assert_eq!(Written::parse(1, "20250131T220005").unwrap(), Written::Local(time));
        assert_eq!(Written::parse(1, "20250131T220005Z").unwrap(), Written::Utc(time));
        for text in
            ["", "2025-01-31", "20250230", "20250131T", "20250131T240000", "20250131T220000+01", "2025013é", "+0250131"]
        {
            assert!(Written::parse(1, text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_days_by_the_clock_and_seconds() {
        let parse = |text| Length::parse(1, text).ok();
        assert_eq!(parse("P2W"), Some(Length::Nominal { days: 14, secs: 0 }));
        assert_eq!(parse("P1DT2H3M4S"), Some(Length::Nominal { days: 1, secs: 7384 }));
        assert_eq!(parse("+PT90M"), Some(Length::Nominal { days: 0, secs: 5400 }));
        for text in ["", "P", "PT", "P1", "P1H", "PT1M1H", "-PT5M", "P99999D", "P1D2D", "PT-5M"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn offsets_have_a_sign_and_four_or_six_digits() {
        assert_eq!(parse_offset(1, "-0330"), Ok(-12_600));
        assert_eq!(parse_offset(1, "+013015"), Ok(5415));
        for text in ["", "0100", "+1", "+2500", "+0160"] {
            assert!(parse_offset(1, text).is_err(), "{text}");
        }
    }
}
