//! `saltern state`: states that the server keeps, and whom they are assigned to.

use crate::args::Out;
use crate::failure::Failure;
use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{self, when};
use clap::Subcommand;
use saltern_api::client::Client;
use saltern_api::shape::{
    AssignedState, Assignee, AssigneeKind, CatalogueState, NewState, StateContent, StateDetail, StateVersion,
};
use saltern_core::time::Timestamp;
use saltern_server::clock;
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Manage the states that the server keeps, and assign them to minions
///
/// A state named web.nginx is on the minions of its organisation as catalogue.web.nginx. Those that are assigned to a minion,
/// to its groups or to its organisation are applied together: `saltern action create states TARGET assigned=true`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    out: Out,

    /// The organisation whose states; your own unless told
    #[arg(long = "in", global = true, value_name = "ORG")]
    of: Option<String>,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  saltern state put web.nginx -f nginx.sls
  saltern run web1 state.apply catalogue.web.nginx
  saltern state assign web.nginx --group web
  saltern state assigned web1
  saltern action create states 'web*' assigned=true
  saltern state history web.nginx
  saltern state show web.nginx --version 3";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List states
    List,
    /// Show a state with its text
    // Its `--version` is the state's, not the program's.
    #[command(disable_version_flag = true)]
    Show {
        /// The state's name
        name: String,
        /// As it was at this version
        #[arg(long, value_name = "N")]
        version: Option<i64>,
    },
    /// Make a state, or change it; what it was is kept
    Put {
        /// The state's name: words of small letters, digits and _ with dots between them
        name: String,
        /// The file with its text; - is the standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// What it is for
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the versions of a state, newest first
    History {
        /// The state's name
        name: String,
    },
    /// Remove a state with its versions and assignments; nothing changes on minions
    Delete {
        /// The state's name
        name: String,
    },
    /// Assign a state to a minion, a group or an organisation
    Assign {
        /// The state's name
        name: String,
        #[command(flatten)]
        whom: Whom,
    },
    /// Take an assignment back; nothing changes on minions
    Unassign {
        /// The state's name
        name: String,
        #[command(flatten)]
        whom: Whom,
    },
    /// List what is assigned to a minion, in the order it is applied in
    Assigned {
        /// The minion's id
        minion: String,
    },
}

/// Whom a state is assigned to.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Whom {
    /// One minion
    #[arg(long, value_name = "ID")]
    minion: Option<String>,
    /// The minions that a group means
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Every minion of the organisation
    #[arg(long, value_name = "NAME")]
    org: Option<String>,
}

impl Whom {
    /// Whom, and in which organisation the state is. A state of another one cannot be assigned to an organisation.
    fn get(self, of: Option<String>) -> (Option<String>, Assignee) {
        let Self { minion, group, org } = self;
        let of = of.or_else(|| org.clone());
        let given = [(AssigneeKind::Minion, minion), (AssigneeKind::Group, group), (AssigneeKind::Org, org)];
        let mut given = given.into_iter().filter_map(|(kind, subject)| Some(Assignee { kind, subject: subject? }));
        // clap has seen to it that there is one.
        let whom = given.next().unwrap_or(Assignee { kind: AssigneeKind::Org, subject: String::new() });
        (of, whom)
    }
}

/// A state as `show` tells it.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    detail: StateDetail,
    assigned_to: Vec<Assignee>,
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let (format, of) = (args.out.format, args.of);
    match args.verb {
        Verb::List => {
            let states = client.states(of.as_deref()).await?;
            output::show(format, &states, || table(&states, clock::now(), Style::of_stdout()))?;
        }
        Verb::Show { name, version: None } => {
            let detail = client.state(of.as_deref(), &name).await?;
            let assigned_to = client.state_assignees(of.as_deref(), &name).await?.assigned_to;
            let shown = Shown { detail, assigned_to };
            output::show(format, &shown, || describe(&shown, clock::now(), Style::of_stdout()))?;
        }
        Verb::Show { name, version: Some(version) } => {
            let shown = client.state_version(of.as_deref(), &name, version).await?;
            output::show(format, &shown, || shown.content.trim_end().to_owned())?;
        }
        Verb::Put { name, file, description } => {
            let content = read(&file)?;
            let (state, done) = put(&client, of, name, content, description).await?;
            output::show(format, &state, || told(&state, done))?;
        }
        Verb::History { name } => {
            let versions = client.state_versions(of.as_deref(), &name).await?;
            output::show(format, &versions, || history(&versions, clock::now(), Style::of_stdout()))?;
        }
        Verb::Delete { name } => {
            let version = client.state(of.as_deref(), &name).await?.state.version;
            client.delete_state(of.as_deref(), &name, version).await?;
            output::line(&format!("State {name} was deleted, with its versions and assignments."))?;
        }
        Verb::Assign { name, whom } => {
            let (of, whom) = whom.get(of);
            client.assign_state(of.as_deref(), &name, &whom).await?;
            output::line(&format!("State {name} is assigned to {}.", words(&whom)))?;
        }
        Verb::Unassign { name, whom } => {
            let (of, whom) = whom.get(of);
            client.unassign_state(of.as_deref(), &name, &whom).await?;
            output::line(&format!("State {name} is not assigned to {} any more.", words(&whom)))?;
        }
        Verb::Assigned { minion } => {
            let states = client.assigned_states(&minion).await?.states;
            output::show(format, &states, || assigned(&states, Style::of_stdout()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the state, or changes the one there is; its description stays unless another is given.
async fn put(
    client: &Client,
    of: Option<String>,
    name: String,
    content: String,
    description: Option<String>,
) -> Result<(StateDetail, &'static str), Failure> {
    match client.state(of.as_deref(), &name).await {
        Ok(known) => {
            let description = description.unwrap_or(known.state.description);
            let wanted = StateContent { description, content };
            let state = client.put_state(of.as_deref(), &name, known.state.version, &wanted).await?;
            let done = if state.state.version == known.state.version { "is so already" } else { "was changed" };
            Ok((state, done))
        }
        Err(error) if error.is_not_found() => {
            let description = description.unwrap_or_default();
            let state = client.create_state(&NewState { name, org: of, description, content }).await?;
            Ok((state, "was made"))
        }
        Err(error) => Err(error.into()),
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text).map(drop),
        _ => std::fs::read_to_string(file).map(|content| text = content),
    };
    read.map_err(|error| Failure::new(format!("cannot read {}: {error}", file.display())))?;
    Ok(text)
}

fn told(StateDetail { state, .. }: &StateDetail, done: &str) -> String {
    format!("State {} {done}; it is at version {}.", state.name, state.version)
}

fn words(Assignee { kind, subject }: &Assignee) -> String {
    match kind {
        AssigneeKind::Org => format!("organisation {subject}"),
        AssigneeKind::Group => format!("group {subject}"),
        AssigneeKind::Minion => format!("minion {subject}"),
    }
}

fn table(states: &[CatalogueState], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["NAME", "VERSION", "CHANGED", "BY", "DESCRIPTION"]);
    for state in states {
        table.row([
            state.name.clone(),
            state.version.to_string(),
            when::when(state.changed.0, now),
            state.changed_by.clone(),
            state.description.clone(),
        ]);
    }
    table.show("There is no state.", style)
}

fn describe(Shown { detail, assigned_to }: &Shown, now: Timestamp, style: Style) -> String {
    let state = &detail.state;
    let known = [
        ("Organisation", state.org.clone()),
        ("Description", state.description.clone()),
        ("On minions", format!("catalogue.{}", state.name)),
        ("Assigned to", assigned_to.iter().map(words).collect::<Vec<_>>().join(", ")),
        ("Made", when::when(state.created.0, now)),
        ("Changed", format!("{} by {}", when::when(state.changed.0, now), state.changed_by)),
        ("Version", state.version.to_string()),
    ];
    format!("{}\n\n{}", fields(&state.name, &known, style), detail.content.trim_end())
}

fn history(versions: &[StateVersion], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["VERSION", "MADE", "BY"]);
    for version in versions {
        table.row([version.version.to_string(), when::when(version.at.0, now), version.by.clone()]);
    }
    table.show("There is no version.", style)
}

fn assigned(states: &[AssignedState], style: Style) -> String {
    let mut table = Table::new(&["STATE", "VERSION", "BY", "DESCRIPTION"]);
    for state in states {
        table.row([state.name.clone(), state.version.to_string(), words(&state.by), state.description.clone()]);
    }
    table.show("Nothing is assigned to it.", style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use saltern_api::shape::Time;

    fn parse(words: &[&str]) -> Option<Args> {
        let cli = Cli::try_parse_from(["saltern", "state"].iter().chain(words)).ok()?;
        let Command::State(args) = cli.command else { panic!("not a state") };
        Some(args)
    }

    fn whom(words: &[&str]) -> Option<(Option<String>, Assignee)> {
        let args = parse(words)?;
        let Verb::Assign { whom, .. } = args.verb else { panic!("not an assignment") };
        Some(whom.get(args.of))
    }

    #[test]
    fn a_state_is_assigned_to_one_thing() {
        let (of, to) = whom(&["assign", "web", "--group", "g"]).unwrap();
        assert_eq!((of, to.kind, to.subject.as_str()), (None, AssigneeKind::Group, "g"));
        assert!(whom(&["assign", "web"]).is_none());
        assert!(whom(&["assign", "web", "--group", "g", "--minion", "m"]).is_none());
    }

    #[test]
    fn a_version_to_show_is_one_of_the_state() {
        let args = parse(&["show", "web", "--version", "3"]).unwrap();
        assert!(matches!(args.verb, Verb::Show { version: Some(3), .. }));
    }

    #[test]
    fn what_is_assigned_to_an_organisation_is_its_own() {
        let (of, to) = whom(&["assign", "web", "--org", "north"]).unwrap();
        assert_eq!((of.as_deref(), words(&to).as_str()), (Some("north"), "organisation north"));
        let (of, _) = whom(&["assign", "web", "--minion", "m", "--in", "north"]).unwrap();
        assert_eq!(of.as_deref(), Some("north"));
    }

    #[test]
    fn what_is_assigned_is_told_with_its_way() {
        let state = AssignedState {
            name: "web.nginx".into(),
            description: "front".into(),
            version: 3,
            by: Assignee { kind: AssigneeKind::Group, subject: "web".into() },
        };
        assert_eq!(
            assigned(&[state], Style::PLAIN),
            "\
STATE      VERSION  BY         DESCRIPTION
web.nginx  3        group web  front"
        );
    }

    #[test]
    fn a_state_is_shown_with_its_text_below() {
        let at = Time(Timestamp::from_secs(1_794_772_591));
        let state = CatalogueState {
            name: "web".into(),
            org: "default".into(),
            description: String::new(),
            size: 10,
            created: at,
            changed: at,
            changed_by: "ann".into(),
            version: 2,
        };
        let shown = Shown { detail: StateDetail { state, content: "a: {}\n".into() }, assigned_to: vec![] };
        let text = describe(&shown, at.0, Style::PLAIN);
        assert!(text.contains("catalogue.web") && text.ends_with("\n\na: {}"), "{text}");
    }
}
