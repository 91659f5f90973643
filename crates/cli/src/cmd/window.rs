//! `saltern window`: when minions may be changed: calendars, schedules made of them, whom those are for, and maintenance by hand.

mod apply;
mod assign;
mod calendar;
mod file;
mod maintenance;
mod schedule;
mod show;

use crate::args::Out;
use crate::failure::Failure;
use crate::output;
use crate::output::style::Style;
use clap::{Subcommand, ValueEnum};
use saltern_api::client::{Client, FeedQuery};
use saltern_api::shape::Strategy;
use saltern_server::clock;
use std::process::ExitCode;

/// Say when minions may be changed
///
/// A calendar is an iCal text, from a file or from a URL. A schedule makes windows of it, or blackouts, and is assigned to minions and
/// groups. What changes something on a minion starts only while one of its windows is open and no blackout lasts; what was started is
/// finished. A minion without a schedule may always be changed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    out: Out,

    /// The organisation whose windows; your own unless told
    #[arg(long = "in", global = true, value_name = "ORG")]
    of: Option<String>,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  saltern window calendar put nights -f nights.ics --zone Europe/Prague
  saltern window calendar put company --url https://cal.example.org/ops.ics --refresh 6h
  saltern window schedule put web-nights --kind single --calendar nights
  saltern window schedule put 'SAP Maintenance Window' --kind multi --calendar company
  saltern window schedule put freeze --kind blackout --calendar holidays
  saltern window assign web-nights --group web --preview
  saltern window assign web-nights --group web --strategy next
  saltern window next web1
  saltern window maintenance on web1 --why 'the disk is full' --until +2h
  saltern window apply -f windows.yml
  saltern window feed > windows.ics";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List schedules, calendars and the minions in maintenance
    List,
    /// Show a schedule with whom it is for
    Show {
        /// The schedule's name
        schedule: String,
    },
    /// Manage calendars
    #[command(subcommand)]
    Calendar(calendar::Verb),
    /// Manage schedules
    #[command(subcommand)]
    Schedule(schedule::Verb),
    Assign(assign::Args),
    Unassign(assign::Args),
    /// Show whether a minion may be changed now, and its next windows
    Next {
        /// The minion's id
        minion: String,
        /// So many windows
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
        count: u16,
    },
    /// Put minions into maintenance by hand, whatever their schedules say, and end that
    #[command(subcommand)]
    Maintenance(maintenance::Verb),
    Apply(apply::Args),
    /// Print the windows of the next 90 days, and what recurs, as a calendar
    Feed {
        /// Only the windows of this schedule
        #[arg(long, value_name = "NAME")]
        schedule: Option<String>,
        /// Only the windows of this minion
        #[arg(long, value_name = "ID")]
        minion: Option<String>,
        /// Without what recurs
        #[arg(long)]
        windows_only: bool,
    },
}

/// What becomes of work that waits.
#[derive(Clone, Copy, Debug, clap::Args)]
struct ByStrategy {
    /// Work that waits, and would be outside of its window then: refuse (unless told), cancel it, or move it to the next window
    #[arg(long, value_name = "STRATEGY", value_enum, default_value_t, hide_default_value = true)]
    strategy: StrategyName,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum StrategyName {
    /// Change nothing
    #[default]
    Refuse,
    /// Cancel it, on those minions
    Cancel,
    /// Let it wait for the next window of each minion
    Next,
}

impl ByStrategy {
    const fn get(self) -> Strategy {
        match self.strategy {
            StrategyName::Refuse => Strategy::Refuse,
            StrategyName::Cancel => Strategy::Cancel,
            StrategyName::Next => Strategy::Next,
        }
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let (format, org, client) = (args.out.format, args.of.as_deref(), &client);
    match args.verb {
        Verb::List => {
            let overview = show::Overview {
                schedules: client.schedules(org).await?,
                calendars: client.calendars(org).await?,
                maintenance: client.maintenance().await?,
            };
            output::show(format, &overview, || overview.told(clock::now(), Style::of_stdout()))?;
        }
        Verb::Show { schedule } => {
            let schedule = client.schedule(org, &schedule).await?;
            output::show(format, &schedule, || show::schedule(&schedule, clock::now(), Style::of_stdout()))?;
        }
        Verb::Calendar(verb) => return calendar::run(verb, client, org, format).await,
        Verb::Schedule(verb) => return schedule::run(verb, client, org, format).await,
        Verb::Assign(args) => return assign::run(args, assign::Way::To, client, org, format).await,
        Verb::Unassign(args) => return assign::run(args, assign::Way::From, client, org, format).await,
        Verb::Next { minion, count } => {
            let windows = client.windows_of(&minion, usize::from(count)).await?;
            output::show(format, &windows, || show::minion(&minion, &windows, clock::now(), Style::of_stdout()))?;
        }
        Verb::Maintenance(verb) => return maintenance::run(verb, client, format).await,
        Verb::Apply(args) => return apply::run(&args, client, org, format).await,
        Verb::Feed { schedule, minion, windows_only } => {
            output::line(&client.feed(&FeedQuery { schedule, minion, windows_only }).await?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::Parser;

    fn parses(words: &[&str]) -> bool {
        Cli::try_parse_from(["saltern", "window"].iter().chain(words)).is_ok()
    }

    #[test]
    fn every_verb_takes_what_it_needs() {
        for words in [
            &["list", "--in", "north"][..],
            &["show", "nights"],
            &["calendar", "list"],
            &["calendar", "show", "c", "--text"],
            &["calendar", "put", "c", "-f", "c.ics", "--zone", "Europe/Prague"],
            &["calendar", "put", "c", "--url", "https://example.org/c.ics", "--refresh", "6h", "--strategy", "next"],
            &["calendar", "delete", "c", "--strategy", "cancel"],
            &["calendar", "refresh", "c"],
            &["schedule", "list"],
            &["schedule", "show", "s"],
            &["schedule", "put", "s", "--kind", "multi", "--calendar", "c", "--away", "fail"],
            &["schedule", "delete", "s"],
            &["assign", "s", "--minion", "a", "--minion", "b", "--group", "g", "--preview"],
            &["unassign", "s", "--minion", "a", "--strategy", "next"],
            &["next", "web1", "-n", "3"],
            &["maintenance", "on", "a", "b", "--why", "disk", "--until", "+2h"],
            &["maintenance", "off", "a"],
            &["apply", "-f", "w.yml", "--strategy", "cancel", "--dry-run"],
            &["feed", "--minion", "a", "--windows-only"],
        ] {
            assert!(parses(words), "{words:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            &["calendar", "put", "c"][..],
            &["calendar", "put", "c", "-f", "a", "--url", "https://example.org/c.ics"],
            &["calendar", "put", "c", "-f", "a", "--refresh", "6h"],
            &["assign", "s"],
            &["assign", "s", "--minion", "a", "--strategy", "previous"],
            &["maintenance", "on", "a"],
            &["maintenance", "on", "--why", "x"],
            &["next"],
        ] {
            assert!(!parses(words), "{words:?}");
        }
    }
}
