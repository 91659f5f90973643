//! From a recurrence rule to the local times at which its instances begin.
//!
//! Works period by period on a clock without a zone. A range in the far future costs no more than one near the start:
//! without COUNT a period is found by arithmetic, and COUNT is turned into the last instance once, when the calendar is
//! read. Rules that recur within a day are worked out day by day, so that parts that rule out a day, an hour or a minute
//! skip it as a whole. All that is done is counted by [`Work`]: calendars come from strangers.
//!
//! Not here: zones, EXDATE and moved instances (`series`).

use chrono::{Datelike as _, Days, NaiveDate, NaiveDateTime, NaiveTime, Timelike as _};

use super::rule::{Freq, Rule};
use super::values::{Written, later};
use super::work::Work;
use super::zones::Place;
use super::{BadCalendar, days};

const DAY: i64 = 86_400;
/// The last year anything is expanded to.
const LAST_YEAR: i32 = 9999;

/// A rule with the first instance it goes on from.
#[derive(Debug, Clone)]
pub(super) struct Recurrence {
    rule: Rule,
    start: NaiveDateTime,
    /// The last instance, where the rule counts them.
    last: Option<NaiveDateTime>,
    /// The instant after which there are none.
    until: Option<i64>,
}

impl Recurrence {
    /// Binds a rule to its first instance; refuses one that recurs too often for what an instance lasts.
    pub(super) fn new(
        mut rule: Rule,
        start: NaiveDateTime,
        is_date: bool,
        place: &Place,
        length_secs: i64,
        work: &mut Work,
    ) -> Result<Self, BadCalendar> {
        rule.anchor(start, is_date)?;
        let until = rule.until.map(|until| match until {
            Written::Utc(time) => time.and_utc().timestamp(),
            Written::Local(time) => place.instant(time),
            // Of an event with a time, too, the whole day is meant.
            Written::Date(date) => place.instant(later(date.and_time(NaiveTime::MIN), DAY - 1)),
        });
        let mut recurrence = Recurrence { rule, start, last: None, until };
        recurrence.count(work)?;
        recurrence.check_density(place, length_secs, work)?;
        Ok(recurrence)
    }

    /// Whether the rule ends before its first instance.
    pub(super) fn ends_before(&self, instant: i64) -> bool {
        self.until.is_some_and(|until| until < instant)
    }

    /// Gives the instances from `from` to `to`, both included, in order, until `found` says false.
    pub(super) fn starts(
        &self,
        place: &Place,
        from: NaiveDateTime,
        to: NaiveDateTime,
        work: &mut Work,
        found: &mut dyn FnMut(NaiveDateTime) -> bool,
    ) -> Result<(), BadCalendar> {
        let to = self.last.map_or(to, |last| last.min(to));
        // The clocks may be put back between the two, hence a day more; the instant decides.
        let to = self.until.map_or(to, |until| later(place.local(until), DAY).min(to));
        let until = self.until.unwrap_or(i64::MAX);
        let line = self.rule.line;
        self.each(from, to, work, &mut |time, work| {
            if place.instant(time) > until {
                return Ok(true);
            }
            work.instance(line)?;
            Ok(found(time))
        })
    }

    /// Turns COUNT into the last instance.
    fn count(&mut self, work: &mut Work) -> Result<(), BadCalendar> {
        let Some(count) = self.rule.count else { return Ok(()) };
        let mut part = work.fresh();
        let (mut left, mut last) = (count, None);
        let end =
            NaiveDate::from_ymd_opt(LAST_YEAR, 12, 31).map_or(NaiveDateTime::MAX, |day| day.and_time(NaiveTime::MIN));
        let line = self.rule.line;
        self.each(self.start, end, &mut part, &mut |time, work| {
            work.instance(line)?;
            last = Some(time);
            left -= 1;
            Ok(left > 0)
        })?;
        work.join(&part);
        // Nothing matches: then the last instance was before the first.
        self.last = Some(last.unwrap_or(later(self.start, -1)));
        Ok(())
    }

    /// Refuses a rule with too many instances in a year, or open at the same time.
    fn check_density(&self, place: &Place, length_secs: i64, work: &mut Work) -> Result<(), BadCalendar> {
        let times = self.rule.hours.len() * self.rule.minutes.len() * self.rule.seconds.len();
        // A rule with one time a day cannot have many, unless its instances last for centuries.
        if self.rule.freq <= Freq::Daily && times <= 1 {
            return Ok(());
        }
        let mut part = work.fresh();
        let to = later(self.start, length_secs.max(366 * DAY));
        self.starts(place, self.start, to, &mut part, &mut |_| true)?;
        work.join(&part);
        Ok(())
    }

    fn each(
        &self,
        from: NaiveDateTime,
        to: NaiveDateTime,
        work: &mut Work,
        found: &mut Found<'_>,
    ) -> Result<(), BadCalendar> {
        let from = from.max(self.start);
        if from > to {
            return Ok(());
        }
        let mut out = Emit { rule: &self.rule, from, to, found };
        let mut matching = Vec::new();
        let mut period = Period::containing(&self.rule, self.start, from);
        loop {
            work.step(self.rule.line)?;
            let Some((first, past)) = period.days() else { return Ok(()) };
            if first.and_time(NaiveTime::MIN) > to || first.year() > LAST_YEAR {
                return Ok(());
            }
            matching.clear();
            let mut day = first;
            while day < past {
                if !self.rule.months.is_empty() && !self.rule.months.contains(&day.month()) {
                    work.step(self.rule.line)?;
                    day = first_of_next_month(day).unwrap_or(past);
                    continue;
                }
                work.step(self.rule.line)?;
                if days::admits(&self.rule, day) {
                    matching.push(day);
                }
                day = day.succ_opt().unwrap_or(past);
            }
            let go_on = if self.rule.freq <= Freq::Daily {
                out.days(&matching, work)?
            } else {
                matching.first().map_or(Ok(true), |day| out.within_day(*day, self.start, work))?
            };
            if !go_on {
                return Ok(());
            }
            period.advance();
        }
    }
}

/// Takes an instance; says whether to go on.
type Found<'a> = dyn FnMut(NaiveDateTime, &mut Work) -> Result<bool, BadCalendar> + 'a;

/// A year, month, week or day of a rule; what recurs within a day goes by days.
struct Period {
    freq: Freq,
    /// The first day of the period, or nothing beyond the end of the calendar.
    first: Option<NaiveDate>,
    interval: i64,
}

impl Period {
    /// The last period of the rule that begins at or before `from`.
    fn containing(rule: &Rule, start: NaiveDateTime, from: NaiveDateTime) -> Self {
        let (start, from) = (start.date(), from.date());
        let interval = rule.interval;
        let whole = |distance: i64| distance.div_euclid(interval) * interval;
        let days = (from - start).num_days();
        let first = match rule.freq {
            Freq::Yearly => {
                let years = whole(i64::from(from.year() - start.year()));
                i32::try_from(i64::from(start.year()) + years).ok().and_then(|year| NaiveDate::from_ymd_opt(year, 1, 1))
            }
            Freq::Monthly => month(month_number(start) + whole(month_number(from) - month_number(start))),
            Freq::Weekly => {
                let week = start.week(rule.week_start).checked_first_day();
                let weeks = week.map(|week| whole((from - week).num_days().div_euclid(7)));
                week.zip(weeks).and_then(|(week, weeks)| add_days(week, weeks * 7))
            }
            Freq::Daily => add_days(start, whole(days)),
            Freq::Hourly | Freq::Minutely | Freq::Secondly => Some(from),
        };
        let interval = if rule.freq > Freq::Daily { 1 } else { interval };
        Period { freq: rule.freq, first, interval }
    }

    /// Its first day and the one after its last.
    fn days(&self) -> Option<(NaiveDate, NaiveDate)> {
        let first = self.first?;
        let past = match self.freq {
            Freq::Yearly => NaiveDate::from_ymd_opt(first.year() + 1, 1, 1),
            Freq::Monthly => first_of_next_month(first),
            Freq::Weekly => add_days(first, 7),
            Freq::Daily | Freq::Hourly | Freq::Minutely | Freq::Secondly => add_days(first, 1),
        };
        Some((first, past?))
    }

    fn advance(&mut self) {
        self.first = self.first.and_then(|first| match self.freq {
            Freq::Yearly => i32::try_from(i64::from(first.year()) + self.interval)
                .ok()
                .and_then(|year| NaiveDate::from_ymd_opt(year, 1, 1)),
            Freq::Monthly => month(month_number(first) + self.interval),
            Freq::Weekly => add_days(first, self.interval * 7),
            Freq::Daily | Freq::Hourly | Freq::Minutely | Freq::Secondly => add_days(first, self.interval),
        });
    }
}

/// Makes times of days, picks positions, and hands over what lies in the range.
struct Emit<'a, 'f> {
    rule: &'a Rule,
    from: NaiveDateTime,
    to: NaiveDateTime,
    found: &'a mut Found<'f>,
}

impl Emit<'_, '_> {
    /// The times of a period's days.
    fn days(&mut self, days: &[NaiveDate], work: &mut Work) -> Result<bool, BadCalendar> {
        let rule = self.rule;
        let (hours, minutes, seconds) = (&rule.hours, &rule.minutes, &rule.seconds);
        let per_day = hours.len() * minutes.len() * seconds.len();
        let time = |at: usize| {
            let within = at % per_day;
            let (minute, second) = (within / seconds.len() % minutes.len(), within % seconds.len());
            let secs = hours[within / seconds.len() / minutes.len()] * 3600 + minutes[minute] * 60 + seconds[second];
            // The sixtieth second of a minute is a leap second, which no clock here shows.
            (seconds[second] < 60).then(|| time_of(days[at / per_day], secs)).flatten()
        };
        self.set(days.len() * per_day, time, work)
    }

    /// The times of a day for a rule that recurs within it.
    fn within_day(&mut self, day: NaiveDate, start: NaiveDateTime, work: &mut Work) -> Result<bool, BadCalendar> {
        let rule = self.rule;
        let unit: i64 = match rule.freq {
            Freq::Hourly => 3600,
            Freq::Minutely => 60,
            _ => 1,
        };
        let per_day = DAY / unit;
        let since = (day - start.date()).num_days() * per_day - i64::from(start.num_seconds_from_midnight()) / unit;
        let admits = |list: &[u32], value: i64| list.is_empty() || list.iter().any(|item| i64::from(*item) == value);
        // The next unit from `least` on that is a multiple of the interval away from the start.
        let aligned = |least: i64| least + (-(since + least)).rem_euclid(rule.interval);
        let mut at = aligned(0);
        while at < per_day {
            work.step(rule.line)?;
            let secs = at * unit;
            if !admits(&rule.hours, secs / 3600) {
                at = aligned((secs / 3600 + 1) * 3600 / unit);
                continue;
            }
            if unit <= 60 && !admits(&rule.minutes, secs / 60 % 60) {
                at = aligned((secs / 60 + 1) * 60 / unit);
                continue;
            }
            let go_on = match rule.freq {
                Freq::Hourly => {
                    let (minutes, seconds) = (&rule.minutes, &rule.seconds);
                    let time = |at: usize| {
                        let (minute, second) = (minutes[at / seconds.len()], seconds[at % seconds.len()]);
                        (second < 60).then(|| time_of(day, u32::try_from(secs).ok()? + minute * 60 + second)).flatten()
                    };
                    self.set(minutes.len() * seconds.len(), time, work)?
                }
                Freq::Minutely => {
                    let seconds = &rule.seconds;
                    let time = |at: usize| {
                        (seconds[at] < 60).then(|| time_of(day, u32::try_from(secs).ok()? + seconds[at])).flatten()
                    };
                    self.set(seconds.len(), time, work)?
                }
                _ if admits(&rule.seconds, secs % 60) => {
                    self.set(1, |_| time_of(day, u32::try_from(secs).ok()?), work)?
                }
                _ => true,
            };
            if !go_on {
                return Ok(false);
            }
            at = aligned(at + 1);
        }
        Ok(true)
    }

    /// Hands over a period's set, or what BYSETPOS picks from it.
    fn set(
        &mut self,
        len: usize,
        time: impl Fn(usize) -> Option<NaiveDateTime>,
        work: &mut Work,
    ) -> Result<bool, BadCalendar> {
        let positions = &self.rule.positions;
        if positions.is_empty() {
            for at in 0..len {
                if !self.hand_over(time(at), work)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let index = |position: i32| {
            let size = usize::try_from(position.unsigned_abs()).ok()?;
            if position > 0 { Some(size - 1).filter(|at| *at < len) } else { len.checked_sub(size) }
        };
        let mut picked: Vec<usize> = positions.iter().filter_map(|position| index(*position)).collect();
        picked.sort_unstable();
        picked.dedup();
        for at in picked {
            if !self.hand_over(time(at), work)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn hand_over(&mut self, time: Option<NaiveDateTime>, work: &mut Work) -> Result<bool, BadCalendar> {
        work.step(self.rule.line)?;
        match time {
            Some(time) if time > self.to => Ok(false),
            Some(time) if time >= self.from => (self.found)(time, work),
            _ => Ok(true),
        }
    }
}

fn time_of(day: NaiveDate, secs: u32) -> Option<NaiveDateTime> {
    NaiveTime::from_num_seconds_from_midnight_opt(secs, 0).map(|time| day.and_time(time))
}

fn month_number(day: NaiveDate) -> i64 {
    i64::from(day.year()) * 12 + i64::from(day.month0())
}

/// The first day of a month, numbered as [`month_number`] does.
fn month(number: i64) -> Option<NaiveDate> {
    let year = i32::try_from(number.div_euclid(12)).ok()?;
    NaiveDate::from_ymd_opt(year, u32::try_from(number.rem_euclid(12)).ok()? + 1, 1)
}

fn first_of_next_month(day: NaiveDate) -> Option<NaiveDate> {
    month(month_number(day) + 1)
}

fn add_days(day: NaiveDate, days: i64) -> Option<NaiveDate> {
    let by = Days::new(days.unsigned_abs());
    if days < 0 { day.checked_sub_days(by) } else { day.checked_add_days(by) }
}

#[cfg(test)]
mod tests;
