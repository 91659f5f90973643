//! `saltern chain`: actions one after the other, each minion at its own pace, across reboots and agent updates.

mod act;
mod apply;
mod edit;
mod file;
mod launch;
mod sentence;
mod show;
mod status;
mod step;
mod wait;

pub(super) use step::checked;

use crate::args::{Format, Out};
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::{self, text};
use act::LaunchVerb;
use clap::Subcommand;
use edit::Edit;
use saltern_api::client::Client;
use saltern_api::shape::{ChainDetail, ChainDraft, NewStep};
use saltern_core::chain::Step;
use saltern_server::clock;
use std::process::ExitCode;
use step::{Part, StepChange, StepRules, Whom};

/// Put actions into an order, and launch them together
///
/// A chain is a template: steps in order, each an action with its minions. On each minion a step begins when the one before it has
/// succeeded there; what happens elsewhere does not matter, unless the step has a barrier. A launch is one execution of a chain, which
/// goes on after reboots, agent updates and restarts of the server.
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
  saltern chain create patch-web
  saltern chain add patch-web package_update --target 'web*'
  saltern chain add patch-web reboot --target 'web*' --limit 30m
  saltern chain add patch-web service_restart --target lb1 service=haproxy --barrier all --budget 10%
  saltern chain show patch-web
  saltern chain launch patch-web --preview         whom each step would be for
  saltern chain launch patch-web --wait
  saltern chain status 7 --minions                 how far it is, and where
  saltern chain explain 7 web1                     why it waits there
  saltern chain apply -f chains.yml                chains from a file; `export` writes one

CHAIN is the number or the name of a chain, LAUNCH the number of a launch.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List chains: your own, and what others share
    List,
    /// Show a chain with its steps
    Show(Which),
    /// Make a chain, which has no steps yet
    Create {
        /// What it is called
        name: String,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        description: String,
        /// Let others of your organisation see and launch it
        #[arg(long)]
        shared: bool,
    },
    Add(Box<AddArgs>),
    Edit(Box<EditArgs>),
    /// Remove steps from a chain; those behind them move up
    Remove {
        #[command(flatten)]
        which: Which,
        /// The numbers of the steps
        #[arg(value_name = "STEP", required = true, value_parser = number)]
        steps: Vec<usize>,
    },
    /// Give a step another place in its chain
    Move {
        #[command(flatten)]
        which: Which,
        /// The number of the step
        #[arg(value_name = "STEP", value_parser = number)]
        from: usize,
        /// The number it is to have
        #[arg(value_name = "TO", value_parser = number)]
        to: usize,
    },
    /// Give a chain another name
    Rename {
        #[command(flatten)]
        which: Which,
        /// The new name
        name: String,
    },
    /// Copy a chain; the copy is yours
    Copy {
        #[command(flatten)]
        which: Which,
        /// The name of the copy
        name: String,
    },
    /// Keep what a chain does as a state of the catalogue (see `saltern state`)
    SaveAsState {
        #[command(flatten)]
        which: Which,
        /// The name of the state
        name: String,
    },
    /// Let others of the organisation see and launch a chain
    Share(Which),
    /// Keep a chain for yourself
    Unshare(Which),
    /// Remove a chain; what was launched from it stays
    Delete(Which),
    Apply(apply::Args),
    /// Print chains as YAML, as `apply` reads them
    Export {
        /// The chains' numbers or names
        #[arg(value_name = "CHAIN", required = true)]
        which: Vec<String>,
    },
    Launch(Box<launch::Args>),
    Launches(status::ListArgs),
    /// Show how far a launch is, step by step
    Status {
        #[command(flatten)]
        launch: LaunchId,
        /// Each minion, too
        #[arg(long)]
        minions: bool,
    },
    /// Wait until a launch has ended; exit code 0 only if every minion has done all of its steps
    Wait(LaunchId),
    /// Show what a launch comes to on one minion, as the states it amounts to
    Plan(OnMinion),
    /// Explain why a launch stands where it stands on one minion
    Explain(OnMinion),
    /// Begin nothing more of launches; a step that runs is finished
    Cancel(LaunchIds),
    /// Begin nothing more of launches, and kill what runs
    Stop(LaunchIds),
    /// Say yes to a step that asks
    Approve {
        #[command(flatten)]
        launch: LaunchId,
        /// The number of the step
        #[arg(value_name = "STEP", value_parser = number)]
        step: usize,
    },
    /// Remove what minions keep of chains that are over
    Clear {
        /// The minions' ids
        #[arg(value_name = "MINION", required = true)]
        minions: Vec<String>,
        /// Also of a chain that has not ended there, if nothing of it runs
        #[arg(long)]
        force: bool,
    },
}

/// Add a step to a chain
#[derive(Debug, clap::Args)]
#[command(after_help = ADD_EXAMPLES)]
struct AddArgs {
    #[command(flatten)]
    which: Which,

    /// What to do; `saltern action types` lists what there is
    #[arg(value_name = "TYPE")]
    kind: String,

    /// Parameters as NAME=VALUE; a script's body may come from a file: body=@FILE
    #[arg(value_name = "NAME=VALUE")]
    params: Vec<String>,

    #[command(flatten)]
    whom: Whom,

    /// Which number the step is to have; the last unless told
    #[arg(long, value_name = "N", value_parser = number)]
    position: Option<usize>,

    #[command(flatten)]
    rules: StepRules,
}

const ADD_EXAMPLES: &str = "\
Examples:
  saltern chain add patch-web package_update --target 'web*'
  saltern chain add patch-web states mods=nginx -G --target os:Debian --limit 30m
  saltern chain add patch-web script body=@check.sh --group web --barrier all --budget 10%
  saltern chain add patch-web function fun=service.start arg='[nginx]' --after failed
  saltern chain add patch-web reboot --approval 'Reboot them now?'

A step without a target is for the minions that the launch names.";

/// Change a step of a chain, or what the chain is for
#[derive(Debug, clap::Args)]
struct EditArgs {
    #[command(flatten)]
    which: Which,

    /// The number of the step
    #[arg(value_name = "STEP", value_parser = number, required_unless_present = "description")]
    step: Option<usize>,

    /// Parameters that are to be different, as NAME=VALUE; the others stay
    #[arg(value_name = "NAME=VALUE")]
    params: Vec<String>,

    /// Take off a parameter; may be given several times
    #[arg(long, value_name = "NAME", requires = "step")]
    unset: Vec<String>,

    #[command(flatten)]
    whom: Whom,

    #[command(flatten)]
    rules: StepRules,

    /// Make this as usual again; may be given several times
    #[arg(long, value_name = "WHAT", value_enum, requires = "step")]
    clear: Vec<Part>,

    /// What the chain is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// One chain.
#[derive(Debug, clap::Args)]
struct Which {
    /// The chain's number or name
    #[arg(value_name = "CHAIN")]
    which: String,
}

/// One launch.
#[derive(Clone, Copy, Debug, clap::Args)]
struct LaunchId {
    /// The launch's number
    #[arg(value_name = "LAUNCH", value_parser = clap::value_parser!(i64).range(1..))]
    id: i64,
}

/// Some launches.
#[derive(Clone, Debug, clap::Args)]
struct LaunchIds {
    /// The launches' numbers
    #[arg(value_name = "LAUNCH", required = true, value_parser = clap::value_parser!(i64).range(1..))]
    ids: Vec<i64>,
}

/// The part of a launch that is for one minion.
#[derive(Clone, Debug, clap::Args)]
struct OnMinion {
    #[command(flatten)]
    launch: LaunchId,
    /// The minion's id
    minion: String,
}

impl EditArgs {
    fn edits(self) -> Result<Vec<Edit>, Failure> {
        let Self { step, params, unset, whom, rules, clear, description, .. } = self;
        if step.is_none() && (whom.get()?.is_some() || rules.is_given()) {
            return Err(Failure::usage("say which step is to be changed: give its number after the chain"));
        }
        let change = StepChange { params, unset, whom, rules, clear };
        let step = step.map(|number| Edit::Replace(number, Box::new(change)));
        Ok(description.map(Edit::Describe).into_iter().chain(step).collect())
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    let client = &client;
    let (which, edits) = match args.verb {
        Verb::List => {
            let chains = client.chains().await?;
            output::show(format, &chains, || show::table(&chains, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Show(which) => {
            let chain = client.chain(&which.which).await?;
            output::show(format, &chain, || show::detail(&chain, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Create { name, description, shared } => {
            let draft = ChainDraft { name, description, shared, steps: Vec::new() };
            let chain = client.create_chain(&draft).await?;
            return shown(&chain, "was made", format);
        }
        Verb::Add(args) => {
            let step = args.whom.step(&args.kind, &args.params, &args.rules)?;
            return add(client, &args.which.which, step, args.position, format).await;
        }
        Verb::Copy { which, name } => {
            let chain = client.copy_chain(&which.which, &name).await?;
            return shown(&chain, "was made", format);
        }
        Verb::SaveAsState { which, name } => {
            let saved = client.save_chain_as_state(&which.which, &name).await?;
            output::show(format, &saved, || {
                format!(
                    "State {name} was made. `saltern state show {name}` shows it; minions know it as catalogue.{name}."
                )
            })?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Delete(which) => {
            let chain = client.chain(&which.which).await?.chain;
            client.delete_chain(chain.id, chain.version).await?;
            output::line(&format!("Chain {} ({}) was deleted.", text::clean(&chain.name), chain.id))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Apply(args) => return apply::run(&args, client, format).await,
        Verb::Export { which } => return apply::export(client, &which, format).await,
        Verb::Launch(args) => return launch::run(&args, client, format).await,
        Verb::Launches(args) => return status::list(args, client, format).await,
        Verb::Status { launch, minions } => return status::run(client, launch.id, minions, format).await,
        Verb::Wait(launch) => return wait::run(client, launch.id, format).await,
        Verb::Plan(OnMinion { launch, minion }) => {
            let plan = client.launch_plan(launch.id, &minion).await?;
            output::show(format, &plan, || text::clean_lines(&plan.sls))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Explain(OnMinion { launch, minion }) => {
            let why = client.explain_launch(launch.id, &minion).await?;
            output::show(format, &why, || super::action::explained(&why, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Cancel(launches) => return act::end(client, LaunchVerb::Cancel, &launches.ids, format).await,
        Verb::Stop(launches) => return act::end(client, LaunchVerb::Stop, &launches.ids, format).await,
        Verb::Approve { launch, step } => return act::approve(client, launch.id, step, format).await,
        Verb::Clear { minions, force } => return act::clear(client, minions, force, format).await,
        Verb::Edit(mut args) => (std::mem::take(&mut args.which.which), args.edits()?),
        Verb::Remove { which, steps } => (which.which, vec![Edit::Remove(steps)]),
        Verb::Move { which, from, to } => (which.which, vec![Edit::Move { from, to }]),
        Verb::Rename { which, name } => (which.which, vec![Edit::Rename(name)]),
        Verb::Share(which) => (which.which, vec![Edit::Share(true)]),
        Verb::Unshare(which) => (which.which, vec![Edit::Share(false)]),
    };
    shown(&edit::change(client, &which, &edits).await?, "was changed", format)
}

/// Adds a step to a chain, and shows the chain.
pub(super) async fn add(
    client: &Client,
    which: &str,
    step: Step,
    position: Option<usize>,
    format: Format,
) -> Result<ExitCode, Failure> {
    let chain = client.add_step(which, &NewStep { step, position }).await?;
    shown(&chain, "has one more step", format)
}

fn shown(chain: &ChainDetail, what: &str, format: Format) -> Result<ExitCode, Failure> {
    output::show(format, chain, || {
        let (name, id) = (text::clean(&chain.chain.name), chain.chain.id);
        format!("Chain {name} ({id}) {what}.\n{}", sentence::list(&chain.steps, Style::of_stdout()))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The number of a step.
fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "steps are numbered from 1".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn verb(words: &[&str]) -> Result<Verb, String> {
        let cli = Cli::try_parse_from(["saltern", "chain"].iter().chain(words)).map_err(|error| error.to_string())?;
        match cli.command {
            Command::Chain(args) => Ok(args.verb),
            _ => panic!("not a chain"),
        }
    }

    #[test]
    fn every_verb_takes_what_it_needs() {
        for words in [
            &["list"][..],
            &["show", "7"],
            &["create", "night", "--shared", "--description", "x"],
            &["add", "night", "reboot"],
            &["add", "night", "states", "mods=nginx", "-G", "-t", "os:Debian", "--position", "1"],
            &["edit", "night", "2", "delay=5", "--clear", "budget", "--clear", "limit", "--unset", "x"],
            &["edit", "night", "--description", "x"],
            &["remove", "night", "1", "2"],
            &["move", "night", "3", "1"],
            &["rename", "night", "day"],
            &["copy", "night", "day"],
            &["save-as-state", "night", "web"],
            &["share", "night"],
            &["unshare", "night"],
            &["delete", "night"],
            &["apply", "-f", "a.yml", "-f", "-", "--dry-run"],
            &["export", "night", "7"],
            &["launch", "night", "--wait"],
            &["launches", "night", "--open", "--limit", "5", "--before", "9"],
            &["status", "7", "--minions", "--out", "json"],
            &["wait", "7"],
            &["plan", "7", "web1"],
            &["explain", "7", "web1"],
            &["cancel", "7", "8"],
            &["stop", "7"],
            &["approve", "7", "2"],
            &["clear", "web1", "web2", "--force"],
        ] {
            assert!(verb(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            &["edit", "night"][..],
            &["edit", "night", "0", "x=1"],
            &["edit", "night", "--description", "x", "--clear", "budget"],
            &["remove", "night"],
            &["move", "night", "3"],
            &["apply"],
            &["export"],
            &["status", "night"],
            &["approve", "7"],
            &["approve", "7", "0"],
            &["clear"],
        ] {
            assert!(verb(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn an_edit_is_of_the_step_and_of_the_chain() {
        let Ok(Verb::Edit(args)) = verb(&["edit", "night", "2", "delay=5", "--description", "x"]) else {
            panic!("not an edit")
        };
        assert!(matches!(args.edits().unwrap().as_slice(), [Edit::Describe(_), Edit::Replace(2, _)]));
    }

    #[test]
    fn a_rule_is_of_a_step_that_is_named() {
        for words in [&["--barrier", "all"][..], &["--target", "web*"], &["--not-repeatable"]] {
            let words: Vec<&str> = ["edit", "night", "--description", "x"].iter().chain(words).copied().collect();
            let Ok(Verb::Edit(args)) = verb(&words) else { panic!("not an edit") };
            assert!(args.edits().is_err(), "{words:?}");
        }
    }
}
