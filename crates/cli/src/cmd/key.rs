//! `saltern key`: who may be a minion.

mod decide;
mod show;

use crate::args::Out;
use crate::failure::Failure;
use crate::output;
use clap::{Subcommand, ValueEnum};
use saltern_api::client::{Client, KeyVerb};
use saltern_api::shape::KeyList;
use saltern_core::keys::KeyState;
use saltern_core::target::Glob;
use std::process::ExitCode;

/// Decide who may be a minion
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
  saltern key list
  saltern key finger web1          compare with `salt-call --local key.finger` on web1
  saltern key accept web1 'db*'
  saltern key accept --all -y
  saltern key delete web1          it may present itself again";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List keys by what was decided about them
    List {
        /// Only keys in this state
        #[arg(long, value_enum)]
        state: Option<State>,
    },
    /// Let minions in
    Accept(Decision),
    /// Keep minions out
    Reject(Decision),
    /// Forget keys; the minions may present themselves again
    Delete(Decision),
    /// Show fingerprints, the server's own first
    Finger {
        /// Only of ids that match this shell pattern
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
    },
    /// Show the public keys of an id
    Show {
        /// The minion's id
        id: String,
    },
}

/// Which keys a decision is about.
#[derive(Debug, clap::Args)]
struct Decision {
    /// Ids, or shell patterns over ids
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,

    /// Every key the decision can apply to
    #[arg(long)]
    all: bool,

    /// Rejected keys too
    #[arg(long)]
    include_rejected: bool,

    /// Denied keys too: a denied key replaces the accepted one of its id
    #[arg(long)]
    include_denied: bool,

    /// Accepted keys too
    #[arg(long)]
    include_accepted: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// A state of a key, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    /// Waits for a decision
    #[value(alias = "pending")]
    Unaccepted,
    /// In
    Accepted,
    /// Out
    Rejected,
    /// Claims the id of another key
    Denied,
}

impl From<State> for KeyState {
    fn from(state: State) -> Self {
        match state {
            State::Unaccepted => Self::Unaccepted,
            State::Accepted => Self::Accepted,
            State::Rejected => Self::Rejected,
            State::Denied => Self::Denied,
        }
    }
}

impl Decision {
    /// States beyond the usual ones.
    fn include(&self) -> Vec<KeyState> {
        let wanted = [
            (self.include_rejected, KeyState::Rejected),
            (self.include_denied, KeyState::Denied),
            (self.include_accepted, KeyState::Accepted),
        ];
        wanted.into_iter().filter_map(|(set, state)| set.then_some(state)).collect()
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    match args.verb {
        Verb::List { state } => {
            let KeyList { keys, .. } = client.keys().await?;
            let states: Vec<KeyState> = state.map_or(show::ORDER.to_vec(), |state| vec![state.into()]);
            output::show(format, &show::by_state(&keys, &states), || show::list(&keys, &states))?;
        }
        Verb::Accept(decision) => return decide::run(&client, KeyVerb::Accept, &decision, format).await,
        Verb::Reject(decision) => return decide::run(&client, KeyVerb::Reject, &decision, format).await,
        Verb::Delete(decision) => return decide::run(&client, KeyVerb::Delete, &decision, format).await,
        Verb::Finger { pattern } => {
            let mut list = client.keys().await?;
            if let Some(pattern) = &pattern {
                let glob = Glob::new(pattern);
                list.keys.retain(|key| glob.matches(&key.id));
                if list.keys.is_empty() {
                    return Err(Failure::new(format!("no key matches {pattern:?}")));
                }
            }
            output::show(format, &list, || show::fingerprints(&list))?;
        }
        Verb::Show { id } => {
            let KeyList { keys, .. } = client.key(&id).await?;
            output::show(format, &keys, || show::public_keys(&keys))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
