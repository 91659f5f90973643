//! `saltern action wait`: until an action has ended.

use crate::args::Format;
use crate::failure::{FAILED, Failure, INTERRUPTED};
use crate::interrupt::Interrupt;
use crate::output;
use crate::output::progress::{Going, Progress};
use saltern_api::client::{Client, ClientError, EventQuery};
use saltern_api::shape::{ActionDetail, Counts};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often the counts are read again; the end itself is told by an event.
const LOOK: Duration = Duration::from_secs(2);

pub(super) async fn run(client: &Client, id: i64, format: Format) -> Result<ExitCode, Failure> {
    let mut interrupt = Interrupt::listen()?;
    let ended = tokio::select! {
        ended = ended(client, id) => ended?,
        () = interrupt.wait() => {
            output::note(&format!("\nThe action goes on; `saltern action show {id}` tells how."))?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    let counts = ended.action.counts;
    output::show(format, &ended, || format!("Action {id} has ended: {}", told(counts)))?;
    Ok(if counts.completed == counts.total { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The action when nothing of it is open any more.
async fn ended(client: &Client, id: i64) -> Result<ActionDetail, ClientError> {
    // Listen first, then look, so that the end cannot fall between.
    let tag = Some(format!("saltern/action/{id}/ended"));
    let mut events = client.events(&EventQuery { tag, ..EventQuery::default() }).await?;
    let started = Instant::now();
    let mut progress = Progress::new();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.next() => {
                event.unwrap_or_else(|| Err(ClientError::Lost("the server has stopped".into())))?;
            }
            _ = look.tick() => {}
        }
        // A retry opens again what had ended: what counts is how it stands now.
        let detail = client.action(id).await?;
        if detail.action.ended.is_some() {
            return Ok(detail);
        }
        progress.show(going(detail.action.counts), started.elapsed());
    }
}

fn going(counts: Counts) -> Going {
    let number = |count: i64| usize::try_from(count).unwrap_or(0);
    Going {
        total: number(counts.total),
        answered: number(counts.completed + counts.failed + counts.cancelled),
        running: number(counts.running),
    }
}

fn told(counts: Counts) -> String {
    let parts = [
        (counts.completed, "completed"),
        (counts.failed - counts.unreachable, "failed"),
        (counts.unreachable, "unreachable"),
        (counts.cancelled, "cancelled"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_in_numbers() {
        let counts = Counts { total: 9, completed: 5, failed: 3, unreachable: 1, cancelled: 1, ..Counts::default() };
        assert_eq!(told(counts), "5 completed, 2 failed, 1 unreachable, 1 cancelled");
        assert_eq!(going(Counts { running: 2, ..counts }), Going { total: 9, answered: 9, running: 2 });
    }
}
