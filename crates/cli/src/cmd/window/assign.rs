//! `saltern window assign` and `unassign`: whom a schedule holds for.

use super::{ByStrategy, show};
use crate::args::Format;
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::{self, text};
use saltern_api::client::Client;
use saltern_api::shape::{Assigned, Subjects, WindowChange};
use saltern_server::clock;
use std::process::ExitCode;

/// Say whom a schedule holds for
///
/// What is assigned to a minion itself counts before what its groups bring; where there are several, one that is open is enough.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The schedule's name
    schedule: String,

    #[command(flatten)]
    whom: Whom,

    #[command(flatten)]
    strategy: ByStrategy,

    /// Change nothing: show what waiting work would be outside of its window then
    #[arg(long)]
    preview: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Whom {
    /// This minion; may be given several times
    #[arg(long = "minion", value_name = "ID")]
    minions: Vec<String>,
    /// The minions that this group means; may be given several times
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
}

/// Whether it is to hold for them, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    To,
    From,
}

pub(super) async fn run(
    args: Args,
    way: Way,
    client: &Client,
    org: Option<&str>,
    format: Format,
) -> Result<ExitCode, Failure> {
    let Args { schedule, whom, strategy, preview } = args;
    let to = Subjects { minions: whom.minions, groups: whom.groups };
    if preview {
        let assigned = Assigned { schedule, org: org.map(str::to_owned), to };
        let change = match way {
            Way::To => WindowChange::Assign(assigned),
            Way::From => WindowChange::Unassign(assigned),
        };
        let touched = client.preview_windows(&change).await?;
        output::show(format, &touched, || show::touched(&touched, clock::now(), Style::of_stdout()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let changed = match way {
        Way::To => client.assign_schedule(org, &schedule, strategy.get(), &to).await?,
        Way::From => client.unassign_schedule(org, &schedule, strategy.get(), &to).await?,
    };
    let done = told(&schedule, way, &to);
    output::show(format, &changed, || show::changed(&changed, &done, clock::now(), Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn told(schedule: &str, way: Way, to: &Subjects) -> String {
    let minions = to.minions.iter().map(|minion| text::clean(minion));
    let all: Vec<String> =
        minions.chain(to.groups.iter().map(|group| format!("group {}", text::clean(group)))).collect();
    let word = if way == Way::To { "holds for" } else { "does not hold any more for" };
    format!("Schedule {} {word} {}", text::clean(schedule), all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_names_everybody() {
        let to = Subjects { minions: vec!["web1".into(), "web2".into()], groups: vec!["db".into()] };
        assert_eq!(told("nights", Way::To, &to), "Schedule nights holds for web1, web2, group db");
    }
}
