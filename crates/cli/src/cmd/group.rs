//! `saltern group`: sets of minions that roles are given on.

use crate::args::{Out, TargetKind};
use crate::failure::Failure;
use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{self, when};
use clap::Subcommand;
use saltern_api::client::Client;
use saltern_api::shape::{Group, GroupContent, GroupDetail, NewGroup};
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::process::ExitCode;

/// Manage groups of minions, which roles are given on
///
/// A group means the minions that are named one by one and those that match its target now, as far as they belong to its
/// organisation.
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
  saltern group create web --target 'web*'
  saltern group create debian --target os:Debian -G
  saltern group create special --member db1 --member db2
  saltern group change special --add db3 --remove db1
  saltern user change bob --add-role operator:web";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List groups
    List,
    /// Show a group with its minions
    Show {
        /// The group's name
        name: String,
    },
    /// Make a group
    Create {
        /// The group's name
        name: String,
        #[command(flatten)]
        whom: Whom,
        /// A minion that belongs to it whatever it matches; may be given several times
        #[arg(long = "member", value_name = "ID")]
        members: Vec<String>,
        /// The organisation; your own unless told
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        description: String,
    },
    /// Change a group
    Change {
        /// The group's name
        name: String,
        /// Name one more minion; may be given several times
        #[arg(long = "add", value_name = "ID")]
        add: Vec<String>,
        /// Name a minion no longer; may be given several times
        #[arg(long = "remove", value_name = "ID")]
        remove: Vec<String>,
        #[command(flatten)]
        whom: Whom,
        /// Only the minions that are named from now on
        #[arg(long, conflicts_with = "target")]
        no_target: bool,
        /// What it is for
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Remove a group, and the roles that were given on it; its minions stay
    Delete {
        /// The group's name
        name: String,
    },
}

/// Which minions match.
#[derive(Debug, clap::Args)]
struct Whom {
    /// Whoever matches this: a shell pattern over ids, unless a target type is given
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    kind: TargetKind,
}

impl Whom {
    /// Target and type, as they go into a request.
    fn get(self) -> Result<(Option<String>, Option<String>), Failure> {
        match self.target {
            Some(target) => Ok((Some(target), Some(self.kind.kind().as_str().to_owned()))),
            None if self.kind.is_given() => {
                Err(Failure::usage("a target type says how to read --target: give that, too"))
            }
            None => Ok((None, None)),
        }
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    match args.verb {
        Verb::List => {
            let groups = client.groups().await?;
            output::show(format, &groups, || table(&groups, Style::of_stdout()))?;
        }
        Verb::Show { name } => {
            let group = client.group(&name).await?;
            output::show(format, &group, || detail(&group, clock::now(), Style::of_stdout()))?;
        }
        Verb::Create { name, whom, members, org, description } => {
            let (target, tgt_type) = whom.get()?;
            let wanted = NewGroup { name, org, description, target, tgt_type, members };
            let group = client.create_group(&wanted).await?;
            output::show(format, &group, || told(&group, "was made"))?;
        }
        Verb::Change { name, add, remove, whom, no_target, description } => {
            let known = client.group(&name).await?;
            let version = known.group.version;
            let whom = whom.get()?;
            if add.is_empty() && remove.is_empty() && whom.0.is_none() && !no_target && description.is_none() {
                return Err(Failure::usage("say what is to be changed").hint("`saltern group change --help`"));
            }
            let content = change(known, add, &remove, whom, no_target, description)?;
            let group = client.put_group(&name, version, &content).await?;
            output::show(format, &group, || told(&group, "was changed"))?;
        }
        Verb::Delete { name } => {
            let version = client.group(&name).await?.group.version;
            client.delete_group(&name, version).await?;
            output::line(&format!("Group {name} was deleted, with the roles on it."))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the group is to be, from what it is.
fn change(
    known: GroupDetail,
    add: Vec<String>,
    remove: &[String],
    (target, tgt_type): (Option<String>, Option<String>),
    no_target: bool,
    description: Option<String>,
) -> Result<GroupContent, Failure> {
    let mut members = known.members;
    if let Some(stranger) = remove.iter().find(|id| !members.contains(id)) {
        let failure = Failure::new(format!("{stranger} is not named in group {}", known.group.name));
        return Err(failure.hint("whom its target means cannot be taken out one by one"));
    }
    members.retain(|id| !remove.contains(id));
    members.extend(add);
    let (target, tgt_type) = match target {
        Some(_) => (target, tgt_type),
        None if no_target => (None, None),
        None => (known.group.target, known.group.tgt_type),
    };
    Ok(GroupContent { description: description.unwrap_or(known.group.description), target, tgt_type, members })
}

fn told(group: &GroupDetail, done: &str) -> String {
    format!("Group {} {done}; it means {} minions now.", group.group.name, group.minions.len())
}

fn target(group: &Group) -> String {
    match (&group.target, group.tgt_type.as_deref()) {
        (None, _) => String::new(),
        (Some(target), None | Some("glob")) => target.clone(),
        (Some(target), Some(kind)) => format!("{kind} {target}"),
    }
}

fn table(groups: &[Group], style: Style) -> String {
    let mut table = Table::new(&["NAME", "ORGANISATION", "MINIONS", "TARGET", "DESCRIPTION"]);
    for group in groups {
        table.row([
            group.name.clone(),
            group.org.clone(),
            group.minion_count.to_string(),
            target(group),
            group.description.clone(),
        ]);
    }
    table.show("There is no group.", style)
}

fn detail(detail: &GroupDetail, now: Timestamp, style: Style) -> String {
    let group = &detail.group;
    let known = [
        ("Organisation", group.org.clone()),
        ("Description", group.description.clone()),
        ("Target", target(group)),
        ("Named", detail.members.join(", ")),
        ("Minions now", detail.minions.join(", ")),
        ("Made", when::when(group.created.0, now)),
        ("Version", group.version.to_string()),
    ];
    fields(&group.name, &known, style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use saltern_api::shape::Time;

    fn group() -> GroupDetail {
        GroupDetail {
            group: Group {
                name: "web".into(),
                org: "default".into(),
                description: "front".into(),
                target: Some("os:Debian".into()),
                tgt_type: Some("grain".into()),
                minion_count: 3,
                created: Time(Timestamp::from_secs(1_794_772_591)),
                version: 2,
            },
            members: vec!["db1".into()],
            minions: vec!["db1".into(), "web1".into(), "web2".into()],
        }
    }

    fn parse(words: &[&str]) -> Option<Verb> {
        let cli = Cli::try_parse_from(["saltern", "group"].iter().chain(words)).ok()?;
        let Command::Group(args) = cli.command else { panic!("not a group") };
        Some(args.verb)
    }

    #[test]
    fn a_group_has_a_target_of_a_type() {
        let Some(Verb::Create { whom, members, .. }) =
            parse(&["create", "g", "--target", "os:Debian", "-G", "--member", "db1"])
        else {
            panic!("not a create")
        };
        assert_eq!(whom.get().unwrap(), (Some("os:Debian".into()), Some("grain".into())));
        assert_eq!(members, ["db1"]);
        let Some(Verb::Create { whom, .. }) = parse(&["create", "g", "-G"]) else { panic!("not a create") };
        assert!(whom.get().is_err());
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let changed = change(group(), vec!["db2".into()], &[], (None, None), false, None).unwrap();
        assert_eq!(changed.members, ["db1", "db2"]);
        assert_eq!((changed.target.as_deref(), changed.description.as_str()), (Some("os:Debian"), "front"));
        let changed = change(group(), vec![], &["db1".into()], (None, None), true, Some("x".into())).unwrap();
        assert_eq!((changed.members.len(), changed.target, changed.description.as_str()), (0, None, "x"));
    }

    #[test]
    fn whoever_is_not_named_cannot_be_taken_out() {
        assert!(change(group(), vec![], &["web1".into()], (None, None), false, None).is_err());
    }

    #[test]
    fn the_list_tells_how_many_it_means() {
        assert_eq!(
            table(&[group().group], Style::PLAIN),
            "\
NAME  ORGANISATION  MINIONS  TARGET           DESCRIPTION
web   default       3        grain os:Debian  front"
        );
    }
}
