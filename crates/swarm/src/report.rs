//! What came of a swarm, for programs.

use crate::records::Record;
use crate::tally::Tally;
use crate::usage::Usage;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// How many of the newest jobs a report shows one by one.
const JOBS_SHOWN: usize = 100;

/// What came of a swarm.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How many minions there were.
    pub minions: u64,
    /// How long the swarm lived.
    pub seconds: f64,
    /// Coming in.
    pub sign_in: SignIn,
    /// What reached the minions.
    pub jobs: Jobs,
    /// What they did of action chains.
    pub steps: Steps,
    /// What they said before they began.
    pub acks: Acks,
    /// What they sent back.
    pub returns: Returns,
    /// From the arrival of a publication at a minion to the confirmation of its return.
    pub latency_ms: Latency,
    /// What went wrong, by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// How often a minion lost its connections on purpose.
    pub churned: u64,
    /// Publications that slow readers have read, and how often they were cut off.
    pub slow_readers: SlowReaders,
    /// What the swarm itself has cost.
    pub usage: Usage,
    /// The newest jobs, oldest first.
    pub newest_jobs: Vec<JobReport>,
}

/// Coming in.
#[derive(Clone, Debug, Serialize)]
pub struct SignIn {
    /// Minions that were let in.
    pub minions: u64,
    /// Minions that came all the way up.
    pub ready: u64,
    /// Requests to be let in.
    pub tries: u64,
    /// Requests that were granted.
    pub accepted: u64,
    /// Answers that the key waits for a decision, or that there is no room.
    pub told_to_wait: u64,
    /// Minions that were told to go away.
    pub rejected: u64,
    /// From the first request to the last minion's first grant.
    pub took_s: f64,
    /// Minions let in per second of that.
    pub per_second: f64,
}

/// What reached the minions.
#[derive(Clone, Debug, Serialize)]
pub struct Jobs {
    /// Jobs seen.
    pub seen: u64,
    /// Those whose records are gone, because only so many are kept: one that came again would have counted as new.
    pub forgotten: u64,
    /// Jobs that every minion they were for has returned.
    pub finished: u64,
    /// Publications that meant a minion, once for each.
    pub deliveries: u64,
    /// Those of a job that the minion knew, and did not begin again.
    pub repeated: u64,
    /// Those that were lost on purpose before the minion saw them.
    pub dropped: u64,
    /// Jobs begun, once for each minion.
    pub executions: u64,
    /// Jobs begun by a minion that had begun them before.
    pub double_executions: u64,
    /// Actions begun, once for each minion: only jobs whose metadata name their action count here.
    pub runs: u64,
    /// Executions of an attempt of a run that had begun before, under whatever job id.
    pub run_double_executions: u64,
    /// Runs begun more than once, whatever the attempt.
    pub runs_executed_more_than_once: u64,
    /// Most executions in progress at one instant, over the whole swarm; what asks about the minion itself is none.
    pub most_at_once: u64,
    /// Jobs that were ended on the way.
    pub killed: u64,
}

/// Steps of action chains.
#[derive(Clone, Debug, Serialize)]
pub struct Steps {
    /// Begun, once for each minion and each time.
    pub executed: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that the minion had begun before in the same launch, and had no right to repeat.
    pub double_executions: u64,
    /// Times a step had a minion start again: its machine, or its agent alone.
    pub restarts: u64,
}

/// Acknowledgements.
#[derive(Clone, Debug, Serialize)]
pub struct Acks {
    /// Confirmed by the master.
    pub confirmed: u64,
    /// Not sent, on purpose.
    pub lost: u64,
}

/// Returns.
#[derive(Clone, Debug, Serialize)]
pub struct Returns {
    /// Sent, whatever came of it. Each counts once, however often it was repeated.
    pub sent: u64,
    /// Confirmed by the master.
    pub confirmed: u64,
    /// Tries that brought no confirmation, and were followed by another.
    pub repeated: u64,
    /// Not sent, on purpose.
    pub lost: u64,
    /// Confirmed per second, from the first delivery to the last confirmation.
    pub per_second: f64,
}

/// How long something took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latency {
    /// Half took at most this.
    pub p50: f64,
    /// Nine in ten.
    pub p90: f64,
    /// Ninety-nine in a hundred.
    pub p99: f64,
    /// All.
    pub max: f64,
}

/// What became of slow readers.
#[derive(Clone, Debug, Serialize)]
pub struct SlowReaders {
    /// Publications read.
    pub read: u64,
    /// Times the master has cut one off.
    pub cut_off: u64,
}

/// What became of one job.
#[derive(Clone, Debug, Serialize)]
pub struct JobReport {
    /// Its id.
    pub jid: String,
    /// The action that it belongs to, if its metadata say.
    pub action: Option<i64>,
    /// And the attempt.
    pub attempt: Option<i64>,
    /// How many minions of the swarm it is for.
    pub expected: u64,
    /// How many have begun it.
    pub executed: u64,
    /// How often one began it again.
    pub double_executions: u64,
    /// How many have had their return confirmed.
    pub confirmed: u64,
    /// Most executions of its action in progress at one instant; of the job alone if it belongs to no action.
    pub most_at_once: u64,
    /// From when the first minion saw it to the last confirmation.
    pub took_ms: Option<f64>,
    /// From the instant in its id to the last confirmation: only as good as the two machines' clocks agree.
    pub since_jid_ms: Option<f64>,
}

impl Report {
    pub(crate) fn new(minions: usize, tally: &Tally, usage: Usage) -> Self {
        let (sign_in, returning) = (tally.sign_in_took(), tally.returning_took());
        Self {
            minions: minions as u64,
            seconds: tally.started.elapsed().as_secs_f64(),
            sign_in: SignIn {
                minions: tally.signed_in.get(),
                ready: tally.ready.get(),
                tries: tally.sign_in_tries.get(),
                accepted: tally.sign_ins.get(),
                told_to_wait: tally.told_to_wait.get(),
                rejected: tally.rejected.get(),
                took_s: sign_in.as_secs_f64(),
                per_second: per_second(tally.signed_in.get(), sign_in),
            },
            jobs: Jobs {
                seen: tally.jobs_seen(),
                forgotten: tally.jobs_forgotten(),
                finished: tally.finished.get(),
                deliveries: tally.deliveries.get(),
                repeated: tally.repeated.get(),
                dropped: tally.dropped.get(),
                executions: tally.executions.get(),
                double_executions: tally.doubles.get(),
                runs: tally.runs.get(),
                run_double_executions: tally.run_doubles.get(),
                runs_executed_more_than_once: tally.runs_again.get(),
                most_at_once: tally.at_once().most(),
                killed: tally.killed.get(),
            },
            steps: Steps {
                executed: tally.steps.get(),
                failed: tally.steps_failed.get(),
                double_executions: tally.step_doubles.get(),
                restarts: tally.restarts.get(),
            },
            acks: Acks { confirmed: tally.acks.get(), lost: tally.lost_acks.get() },
            returns: Returns {
                sent: tally.returns_sent.get(),
                confirmed: tally.returns_confirmed.get(),
                repeated: tally.returns_repeated.get(),
                lost: tally.lost_returns.get(),
                per_second: per_second(tally.returns_confirmed.get(), returning),
            },
            latency_ms: Latency::of(tally),
            errors: tally.errors(),
            churned: tally.churned.get(),
            slow_readers: SlowReaders { read: tally.slowly_read.get(), cut_off: tally.cut_off.get() },
            usage,
            newest_jobs: tally.newest(JOBS_SHOWN).iter().map(|record| JobReport::new(record)).collect(),
        }
    }
}

impl Latency {
    pub(crate) fn of(tally: &Tally) -> Self {
        let quantile = |part| tally.latency.quantile(part).map_or(0.0, millis);
        Self { p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99), max: millis(tally.latency.max()) }
    }
}

impl JobReport {
    pub(crate) fn new(record: &Record) -> Self {
        let origin = record.run.as_ref().map(|run| run.origin);
        Self {
            jid: record.jid.to_string(),
            action: origin.map(|origin| origin.action),
            attempt: origin.map(|origin| origin.attempt),
            expected: record.meant.count(),
            executed: record.executed.count(),
            double_executions: record.doubles.get(),
            confirmed: record.confirmed.count(),
            most_at_once: record.at_once.most(),
            took_ms: record.took().map(millis),
            since_jid_ms: record.took().and_then(|took| Some(millis(took + record.before_seen?))),
        }
    }
}

/// A rate, and 0 where there is no time to speak of.
pub(crate) fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
