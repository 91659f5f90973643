//! Sustained load: jobs one after the other, some always under way, for a given time.
//!
//! A master that keeps what it is told takes a return only for a job that was for that minion, and the second one for the
//! same job changes nothing. So lasting load comes from real jobs, published by whoever may publish.

use crate::Swarm;
use crate::report::per_second;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Most publishers at work at once: more make the master no faster, and the measurement less so.
const PUBLISHERS: usize = 8;
/// How long nobody publishes after it failed.
const PAUSE: Duration = Duration::from_millis(100);
/// After so long without a finished job, those under way no longer hold up new ones.
const STALLED: Duration = Duration::from_secs(15);

/// What a flood has brought.
#[derive(Clone, Debug, Serialize)]
pub struct Flood {
    /// Jobs published.
    pub jobs: u64,
    /// Jobs that could not be published.
    pub failed: u64,
    /// Returns confirmed while it lasted.
    pub returns: u64,
    /// How long it lasted.
    pub seconds: f64,
    /// Returns confirmed per second.
    pub per_second: f64,
}

impl Swarm {
    /// Publishes for `time`, with at most `at_once` unfinished jobs. `publish` publishes one job, and tells whether it could.
    pub async fn flood<F: Future<Output = bool>>(
        &self,
        time: Duration,
        at_once: usize,
        mut publish: impl FnMut() -> F,
    ) -> Flood {
        let tally = &self.shared.tally;
        let (begin, end) = (Instant::now(), Instant::now() + time);
        let (finished_before, returns_before) = (tally.finished.get(), tally.returns_confirmed.get());
        let (mut begun, mut failed, mut written_off) = (0, 0, 0);
        let (mut finished, mut last_finish) = (0, begin);
        let mut publishing = FuturesUnordered::new();
        loop {
            let now = Instant::now();
            if now >= end {
                break;
            }
            let newly = tally.finished.get().saturating_sub(finished_before);
            if newly > finished {
                (finished, last_finish) = (newly, now);
            } else if now >= last_finish + STALLED {
                (written_off, last_finish) = (begun, now);
            }
            let under_way = begun - failed - (finished + written_off).min(begun - failed);
            if under_way < at_once as u64 && publishing.len() < PUBLISHERS {
                publishing.push(publish());
                begun += 1;
                continue;
            }
            let pause = end.min(last_finish + STALLED).saturating_duration_since(now);
            tokio::select! {
                Some(is_published) = publishing.next() => if !is_published {
                    failed += 1;
                    tokio::time::sleep(PAUSE).await;
                },
                () = tally.until(|| tally.finished.get().saturating_sub(finished_before) > finished) => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        let (seconds, returns) = (begin.elapsed(), tally.returns_confirmed.get() - returns_before);
        // What is being published is not cut short: a job half published would be nobody's.
        while let Some(is_published) = publishing.next().await {
            failed += u64::from(!is_published);
        }
        Flood {
            jobs: begun - failed,
            failed,
            returns,
            seconds: seconds.as_secs_f64(),
            per_second: per_second(returns, seconds),
        }
    }
}
