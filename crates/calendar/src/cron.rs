//! Cron expressions: parsed, explained, and turned into the instants at which they fire.
//!
//! # What can be written
//!
//! Five fields, `minute hour day-of-month month day-of-week`, or six with the seconds before them. A field is a list of
//! numbers, names (`JAN`, `MON`), ranges (`9-17`; `FRI-MON` and `22-4` go over the end), each with a step (`*/15`, `5/15`
//! from 5 to the end, `0-30/10`). `@yearly @annually @monthly @weekly @daily @midnight @hourly` stand for the usual five.
//!
//! - Day of month: `L` the last day, `L-3` three days before it, `15W` the working day (Monday to Friday) nearest to the
//!   15th in that month, `LW` the last working day.
//! - Day of week: `FRIL` or `5L` the last Friday of the month, `MON#2` the second Monday.
//! - `H`, anywhere: a number hashed from the definition, the same for ever; `H(0-29)` one of these; `H/15` every 15 from a
//!   hashed start on; `H(0-29)/10`. As a day of the month it is at most 28.
//!
//! **Numbers of weekdays.** 0 and 7 are Sunday, 1 is Monday, unless the expression is Quartz's: six fields, one of the day
//! fields `?`. Then 1 is Sunday and 7 is Saturday. Quartz wants that `?` in every expression, so nothing can be read both
//! ways. In five fields `?` means `*`.
//!
//! **Two day fields.** Where both are restricted, a day fires that either of them means. A field that begins with `*` or is
//! `?` is not restricted; then both have to allow the day. (crontab(5) says the same; so `0 0 */2 * MON` means the Mondays
//! that have an odd date.)
//!
//! # When it fires
//!
//! An expression means local times of its zone: every matching time of every day of the calendar. Each fires exactly once:
//!
//! - a local time that clocks show twice (autumn) fires at the first of the two instants, and not at the second;
//! - a local time that clocks skip (spring) fires at the instant of the jump; those that fall into the same jump, or on the
//!   time that clocks show after it, fire together, once.
//!
//! This holds for `*/15 * * * *` as for `30 2 * * *`: in the hour that comes a second time nothing fires, so such a schedule
//! pauses for an hour in autumn. Who wants equal distances chooses the zone UTC.
//!
//! Main type: [`Cron`]. Then read `field` (what an item of a field may be) and `days` (which days of a month are meant).

mod bad;
mod days;
mod describe;
mod field;
mod hash;
mod parse;
mod part;
mod set;

pub use bad::{BadCron, Field};

use crate::zone::Zone;
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, TimeDelta, Timelike as _};
use parse::Fields;
use saltern_core::time::Timestamp;
use set::Set;
use std::fmt;

/// The calendar repeats itself after this many years: what does not fire within them never does.
const CALENDAR_CYCLE: i32 = 400;
/// More local times than any clock was ever put back by, in seconds.
const LONGEST_REPETITION: usize = 2 * 86_400;

/// A cron expression that fires at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    fields: Fields,
}

impl Cron {
    /// Reads an expression. `seed` is what `H` is hashed from: the same for a definition for ever, and another for each.
    pub fn parse(text: &str, seed: &str) -> Result<Cron, BadCron> {
        let cron = Cron { text: text.trim().to_owned(), fields: parse::parse(text, seed)? };
        // Any year of the cycle will do to begin with.
        if NaiveDate::from_ymd_opt(2000, 1, 1).and_then(|day| cron.day_from(day)).is_none() {
            let hint = "no month it names has such a day";
            return Err(parse::whole(1, "the expression never fires".to_owned(), hint));
        }
        Ok(cron)
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The first fire after an instant; nothing where the calendar ends, after the year 9999.
    pub fn next(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        self.fires(after, zone).next()
    }

    /// All fires after an instant, rising.
    pub fn fires(&self, after: Timestamp, zone: &Zone) -> Fires<'_> {
        Fires { cron: self, zone: *zone, local: zone.local(after), last: after }
    }

    /// The next `n` fires after an instant.
    pub fn preview(&self, after: Timestamp, zone: &Zone, n: usize) -> Vec<Timestamp> {
        self.fires(after, zone).take(n).collect()
    }

    /// What it means in plain words, `every Wednesday at 01:35`; the expression itself where that would be a long story.
    pub fn describe(&self) -> String {
        describe::describe(&self.fields).unwrap_or_else(|| self.text.clone())
    }

    /// The first local time it means that is not before the given one.
    fn local_from(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        let day = self.day_from(from.date())?;
        if day > from.date() {
            return self.first_time(day);
        }
        match self.time_from(from) {
            Some(local) => Some(local),
            None => self.first_time(self.day_from(from.date().succ_opt()?)?),
        }
    }

    /// The first day it means that is not before the given one.
    fn day_from(&self, from: NaiveDate) -> Option<NaiveDate> {
        let Fields { months, days, weekdays, .. } = &self.fields;
        for year in from.year()..=(from.year() + CALENDAR_CYCLE).min(9999) {
            let is_first_year = year == from.year();
            for month in months.from(if is_first_year { from.month() } else { 1 }) {
                let is_first_month = is_first_year && month == from.month();
                let allowed = days::of_month(days, weekdays, year, month);
                if let Some(day) = allowed.at_least(if is_first_month { from.day() } else { 1 }) {
                    return NaiveDate::from_ymd_opt(year, month, day);
                }
            }
        }
        None
    }

    /// The first time it means on a day that it means.
    fn first_time(&self, day: NaiveDate) -> Option<NaiveDateTime> {
        day.and_hms_opt(self.fields.hours.first(), self.fields.minutes.first(), self.fields.seconds.first())
    }

    /// The first time it means on the same day and not before the given one.
    fn time_from(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        let Fields { hours, minutes, seconds, .. } = &self.fields;
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let in_this_minute = || seconds.at_least(second).map(|second| (hour, minute, second));
        let in_this_hour = || minutes.at_least(minute + 1).map(|minute| (hour, minute, seconds.first()));
        let later = || hours.at_least(hour + 1).map(|hour| (hour, minutes.first(), seconds.first()));
        let has = |set: &Set, number| set.contains(number);
        let found = if has(hours, hour) {
            has(minutes, minute).then(in_this_minute).flatten().or_else(in_this_hour).or_else(later)
        } else {
            later()
        };
        let (hour, minute, second) = found?;
        from.date().and_hms_opt(hour, minute, second)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The fires of an expression in a zone; see [`Cron::fires`].
#[derive(Debug, Clone)]
pub struct Fires<'a> {
    cron: &'a Cron,
    zone: Zone,
    /// The local times up to this one are done with.
    local: NaiveDateTime,
    last: Timestamp,
}

impl Iterator for Fires<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        for _ in 0..LONGEST_REPETITION {
            self.local = self.cron.local_from(self.local.checked_add_signed(TimeDelta::seconds(1))?)?;
            let at = self.zone.first_instant(self.local);
            // Not so where clocks show a local time for the second time, or where several fall into one jump.
            if at > self.last {
                self.last = at;
                return Some(at);
            }
        }
        None
    }
}
