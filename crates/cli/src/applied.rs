//! What the `apply` commands share: what becomes of each thing of a file, and how that is told.

use crate::args::Format;
use crate::failure::Failure;
use crate::output::{self, text};
use serde::Serialize;

/// What became of a thing of a file, or would.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Created,
    Changed,
    Unchanged,
}

/// What became of a thing that has a number.
#[derive(Debug, Serialize)]
pub(crate) struct Applied {
    pub(crate) name: String,
    /// Its number; nothing if it is not there
    pub(crate) id: Option<i64>,
    pub(crate) outcome: Outcome,
}

impl Outcome {
    /// What has to be done where this is known, which may be as it is wanted already.
    pub(crate) fn of<T>(known: Option<T>, is_as_wanted: impl FnOnce(T) -> bool) -> Self {
        match known.map(is_as_wanted) {
            None => Self::Created,
            Some(true) => Self::Unchanged,
            Some(false) => Self::Changed,
        }
    }

    /// The words for it; what would be done is not told as done.
    pub(crate) const fn words(self, dry_run: bool) -> &'static str {
        match (self, dry_run) {
            (Self::Created, false) => "created",
            (Self::Changed, false) => "changed",
            (Self::Unchanged, _) => "unchanged",
            (Self::Created, true) => "would be created",
            (Self::Changed, true) => "would be changed",
        }
    }
}

impl Applied {
    /// A line about it; `what` it is begins the line.
    pub(crate) fn told(&self, what: &str, dry_run: bool) -> String {
        let number = self.id.map_or_else(String::new, |id| format!(" ({id})"));
        format!("{what} {}{number}: {}", text::clean(&self.name), self.outcome.words(dry_run))
    }
}

/// People hear of each as it is done.
pub(crate) fn tell(line: &str, format: Format) -> Result<(), Failure> {
    if format == Format::Text { output::line(line) } else { Ok(()) }
}

/// Programs hear of all at the end.
pub(crate) fn tell_all<T: Serialize>(all: &[T], format: Format) -> Result<(), Failure> {
    if format == Format::Text { Ok(()) } else { output::show(format, &all, String::new) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_wanted_is_left_alone() {
        assert_eq!(Outcome::of(Some(1), |known| known == 1), Outcome::Unchanged);
        assert_eq!(Outcome::of(Some(1), |known| known == 2), Outcome::Changed);
        assert_eq!(Outcome::of(None::<i64>, |_| true), Outcome::Created);
    }

    #[test]
    fn what_would_be_done_is_not_told_as_done() {
        let applied = Applied { name: "racks".into(), id: None, outcome: Outcome::Created };
        assert_eq!(applied.told("Chain", true), "Chain racks: would be created");
        let applied = Applied { id: Some(7), ..applied };
        assert_eq!(applied.told("Recurring action", false), "Recurring action racks (7): created");
    }
}
