//! `saltern minion`: who there is, who is there, what is known of each.

pub(crate) mod agent;

use crate::args::{Delimiter, Out, TargetKind};
use crate::failure::Failure;
use crate::output::style::{Colour, Style};
use crate::output::table::Table;
use crate::output::{self, nested, when};
use clap::{Subcommand, ValueEnum};
use saltern_api::client::Client;
use saltern_api::shape::{Minion, MinionChange, MinionDetail};
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::path::PathBuf;
use std::process::ExitCode;

/// Be a minion, or see who there is and who is there
///
/// Without a verb this is the agent: it connects to a Salt master, ours or a stock one, and runs what it is told. With a verb
/// it asks the server about its minions.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(flatten)]
    agent: agent::Agent,

    #[command(subcommand)]
    verb: Option<Verb>,
}

const EXAMPLES: &str = "\
Examples:
  saltern minion --master salt.example.org --id web1
  saltern minion list
  saltern minion list -G os:Debian
  saltern minion show web1
  saltern minion set web1 --ack off
  saltern minion set web1 --org north";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List accepted minions, all or those of a target
    List {
        /// Which minions: a shell pattern over their ids, unless a target type is given
        target: Option<String>,
        #[command(flatten)]
        kind: TargetKind,
        #[command(flatten)]
        delimiter: Delimiter,
        #[command(flatten)]
        out: Out,
    },
    /// Show everything that is known of a minion, its grains included
    Show {
        /// The minion's id
        id: String,
        #[command(flatten)]
        out: Out,
    },
    /// Change what can be set for a minion
    Set {
        /// The minion's id
        id: String,
        /// Whether jobs ask it to acknowledge
        #[arg(long, value_enum, required_unless_present = "org")]
        ack: Option<Ack>,
        /// The organisation it is to belong to
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
        #[command(flatten)]
        out: Out,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ack {
    /// Always
    On,
    /// Never
    Off,
    /// As the server is configured
    Default,
}

impl Ack {
    const fn setting(self) -> Option<bool> {
        match self {
            Self::On => Some(true),
            Self::Off => Some(false),
            Self::Default => None,
        }
    }

    const fn word(setting: Option<bool>) -> &'static str {
        match setting {
            Some(true) => "on",
            Some(false) => "off",
            None => "default",
        }
    }
}

pub(crate) async fn run(
    args: Args,
    client: impl FnOnce() -> Result<Client, Failure>,
    data_dir: Option<PathBuf>,
) -> Result<ExitCode, Failure> {
    let Some(verb) = args.verb else { return agent::run(args.agent, data_dir).await };
    let client = client()?;
    match verb {
        Verb::List { target, kind, delimiter, out: Out { format } } => {
            let query = target.map(|target| kind.query(&target, &delimiter));
            let list = client.minions(query.as_ref()).await?;
            output::show(format, &list.minions, || table(&list.minions, clock::now(), Style::of_stdout()))?;
        }
        Verb::Show { id, out: Out { format } } => {
            let detail = client.minion(&id).await?;
            output::show(format, &detail, || detail_text(&detail, clock::now(), Style::of_stdout()))?;
        }
        Verb::Set { id, ack, org, out: Out { format } } => {
            let detail = client.change_minion(&id, &MinionChange { ack: ack.map(Ack::setting), org }).await?;
            let Minion { ack, org, .. } = &detail.minion;
            output::show(format, &detail, || {
                format!("{id}: acknowledgement is {}, organisation is {org}", Ack::word(*ack))
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(minions: &[Minion], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["ID", "PRESENCE", "LAST SEEN", "VERSION", "ADDRESS", "ACK"]);
    for minion in minions {
        let seen = if minion.presence == "present" { "now".into() } else { when::ago(minion.last_seen.0, now) };
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let ack = if minion.ack == Some(false) { "off".into() } else { minion.ack_method.clone() };
        table.row([
            minion.id.clone(),
            minion.presence.clone(),
            seen,
            text(&minion.version),
            text(&minion.address),
            ack,
        ]);
    }
    table.show("There is no accepted minion. `saltern key list` shows who waits.", style)
}

fn detail_text(detail: &MinionDetail, now: Timestamp, style: Style) -> String {
    let minion = &detail.minion;
    let when = |at: Option<saltern_api::shape::Time>| at.map_or("never".into(), |at| when::when(at.0, now));
    let presence = match minion.since {
        Some(since) => format!("{} since {}", minion.presence, when::when(since.0, now)),
        None => "not heard of since the server started".into(),
    };
    let fields = [
        ("Presence", presence),
        ("Last seen", when(Some(minion.last_seen))),
        ("First seen", when(Some(minion.first_seen))),
        ("Agent started", when(minion.started)),
        ("Address", minion.address.clone().unwrap_or_default()),
        ("Salt version", minion.version.clone().unwrap_or_default()),
        ("Acknowledges by", minion.ack_method.clone()),
        (
            "Requires a reboot",
            minion.reboot_needed.map_or("not told", |needed| if needed { "yes" } else { "no" }).into(),
        ),
        ("Acknowledgement", Ack::word(minion.ack).into()),
        ("Organisation", minion.org.clone()),
        ("Fingerprint", detail.fingerprint.clone().unwrap_or_default()),
        ("Grains sent", when(detail.grains_at)),
    ];
    let mut lines = vec![format!("{}:", style.paint(Colour::Cyan, &minion.id))];
    for (label, value) in fields {
        lines.push(format!("    {label:<16} {}", output::text::clean(&value)).trim_end().to_owned());
    }
    if let Some(grains) = &detail.grains {
        lines.push(format!("    Grains:\n{}", nested::value(grains, 8, style)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Time;
    use saltern_core::value::Value;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn minion(id: &str, presence: &str) -> Minion {
        let past = Time(Timestamp::from_secs(1_794_772_591 - 600));
        Minion {
            id: id.into(),
            presence: presence.into(),
            since: Some(past),
            first_seen: past,
            last_seen: past,
            started: None,
            address: Some("10.0.0.1".into()),
            version: Some("3008.3".into()),
            ack_method: "start_event".into(),
            ack: None,
            reboot_needed: None,
            org: "default".into(),
        }
    }

    #[test]
    fn the_list_tells_who_is_there() {
        let minions = [minion("web1", "present"), Minion { ack: Some(false), ..minion("web2", "absent") }];
        assert_eq!(
            table(&minions, NOW, Style::PLAIN),
            "\
ID    PRESENCE  LAST SEEN   VERSION  ADDRESS   ACK
web1  present   now         3008.3   10.0.0.1  start_event
web2  absent    10 min ago  3008.3   10.0.0.1  off"
        );
    }

    #[test]
    fn the_detail_has_the_grains() {
        let detail = MinionDetail {
            minion: minion("web1", "present"),
            fingerprint: Some("aa:bb".into()),
            grains: Some(Value::map([("os", "Debian")])),
            grains_at: None,
        };
        let text = detail_text(&detail, NOW, Style::PLAIN);
        assert!(
            text.starts_with("web1:\n    Presence         present since 2026-11-15 19:46:31 UTC (10 min ago)\n"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "    Grains sent      never\n    Grains:\n        ----------\n        os:\n            Debian"
            ),
            "{text}"
        );
    }
}
