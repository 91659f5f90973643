//! A recurrence rule as it is written: its parts, their ranges, and which of them go together (RFC 5545, 3.3.10).

use chrono::{Datelike as _, NaiveDateTime, Timelike as _, Weekday};

use super::BadCalendar;
use super::lines::{Line, quoted};
use super::values::Written;

/// The length of a period, the shortest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Freq {
    Yearly,
    Monthly,
    Weekly,
    Daily,
    Hourly,
    Minutely,
    Secondly,
}

/// A recurrence rule. A list that is not given is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// Where it is written, for errors.
    pub(super) line: usize,
    pub(super) freq: Freq,
    /// At least 1.
    pub(super) interval: i64,
    pub(super) count: Option<u32>,
    pub(super) until: Option<Written>,
    pub(super) week_start: Weekday,
    pub(super) months: Vec<u32>,
    pub(super) weeks: Vec<i32>,
    pub(super) year_days: Vec<i32>,
    pub(super) month_days: Vec<i32>,
    /// Weekdays with the number before them, 0 for none.
    pub(super) days: Vec<(i32, Weekday)>,
    pub(super) hours: Vec<u32>,
    pub(super) minutes: Vec<u32>,
    pub(super) seconds: Vec<u32>,
    pub(super) positions: Vec<i32>,
}

impl Rule {
    /// Reads a rule and refuses what RFC 5545 does.
    pub(super) fn parse(line: &Line) -> Result<Self, BadCalendar> {
        let mut freq = None;
        let mut rule = Rule::empty(line.number);
        for part in line.value.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let reader = Part { line, name, value };
            match name.to_ascii_uppercase().as_str() {
                "FREQ" => freq = Some(reader.freq()?),
                "INTERVAL" => rule.interval = reader.number(1, 1_000_000)?.into(),
                "COUNT" => rule.count = Some(reader.number(1, u32::MAX)?),
                "UNTIL" => rule.until = Some(Written::parse(line.number, value)?),
                "WKST" => {
                    rule.week_start = weekday(value).ok_or_else(|| reader.bad("write MO, TU, WE, TH, FR, SA or SU"))?
                }
                "BYMONTH" => rule.months = reader.plain(1, 12)?,
                "BYWEEKNO" => rule.weeks = reader.signed(53)?,
                "BYYEARDAY" => rule.year_days = reader.signed(366)?,
                "BYMONTHDAY" => rule.month_days = reader.signed(31)?,
                "BYDAY" => rule.days = reader.days()?,
                "BYHOUR" => rule.hours = reader.plain(0, 23)?,
                "BYMINUTE" => rule.minutes = reader.plain(0, 59)?,
                "BYSECOND" => rule.seconds = reader.plain(0, 60)?,
                "BYSETPOS" => rule.positions = reader.signed(366)?,
                // RFC 7529; anything but these two would be another calendar.
                "RSCALE" if value.eq_ignore_ascii_case("GREGORIAN") => {}
                "SKIP" if value.eq_ignore_ascii_case("OMIT") => {}
                _ => return Err(reader.bad("leave it out: it is not a part of a recurrence rule that is known here")),
            }
        }
        rule.freq =
            freq.ok_or_else(|| line.bad("the recurrence rule has no FREQ", "begin it with FREQ=WEEKLY or the like"))?;
        rule.check(line)?;
        Ok(rule)
    }

    /// Fills in what the rule leaves to the first instance: the day of the month, the hour and so on.
    pub(super) fn anchor(&mut self, start: NaiveDateTime, is_date: bool) -> Result<(), BadCalendar> {
        if is_date {
            if self.freq > Freq::Daily {
                let hint = "an all-day event recurs DAILY or more rarely";
                return Err(BadCalendar::at(self.line, "an all-day event cannot recur within a day", hint));
            }
            // By 3.3.10 these are to be ignored here.
            for list in [&mut self.hours, &mut self.minutes, &mut self.seconds] {
                list.clear();
            }
        }
        let no_day = self.days.is_empty() && self.month_days.is_empty() && self.year_days.is_empty();
        match self.freq {
            Freq::Yearly if no_day && !self.weeks.is_empty() => self.days.push((0, start.weekday())),
            Freq::Yearly if no_day => {
                if self.months.is_empty() {
                    self.months.push(start.month());
                }
                self.month_days.push(start.day().cast_signed());
            }
            Freq::Monthly if no_day => self.month_days.push(start.day().cast_signed()),
            Freq::Weekly if no_day => self.days.push((0, start.weekday())),
            _ => {}
        }
        let fill = |list: &mut Vec<u32>, shortest: Freq, value: u32| {
            if list.is_empty() && self.freq <= shortest {
                list.push(value);
            }
        };
        fill(&mut self.hours, Freq::Daily, start.hour());
        fill(&mut self.minutes, Freq::Hourly, start.minute());
        fill(&mut self.seconds, Freq::Minutely, start.second());
        Ok(())
    }

    fn empty(line: usize) -> Self {
        Rule {
            line,
            freq: Freq::Yearly,
            interval: 1,
            count: None,
            until: None,
            week_start: Weekday::Mon,
            months: Vec::new(),
            weeks: Vec::new(),
            year_days: Vec::new(),
            month_days: Vec::new(),
            days: Vec::new(),
            hours: Vec::new(),
            minutes: Vec::new(),
            seconds: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// What must not stand beside each other.
    fn check(&self, line: &Line) -> Result<(), BadCalendar> {
        use Freq::{Daily, Monthly, Weekly, Yearly};
        let numbered = self.days.iter().any(|(number, _)| *number != 0);
        let has_list = [!self.months.is_empty(), !self.weeks.is_empty(), !self.year_days.is_empty()];
        let has_list = has_list.contains(&true)
            || !(self.month_days.is_empty() && self.days.is_empty())
            || !(self.hours.is_empty() && self.minutes.is_empty() && self.seconds.is_empty());
        let refused = [
            (self.count.is_some() && self.until.is_some(), "COUNT and UNTIL exclude each other", "keep one of them"),
            (
                !self.weeks.is_empty() && self.freq != Yearly,
                "BYWEEKNO needs FREQ=YEARLY",
                "leave it out or change FREQ",
            ),
            (
                !self.year_days.is_empty() && matches!(self.freq, Daily | Weekly | Monthly),
                "BYYEARDAY does not go with DAILY, WEEKLY or MONTHLY",
                "use FREQ=YEARLY",
            ),
            (
                !self.month_days.is_empty() && self.freq == Weekly,
                "BYMONTHDAY does not go with WEEKLY",
                "use FREQ=MONTHLY, or FREQ=DAILY with BYDAY",
            ),
            (
                numbered && !matches!(self.freq, Monthly | Yearly),
                "a numbered BYDAY needs FREQ=MONTHLY or YEARLY",
                "write BYDAY=TU instead of BYDAY=2TU, or change FREQ",
            ),
            (numbered && !self.weeks.is_empty(), "a numbered BYDAY does not go with BYWEEKNO", "leave the number out"),
            (!self.positions.is_empty() && !has_list, "BYSETPOS needs another BY part", "add BYDAY or the like"),
        ];
        match refused.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            Some((_, problem, hint)) => Err(line.bad(problem, hint)),
            None => Ok(()),
        }
    }
}

/// One `NAME=value` of a rule.
struct Part<'a> {
    line: &'a Line,
    name: &'a str,
    value: &'a str,
}

impl Part<'_> {
    fn bad(&self, hint: impl Into<String>) -> BadCalendar {
        self.line.bad(format!("{} in the recurrence rule", quoted(&format!("{}={}", self.name, self.value))), hint)
    }

    fn freq(&self) -> Result<Freq, BadCalendar> {
        Ok(match self.value.to_ascii_uppercase().as_str() {
            "YEARLY" => Freq::Yearly,
            "MONTHLY" => Freq::Monthly,
            "WEEKLY" => Freq::Weekly,
            "DAILY" => Freq::Daily,
            "HOURLY" => Freq::Hourly,
            "MINUTELY" => Freq::Minutely,
            "SECONDLY" => Freq::Secondly,
            _ => return Err(self.bad("write YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY or SECONDLY")),
        })
    }

    fn number(&self, least: u32, most: u32) -> Result<u32, BadCalendar> {
        let number = self.value.trim().parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.bad(format!("write a number from {least} to {most}")))
    }

    /// A list of numbers without a sign, in order.
    fn plain(&self, least: u32, most: u32) -> Result<Vec<u32>, BadCalendar> {
        self.list(|item| item.parse().ok().filter(|number| (least..=most).contains(number)))
            .ok_or_else(|| self.bad(format!("write numbers from {least} to {most}, separated by commas")))
    }

    /// A list of numbers that may count from the end.
    fn signed(&self, most: i32) -> Result<Vec<i32>, BadCalendar> {
        self.list(|item| item.parse().ok().filter(|number: &i32| *number != 0 && (-most..=most).contains(number)))
            .ok_or_else(|| self.bad(format!("write numbers from 1 to {most} or -{most} to -1, separated by commas")))
    }

    fn days(&self) -> Result<Vec<(i32, Weekday)>, BadCalendar> {
        let day = |item: &str| {
            let (number, name) = item.split_at_checked(item.len().checked_sub(2)?)?;
            let number = if number.is_empty() { Some(0) } else { number.parse().ok().filter(|number| *number != 0) };
            let number = number.filter(|number| (-53..=53).contains(number))?;
            Some((number, weekday(name)?.num_days_from_monday()))
        };
        let days = self.list(day).ok_or_else(|| self.bad("write days as MO,TU or numbered as 2TU,-1FR"))?;
        Ok(days
            .into_iter()
            .filter_map(|(n, day)| Some((n, Weekday::try_from(u8::try_from(day).ok()?).ok()?)))
            .collect())
    }

    fn list<T: Ord>(&self, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
        let mut list = self.value.split(',').map(|text| item(text.trim())).collect::<Option<Vec<T>>>()?;
        list.sort();
        list.dedup();
        Some(list)
    }
}

fn weekday(name: &str) -> Option<Weekday> {
    Some(match name.trim().to_ascii_uppercase().as_str() {
        "MO" => Weekday::Mon,
        "TU" => Weekday::Tue,
        "WE" => Weekday::Wed,
        "TH" => Weekday::Thu,
        "FR" => Weekday::Fri,
        "SA" => Weekday::Sat,
        "SU" => Weekday::Sun,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    fn parse(rule: &str) -> Result<Rule, BadCalendar> {
        Rule::parse(&lines::parse(3, &format!("RRULE:{rule}"))?)
    }

    #[test]
    fn all_parts_are_read() {
        let rule =
            parse("FREQ=MONTHLY;INTERVAL=2;COUNT=5;BYDAY=-1FR,+2TU,MO;BYHOUR=22,6;WKST=SU;BYSETPOS=-1;").unwrap();
        assert_eq!((rule.freq, rule.interval, rule.count), (Freq::Monthly, 2, Some(5)));
        assert_eq!(rule.days, [(-1, Weekday::Fri), (0, Weekday::Mon), (2, Weekday::Tue)]);
        assert_eq!((rule.hours, rule.positions, rule.week_start), (vec![6, 22], vec![-1], Weekday::Sun));
    }

    #[test]
    fn what_the_standard_forbids_is_refused_with_place_and_hint() {
        for rule in [
            "",
            "FREQ=FORTNIGHTLY",
            "INTERVAL=2",
            "FREQ=DAILY;INTERVAL=0",
            "FREQ=DAILY;COUNT=0",
            "FREQ=DAILY;COUNT=2;UNTIL=20250101",
            "FREQ=DAILY;BYWEEKNO=3",
            "FREQ=WEEKLY;BYMONTHDAY=3",
            "FREQ=WEEKLY;BYDAY=2TU",
            "FREQ=MONTHLY;BYYEARDAY=3",
            "FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO",
            "FREQ=MONTHLY;BYSETPOS=1",
            "FREQ=MONTHLY;BYMONTHDAY=32",
            "FREQ=MONTHLY;BYMONTHDAY=0",
            "FREQ=MONTHLY;BYDAY=XX",
            "FREQ=MONTHLY;BYDAY=é",
            "FREQ=YEARLY;RSCALE=HEBREW",
            "FREQ=DAILY;BYEASTER=0",
        ] {
            let error = parse(rule).unwrap_err();
            assert!(error.line == 3 && !error.hint.is_empty(), "{rule}");
        }
    }
}
