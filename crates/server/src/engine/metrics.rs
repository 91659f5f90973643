//! What the engine counts, as Prometheus reads it.

use crate::Error;
use crate::master::Master;
use saltern_core::run::Reason;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the latency buckets, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0];

/// Everything that is counted.
#[derive(Default)]
pub(crate) struct Metrics {
    queued: AtomicU64,
    started: AtomicU64,
    publications: AtomicU64,
    redelivered: AtomicU64,
    ended: [AtomicU64; Reason::ALL.len() + 1],
    late: AtomicU64,
    held_back: AtomicU64,
    dead_letters: AtomicU64,
    acks: Histogram,
    returns: Histogram,
}

#[derive(Default)]
struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    fn add(&self, time: Duration) {
        let at = BOUNDS.iter().position(|bound| time.as_secs_f64() <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[at].fetch_add(1, Relaxed);
        self.micros.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    fn write(&self, out: &mut String, name: &str, help: &str) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut sum = 0;
        for (bound, bucket) in BOUNDS.iter().zip(&self.buckets) {
            sum += bucket.load(Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        sum += self.buckets[BOUNDS.len()].load(Relaxed);
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {sum}\n{name}_count {sum}");
        let _ = writeln!(out, "{name}_sum {}", self.micros.load(Relaxed) as f64 / 1e6);
    }
}

impl Master {
    /// Everything that is counted, as Prometheus reads it.
    pub(crate) async fn metrics_text(&self) -> Result<String, Error> {
        let mut out = String::new();
        let mut gauge = |name: &str, help: &str, value: usize| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        };
        gauge("saltern_runs_in_progress", "Runs that were sent and have not ended.", self.engine.tracker().len());
        gauge("saltern_write_backlog", "Writes that wait for the database.", self.store.backlog());
        gauge("saltern_minions_present", "Minions that are connected.", self.present().len());
        let _ = writeln!(
            out,
            "# HELP saltern_runs_queued Runs that wait, by what they wait for.\n# TYPE saltern_runs_queued gauge"
        );
        for (what, runs) in self.store.queue_depths().await? {
            let _ = writeln!(out, "saltern_runs_queued{{waiting_for=\"{}\"}} {runs}", what.as_str());
        }
        self.engine.metrics.write(&mut out);
        let stats = self.store.commit_stats();
        histogram(&mut out, "saltern_commit_seconds", "How long commits took.", &stats.latency, stats.seconds_total);
        histogram(&mut out, "saltern_commit_writes", "Writes in one commit.", &stats.group_size, stats.writes as f64);
        Ok(out)
    }
}

/// A histogram that somebody else has counted.
fn histogram(out: &mut String, name: &str, help: &str, buckets: &[saltern_store::Bucket], sum: f64) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
    let mut count = 0;
    for bucket in buckets {
        count += bucket.count;
        let bound = if bucket.upto.is_finite() { bucket.upto.to_string() } else { "+Inf".into() };
        let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
    }
    let _ = writeln!(out, "{name}_count {count}\n{name}_sum {sum}");
}

impl Metrics {
    pub(super) fn queued(&self) -> usize {
        usize::try_from(self.queued.load(Relaxed)).unwrap_or(usize::MAX)
    }

    pub(super) fn set_queued(&self, runs: usize) {
        self.queued.store(runs as u64, Relaxed);
    }

    pub(super) fn note_queued(&self, runs: usize) {
        self.queued.fetch_add(runs as u64, Relaxed);
    }

    pub(super) fn note_started(&self, runs: usize, again: bool) {
        self.started.fetch_add(runs as u64, Relaxed);
        if again {
            self.redelivered.fetch_add(runs as u64, Relaxed);
        }
        // A guess between two looks at the tables; it must not wrap.
        let _ = self.queued.fetch_update(Relaxed, Relaxed, |queued| Some(queued.saturating_sub(runs as u64)));
    }

    pub(super) fn note_published(&self) {
        self.publications.fetch_add(1, Relaxed);
    }

    pub(super) fn note_ended(&self, reason: Option<Reason>) {
        let at = reason.and_then(|reason| Reason::ALL.iter().position(|known| *known == reason));
        self.ended[at.map_or(0, |at| at + 1)].fetch_add(1, Relaxed);
    }

    pub(super) fn note_late(&self) {
        self.late.fetch_add(1, Relaxed);
    }

    pub(super) fn held_back(&self) {
        self.held_back.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_dead_letter(&self) {
        self.dead_letters.fetch_add(1, Relaxed);
    }

    pub(super) fn note_ack(&self, after: Duration) {
        self.acks.add(after);
    }

    pub(crate) fn note_return(&self, after: Duration) {
        self.returns.add(after);
    }

    /// Prometheus text of what is counted here.
    pub(super) fn write(&self, out: &mut String) {
        let mut counter = |name: &str, help: &str, value: u64| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
        };
        counter("saltern_runs_started_total", "Runs that were claimed and published.", self.started.load(Relaxed));
        counter("saltern_publications_total", "Publications to minions.", self.publications.load(Relaxed));
        counter(
            "saltern_redeliveries_total",
            "Runs that were published again under the same job id.",
            self.redelivered.load(Relaxed),
        );
        counter("saltern_late_returns_total", "Returns that came after their run had ended.", self.late.load(Relaxed));
        counter(
            "saltern_dispatch_held_back_total",
            "Rounds in which nothing was claimed because the database was behind.",
            self.held_back.load(Relaxed),
        );
        counter(
            "saltern_dead_letters_total",
            "Messages of minions that could not be processed and were set aside.",
            self.dead_letters.load(Relaxed),
        );
        let _ = writeln!(
            out,
            "# HELP saltern_runs_ended_total Runs that ended, by reason.\n# TYPE saltern_runs_ended_total counter"
        );
        let words = std::iter::once("completed").chain(Reason::ALL.iter().map(|reason| reason.as_str()));
        for (word, count) in words.zip(&self.ended) {
            let _ = writeln!(out, "saltern_runs_ended_total{{reason=\"{word}\"}} {}", count.load(Relaxed));
        }
        self.acks.write(out, "saltern_ack_seconds", "From publication to acknowledgement.");
        self.returns.write(out, "saltern_return_seconds", "From publication to return.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_told() {
        let metrics = Metrics::default();
        metrics.note_started(3, true);
        metrics.note_ended(None);
        metrics.note_ended(Some(Reason::Lost));
        metrics.note_ack(Duration::from_millis(50));
        let mut out = String::new();
        metrics.write(&mut out);
        for line in [
            "saltern_runs_started_total 3",
            "saltern_redeliveries_total 3",
            "saltern_runs_ended_total{reason=\"completed\"} 1",
            "saltern_runs_ended_total{reason=\"lost\"} 1",
            "saltern_ack_seconds_bucket{le=\"0.02\"} 0",
            "saltern_ack_seconds_bucket{le=\"0.1\"} 1",
            "saltern_ack_seconds_count 1",
        ] {
            assert!(out.lines().any(|found| found == line), "{line} is not in\n{out}");
        }
    }

    #[test]
    fn the_number_of_queued_runs_does_not_wrap() {
        let metrics = Metrics::default();
        metrics.note_started(3, false);
        assert_eq!(metrics.queued(), 0);
    }
}
