//! `saltern recurring`: what is done again and again, at the times of a cron expression.

mod apply;
mod change;
mod draft;
mod file;
mod show;

use crate::args::{Format, Out};
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::{self, text, when, zones};
use clap::Subcommand;
use saltern_api::client::Client;
use saltern_api::shape::{Recurring, RecurringDone, RecurringVerb, Time};
use saltern_core::action::schedule;
use saltern_server::clock;
use std::process::ExitCode;

/// Have things done again and again
///
/// What recurs has a cron expression in a time zone, something it is done on (a minion, a group, an organisation or a target, looked up
/// each time), and what is done: an action or a chain. It is done as the work of its owner, with the rights that he has then. Each time
/// is accounted for exactly once: fired, skipped, missed or refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    out: Out,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  saltern recurring create nightly --cron '30 2 * * *' --zone Europe/Prague --group web package_update
  saltern recurring create states --cron 'H H(0-5) * * *' --org --highstate --spread 30m
  saltern recurring create patch --cron '0 3 * * SAT#2' --group web --chain patch-web --in-window
  saltern recurring show nightly                   in words, and when it is next
  saltern recurring preview nightly -n 5           whom the next five times would hit
  saltern recurring fires nightly                  what became of each time
  saltern recurring skip-next nightly
  saltern recurring apply -f recurring.yml         from a file; `export` writes one

WHICH is the number of what recurs, or its name where only one is called so.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List what recurs, all or on one minion
    List {
        /// Only what hits this minion: its own, and that of its groups, its organisation and of targets that mean it
        #[arg(long, value_name = "ID")]
        minion: Option<String>,
    },
    /// Show one: when it fires in words, and when it is next
    Show(Which),
    Create(Box<draft::CreateArgs>),
    Edit(Box<draft::EditArgs>),
    /// Remove what recurs; what it has done stays
    Delete(Which),
    /// Let it recur, from its next regular time on
    Enable(Which),
    /// Do not let it recur
    Disable(Which),
    /// Leave out the next time, and no other
    SkipNext {
        #[command(flatten)]
        which: Which,
        /// Do not leave it out after all
        #[arg(long)]
        undo: bool,
    },
    /// Do it at once, as your own work
    Run(Which),
    /// Have it done as your own work from now on
    TakeOver(Which),
    /// Show the next times, and whom each would hit as things are now
    Preview {
        #[command(flatten)]
        which: Which,
        /// So many times
        #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
        count: u8,
    },
    /// Show what became of the times that have come, newest first
    Fires {
        #[command(flatten)]
        which: Which,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Only before this time: 2026-12-01T04:00:00+01:00, '2026-12-01 04:00' (UTC)
        #[arg(long, value_name = "TIME")]
        before: Option<String>,
    },
    Apply(apply::Args),
    /// Print what recurs as YAML, as `apply` reads it
    Export {
        /// Numbers or names; all of them unless told
        #[arg(value_name = "WHICH")]
        which: Vec<String>,
    },
}

/// One of them.
#[derive(Debug, clap::Args)]
struct Which {
    /// Its number, or its name where only one is called so
    #[arg(value_name = "WHICH")]
    which: String,
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    let client = &client;
    let (which, verb) = match args.verb {
        Verb::List { minion } => {
            let all = match minion {
                Some(minion) => client.recurrings_of_minion(&minion).await?,
                None => client.recurrings(None).await?,
            };
            output::show(format, &all, || show::table(&all, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Show(which) => return show_one(client, &which.which, format).await,
        Verb::Create(args) => return change::create(client, *args, format).await,
        Verb::Edit(args) => return change::edit(client, *args, format).await,
        Verb::Delete(which) => {
            let known = find(client, &which.which).await?;
            client.delete_recurring(known.id, known.version).await?;
            output::line(&format!("Recurring action {} was deleted.", called(&known)))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Preview { which, count } => {
            let known = find(client, &which.which).await?;
            let fires = client.preview_recurring(known.id, usize::from(count)).await?;
            let zone = zones::named(&known.zone);
            output::show(format, &fires, || show::planned(&fires, zone, zones::own(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Fires { which, limit, before } => {
            let known = find(client, &which.which).await?;
            let before = before.as_deref().map(before_time).transpose()?;
            let list = client.fires(known.id, before, usize::from(limit)).await?;
            let zone = zones::named(&known.zone);
            output::show(format, &list.fires, || show::fires(&list.fires, zone, Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Apply(args) => return apply::run(&args, client, format).await,
        Verb::Export { which } => return apply::export(client, &which, format).await,
        Verb::Enable(which) => (which, RecurringVerb::Activate),
        Verb::Disable(which) => (which, RecurringVerb::Deactivate),
        Verb::SkipNext { which, undo: false } => (which, RecurringVerb::SkipNext),
        Verb::SkipNext { which, undo: true } => (which, RecurringVerb::UnskipNext),
        Verb::Run(which) => (which, RecurringVerb::Run),
        Verb::TakeOver(which) => (which, RecurringVerb::TakeOver),
    };
    let known = find(client, &which.which).await?;
    let done = client.act_on_recurring(known.id, verb).await?;
    output::show(format, &done, || told(&done, verb))?;
    Ok(ExitCode::SUCCESS)
}

async fn show_one(client: &Client, which: &str, format: Format) -> Result<ExitCode, Failure> {
    let known = find(client, which).await?;
    if format != Format::Text {
        output::show(format, &known, String::new)?;
        return Ok(ExitCode::SUCCESS);
    }
    // What it would hit is not for everybody, and may be refused as things are now: the rest is worth showing all the same.
    let next = if known.active { client.preview_recurring(known.id, show::FEW).await } else { Ok(Vec::new()) };
    output::line(&show::detail(&known, clock::now(), zones::own(), Style::of_stdout()))?;
    match next {
        Ok(fires) if fires.is_empty() => {}
        Ok(fires) => {
            let table = show::planned(&fires, zones::named(&known.zone), zones::own(), Style::of_stdout());
            output::line(&format!("\n{table}"))?;
        }
        Err(error) => output::note(&format!("saltern: its next times cannot be told: {error}"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One of them by its number, or by its name if no other is called so.
async fn find(client: &Client, which: &str) -> Result<Recurring, Failure> {
    if let Ok(id) = which.parse::<i64>() {
        return Ok(client.recurring(id).await?);
    }
    let mut found = client.recurrings(None).await?;
    found.retain(|one| one.name == which);
    match found.len() {
        0 => Err(Failure::new(format!("nothing that recurs is called {which:?}")).hint("`saltern recurring list`")),
        1 => found.pop().ok_or_else(|| Failure::new("there is nothing")),
        _ => {
            let all: Vec<String> =
                found.iter().map(|one| format!("{} on {}", one.id, show::entity(&one.entity))).collect();
            Err(Failure::new(format!("several are called {which:?}: {}", all.join(", "))).hint("give the number"))
        }
    }
}

fn before_time(text: &str) -> Result<Time, Failure> {
    let read = schedule::due(text, schedule::Zone::UTC, clock::now());
    read.map(Time).map_err(|error| Failure::usage(error.to_string()))
}

/// Its name and number.
fn called(one: &Recurring) -> String {
    format!("{} ({})", text::clean(&one.name), one.id)
}

fn told(done: &RecurringDone, verb: RecurringVerb) -> String {
    let one = &done.recurring;
    let next = one.next.map_or_else(
        || "it is not done any more".to_owned(),
        |next| format!("it is next {}", zones::local(next.0, zones::named(&one.zone))),
    );
    let what = match verb {
        RecurringVerb::Run => match (done.action, done.launch) {
            (Some(action), _) => format!("runs as action {action}; `saltern action wait {action}` waits for it"),
            (_, Some(launch)) => format!("runs as launch {launch}; `saltern chain wait {launch}` waits for it"),
            (None, None) => "runs".to_owned(),
        },
        RecurringVerb::SkipNext => match one.next {
            Some(next) => format!("is left out {}", when::when(next.0, clock::now())),
            None => "would be left out once; it is not active".to_owned(),
        },
        RecurringVerb::UnskipNext => format!("is not left out; {next}"),
        RecurringVerb::Activate => format!("is active; {next}"),
        RecurringVerb::Deactivate => "is not active any more".to_owned(),
        RecurringVerb::TakeOver => format!("is done as the work of {} now", text::clean(&one.owner)),
    };
    format!("Recurring action {} {what}.", called(one))
}

#[cfg(test)]
mod tests {
    use super::show::tests::recurring;
    use super::*;
    use crate::args::Cli;
    use clap::Parser;

    fn parses(words: &[&str]) -> bool {
        Cli::try_parse_from(["saltern", "recurring"].iter().chain(words)).is_ok()
    }

    #[test]
    fn every_verb_takes_what_it_needs() {
        for words in [
            &["list"][..],
            &["list", "--minion", "web1", "--out", "json"],
            &["show", "nightly"],
            &["delete", "7"],
            &["enable", "7"],
            &["disable", "7"],
            &["skip-next", "7"],
            &["skip-next", "7", "--undo"],
            &["run", "7"],
            &["take-over", "7"],
            &["preview", "7", "-n", "3"],
            &["fires", "7", "--limit", "5", "--before", "2026-12-01T04:00:00Z"],
            &["apply", "-f", "a.yml", "--dry-run"],
            &["export"],
            &["export", "7", "nightly"],
        ] {
            assert!(parses(words), "{words:?}");
        }
        for words in [&["show"][..], &["preview", "7", "-n", "0"], &["fires", "7", "--limit", "0"], &["apply"]] {
            assert!(!parses(words), "{words:?}");
        }
    }

    #[test]
    fn what_was_done_is_told_with_what_comes_next() {
        let done = |action, launch| RecurringDone { recurring: recurring(), action, launch };
        assert_eq!(
            told(&done(Some(9), None), RecurringVerb::Run),
            "Recurring action nightly (7) runs as action 9; `saltern action wait 9` waits for it."
        );
        assert_eq!(
            told(&done(None, None), RecurringVerb::Activate),
            "Recurring action nightly (7) is active; it is next Sun 2026-11-22 02:30 CET."
        );
    }
}
