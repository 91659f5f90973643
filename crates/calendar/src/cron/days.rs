//! Which days of a month an expression means: numbers, `L`, `W`, weekdays, `#`, and how the two day fields go together.

use super::set::Set;
use chrono::{Datelike as _, NaiveDate};

/// The day-of-month field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Days {
    /// Begins with `*` or is `?`: leaves the choice to the other field.
    pub(super) open: bool,
    /// Days by number.
    pub(super) plain: Set,
    /// Days counted from the last one, which is 0: `L`, `L-3`.
    pub(super) from_last: Set,
    /// The working days nearest to these: `15W`.
    pub(super) near: Set,
    /// The last working day: `LW`.
    pub(super) last_working: bool,
}

/// The day-of-week field; Sunday is 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Weekdays {
    /// Begins with `*` or is `?`: leaves the choice to the other field.
    pub(super) open: bool,
    /// Every one of these.
    pub(super) plain: Set,
    /// The last ones of the month: `FRIL`.
    pub(super) last: Set,
    /// The first, second, … fifth ones of the month: `MON#2`.
    pub(super) nth: [Set; 5],
}

/// The days of a month on which both fields together fire.
///
/// Where one field is open, both have to agree, which leaves the choice to the other; where both are restricted, either is
/// enough, as in every Unix cron.
pub(super) fn of_month(days: &Days, weekdays: &Weekdays, year: i32, month: u32) -> Set {
    let Some(shape) = Shape::of(year, month) else { return Set::default() };
    let (by_number, by_weekday) = (days.of(shape), weekdays.of(shape));
    if days.open || weekdays.open { by_number.common(by_weekday) } else { by_number.union(by_weekday) }
}

/// All that matters of a month.
#[derive(Clone, Copy)]
struct Shape {
    /// How many days it has.
    length: u32,
    /// The weekday of its first, Sunday being 0.
    starts_on: u32,
}

impl Shape {
    fn of(year: i32, month: u32) -> Option<Shape> {
        let first = NaiveDate::from_ymd_opt(year, month, 1)?;
        Some(Shape { length: u32::from(first.num_days_in_month()), starts_on: first.weekday().num_days_from_sunday() })
    }

    fn weekday(self, day: u32) -> u32 {
        (self.starts_on + day - 1) % 7
    }

    /// The first day of the month with that weekday.
    fn first(self, weekday: u32) -> u32 {
        (weekday + 7 - self.starts_on) % 7 + 1
    }

    /// The working day nearest to a day, without leaving the month.
    fn working_day_near(self, day: u32) -> u32 {
        match self.weekday(day) {
            0 if day == self.length => day - 2,
            0 => day + 1,
            6 if day == 1 => day + 2,
            6 => day - 1,
            _ => day,
        }
    }
}

impl Days {
    fn of(&self, shape: Shape) -> Set {
        let mut days = self.plain.common(Set::range(1, shape.length));
        self.from_last.iter().filter(|back| *back < shape.length).for_each(|back| days.insert(shape.length - back));
        let near = self.near.iter().filter(|day| *day <= shape.length);
        near.for_each(|day| days.insert(shape.working_day_near(day)));
        if self.last_working {
            days.insert(shape.working_day_near(shape.length));
        }
        days
    }
}

impl Weekdays {
    fn of(&self, shape: Shape) -> Set {
        if self.plain == Set::range(0, 6) {
            return Set::range(1, shape.length);
        }
        let mut days = Set::default();
        let mut each = |weekdays: Set, nth: std::ops::Range<u32>| {
            for weekday in weekdays.iter() {
                let these = nth.clone().map(|n| shape.first(weekday) + 7 * n);
                these.filter(|day| *day <= shape.length).for_each(|day| days.insert(day));
            }
        };
        each(self.plain, 0..5);
        for (n, weekdays) in (0..).zip(self.nth) {
            each(weekdays, n..n + 1);
        }
        for weekday in self.last.iter() {
            let first = shape.first(weekday);
            days.insert(first + (shape.length - first) / 7 * 7);
        }
        days
    }
}
