//! From the text of a cron expression to the sets of its fields.

use super::bad::{BadCron, Field};
use super::days::{Days, Weekdays};
use super::field::{Dialect, Reader};
use super::part::Part;
use super::set::Set;

/// More than an honest expression needs, even one that lists every minute.
const LONGEST: usize = 512;

/// What the fields of an expression say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) seconds: Set,
    pub(super) minutes: Set,
    pub(super) hours: Set,
    pub(super) days: Days,
    pub(super) months: Set,
    pub(super) weekdays: Weekdays,
}

/// Reads an expression; `seed` decides what `H` stands for.
pub(super) fn parse(text: &str, seed: &str) -> Result<Fields, BadCron> {
    if text.chars().count() > LONGEST {
        let problem = format!("the expression is longer than {LONGEST} characters");
        return Err(whole(LONGEST + 1, problem, "shorten lists to ranges and steps, like 0-30/5"));
    }
    let whole_text = Part::whole(text);
    if text.trim_start().starts_with('@') {
        return fields(&Part::whole(named(whole_text)?), seed);
    }
    fields(&whole_text, seed)
}

/// What a name such as `@daily` stands for.
fn named(name: Part<'_>) -> Result<&'static str, BadCron> {
    let name = name.trimmed();
    match name.text.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => Ok("0 0 1 1 *"),
        "@monthly" => Ok("0 0 1 * *"),
        "@weekly" => Ok("0 0 * * 0"),
        "@daily" | "@midnight" => Ok("0 0 * * *"),
        "@hourly" => Ok("0 * * * *"),
        _ => Err(whole(
            name.column,
            format!("no schedule is called `{}`", name.short()),
            "there are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly",
        )),
    }
}

fn fields(text: &Part<'_>, seed: &str) -> Result<Fields, BadCron> {
    let parts = text.words();
    let (second, [minute, hour, day, month, weekday]) = match *parts.as_slice() {
        [minute, hour, day, month, weekday] => (None, [minute, hour, day, month, weekday]),
        [second, minute, hour, day, month, weekday] => (Some(second), [minute, hour, day, month, weekday]),
        _ => return Err(wrong_count(text, &parts)),
    };
    if day.text == "?" && weekday.text == "?" {
        let problem = "both day fields are `?`".to_owned();
        return Err(BadCron {
            field: Some(Field::Weekday),
            ..whole(weekday.column, problem, "write * for one of them")
        });
    }
    let quartz = second.is_some() && (day.text == "?" || weekday.text == "?");
    let dialect = if quartz { Dialect::Quartz } else { Dialect::Unix };
    let reader = |field| Reader { field, dialect, seed };
    Ok(Fields {
        seconds: second.map_or(Ok(Set::range(0, 0)), |second| reader(Field::Second).numbers(second))?,
        minutes: reader(Field::Minute).numbers(minute)?,
        hours: reader(Field::Hour).numbers(hour)?,
        days: days(&reader(Field::Day), day)?,
        months: reader(Field::Month).numbers(month)?,
        weekdays: weekdays(&reader(Field::Weekday), weekday)?,
    })
}

fn days(reader: &Reader<'_>, part: Part<'_>) -> Result<Days, BadCron> {
    let mut days = Days { open: part.text.starts_with(['*', '?']), ..Days::default() };
    if part.text == "?" {
        days.plain = reader.all();
        return Ok(days);
    }
    for item in part.split(',') {
        let upper = item.text.to_ascii_uppercase();
        if upper == "L" {
            days.from_last.insert(0);
        } else if upper == "LW" || upper == "WL" {
            days.last_working = true;
        } else if upper.starts_with("L-") {
            days.from_last.insert(reader.number_within(item.skip(2), 0, 30)?);
        } else if let Some(day) = item.without_suffix('W') {
            days.near.insert(reader.number(day)?);
        } else {
            days.plain = days.plain.union(reader.item(item)?);
        }
    }
    Ok(days)
}

fn weekdays(reader: &Reader<'_>, part: Part<'_>) -> Result<Weekdays, BadCron> {
    let mut weekdays = Weekdays { open: part.text.starts_with(['*', '?']), ..Weekdays::default() };
    if part.text == "?" {
        weekdays.plain = reader.all();
        return Ok(weekdays);
    }
    for item in part.split(',') {
        if item.text.eq_ignore_ascii_case("L") {
            if reader.dialect == Dialect::Unix {
                return Err(reader.bad(
                    item,
                    "`L` alone is no day of the week",
                    "name the day: FRIL is the last Friday",
                ));
            }
            // Quartz: the last day of the week.
            weekdays.plain.insert(6);
        } else if let Some((weekday, nth)) = item.split_once('#') {
            let weekday = reader.number(weekday)?;
            let nth = reader.number_within(nth, 1, 5)?;
            if let Some(of_nth) = weekdays.nth.get_mut(nth as usize - 1) {
                of_nth.insert(weekday);
            }
        } else if let Some(weekday) = item.without_suffix('L') {
            weekdays.last.insert(reader.number(weekday)?);
        } else {
            weekdays.plain = weekdays.plain.union(reader.item(item)?);
        }
    }
    Ok(weekdays)
}

fn wrong_count(text: &Part<'_>, parts: &[Part<'_>]) -> BadCron {
    let form = "write `minute hour day month weekday`, with seconds before them if need be";
    let has_zone = parts.first().is_some_and(|first| first.text.to_ascii_uppercase().contains("TZ="));
    match parts {
        [] => whole(text.column, "the expression is empty".to_owned(), form),
        [first, ..] if has_zone => {
            let problem = format!("`{}` is no field", first.short());
            whole(first.column, problem, "the time zone is a setting of its own")
        }
        [.., year] if parts.len() == 7 => {
            whole(year.column, "there is a seventh field".to_owned(), "leave the year out: it cannot be restricted")
        }
        [.., last] => {
            let problem = format!("the expression has {} fields, not 5 or 6", parts.len());
            whole(parts.get(6).unwrap_or(last).column, problem, form)
        }
    }
}

/// Something that is wrong with no field in particular.
pub(super) fn whole(column: usize, problem: String, hint: &str) -> BadCron {
    BadCron { field: None, column, problem, hint: hint.to_owned() }
}
