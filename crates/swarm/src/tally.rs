//! What is counted while the swarm lives: sign-ins, jobs, executions, returns, errors.
//!
//! Every light minion adds to the same numbers, so each is an atomic of its own. A job's record has one mark per minion:
//! a job that one minion executes twice is seen whichever way it came to it.

use crate::clock;
use crate::latency::Histogram;
use bytestring::ByteString;
use saltern_core::ids::Jid;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Most jobs whose records are kept. A job that comes again after so many others counts as new.
const MOST_JOBS: usize = 10_000;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

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
    pub(crate) executions: Counter,
    pub(crate) doubles: Counter,
    pub(crate) acks: Counter,
    pub(crate) lost_acks: Counter,
    pub(crate) returns_sent: Counter,
    pub(crate) returns_confirmed: Counter,
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
    jobs: Mutex<Jobs>,
    /// Somebody was let in, has come up, or a job has finished
    changed: Notify,
}

#[derive(Debug, Default)]
struct Jobs {
    records: HashMap<ByteString, Arc<Record>>,
    order: VecDeque<Arc<Record>>,
    seen: u64,
}

/// One job, and who has done it.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) jid: ByteString,
    /// How many of the swarm's minions it is for
    pub(crate) expected: u64,
    /// From the instant its id was made to when the first minion saw it, if the id tells
    pub(crate) before_seen: Option<Duration>,
    pub(crate) seen: Instant,
    pub(crate) executed: Marks,
    pub(crate) doubles: Counter,
    pub(crate) confirmed: Marks,
    last_confirmed: AtomicU64,
}

/// One mark per minion.
#[derive(Debug)]
pub(crate) struct Marks {
    words: Box<[AtomicU64]>,
    count: Counter,
}

impl Marks {
    fn new(minions: usize) -> Self {
        Self { words: (0..minions.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(), count: Counter::default() }
    }

    /// Marks a minion; tells whether it was not marked before.
    fn set(&self, index: usize) -> bool {
        let Some(word) = self.words.get(index / 64) else { return false };
        let bit = 1 << (index % 64);
        let is_new = word.fetch_or(bit, Relaxed) & bit == 0;
        if is_new {
            self.count.add();
        }
        is_new
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }
}

impl Record {
    /// From the first sight of the job to the last confirmation of a return.
    pub(crate) fn took(&self) -> Option<Duration> {
        let micros = self.last_confirmed.load(Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.confirmed.count() >= self.expected
    }
}

impl Tally {
    pub(crate) fn new() -> Self {
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
            executions: Counter::default(),
            doubles: Counter::default(),
            acks: Counter::default(),
            lost_acks: Counter::default(),
            returns_sent: Counter::default(),
            returns_confirmed: Counter::default(),
            finished: Counter::default(),
            slowly_read: Counter::default(),
            cut_off: Counter::default(),
            latency: Histogram::default(),
            first_try: AtomicU64::new(u64::MAX),
            last_signed_in: AtomicU64::new(0),
            first_delivery: AtomicU64::new(u64::MAX),
            last_confirmed: AtomicU64::new(0),
            errors: Mutex::default(),
            jobs: Mutex::default(),
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

    /// The record of a job; `expected` is asked for when there is none.
    pub(crate) fn record(&self, jid: &ByteString, minions: usize, expected: impl FnOnce() -> u64) -> Arc<Record> {
        let mut jobs = lock(&self.jobs);
        if let Some(record) = jobs.records.get(jid) {
            return record.clone();
        }
        let record = Arc::new(Record {
            jid: jid.clone(),
            expected: expected(),
            before_seen: Jid::parse(jid).and_then(|jid| jid.instant()).map(|made| clock::now().since(made)),
            seen: Instant::now(),
            executed: Marks::new(minions),
            doubles: Counter::default(),
            confirmed: Marks::new(minions),
            last_confirmed: AtomicU64::new(0),
        });
        jobs.seen += 1;
        jobs.records.insert(jid.clone(), record.clone());
        jobs.order.push_back(record.clone());
        if jobs.order.len() > MOST_JOBS
            && let Some(oldest) = jobs.order.pop_front()
        {
            jobs.records.remove(&oldest.jid);
        }
        record
    }

    /// The record of a job that was seen.
    pub(crate) fn known(&self, jid: &str) -> Option<Arc<Record>> {
        lock(&self.jobs).records.get(jid).cloned()
    }

    /// How many jobs were seen.
    pub(crate) fn jobs_seen(&self) -> u64 {
        lock(&self.jobs).seen
    }

    /// The newest records, oldest first.
    pub(crate) fn newest(&self, most: usize) -> Vec<Arc<Record>> {
        let jobs = lock(&self.jobs);
        jobs.order.iter().skip(jobs.order.len().saturating_sub(most)).cloned().collect()
    }

    /// A job has reached a minion that it means.
    pub(crate) fn delivered(&self) {
        self.deliveries.add();
        self.first_delivery.fetch_min(self.micros(), Relaxed);
    }

    /// A minion begins a job.
    pub(crate) fn executes(&self, record: &Record, index: usize) {
        self.executions.add();
        if !record.executed.set(index) {
            record.doubles.add();
            self.doubles.add();
        }
    }

    /// The master has confirmed a minion's return.
    pub(crate) fn confirmed(&self, record: &Record, index: usize, since_delivery: Duration) {
        self.latency.add(since_delivery);
        self.returns_confirmed.add();
        self.last_confirmed.fetch_max(self.micros(), Relaxed);
        let took = u64::try_from(record.seen.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
        record.last_confirmed.fetch_max(took, Relaxed);
        if record.confirmed.set(index) && record.confirmed.count() == record.expected {
            self.finished.add();
            self.changed.notify_waiters();
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jid(number: usize) -> ByteString {
        format!("{number:020}").into()
    }

    #[test]
    fn a_job_executed_twice_by_one_minion_is_seen() {
        let tally = Tally::new();
        let record = tally.record(&jid(1), 100, || 2);
        tally.executes(&record, 3);
        tally.executes(&record, 70);
        assert_eq!((tally.executions.get(), tally.doubles.get()), (2, 0));
        tally.executes(&tally.record(&jid(1), 100, || 2), 70);
        assert_eq!((tally.executions.get(), tally.doubles.get(), record.doubles.get()), (3, 1, 1));
        assert_eq!(record.executed.count(), 2);
    }

    #[test]
    fn a_job_is_finished_once_when_all_it_is_for_have_returned() {
        let tally = Tally::new();
        let record = tally.record(&jid(1), 2, || 2);
        tally.confirmed(&record, 0, Duration::ZERO);
        tally.confirmed(&record, 0, Duration::ZERO);
        assert!(!record.is_finished());
        tally.confirmed(&record, 1, Duration::ZERO);
        tally.confirmed(&record, 1, Duration::ZERO);
        assert!(record.is_finished());
        assert_eq!((tally.finished.get(), tally.returns_confirmed.get()), (1, 4));
    }

    #[test]
    fn records_are_bounded_and_the_oldest_go_first() {
        let tally = Tally::new();
        for number in 0..MOST_JOBS + 5 {
            tally.record(&jid(number), 1, || 1);
        }
        assert!(tally.known(&jid(4)).is_none() && tally.known(&jid(5)).is_some());
        assert_eq!(tally.jobs_seen(), MOST_JOBS as u64 + 5);
        assert_eq!(tally.newest(2)[1].jid, jid(MOST_JOBS + 4));
    }

    #[tokio::test]
    async fn who_waits_is_told_when_the_last_minion_is_up() {
        let tally = Arc::new(Tally::new());
        let waiting = tokio::spawn({
            let tally = tally.clone();
            async move { tally.until(|| tally.ready.get() == 2).await }
        });
        tally.is_ready();
        tally.is_ready();
        tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    }
}
