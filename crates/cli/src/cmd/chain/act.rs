//! What people do to launches and to minions that kept one: cancel, stop, approve, clear.

use crate::args::Format;
use crate::failure::{FAILED, Failure};
use crate::output::{self, text};
use saltern_api::client::Client;
use saltern_api::shape::{ChainClear, ChainsCleared, LaunchDone};
use std::process::ExitCode;

/// What is to be done with launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaunchVerb {
    Cancel,
    Stop,
}

pub(super) async fn end(
    client: &Client,
    verb: LaunchVerb,
    launches: &[i64],
    format: Format,
) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    for id in launches {
        let done = match verb {
            LaunchVerb::Cancel => client.cancel_launch(*id).await?,
            LaunchVerb::Stop => client.stop_launch(*id).await?,
        };
        if format == Format::Text {
            output::line(&told(&done))?;
        }
        all.push(done);
    }
    if format != Format::Text {
        output::show(format, &all, String::new)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn approve(client: &Client, launch: i64, step: usize, format: Format) -> Result<ExitCode, Failure> {
    let done = client.approve_step(launch, step).await?;
    output::show(format, &done, || told(&done))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn clear(
    client: &Client,
    minions: Vec<String>,
    force: bool,
    format: Format,
) -> Result<ExitCode, Failure> {
    let cleared = client.clear_chains(&ChainClear { minions, force }).await?;
    output::show(format, &cleared, || cleared_told(&cleared))?;
    Ok(if cleared.minions.values().all(|what| is_clear(what)) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn told(done: &LaunchDone) -> String {
    format!("Launch {}: {}", done.launch, text::clean(&done.note))
}

fn cleared_told(cleared: &ChainsCleared) -> String {
    let line = |(minion, what): (&String, &String)| format!("{}: {}", text::clean(minion), text::clean(what));
    cleared.minions.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Whether nothing is kept there any more, by the words the server has for it.
fn is_clear(what: &str) -> bool {
    ["cleared ", "put aside ", "there was nothing to clear"].iter().any(|good| what.starts_with(good))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minion_tells_what_it_has_cleared() {
        let minions = [("a", "cleared launch 20261115195631000000"), ("b", "it has not answered")];
        let minions = minions.map(|(minion, what)| (minion.to_owned(), what.to_owned())).into();
        let cleared = ChainsCleared { minions };
        assert_eq!(cleared_told(&cleared), "a: cleared launch 20261115195631000000\nb: it has not answered");
        let good: Vec<bool> = cleared.minions.values().map(|what| is_clear(what)).collect();
        assert_eq!(good, [true, false]);
    }
}
