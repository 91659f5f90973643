//! `saltern window schedule`: what makes windows, or blackouts, of a calendar.

use super::{ByStrategy, show};
use crate::args::Format;
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::{self, text};
use clap::ValueEnum;
use saltern_api::client::Client;
use saltern_api::shape::{Away, NewSchedule, Schedule, ScheduleContent, ScheduleKind, WindowsChanged};
use saltern_server::clock;
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// List schedules with their next window
    List,
    /// Show a schedule with whom it is for
    Show {
        /// The schedule's name
        name: String,
    },
    /// Make a schedule, or change it; what is not given stays as it is
    Put {
        /// The schedule's name; of one of kind multi, the SUMMARY of its events
        name: String,
        /// What the events of the calendar are; single unless told
        #[arg(long, value_name = "KIND", value_enum)]
        kind: Option<Kind>,
        /// The calendar; a schedule without one is never open
        #[arg(long, value_name = "NAME")]
        calendar: Option<String>,
        /// What happens outside of its windows with what was to start there: hold (unless told) or fail
        #[arg(long, value_name = "RULE", value_enum)]
        away: Option<AwayRule>,
        #[command(flatten)]
        strategy: ByStrategy,
    },
    /// Remove a schedule with its assignments: whom no other holds for may always be changed
    Delete {
        /// The schedule's name
        name: String,
        #[command(flatten)]
        strategy: ByStrategy,
    },
}

/// What the events of a calendar are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// Each is a window
    Single,
    /// Those that are called as the schedule is are windows
    Multi,
    /// Nothing may be changed while one lasts
    Blackout,
}

/// What happens outside of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AwayRule {
    /// Wait for the next window
    Hold,
    /// Fail
    Fail,
}

pub(super) async fn run(verb: Verb, client: &Client, org: Option<&str>, format: Format) -> Result<ExitCode, Failure> {
    let (changed, done) = match verb {
        Verb::List => {
            let schedules = client.schedules(org).await?;
            output::show(format, &schedules, || show::schedules(&schedules, Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Show { name } => {
            let schedule = client.schedule(org, &name).await?;
            output::show(format, &schedule, || show::schedule(&schedule, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Put { name, kind, calendar, away, strategy } => {
            let known = match client.schedule(org, &name).await {
                Err(error) if error.is_not_found() => None,
                known => Some(known?),
            };
            let wanted = content(known.as_ref(), kind, calendar, away);
            let changed = put(client, org, &name, known.as_ref(), wanted, strategy).await?;
            let done = if known.is_some() { "was changed" } else { "was made" };
            (changed, format!("Schedule {} {done}", text::clean(&name)))
        }
        Verb::Delete { name, strategy } => {
            let version = client.schedule(org, &name).await?.version;
            let changed = client.delete_schedule(org, &name, version, strategy.get()).await?;
            (changed, format!("Schedule {} was deleted", text::clean(&name)))
        }
    };
    output::show(format, &changed, || show::changed(&changed, &done, clock::now(), Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

/// What a schedule is to be, from what it is.
fn content(
    known: Option<&Schedule>,
    kind: Option<Kind>,
    calendar: Option<String>,
    away: Option<AwayRule>,
) -> ScheduleContent {
    let before = known.map(before).unwrap_or_default();
    ScheduleContent {
        kind: kind.map_or(before.kind, |kind| match kind {
            Kind::Single => ScheduleKind::Single,
            Kind::Multi => ScheduleKind::Multi,
            Kind::Blackout => ScheduleKind::Blackout,
        }),
        calendar: calendar.or(before.calendar),
        away: away.map_or(before.away, |away| match away {
            AwayRule::Hold => Away::Hold,
            AwayRule::Fail => Away::Fail,
        }),
    }
}

/// A schedule as it is.
pub(super) fn before(known: &Schedule) -> ScheduleContent {
    ScheduleContent { kind: known.kind, calendar: known.calendar.clone(), away: known.away }
}

/// Makes a schedule what it is to be.
pub(super) async fn put(
    client: &Client,
    org: Option<&str>,
    name: &str,
    known: Option<&Schedule>,
    content: ScheduleContent,
    strategy: ByStrategy,
) -> Result<WindowsChanged, Failure> {
    Ok(match known {
        Some(known) => client.put_schedule(org, name, known.version, strategy.get(), &content).await?,
        None => {
            let ScheduleContent { kind, calendar, away } = content;
            let schedule = NewSchedule { name: name.to_owned(), org: org.map(str::to_owned), kind, calendar, away };
            client.create_schedule(&schedule).await?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::nights;
    use super::*;

    #[test]
    fn what_is_not_given_stays_as_it_is() {
        let changed = content(Some(&nights()), None, None, Some(AwayRule::Fail));
        assert_eq!(changed.calendar.as_deref(), Some("nights"));
        assert_eq!((changed.kind, changed.away), (ScheduleKind::Single, Away::Fail));
        let made = content(None, Some(Kind::Blackout), Some("holidays".into()), None);
        assert_eq!((made.kind, made.away), (ScheduleKind::Blackout, Away::Hold));
    }
}
