//! `saltern window calendar`: iCal texts from files and URLs.

use super::{ByStrategy, show};
use crate::args::Format;
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::{self, text};
use crate::{documents, rules};
use saltern_api::client::Client;
use saltern_api::shape::{CalendarContent, CalendarDetail, NewCalendar};
use saltern_server::clock;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// List calendars
    List,
    /// Show a calendar
    Show {
        /// The calendar's name
        name: String,
        /// Print its text, as it can be put again
        #[arg(long)]
        text: bool,
    },
    /// Make a calendar, or change it
    Put {
        /// The calendar's name
        name: String,
        /// The file with its text; - is the standard input
        #[arg(short, long, value_name = "FILE", required_unless_present = "url", conflicts_with = "url")]
        file: Option<String>,
        /// Where it is read from: http:// or https://
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// Read it anew so often: 6h; at least 5m
        #[arg(long, value_name = "DURATION", requires = "url", conflicts_with = "file", value_parser = rules::time_span)]
        refresh: Option<Duration>,
        /// The time zone of what names none: UTC (unless told), Europe/Prague
        #[arg(long, value_name = "ZONE")]
        zone: Option<String>,
        #[command(flatten)]
        strategy: ByStrategy,
    },
    /// Read a calendar anew from its URL, now; where that fails, what was known holds
    Refresh {
        /// The calendar's name
        name: String,
        #[command(flatten)]
        strategy: ByStrategy,
    },
    /// Remove a calendar; schedules that are made of it are closed then
    Delete {
        /// The calendar's name
        name: String,
        #[command(flatten)]
        strategy: ByStrategy,
    },
}

pub(super) async fn run(verb: Verb, client: &Client, org: Option<&str>, format: Format) -> Result<ExitCode, Failure> {
    let (changed, done) = match verb {
        Verb::List => {
            let calendars = client.calendars(org).await?;
            output::show(format, &calendars, || show::calendars(&calendars, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Show { name, text: true } => {
            output::line(&client.calendar(org, &name).await?.ical)?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Show { name, text: false } => {
            let calendar = client.calendar(org, &name).await?;
            output::show(format, &calendar, || show::calendar(&calendar, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Put { name, file, url, refresh, zone, strategy } => {
            let known = match client.calendar(org, &name).await {
                Err(error) if error.is_not_found() => None,
                known => Some(known?),
            };
            let ical = file.as_deref().map(documents::content).transpose()?;
            let refresh = refresh.map(|refresh| i64::try_from(refresh.as_secs()).unwrap_or(i64::MAX));
            // A zone that is not given stays, so that a new text is read as the old one was.
            let zone = zone.or_else(|| known.as_ref().map(|known| known.calendar.zone.clone()));
            let content = CalendarContent { ical, url, zone, refresh };
            let changed = put(client, org, &name, known.as_ref(), content, strategy).await?;
            (
                changed,
                format!("Calendar {} {}", text::clean(&name), if known.is_some() { "was changed" } else { "was made" }),
            )
        }
        Verb::Refresh { name, strategy } => {
            let changed = client.refresh_calendar(org, &name, strategy.get()).await?;
            (changed, format!("Calendar {} was read anew", text::clean(&name)))
        }
        Verb::Delete { name, strategy } => {
            let version = client.calendar(org, &name).await?.calendar.version;
            let changed = client.delete_calendar(org, &name, version, strategy.get()).await?;
            (changed, format!("Calendar {} was deleted", text::clean(&name)))
        }
    };
    output::show(format, &changed, || show::changed(&changed, &done, clock::now(), Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a calendar what it is to be.
pub(super) async fn put(
    client: &Client,
    org: Option<&str>,
    name: &str,
    known: Option<&CalendarDetail>,
    content: CalendarContent,
    strategy: ByStrategy,
) -> Result<saltern_api::shape::WindowsChanged, Failure> {
    Ok(match known {
        Some(known) => client.put_calendar(org, name, known.calendar.version, strategy.get(), &content).await?,
        None => {
            let CalendarContent { ical, url, zone, refresh } = content;
            let calendar = NewCalendar { name: name.to_owned(), org: org.map(str::to_owned), ical, url, zone, refresh };
            client.create_calendar(&calendar).await?
        }
    })
}
