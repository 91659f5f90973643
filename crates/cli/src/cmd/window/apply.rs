//! `saltern window apply`: calendars, schedules and assignments from files.
//!
//! Applying twice changes nothing the second time. What the files do not mention is left alone.

use super::file::{self, PlannedSchedule};
use super::{ByStrategy, calendar, schedule};
use crate::applied::{Outcome, tell, tell_all};
use crate::args::Format;
use crate::failure::Failure;
use crate::output::text;
use saltern_api::client::Client;
use saltern_api::shape::{CalendarContent, CalendarDetail, Schedule, Subjects};
use serde::Serialize;
use std::process::ExitCode;

/// Make windows what files say
///
/// Calendars and schedules that are not there are made, those that differ are changed, and those that are as the files say are left
/// alone. Where a schedule names `minions` or `groups`, it is for these and no others then.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A YAML file with `calendars` and `schedules`, `-` for standard input; may be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<String>,

    /// Only tell what would be done
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    strategy: ByStrategy,
}

/// What became of one thing of a file.
#[derive(Debug, Serialize)]
struct Applied {
    kind: &'static str,
    name: String,
    outcome: Outcome,
    /// Waiting runs that it has touched
    touched: usize,
}

/// What applying shares.
struct Apply<'a> {
    client: &'a Client,
    org: Option<&'a str>,
    strategy: ByStrategy,
    dry_run: bool,
}

pub(super) async fn run(args: &Args, client: &Client, org: Option<&str>, format: Format) -> Result<ExitCode, Failure> {
    // Everything is read before anything is done: a mistake in the last file leaves all as it is.
    let plan = file::read_all(&args.files)?;
    let apply = Apply { client, org, strategy: args.strategy, dry_run: args.dry_run };
    let mut all = Vec::new();
    for (name, content) in plan.calendars {
        let about = |failure: Failure| failure.about(&format!("calendar {name:?}"));
        let applied = apply.calendar(&name, content).await.map_err(about)?;
        tell(&applied.told(args.dry_run), format)?;
        all.push(applied);
    }
    for schedule in &plan.schedules {
        let about = |failure: Failure| failure.about(&format!("schedule {:?}", schedule.name));
        let applied = apply.schedule(schedule).await.map_err(about)?;
        tell(&applied.told(args.dry_run), format)?;
        all.push(applied);
    }
    tell_all(&all, format)?;
    Ok(ExitCode::SUCCESS)
}

impl Apply<'_> {
    async fn calendar(&self, name: &str, wanted: CalendarContent) -> Result<Applied, Failure> {
        let known = match self.client.calendar(self.org, name).await {
            Err(error) if error.is_not_found() => None,
            known => Some(known?),
        };
        let outcome = Outcome::of(known.as_ref(), |known| is_so(known, &wanted));
        let mut touched = 0;
        if outcome != Outcome::Unchanged && !self.dry_run {
            let put = calendar::put(self.client, self.org, name, known.as_ref(), wanted, self.strategy);
            touched = put.await?.touched.len();
        }
        Ok(Applied { kind: "calendar", name: name.to_owned(), outcome, touched })
    }

    async fn schedule(&self, wanted: &PlannedSchedule) -> Result<Applied, Failure> {
        let name = &wanted.name;
        let known = match self.client.schedule(self.org, name).await {
            Err(error) if error.is_not_found() => None,
            known => Some(known?),
        };
        let is_same = known.as_ref().is_some_and(|known| schedule::before(known) == wanted.content);
        let (add, remove) = difference(known.as_ref(), wanted.assigned_to.as_ref());
        let outcome = Outcome::of(known.as_ref(), |_| is_same && is_nobody(&add) && is_nobody(&remove));
        let mut touched = 0;
        if !self.dry_run {
            let (client, org, strategy) = (self.client, self.org, self.strategy);
            if !is_same {
                let put = schedule::put(client, org, name, known.as_ref(), wanted.content.clone(), strategy);
                touched += put.await?.touched.len();
            }
            if !is_nobody(&add) {
                touched += client.assign_schedule(org, name, strategy.get(), &add).await?.touched.len();
            }
            if !is_nobody(&remove) {
                touched += client.unassign_schedule(org, name, strategy.get(), &remove).await?.touched.len();
            }
        }
        Ok(Applied { kind: "schedule", name: name.clone(), outcome, touched })
    }
}

/// Whether a calendar is what it is to be. A text that is left out is whatever the URL leads to.
fn is_so(known: &CalendarDetail, wanted: &CalendarContent) -> bool {
    let is_same_text = wanted.ical.as_ref().is_none_or(|text| *text == known.ical);
    let zone = wanted.zone.as_deref().unwrap_or("UTC");
    let calendar = &known.calendar;
    is_same_text && calendar.url == wanted.url && calendar.refresh == wanted.refresh && calendar.zone == zone
}

/// Whom a schedule is to be for that it is not for yet, and whom it is for that it is not to be for.
fn difference(known: Option<&Schedule>, wanted: Option<&Subjects>) -> (Subjects, Subjects) {
    let Some(wanted) = wanted else { return (Subjects::default(), Subjects::default()) };
    let nobody = Subjects::default();
    let now = known.map_or(&nobody, |known| &known.assigned_to);
    let without = |all: &[String], others: &[String]| -> Vec<String> {
        all.iter().filter(|one| !others.contains(one)).cloned().collect()
    };
    let less = |all: &Subjects, others: &Subjects| Subjects {
        minions: without(&all.minions, &others.minions),
        groups: without(&all.groups, &others.groups),
    };
    (less(wanted, now), less(now, wanted))
}

fn is_nobody(subjects: &Subjects) -> bool {
    subjects.minions.is_empty() && subjects.groups.is_empty()
}

impl Applied {
    fn told(&self, dry_run: bool) -> String {
        let what = self.outcome.words(dry_run);
        let kind = if self.kind == "calendar" { "Calendar" } else { "Schedule" };
        let touched = match self.touched {
            0 => String::new(),
            1 => ", 1 waiting run touched".to_owned(),
            many => format!(", {many} waiting runs touched"),
        };
        format!("{kind} {}: {what}{touched}", text::clean(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::nights;
    use super::*;

    #[test]
    fn whom_a_schedule_is_for_is_made_what_the_file_says() {
        let wanted = Subjects { minions: vec!["db2".into()], groups: vec!["web".into()] };
        let (add, remove) = difference(Some(&nights()), Some(&wanted));
        assert_eq!((add.minions, add.groups.len()), (vec!["db2".to_owned()], 0));
        assert_eq!((remove.minions, remove.groups.len()), (vec!["db1".to_owned()], 0));
        let (add, remove) = difference(Some(&nights()), None);
        assert!(is_nobody(&add) && is_nobody(&remove), "who is not mentioned is left alone");
        assert_eq!(difference(None, Some(&wanted)).0, wanted);
    }

    #[test]
    fn what_was_done_is_told_with_what_it_touched() {
        let applied = Applied { kind: "schedule", name: "nights".into(), outcome: Outcome::Changed, touched: 2 };
        assert_eq!(applied.told(false), "Schedule nights: changed, 2 waiting runs touched");
        assert_eq!(Applied { touched: 0, ..applied }.told(true), "Schedule nights: would be changed");
    }
}
