//! `saltern org`: the walls inside a server.

use crate::args::Out;
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{self, when};
use clap::Subcommand;
use saltern_api::client::Client;
use saltern_api::shape::{NewOrganisation, Organisation, OrganisationContent};
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::process::ExitCode;

/// Manage organisations
///
/// Every minion, user and group belongs to one, at first to `default`. Who is in one organisation sees nothing of another.
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
  saltern org create north --description 'The northern site'
  saltern minion set web1 --org north
  saltern user create nora --org north --role org-admin";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List organisations
    List,
    /// Make an organisation
    Create {
        /// The organisation's name
        name: String,
        /// What it is
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        description: String,
    },
    /// Change an organisation's description
    Change {
        /// The organisation's name
        name: String,
        /// What it is
        #[arg(long, value_name = "TEXT")]
        description: String,
    },
    /// Remove an organisation that nothing belongs to
    Delete {
        /// The organisation's name
        name: String,
    },
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    match args.verb {
        Verb::List => {
            let organisations = client.organisations().await?;
            output::show(format, &organisations, || table(&organisations, clock::now(), Style::of_stdout()))?;
        }
        Verb::Create { name, description } => {
            let made = client.create_organisation(&NewOrganisation { name, description }).await?;
            output::show(format, &made, || format!("Organisation {} was made.", made.name))?;
        }
        Verb::Change { name, description } => {
            let version = client.organisation(&name).await?.version;
            let changed = client.put_organisation(&name, version, &OrganisationContent { description }).await?;
            output::show(format, &changed, || format!("Organisation {} was changed.", changed.name))?;
        }
        Verb::Delete { name } => {
            let version = client.organisation(&name).await?.version;
            client.delete_organisation(&name, version).await?;
            output::line(&format!("Organisation {name} was deleted."))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(organisations: &[Organisation], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["NAME", "MADE", "DESCRIPTION"]);
    for organisation in organisations {
        let made = when::ago(organisation.created.0, now);
        table.row([organisation.name.clone(), made, organisation.description.clone()]);
    }
    table.show("There is no organisation that you may see.", style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Time;

    #[test]
    fn the_list_has_names_and_descriptions() {
        let now = Timestamp::from_secs(1_794_772_591);
        let organisation = Organisation {
            name: "north".into(),
            description: "The northern site".into(),
            created: Time(Timestamp::from_secs(1_794_772_591 - 600)),
            version: 1,
        };
        assert_eq!(
            table(&[organisation], now, Style::PLAIN),
            "NAME   MADE        DESCRIPTION\nnorth  10 min ago  The northern site"
        );
    }
}
