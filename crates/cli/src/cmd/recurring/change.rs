//! Makes and changes what recurs, and tells when it is next.

use super::draft::{CreateArgs, EditArgs};
use super::{called, find, show};
use crate::args::Format;
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::{self, zones};
use saltern_api::client::Client;
use saltern_api::shape::{Recurring, RecurringDraft};
use std::process::ExitCode;

/// Times that a preview of something new shows.
const PREVIEWED: usize = 5;

pub(super) async fn create(client: &Client, args: CreateArgs, format: Format) -> Result<ExitCode, Failure> {
    let is_preview = args.preview;
    let draft = args.draft(client).await?;
    if is_preview {
        let fires = client.preview_draft(&draft, PREVIEWED).await?;
        let zone = zones::named(&draft.zone);
        output::show(format, &fires, || show::planned(&fires, zone, zones::own(), Style::of_stdout()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let made = client.create_recurring(&draft).await?;
    output::show(format, &made, || told(&made, "was made"))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn edit(client: &Client, args: EditArgs, format: Format) -> Result<ExitCode, Failure> {
    let known = find(client, &args.which).await?;
    if !known.changeable {
        return Err(Failure::new(format!("you may not change {}", called(&known))));
    }
    let draft = args.change(client, RecurringDraft::of(&known)).await?;
    let changed = client.put_recurring(known.id, known.version, &draft).await?;
    output::show(format, &changed, || told(&changed, "was changed"))?;
    Ok(ExitCode::SUCCESS)
}

/// What became of it, when it fires in words, and when that is next.
fn told(one: &Recurring, what: &str) -> String {
    let next = match one.next {
        Some(next) => {
            let zone = zones::named(&one.zone);
            let here = zones::here(next.0, zone, zones::own());
            let here = here.map_or_else(String::new, |here| format!(" (here {here})"));
            format!("next {}{here}", zones::local(next.0, zone))
        }
        None => "it is not active".to_owned(),
    };
    format!("Recurring action {} {what}: {}, {}; {next}.", called(one), one.words, one.zone)
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::recurring;
    use super::*;

    #[test]
    fn what_was_made_is_told_in_words() {
        let one = Recurring { next: None, active: false, ..recurring() };
        assert_eq!(
            told(&one, "was made"),
            "Recurring action nightly (7) was made: every Sunday at 02:30, Europe/Prague; it is not active."
        );
    }
}
