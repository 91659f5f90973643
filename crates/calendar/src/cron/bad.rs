//! What is wrong with a cron expression: which field, where in the text, and what to write instead.

use std::fmt;

/// A field of a cron expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Second of the minute; only in expressions of six fields.
    Second,
    /// Minute of the hour.
    Minute,
    /// Hour of the day.
    Hour,
    /// Day of the month.
    Day,
    /// Month of the year.
    Month,
    /// Day of the week.
    Weekday,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::Day => "day of month",
            Field::Month => "month",
            Field::Weekday => "day of week",
        })
    }
}

/// A cron expression that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} ({}column {column}); {hint}", field_of(*field))]
pub struct BadCron {
    /// The field it is about; nothing where it is about the whole.
    pub field: Option<Field>,
    /// Where in the text, in characters, the first being 1.
    pub column: usize,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub hint: String,
}

fn field_of(field: Option<Field>) -> String {
    field.map(|field| format!("{field}, ")).unwrap_or_default()
}
