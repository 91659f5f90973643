//! Expressions in plain words, for those whose meaning fits into one sentence.

use super::days::{Days, Weekdays};
use super::parse::Fields;
use super::set::Set;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
/// So many times a day are told one by one, even where they are evenly spaced.
const FEW: usize = 3;
/// More items in one list are no plain words any more.
const LONGEST_LIST: usize = 6;

/// The sentence, or nothing where it would be a long story.
pub(super) fn describe(fields: &Fields) -> Option<String> {
    let days = days(fields)?;
    match times(fields)? {
        Times::At(times) => Some(format!("every {} at {times}", days.as_deref().unwrap_or("day"))),
        Times::Every(times) => Some(match days {
            Some(days) => format!("{times} on every {days}"),
            None => times,
        }),
    }
}

/// When on a day.
enum Times {
    /// At these few times.
    At(String),
    /// Again and again.
    Every(String),
}

fn times(fields: &Fields) -> Option<Times> {
    let Fields { seconds, minutes, hours, .. } = *fields;
    let whole_minutes = seconds == Set::range(0, 0);
    let count = (hours.len() * minutes.len() * seconds.len()) as usize;
    let every_hours = every_of(hours, 24).filter(|n| (2..24).contains(n));
    match every_hours {
        Some(n) if count > FEW && whole_minutes && minutes.len() == 1 => {
            return Some(Times::Every(format!("every {n} hours{}", at_minutes(minutes)?)));
        }
        _ => {}
    }
    if count <= LONGEST_LIST {
        let all = hours.iter().flat_map(|h| minutes.iter().flat_map(move |m| seconds.iter().map(move |s| (h, m, s))));
        let minute = |h, m| format!("{h:02}:{m:02}");
        let shown = all.map(|(h, m, s)| if whole_minutes { minute(h, m) } else { format!("{}:{s:02}", minute(h, m)) });
        return Some(Times::At(list(shown.collect())?));
    }
    let often = if minutes == Set::range(0, 59) {
        match every(seconds)? {
            60 => "every minute".to_owned(),
            1 => "every second".to_owned(),
            n => format!("every {n} seconds"),
        }
    } else if !whole_minutes {
        return None;
    } else {
        match every(minutes) {
            Some(n) if n < 60 => format!("every {n} minutes"),
            _ => format!("every hour{}", at_minutes(minutes)?),
        }
    };
    Some(Times::Every(format!("{often}{}", within(hours, minutes.last())?)))
}

fn at_minutes(minutes: Set) -> Option<String> {
    Some(match minutes.len() {
        1 if minutes.first() == 0 => String::new(),
        1 => format!(" at minute {}", minutes.first()),
        _ => format!(" at minutes {}", list(minutes.iter().map(|n| n.to_string()).collect())?),
    })
}

/// The part of the day, where the hours are one stretch.
fn within(hours: Set, last_minute: u32) -> Option<String> {
    let (first, last) = (hours.first(), hours.last());
    if hours == Set::range(0, 23) {
        return Some(String::new());
    }
    (hours == Set::range(first, last)).then(|| format!(" from {first:02}:00 to {last:02}:{last_minute:02}"))
}

/// The distance of numbers that go evenly round a minute or an hour from 0 on.
fn every(set: Set) -> Option<u32> {
    every_of(set, 60)
}

fn every_of(set: Set, round: u32) -> Option<u32> {
    let step = round.checked_div(set.len())?;
    let even: Set = (0..round).step_by(step.max(1) as usize).collect();
    (step > 0 && round.is_multiple_of(step) && set == even).then_some(step)
}

/// Which days, as what follows "every"; nothing in the inner option where that is every single day.
fn days(fields: &Fields) -> Option<Option<String>> {
    let Fields { days, weekdays, months, .. } = fields;
    let all_months = *months == Set::range(1, 12);
    let months = list(months.iter().filter_map(|month| name(&MONTHS, month - 1)).collect());
    let months = if all_months { None } else { Some(months?) };
    let by_number = *days != Days { open: days.open, plain: Set::range(1, 31), ..Days::default() };
    let by_weekday = *weekdays != Weekdays { open: weekdays.open, plain: Set::range(0, 6), ..Weekdays::default() };
    let of_month = months.clone().unwrap_or_else(|| "the month".to_owned());
    let in_months = months.map(|months| format!(" in {months}")).unwrap_or_default();
    match (by_number, by_weekday) {
        (false, false) if in_months.is_empty() => Some(None),
        (false, false) => Some(Some(format!("day{in_months}"))),
        (true, false) if weekdays.open => Some(Some(format!("{} of {of_month}", numbered(days)?))),
        (false, true) if days.open => Some(Some(by_name(weekdays, &of_month, &in_months)?)),
        (true, true) if !days.open && !weekdays.open => {
            let (numbered, named) = (numbered(days)?, by_name(weekdays, &of_month, &in_months)?);
            Some(Some(format!("{numbered} of {of_month} and every {named}")))
        }
        // Both have to agree, or a field lists everything without being open.
        _ => None,
    }
}

/// Days by their place in the month, without the month.
fn numbered(days: &Days) -> Option<String> {
    let mut shown: Vec<String> = days.plain.iter().map(ordinal).collect();
    for back in days.from_last.iter() {
        shown.push(match back {
            0 => "last day".to_owned(),
            1 => "day before the last".to_owned(),
            n => format!("{} day before the last", ordinal(n)),
        });
    }
    shown.extend(days.near.iter().map(|day| format!("working day nearest to the {}", ordinal(day))));
    shown.extend(days.last_working.then(|| "last working day".to_owned()));
    list(shown)
}

fn by_name(weekdays: &Weekdays, of_month: &str, in_months: &str) -> Option<String> {
    let mut special = Vec::new();
    for (ordinal, set) in ORDINALS.into_iter().zip(weekdays.nth) {
        special.extend(set.iter().filter_map(|day| name(&WEEKDAYS, day)).map(|name| format!("{ordinal} {name}")));
    }
    special.extend(weekdays.last.iter().filter_map(|day| name(&WEEKDAYS, day)).map(|name| format!("last {name}")));
    let plain = weekdays.plain;
    let names = || plain.iter().filter_map(|day| name(&WEEKDAYS, day));
    match (plain.is_empty(), special.is_empty()) {
        (true, _) => Some(format!("{} of {of_month}", list(special)?)),
        (false, true) if plain == Set::range(1, 5) => Some(format!("Monday to Friday{in_months}")),
        (false, true) => Some(format!("{}{in_months}", list(names().collect())?)),
        (false, false) => None,
    }
}

fn name(names: &[&str], at: u32) -> Option<String> {
    names.get(at as usize).map(|name| (*name).to_owned())
}

fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// `a, b and c`, unless that is long.
fn list(mut items: Vec<String>) -> Option<String> {
    if items.len() > LONGEST_LIST {
        return None;
    }
    let last = items.pop()?;
    Some(if items.is_empty() { last } else { format!("{} and {last}", items.join(", ")) })
}
