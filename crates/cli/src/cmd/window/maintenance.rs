//! `saltern window maintenance`: minions that may be changed whatever their schedules say.

use super::show;
use crate::args::Format;
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::{self, text, when};
use crate::rules;
use saltern_api::client::Client;
use saltern_api::shape::Maintenance;
use saltern_core::action::schedule::Zone;
use saltern_server::clock;
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// List the minions that are in maintenance
    List,
    /// Put minions into maintenance: they may be changed until then, or until you end it
    On {
        /// The minions' ids
        #[arg(value_name = "MINION", required = true)]
        minions: Vec<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// Until when: +2h, '2026-12-01 04:00', 2026-12-01T04:00:00+01:00; until you end it unless told
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// The time zone of --until: UTC (unless told), +01:00, Europe/Berlin
        #[arg(long, value_name = "ZONE", value_parser = rules::zone, requires = "until")]
        zone: Option<Zone>,
    },
    /// Leave minions to their schedules again
    Off {
        /// The minions' ids
        #[arg(value_name = "MINION", required = true)]
        minions: Vec<String>,
    },
}

pub(super) async fn run(verb: Verb, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    match verb {
        Verb::List => {
            let modes = client.maintenance().await?;
            output::show(format, &modes, || show::maintenance(&modes, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::On { minions, why, until, zone } => {
            let now = clock::now();
            let until = rules::due(until.as_deref(), zone, now)?;
            let told = until
                .map_or_else(|| "until you end it".to_owned(), |until| format!("until {}", when::when(until.0, now)));
            let maintenance = Maintenance { why, until };
            for minion in &minions {
                client.start_maintenance(minion, &maintenance).await?;
                if format == Format::Text {
                    output::line(&format!("{} is in maintenance {told}.", text::clean(minion)))?;
                }
            }
        }
        Verb::Off { minions } => {
            for minion in &minions {
                client.end_maintenance(minion).await?;
                if format == Format::Text {
                    output::line(&format!("{} is left to its schedules.", text::clean(minion)))?;
                }
            }
        }
    }
    if format != Format::Text {
        output::show(format, &client.maintenance().await?, String::new)?;
    }
    Ok(ExitCode::SUCCESS)
}
