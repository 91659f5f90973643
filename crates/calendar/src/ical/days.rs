//! Whether a day is one that a recurrence rule picks: the parts BYMONTH to BYDAY, all of which have to agree.

use chrono::{Datelike as _, NaiveDate, Weekday};

use super::rule::{Freq, Rule};

/// Whether all parts of a rule that speak of days admit this one.
pub(super) fn admits(rule: &Rule, day: NaiveDate) -> bool {
    (rule.months.is_empty() || rule.months.contains(&day.month()))
        && (rule.month_days.is_empty() || is_counted(&rule.month_days, day.day(), month_len(day)))
        && (rule.year_days.is_empty() || is_counted(&rule.year_days, day.ordinal(), year_len(day.year())))
        && (rule.days.is_empty() || rule.days.iter().any(|wanted| is_weekday(rule, *wanted, day)))
        && (rule.weeks.is_empty() || is_in_weeks(rule, day))
}

/// Whether the list has this number, counted from 1, or the one it has when counted from the end.
fn is_counted(list: &[i32], number: u32, of: u32) -> bool {
    let from_end = number.cast_signed() - of.cast_signed() - 1;
    list.contains(&number.cast_signed()) || list.contains(&from_end)
}

/// Whether a day is `TU`, or the `2TU` of its month or year.
fn is_weekday(rule: &Rule, (number, weekday): (i32, Weekday), day: NaiveDate) -> bool {
    let in_month = rule.freq == Freq::Monthly || !rule.months.is_empty();
    let (nth, of) = if in_month { (day.day(), month_len(day)) } else { (day.ordinal(), year_len(day.year())) };
    let from_start = (nth - 1) / 7 + 1;
    let from_end = (of - nth) / 7 + 1;
    day.weekday() == weekday && (number == 0 || number == from_start.cast_signed() || number == -from_end.cast_signed())
}

/// Week 1 is the first with at least four days in the year, weeks begin as WKST says.
fn is_in_weeks(rule: &Rule, day: NaiveDate) -> bool {
    let into_week = i64::from(day.weekday().days_since(rule.week_start));
    // A week belongs to the year that has its fourth day.
    let fourth = chrono::TimeDelta::try_days(3 - into_week).and_then(|by| day.checked_add_signed(by)).unwrap_or(day);
    let number = fourth.ordinal0() / 7 + 1;
    let weeks = (year_len(fourth.year()) - 1 - fourth.ordinal0()) / 7 + number;
    is_counted(&rule.weeks, number, weeks)
}

fn month_len(day: NaiveDate) -> u32 {
    u32::from(day.num_days_in_month())
}

fn year_len(year: i32) -> u32 {
    NaiveDate::from_ymd_opt(year, 12, 31).map_or(365, |last| last.ordinal())
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    fn days(rule: &str, year: i32) -> Vec<String> {
        let rule = Rule::parse(&lines::parse(1, &format!("RRULE:{rule}")).unwrap()).unwrap();
        let first = NaiveDate::from_ymd_opt(year, 1, 1).unwrap();
        first
            .iter_days()
            .take_while(|day| day.year() == year)
            .filter(|day| admits(&rule, *day))
            .map(|day| day.to_string())
            .collect()
    }

    #[test]
    fn numbered_weekdays_count_in_the_month_or_the_year() {
        assert_eq!(days("FREQ=MONTHLY;BYDAY=2TU,-1FR", 2025)[..3], ["2025-01-14", "2025-01-31", "2025-02-11"]);
        assert_eq!(days("FREQ=YEARLY;BYDAY=20MO,-1SU", 2025), ["2025-05-19", "2025-12-28"]);
        assert_eq!(days("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", 2025), ["2025-03-30"]);
    }

    #[test]
    fn plain_and_numbered_weekdays_add_up() {
        let both = days("FREQ=MONTHLY;BYMONTH=1;BYDAY=MO,2TU", 2025);
        assert_eq!(both, ["2025-01-06", "2025-01-13", "2025-01-14", "2025-01-20", "2025-01-27"]);
    }

    #[test]
    fn days_are_counted_from_the_end_too() {
        assert_eq!(days("FREQ=YEARLY;BYYEARDAY=-366,60,-1", 2024), ["2024-01-01", "2024-02-29", "2024-12-31"]);
        assert_eq!(days("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=-1,30", 2024), ["2024-02-29"]);
    }

    #[test]
    fn weeks_of_the_year_begin_as_told() {
        assert_eq!(days("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", 1997), ["1997-05-12"]);
        assert_eq!(days("FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH", 2020), ["2020-12-31"]);
        assert_eq!(days("FREQ=YEARLY;BYWEEKNO=1;BYDAY=WE", 2025), ["2025-01-01", "2025-12-31"]);
        assert_eq!(days("FREQ=YEARLY;BYWEEKNO=-1;BYDAY=MO", 2020), ["2020-12-28"]);
        assert_eq!(days("FREQ=YEARLY;BYWEEKNO=1;BYDAY=SU;WKST=SU", 2023), ["2023-01-01", "2023-12-31"]);
    }
}
