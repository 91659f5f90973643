//! One field of an expression: numbers, names, ranges, steps, lists and `H`.

use super::bad::{BadCron, Field};
use super::hash;
use super::part::Part;
use super::set::Set;

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/// `H` as a day of the month stays within what every month has.
const LAST_HASHED_DAY: u32 = 28;

/// Whose numbers the days of the week have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// 0 and 7 are Sunday, 1 is Monday.
    Unix,
    /// 1 is Sunday, 7 is Saturday.
    Quartz,
}

/// Reads the pieces of one field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) field: Field,
    pub(super) dialect: Dialect,
    pub(super) seed: &'a str,
}

impl Reader<'_> {
    /// A whole field that knows nothing but numbers.
    pub(super) fn numbers(&self, part: Part<'_>) -> Result<Set, BadCron> {
        if part.text == "?" {
            return Err(self.bad(part, "`?` belongs into a day field", "write * here"));
        }
        part.split(',').try_fold(Set::default(), |set, item| Ok(set.union(self.item(item)?)))
    }

    /// All that the field can be.
    pub(super) fn all(&self) -> Set {
        let (first, last) = self.limits();
        Set::range(first, last)
    }

    /// One item of the field's list: `*`, `5`, `5-10`, `FRI-MON`, any of them with `/2`, and the forms of `H`.
    pub(super) fn item(&self, item: Part<'_>) -> Result<Set, BadCron> {
        let (what, step) = match item.split_once('/') {
            Some((what, step)) => (what, Some(self.step(step)?)),
            None => (item, None),
        };
        if what.text.starts_with(['H', 'h']) {
            return self.hashed(what, step);
        }
        let (first, last) = self.limits();
        let values = match what.text {
            "*" => self.run(first, last),
            "" if step.is_some() => return Err(self.bad(what, "a step needs a start", "write */5 or 0/5")),
            _ => match (what.split_once('-'), step) {
                (Some((from, to)), _) => self.run(self.number(from)?, self.end(to)?),
                // From there to the end of the field.
                (None, Some(_)) => self.run(self.number(what)?, last),
                (None, None) => vec![self.number(what)?],
            },
        };
        Ok(values.into_iter().step_by(step.unwrap_or(1)).map(|value| self.folded(value)).collect())
    }

    /// `H`, `H(0-29)`, and with a step every so many from a hashed start on.
    fn hashed(&self, what: Part<'_>, step: Option<usize>) -> Result<Set, BadCron> {
        let range = what.skip(1);
        let values = if range.text.is_empty() {
            let (first, last) = self.limits();
            self.run(first, if self.field == Field::Day { LAST_HASHED_DAY } else { last })
        } else {
            let inside = range.text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
            let inside = inside.map(|text| Part { text, column: range.column + 1 });
            let Some((from, to)) = inside.and_then(|inside| inside.split_once('-')) else {
                let problem = format!("`{}` is no form of H", what.short());
                return Err(self.bad(what, &problem, "write H, H/15, H(0-29) or H(0-29)/10"));
            };
            self.run(self.number(from)?, self.end(to)?)
        };
        let choices = step.unwrap_or(values.len()).min(values.len()).max(1);
        let start = usize::try_from(hash::of(self.seed, self.field) % choices as u64).unwrap_or(0);
        Ok(values.into_iter().skip(start).step_by(choices).map(|value| self.folded(value)).collect())
    }

    /// The values from one to another; a range whose end is before its start goes over the end of the field.
    fn run(&self, from: u32, to: u32) -> Vec<u32> {
        let (first, last) = self.limits();
        if from <= to { (from..=to).collect() } else { (from..=last).chain(first..=to).collect() }
    }

    /// The end of a range. Unlike a start, a Sunday may here be the end of the week: `5-7` and `0-7` in Unix numbers.
    fn end(&self, part: Part<'_>) -> Result<u32, BadCron> {
        let end = self.number(part)?;
        let is_end_of_week = self.field == Field::Weekday && self.dialect == Dialect::Unix && part.text == "7";
        Ok(if is_end_of_week { 7 } else { end })
    }

    /// The Sunday at the end of a week is the one at its start.
    fn folded(&self, value: u32) -> u32 {
        if self.field == Field::Weekday { value % 7 } else { value }
    }

    fn step(&self, part: Part<'_>) -> Result<usize, BadCron> {
        let (first, last) = self.limits();
        let longest = last - first + 1;
        let step = number(part.text).filter(|step| (1..=longest).contains(step));
        step.map(|step| step as usize).ok_or_else(|| {
            let problem = format!("`{}` is no step", part.short());
            let hint = format!("a step in this field is 1 to {longest}, and counts anew in each round of it");
            self.bad(part, &problem, &hint)
        })
    }

    /// One value by number or name; weekdays as days from Sunday.
    pub(super) fn number(&self, part: Part<'_>) -> Result<u32, BadCron> {
        let names: &[&str] = match self.field {
            Field::Month => &MONTHS,
            Field::Weekday => &WEEKDAYS,
            _ => &[],
        };
        let (first, _) = self.limits();
        if let Some(at) = (first..).zip(names).find(|(_, name)| name.eq_ignore_ascii_case(part.text)) {
            return Ok(at.0);
        }
        let (least, most) = self.numerals();
        let value = number(part.text).filter(|value| (least..=most).contains(value));
        let value = value.ok_or_else(|| self.not_a_value(part, least, most, names))?;
        Ok(match (self.field, self.dialect) {
            (Field::Weekday, Dialect::Unix) => value % 7,
            (Field::Weekday, Dialect::Quartz) => value - 1,
            _ => value,
        })
    }

    /// A number that is no value of the field, such as the 2 of `MON#2`.
    pub(super) fn number_within(&self, part: Part<'_>, least: u32, most: u32) -> Result<u32, BadCron> {
        let value = number(part.text).filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| self.not_a_value(part, least, most, &[]))
    }

    fn not_a_value(&self, part: Part<'_>, least: u32, most: u32, names: &[&str]) -> BadCron {
        let problem = match part.text {
            "" => "something is missing".to_owned(),
            _ => format!("`{}` cannot stand here", part.short()),
        };
        let mut hint = format!("write a number from {least} to {most}");
        if let [first, .., last] = names {
            hint = format!("{hint} or a name from {first} to {last}");
        }
        self.bad(part, &problem, &hint)
    }

    pub(super) fn bad(&self, part: Part<'_>, problem: &str, hint: &str) -> BadCron {
        BadCron { field: Some(self.field), column: part.column, problem: problem.to_owned(), hint: hint.to_owned() }
    }

    /// The first and the last value of the field; weekdays as days from Sunday.
    fn limits(&self) -> (u32, u32) {
        match self.field {
            Field::Second | Field::Minute => (0, 59),
            Field::Hour => (0, 23),
            Field::Day => (1, 31),
            Field::Month => (1, 12),
            Field::Weekday => (0, 6),
        }
    }

    /// The numbers one may write for them.
    fn numerals(&self) -> (u32, u32) {
        match (self.field, self.dialect) {
            (Field::Weekday, Dialect::Unix) => (0, 7),
            (Field::Weekday, Dialect::Quartz) => (1, 7),
            _ => self.limits(),
        }
    }
}

/// A number of at most three digits; no sign, no blank.
fn number(text: &str) -> Option<u32> {
    let plain = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}
