//! What an answer may cost: calendars come from strangers, and a few bytes can name millions of instances.

use super::BadCalendar;

/// What one call may do: a day looked at, or a time made.
const MOST_STEPS: u32 = 20_000_000;

/// What is left to be done for one call, and of the instances it may find.
#[derive(Debug)]
pub(super) struct Work {
    steps: u32,
    instances: u32,
    most_instances: u32,
}

impl Work {
    /// Work for one call that finds at most so many instances.
    pub(super) fn new(most_instances: u32) -> Self {
        Work { steps: MOST_STEPS, instances: most_instances, most_instances }
    }

    /// A part of the same work with an allowance of instances of its own; to be given back with [`Work::join`].
    pub(super) fn part(&self, most_instances: u32) -> Self {
        Work { steps: self.steps, instances: most_instances, most_instances }
    }

    /// A part of the same work that may find as many instances as all of it.
    pub(super) fn fresh(&self) -> Self {
        self.part(self.most_instances)
    }

    /// Counts what a part has done.
    pub(super) fn join(&mut self, part: &Work) {
        self.steps = part.steps;
    }

    /// Counts a step.
    pub(super) fn step(&mut self, line: usize) -> Result<(), BadCalendar> {
        self.steps = self.steps.checked_sub(1).ok_or_else(|| {
            BadCalendar::at(line, "the calendar takes too long to work out", "make its rules simpler, or split it")
        })?;
        Ok(())
    }

    /// Counts an instance.
    pub(super) fn instance(&mut self, line: usize) -> Result<(), BadCalendar> {
        self.instances = self.instances.checked_sub(1).ok_or_else(|| {
            let problem = format!("the calendar expands to more than {} instances", self.most_instances);
            BadCalendar::at(
                line,
                problem,
                "let the event recur less often, as one longer event, or ask for a shorter time",
            )
        })?;
        Ok(())
    }
}
