//! What is counted while the swarm lives: sign-ins, jobs, executions, returns, errors.
//!
//! Every light minion adds to the same numbers, so each is an atomic of its own. A job's record has one mark per minion:
//! a job, or a run, that one minion executes twice is seen whichever way it came to it.

use crate::counters::{Counter, Peak};
use crate::latency::Histogram;
use crate::records::{Origin, Record, Records, lock};
use crate::steps::{StepRecord, StepRecords};
use bytestring::ByteString;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// All that is counted.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) started: Instant,
    /// Requests to be let in
    pub(crate) sign_in_tries: Counter,
    /// Those that were granted
    pub(crate) sign_ins: Counter,
    /// Answers that the key waits for a decision, or that there is no room
    pub(crate) told_to_wait: Counter,
    pub(crate) rejected: Counter,
    /// Minions that were let in at least once
    pub(crate) signed_in: Counter,
    /// Minions that have come all the way up at least once
    pub(crate) ready: Counter,
    pub(crate) churned: Counter,
    /// Publications that meant a minion, and those of a job it knew already
    pub(crate) deliveries: Counter,
    pub(crate) repeated: Counter,
    /// Deliveries that the minion was made to lose
    pub(crate) dropped: Counter,
    pub(crate) executions: Counter,
    pub(crate) doubles: Counter,
    /// Runs begun; those begun more than once; executions that began an attempt of a run again
    pub(crate) runs: Counter,
    pub(crate) runs_again: Counter,
    pub(crate) run_doubles: Counter,
    /// Jobs that were ended on the way
    pub(crate) killed: Counter,
    /// Steps of chains that minions have begun, that have failed, and that were begun again without a right to
    pub(crate) steps: Counter,
    pub(crate) steps_failed: Counter,
    pub(crate) step_doubles: Counter,
    /// Times a chain had a machine or an agent start again
    pub(crate) restarts: Counter,
    pub(crate) acks: Counter,
    pub(crate) lost_acks: Counter,
    pub(crate) returns_sent: Counter,
    pub(crate) returns_confirmed: Counter,
    /// Tries that brought no confirmation, and were followed by another
    pub(crate) returns_repeated: Counter,
    pub(crate) lost_returns: Counter,
    /// Jobs that every minion they were for has returned
    pub(crate) finished: Counter,
    /// Publications that slow readers have read, and how often they were cut off
    pub(crate) slowly_read: Counter,
    pub(crate) cut_off: Counter,
    /// From what a minion has seen of a job to the confirmation of its return
    pub(crate) latency: Histogram,
    first_try: AtomicU64,
    last_signed_in: AtomicU64,
    first_delivery: AtomicU64,
    last_confirmed: AtomicU64,
    errors: Mutex<BTreeMap<&'static str, u64>>,
    at_once: Arc<Peak>,
    records: Mutex<Records>,
    step_records: Mutex<StepRecords>,
    /// Somebody was let in, has come up, or a job has finished
    changed: Notify,
}

/// An execution in progress, for as long as it lives.
#[derive(Debug)]
pub(crate) struct InProgress {
    of_all: Arc<Peak>,
    of_action: Arc<Peak>,
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.of_all.fall();
        self.of_action.fall();
    }
}

impl Tally {
    /// Nothing yet. At most `keep_jobs` jobs will be told apart.
    pub(crate) fn new(keep_jobs: usize) -> Self {
        Self {
            started: Instant::now(),
            sign_in_tries: Counter::default(),
            sign_ins: Counter::default(),
            told_to_wait: Counter::default(),
            rejected: Counter::default(),
            signed_in: Counter::default(),
            ready: Counter::default(),
            churned: Counter::default(),
            deliveries: Counter::default(),
            repeated: Counter::default(),
            dropped: Counter::default(),
            executions: Counter::default(),
            doubles: Counter::default(),
            runs: Counter::default(),
            runs_again: Counter::default(),
            run_doubles: Counter::default(),
            killed: Counter::default(),
            steps: Counter::default(),
            steps_failed: Counter::default(),
            step_doubles: Counter::default(),
            restarts: Counter::default(),
            acks: Counter::default(),
            lost_acks: Counter::default(),
            returns_sent: Counter::default(),
            returns_confirmed: Counter::default(),
            returns_repeated: Counter::default(),
            lost_returns: Counter::default(),
            finished: Counter::default(),
            slowly_read: Counter::default(),
            cut_off: Counter::default(),
            latency: Histogram::default(),
            first_try: AtomicU64::new(u64::MAX),
            last_signed_in: AtomicU64::new(0),
            first_delivery: AtomicU64::new(u64::MAX),
            last_confirmed: AtomicU64::new(0),
            errors: Mutex::default(),
            at_once: Arc::default(),
            records: Mutex::new(Records::new(keep_jobs)),
            step_records: Mutex::new(StepRecords::new(keep_jobs)),
            changed: Notify::new(),
        }
    }

    /// Something went wrong, of this kind.
    pub(crate) fn error(&self, kind: &'static str) {
        *lock(&self.errors).entry(kind).or_default() += 1;
    }

    pub(crate) fn errors(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.errors).clone()
    }

    pub(crate) fn asks_to_sign_in(&self) {
        self.sign_in_tries.add();
        self.first_try.fetch_min(self.micros(), Relaxed);
    }

    /// A minion was let in for the first time.
    pub(crate) fn has_signed_in(&self) {
        self.last_signed_in.fetch_max(self.micros(), Relaxed);
        self.signed_in.add();
        self.changed.notify_waiters();
    }

    /// A minion has come all the way up for the first time.
    pub(crate) fn is_ready(&self) {
        self.ready.add();
        self.changed.notify_waiters();
    }

    /// From the first request to be let in to the last minion's first answer that it is.
    pub(crate) fn sign_in_took(&self) -> Duration {
        span(&self.first_try, &self.last_signed_in)
    }

    /// From the first job that reached a minion to the last confirmed return.
    pub(crate) fn returning_took(&self) -> Duration {
        span(&self.first_delivery, &self.last_confirmed)
    }

    /// A publication was opened: the record of its job, in which those it means are marked.
    pub(crate) fn published(
        &self,
        jid: &ByteString,
        origin: Option<Origin>,
        minions: usize,
        meant: impl Iterator<Item = usize>,
    ) -> Arc<Record> {
        let record = lock(&self.records).record(jid, origin, minions);
        // Not `any`: every one is to be marked.
        if meant.filter(|index| record.meant.set(*index)).count() > 0 {
            self.count_finished(&record);
        }
        record
    }

    /// The record of a job that was seen.
    pub(crate) fn known(&self, jid: &str) -> Option<Arc<Record>> {
        lock(&self.records).known(jid)
    }

    /// How many jobs were seen.
    pub(crate) fn jobs_seen(&self) -> u64 {
        lock(&self.records).seen
    }

    /// How many jobs were seen whose records are gone.
    pub(crate) fn jobs_forgotten(&self) -> u64 {
        lock(&self.records).forgotten()
    }

    /// The newest records, oldest first.
    pub(crate) fn newest(&self, most: usize) -> Vec<Arc<Record>> {
        lock(&self.records).newest(most)
    }

    /// A job has reached a minion that it means.
    pub(crate) fn delivered(&self) {
        self.deliveries.add();
        self.first_delivery.fetch_min(self.micros(), Relaxed);
    }

    /// A minion begins a job.
    pub(crate) fn executes(&self, record: &Record, index: usize) {
        self.executions.add();
        if !record.begins(index) {
            self.doubles.add();
        }
        if let Some(begun) = record.run.as_ref().map(|run| run.begins(index)) {
            let counts = [
                (begun.is_first, &self.runs),
                (begun.is_second, &self.runs_again),
                (begun.repeats_attempt, &self.run_doubles),
            ];
            counts.iter().filter(|(is_so, _)| *is_so).for_each(|(_, counter)| counter.add());
        }
    }

    /// The record of a step of a launch.
    pub(crate) fn step(&self, launch: &ByteString, chunk: i64, step: &ByteString, minions: usize) -> Arc<StepRecord> {
        lock(&self.step_records).record(launch, chunk, step, minions)
    }

    /// The steps that are kept, oldest first.
    pub(crate) fn step_records(&self) -> Vec<Arc<StepRecord>> {
        lock(&self.step_records).all()
    }

    /// A minion begins a step. `by_right`: it was interrupted at it before, and may repeat it.
    pub(crate) fn begins_step(&self, step: &StepRecord, index: usize, by_right: bool) {
        self.steps.add();
        if !step.begins(index) && !by_right {
            self.step_doubles.add();
        }
    }

    /// A step has failed on a minion.
    pub(crate) fn step_fails(&self, step: &StepRecord, index: usize) {
        self.steps_failed.add();
        step.failed.set(index);
    }

    /// An execution is in progress until what this gives is dropped.
    pub(crate) fn in_progress(&self, record: &Record) -> InProgress {
        let (of_all, of_action) = (self.at_once.clone(), record.at_once.clone());
        of_all.rise();
        of_action.rise();
        InProgress { of_all, of_action }
    }

    /// The executions in progress.
    pub(crate) fn at_once(&self) -> &Peak {
        &self.at_once
    }

    /// The master has confirmed a minion's return.
    pub(crate) fn confirmed(&self, record: &Record, index: usize, since_delivery: Duration) {
        self.latency.add(since_delivery);
        self.returns_confirmed.add();
        self.last_confirmed.fetch_max(self.micros(), Relaxed);
        if record.is_confirmed_by(index) && record.is_finished() {
            self.count_finished(record);
        }
    }

    fn count_finished(&self, record: &Record) {
        match record.newly_finished() {
            Some(true) => {
                self.finished.add();
                self.changed.notify_waiters();
            }
            Some(false) => self.finished.take_back(),
            None => {}
        }
    }

    /// Waits until something is so that the tally tells about.
    pub(crate) async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if is_so() {
                return;
            }
            changed.await;
        }
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

fn span(from: &AtomicU64, to: &AtomicU64) -> Duration {
    Duration::from_micros(to.load(Relaxed).saturating_sub(from.load(Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jid(number: usize) -> ByteString {
        format!("{number:020}").into()
    }

    fn job(tally: &Tally, number: usize, origin: Option<(i64, i64)>) -> Arc<Record> {
        let origin = origin.map(|(action, attempt)| Origin { action, attempt });
        tally.published(&jid(number), origin, 100, 0..2)
    }

    /// Runs, runs begun more than once, attempts of a run begun more than once.
    fn runs(tally: &Tally) -> (u64, u64, u64) {
        (tally.runs.get(), tally.runs_again.get(), tally.run_doubles.get())
    }

    #[test]
    fn a_job_executed_twice_by_one_minion_is_seen() {
        let tally = Tally::new(10);
        let record = job(&tally, 1, None);
        tally.executes(&record, 3);
        tally.executes(&record, 70);
        assert_eq!((tally.executions.get(), tally.doubles.get()), (2, 0));
        tally.executes(&job(&tally, 1, None), 70);
        assert_eq!((tally.executions.get(), tally.doubles.get(), record.doubles.get()), (3, 1, 1));
        assert_eq!(record.executed.count(), 2);
        assert_eq!(runs(&tally), (0, 0, 0));
    }

    #[test]
    fn a_run_begun_twice_under_two_job_ids_is_seen() {
        let tally = Tally::new(10);
        tally.executes(&job(&tally, 1, Some((7, 1))), 0);
        tally.executes(&job(&tally, 2, Some((7, 1))), 1);
        assert_eq!(runs(&tally), (2, 0, 0));
        tally.executes(&job(&tally, 2, Some((7, 1))), 0);
        assert_eq!((runs(&tally), tally.doubles.get()), ((2, 1, 1), 0));
    }

    #[test]
    fn another_attempt_of_a_run_is_no_double_and_one_run_begun_again() {
        let tally = Tally::new(10);
        for attempt in 1..=3 {
            tally.executes(&job(&tally, attempt, Some((7, attempt as i64))), 0);
        }
        assert_eq!(runs(&tally), (1, 1, 0));
        tally.executes(&job(&tally, 4, Some((8, 1))), 0);
        assert_eq!(runs(&tally), (2, 1, 0));
    }

    #[test]
    fn executions_at_once_are_counted_for_all_and_for_each_action() {
        let tally = Tally::new(10);
        let (first, second, other) = (job(&tally, 1, Some((7, 1))), job(&tally, 2, Some((7, 2))), job(&tally, 3, None));
        let begun = [tally.in_progress(&first), tally.in_progress(&second), tally.in_progress(&other)];
        assert_eq!(tally.at_once().now(), 3);
        drop(begun);
        drop(tally.in_progress(&other));
        assert_eq!((tally.at_once().now(), tally.at_once().most()), (0, 3));
        assert_eq!((first.at_once.most(), second.at_once.most(), other.at_once.most()), (2, 2, 1));
    }

    #[test]
    fn a_job_is_finished_once_when_all_it_is_for_have_returned() {
        let tally = Tally::new(10);
        let record = job(&tally, 1, None);
        tally.confirmed(&record, 0, Duration::ZERO);
        tally.confirmed(&record, 0, Duration::ZERO);
        assert!(!record.is_finished());
        tally.confirmed(&record, 1, Duration::ZERO);
        tally.confirmed(&record, 1, Duration::ZERO);
        assert!(record.is_finished());
        assert_eq!((tally.finished.get(), tally.returns_confirmed.get()), (1, 4));
    }

    #[test]
    fn a_job_published_again_for_more_minions_is_not_finished_before_they_are() {
        let tally = Tally::new(10);
        let record = job(&tally, 1, None);
        (0..2).for_each(|index| tally.confirmed(&record, index, Duration::ZERO));
        assert_eq!(tally.finished.get(), 1);
        tally.published(&jid(1), None, 100, 1..3);
        assert_eq!((tally.finished.get(), record.meant.count()), (0, 3));
        tally.confirmed(&record, 2, Duration::ZERO);
        assert_eq!(tally.finished.get(), 1);
    }

    #[tokio::test]
    async fn who_waits_is_told_when_the_last_minion_is_up() {
        let tally = Arc::new(Tally::new(10));
        let waiting = tokio::spawn({
            let tally = tally.clone();
            async move { tally.until(|| tally.ready.get() == 2).await }
        });
        tally.is_ready();
        tally.is_ready();
        tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    }
}
