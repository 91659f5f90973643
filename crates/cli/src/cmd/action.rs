//! `saltern action`: what was asked for, when and how it is done, why it waits, and changing one's mind.

mod act;
mod create;
mod explain;
mod list;
mod show;
mod types;
mod wait;

pub(super) use explain::told as explained;

use crate::args::{Format, Out};
use crate::failure::Failure;
use crate::rules;
use clap::Subcommand;
use saltern_api::client::Client;
use saltern_api::shape::{ActionVerb, VerbRequest};
use saltern_core::action::schedule::Zone;
use saltern_server::clock;
use std::process::ExitCode;
use std::time::Duration;

/// Schedule, watch, explain and change what is done
///
/// An action is what somebody asked for: a type, parameters, minions, a time and rules. Each of its minions has a run, which
/// is queued, sent, picked up, and ends completed, failed or cancelled, by its deadline at the latest.
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
  saltern action create package_update 'web*' --at '2026-12-01 04:00' --zone Europe/Berlin --batch 10%
  saltern action create reboot -L web1,web2 --when-back --deadline 7d
  saltern action list --state open
  saltern action explain 7                         what it waits for, in groups
  saltern action explain 7 web1                    what was tried on one minion, and what comes next
  saltern action cancel 7                          what was not sent never starts
  saltern action stop 7                            and what runs is killed
  saltern action retry 7                           what failed is done again
  saltern action wait 7 && echo all of it

Exit code 0 only if everything that was asked was done.";

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::Args),
    /// Show an action: its rules, how many runs stand where, and the first failures
    Show {
        #[command(flatten)]
        id: Id,
    },
    Create(Box<create::Args>),
    Runs(show::RunsArgs),
    /// Explain why a run stands where it stands; without a minion, all runs in groups
    Explain {
        #[command(flatten)]
        id: Id,
        /// The minion's id
        minion: Option<String>,
    },
    /// Cancel what was not sent yet; what was sent goes on
    Cancel(Which),
    /// Cancel what was not sent yet, and kill what runs
    Stop(Which),
    /// Do again what failed
    Retry {
        #[command(flatten)]
        which: Which,
        /// Whatever has ended, completed runs too; so it is for minions that are named
        #[arg(long)]
        all: bool,
    },
    /// Declare failed what is open
    Fail {
        #[command(flatten)]
        which: Which,
        /// Why
        #[arg(short, long, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Start nothing more
    Pause(Ids),
    /// Let go on what was paused
    Resume(Ids),
    /// Change the due time of what was not sent yet
    Reschedule {
        #[command(flatten)]
        ids: Ids,
        /// The new due time: now, '2026-12-01 04:00', 2026-12-01T04:00:00+01:00, +90m
        #[arg(long, value_name = "TIME")]
        at: String,
        /// The time zone of --at: UTC (unless told), +01:00, Europe/Berlin
        #[arg(long, value_name = "ZONE", value_parser = rules::zone)]
        zone: Option<Zone>,
        /// End everything so long after it, whatever happens
        #[arg(long, value_name = "DURATION", value_parser = rules::time_span)]
        deadline: Option<Duration>,
    },
    /// Take actions out of the lists
    Archive(Ids),
    /// Put actions back into the lists
    Unarchive(Ids),
    /// Remove actions with everything that came of them; only what is archived and has ended
    Delete(Ids),
    Types(types::Args),
    /// Wait until an action has ended; exit code 0 only if every run completed
    Wait {
        #[command(flatten)]
        id: Id,
    },
}

/// One action.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Id {
    /// The action's id
    #[arg(value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
    id: i64,
}

/// Some actions.
#[derive(Clone, Debug, clap::Args)]
struct Ids {
    /// The actions' ids
    #[arg(value_name = "ID", required = true, value_parser = clap::value_parser!(i64).range(1..))]
    ids: Vec<i64>,
}

/// Some actions, or some of their runs.
#[derive(Clone, Debug, clap::Args)]
struct Which {
    #[command(flatten)]
    ids: Ids,

    /// Only on this minion; may be given several times
    #[arg(long = "minion", value_name = "MINION")]
    minions: Vec<String>,
}

impl Ids {
    fn request(self) -> VerbRequest {
        VerbRequest { ids: self.ids, ..VerbRequest::default() }
    }
}

impl Which {
    fn request(self) -> VerbRequest {
        let minions = (!self.minions.is_empty()).then_some(self.minions);
        VerbRequest { minions, ..self.ids.request() }
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    let client = &client;
    let (verb, request) = match args.verb {
        Verb::List(args) => return list::run(args, client, format).await,
        Verb::Show { id } => return show::run(client, id.id, format).await,
        Verb::Create(args) => return create::run(&args, client, format).await,
        Verb::Runs(args) => return show::runs(args, client, format).await,
        Verb::Explain { id, minion } => return explain::run(client, id.id, minion.as_deref(), format).await,
        Verb::Types(args) => return types::run(args, client, format).await,
        Verb::Wait { id } => return wait::run(client, id.id, format).await,
        Verb::Reschedule { ids, at, zone, deadline } => {
            return reschedule(client, ids, &at, zone, deadline, format).await;
        }
        Verb::Cancel(which) => (ActionVerb::Cancel, which.request()),
        Verb::Stop(which) => (ActionVerb::Stop, which.request()),
        Verb::Retry { which, all } => {
            let only_failed = !all && which.minions.is_empty();
            (ActionVerb::Retry, VerbRequest { only_failed, ..which.request() })
        }
        Verb::Fail { which, message } => (ActionVerb::Fail, VerbRequest { message, ..which.request() }),
        Verb::Pause(ids) => (ActionVerb::Pause, ids.request()),
        Verb::Resume(ids) => (ActionVerb::Resume, ids.request()),
        Verb::Archive(ids) => (ActionVerb::Archive, ids.request()),
        Verb::Unarchive(ids) => (ActionVerb::Unarchive, ids.request()),
        Verb::Delete(ids) => (ActionVerb::Delete, ids.request()),
    };
    act::run(client, verb, &request, format).await
}

async fn reschedule(
    client: &Client,
    ids: Ids,
    at: &str,
    zone: Option<Zone>,
    deadline: Option<Duration>,
    format: Format,
) -> Result<ExitCode, Failure> {
    let now = clock::now();
    let due = rules::due(Some(at), zone, now)?.unwrap_or(now.into());
    for id in &ids.ids {
        if client.action(*id).await?.action.counts.queued == 0 {
            return Err(Failure::new(format!("nothing of action {id} waits any more")));
        }
    }
    let deadline = deadline.map(|deadline| deadline.as_secs_f64());
    let request = VerbRequest { due: Some(due), deadline, ..ids.request() };
    act::run(client, ActionVerb::Reschedule, &request, format).await
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::Parser;

    fn parses(words: &[&str]) -> bool {
        Cli::try_parse_from(["saltern", "action"].iter().chain(words)).is_ok()
    }

    #[test]
    fn verbs_take_several_actions_and_some_minions() {
        assert!(parses(&["cancel", "7", "8", "--minion", "web1", "--minion", "web2", "--out", "json"]));
        assert!(parses(&["retry", "7", "--all"]));
        assert!(parses(&["reschedule", "7", "--at", "+90m", "--deadline", "1d"]));
    }

    #[test]
    fn an_action_is_a_number() {
        assert!(!parses(&["cancel"]));
        assert!(!parses(&["cancel", "0"]));
        assert!(!parses(&["show", "web1"]));
        assert!(!parses(&["reschedule", "7"]));
        assert!(!parses(&["pause", "7", "--minion", "web1"]));
    }
}
