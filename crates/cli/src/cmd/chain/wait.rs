//! `saltern chain wait`: until a launch has ended, with a word about every change on the way.

use super::status::{minions, question};
use crate::args::Format;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::interrupt::Interrupt;
use crate::output;
use crate::output::progress::Progress;
use crate::output::text;
use saltern_api::client::{Client, ClientError, EventQuery};
use saltern_api::shape::LaunchDetail;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often the launch is looked at; the end itself is told by an event.
const LOOK: Duration = Duration::from_secs(2);

pub(super) async fn run(client: &Client, id: i64, format: Format) -> Result<ExitCode, Failure> {
    let mut interrupt = Interrupt::listen()?;
    let ended = tokio::select! {
        ended = ended(client, id) => ended?,
        () = interrupt.wait() => {
            output::note(&format!("\nThe launch goes on; `saltern chain status {id}` tells how."))?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    output::show(format, &ended, || told(&ended))?;
    Ok(if is_good(&ended) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The launch when it is over on every minion.
async fn ended(client: &Client, id: i64) -> Result<LaunchDetail, ClientError> {
    // Listen first, then look, so that the end cannot fall between.
    let tag = Some(format!("saltern/chain/{id}/ended"));
    let mut events = client.events(&EventQuery { tag, ..EventQuery::default() }).await?;
    let started = Instant::now();
    let mut progress = Progress::new();
    let mut before = String::new();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.next() => {
                event.unwrap_or_else(|| Err(ClientError::Lost("the server has stopped".into())))?;
            }
            _ = look.tick() => {}
        }
        let detail = client.launch_detail(id).await?;
        if detail.launch.ended.is_some() {
            return Ok(detail);
        }
        let now = going(&detail);
        if progress.is_live() || now != before {
            progress.say(&now, started.elapsed());
        }
        before = now;
    }
}

/// How far it is, in one line.
fn going(detail: &LaunchDetail) -> String {
    let over = detail.steps.iter().filter(|step| step.counts.queued + step.counts.running == 0).count();
    let line = format!(
        "Launch {}: {over} of {} steps over, minions: {}",
        detail.launch.id,
        detail.steps.len(),
        minions(&detail.launch)
    );
    match question(detail) {
        Some(question) => format!("{line}. {question}"),
        None => line,
    }
}

fn told(detail: &LaunchDetail) -> String {
    let id = detail.launch.id;
    let mut lines = vec![format!("Launch {id} has ended, minions: {}", minions(&detail.launch))];
    for step in detail.steps.iter().filter(|step| step.counts.failed > 0) {
        let (number, name, counts) = (step.step, text::clean(&step.name), step.counts);
        lines.push(format!("  step {number}, {name}: failed on {} of {}", counts.failed, counts.total));
    }
    if !is_good(detail) {
        lines.push(format!("`saltern chain status {id} --minions` tells where and why."));
    }
    lines.join("\n")
}

/// Whether everything was done. A minion on which a step cannot be done takes no part, but its steps have failed.
fn is_good(detail: &LaunchDetail) -> bool {
    let counts = detail.launch.counts;
    counts.completed == counts.total && detail.steps.iter().all(|step| step.counts.failed == 0)
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::launch;
    use super::*;
    use saltern_api::shape::LaunchCounts;

    #[test]
    fn the_way_is_told_in_steps_and_minions() {
        assert_eq!(
            going(&launch()),
            "Launch 9: 0 of 2 steps over, minions: 12 completed, 1 failed, 7 open of 20. Step 2 asks: all well?  Yes: \
             `saltern chain approve 9 2`"
        );
    }

    #[test]
    fn the_end_names_the_steps_that_failed() {
        let mut detail = launch();
        detail.launch.counts = LaunchCounts { total: 20, completed: 19, failed: 1, ..LaunchCounts::default() };
        assert_eq!(
            told(&detail),
            "\
Launch 9 has ended, minions: 19 completed, 1 failed of 20
  step 1, reboot: failed on 1 of 20
`saltern chain status 9 --minions` tells where and why."
        );
    }

    #[test]
    fn an_end_is_good_if_every_minion_has_done_everything() {
        let mut detail = launch();
        detail.launch.counts = LaunchCounts { total: 20, completed: 20, ..LaunchCounts::default() };
        assert!(!is_good(&detail), "a step has failed where it could not be done");
        detail.steps[0].counts.failed = 0;
        assert!(is_good(&detail));
        detail.launch.counts.completed = 19;
        assert!(!is_good(&detail));
    }
}
