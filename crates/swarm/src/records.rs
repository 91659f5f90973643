//! What is remembered of each job and each action: whom it means, who has begun it, and what came of it.
//!
//! A run is an action on one minion, whatever the job's id. A server says in the metadata of a job which action and which
//! attempt it belongs to, so that a run begun twice is seen even when it came under two job ids.
//!
//! Invariant: never more jobs, nor more actions, than the swarm was told to keep; the oldest go first. One that comes again
//! after it has gone counts as new, and [`Records::forgotten`] says that this may have happened.

use crate::clock;
use crate::counters::{Counter, Marks, Peak};
use bytestring::ByteString;
use saltern_core::ids::Jid;
use saltern_core::value::Value;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most attempts of one action that are told apart; the lowest go first.
const MOST_ATTEMPTS: usize = 1_000;

/// Where a job comes from, as the server says in its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) action: i64,
    pub(crate) attempt: i64,
}

impl Origin {
    /// Reads `{"saltern": {"action": …, "attempt": …}}`; nothing if the metadata is anything else.
    pub(crate) fn read(metadata: &Value) -> Option<Self> {
        let own = metadata.get("saltern")?;
        Some(Self { action: own.get("action")?.as_i64()?, attempt: own.get("attempt")?.as_i64()? })
    }
}

/// One job, and who has done it.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) jid: ByteString,
    pub(crate) run: Option<Run>,
    /// From the instant its id was made to when the first minion saw it, if the id tells
    pub(crate) before_seen: Option<Duration>,
    /// The minions that any of its publications means
    pub(crate) meant: Marks,
    pub(crate) executed: Marks,
    pub(crate) doubles: Counter,
    /// Those whose return says that it failed
    pub(crate) failed: Marks,
    /// Those that keep their return to themselves
    pub(crate) lost: Marks,
    /// Those that were told to end it
    pub(crate) killed: Marks,
    pub(crate) confirmed: Marks,
    /// The executions in progress: of its action, or of the job if it belongs to none
    pub(crate) at_once: Arc<Peak>,
    seen: Instant,
    /// How often a minion has begun it after the first time
    again: Mutex<HashMap<usize, u64>>,
    last_confirmed: AtomicU64,
    counts_as_finished: Mutex<bool>,
}

/// The part of a job in its action.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) origin: Origin,
    action: Arc<Action>,
    /// Who has begun this attempt, under whatever job id
    attempt: Arc<Marks>,
}

/// One action, and on whom it has run.
#[derive(Debug)]
struct Action {
    begun: Marks,
    begun_again: Marks,
    attempts: Mutex<BTreeMap<i64, Arc<Marks>>>,
    at_once: Arc<Peak>,
}

/// What the beginning of an execution means for its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    /// The run has never begun before
    pub(crate) is_first: bool,
    /// The run begins for the second time: a third does not make another run that did
    pub(crate) is_second: bool,
    /// This very attempt has begun before
    pub(crate) repeats_attempt: bool,
}

impl Record {
    fn new(jid: &ByteString, minions: usize, run: Option<Run>) -> Self {
        let marks = || Marks::new(minions);
        Self {
            jid: jid.clone(),
            before_seen: Jid::parse(jid).and_then(|jid| jid.instant()).map(|made| clock::now().since(made)),
            at_once: run.as_ref().map_or_else(Arc::default, |run| run.action.at_once.clone()),
            run,
            meant: marks(),
            executed: marks(),
            doubles: Counter::default(),
            failed: marks(),
            lost: marks(),
            killed: marks(),
            confirmed: marks(),
            seen: Instant::now(),
            again: Mutex::default(),
            last_confirmed: AtomicU64::new(0),
            counts_as_finished: Mutex::default(),
        }
    }

    /// A minion begins it; tells whether for the first time.
    pub(crate) fn begins(&self, index: usize) -> bool {
        let is_first = self.executed.set(index);
        if !is_first {
            self.doubles.add();
            *lock(&self.again).entry(index).or_default() += 1;
        }
        is_first
    }

    /// How often a minion has begun it.
    pub(crate) fn executions(&self, index: usize) -> u64 {
        u64::from(self.executed.has(index)) + lock(&self.again).get(&index).copied().unwrap_or(0)
    }

    /// A minion's return is confirmed; tells whether for the first time.
    pub(crate) fn is_confirmed_by(&self, index: usize) -> bool {
        let took = u64::try_from(self.seen.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
        self.last_confirmed.fetch_max(took, Relaxed);
        self.confirmed.set(index)
    }

    /// From the first sight of the job to the last confirmation of a return.
    pub(crate) fn took(&self) -> Option<Duration> {
        let micros = self.last_confirmed.load(Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.confirmed.count() >= self.meant.count()
    }

    /// Tells whether it has finished, or is no longer finished, since this was last asked: another publication of the
    /// same job may mean more minions. Asked after every change that may matter; the last to ask sees them all.
    pub(crate) fn newly_finished(&self) -> Option<bool> {
        let mut counted = lock(&self.counts_as_finished);
        let is_finished = self.is_finished();
        (std::mem::replace(&mut *counted, is_finished) != is_finished).then_some(is_finished)
    }
}

impl Run {
    /// A minion begins a job of this run.
    pub(crate) fn begins(&self, index: usize) -> Begun {
        let is_first = self.action.begun.set(index);
        Begun {
            is_first,
            is_second: !is_first && self.action.begun_again.set(index),
            repeats_attempt: !self.attempt.set(index),
        }
    }
}

impl Action {
    fn new(minions: usize) -> Self {
        Self {
            begun: Marks::new(minions),
            begun_again: Marks::new(minions),
            attempts: Mutex::default(),
            at_once: Arc::default(),
        }
    }

    fn attempt(&self, number: i64, minions: usize) -> Arc<Marks> {
        let mut attempts = lock(&self.attempts);
        let marks = attempts.entry(number).or_insert_with(|| Arc::new(Marks::new(minions))).clone();
        if attempts.len() > MOST_ATTEMPTS {
            attempts.pop_first();
        }
        marks
    }
}

/// The records that are kept.
#[derive(Debug)]
pub(crate) struct Records {
    most: usize,
    jobs: HashMap<ByteString, Arc<Record>>,
    /// Oldest first
    order: VecDeque<Arc<Record>>,
    actions: HashMap<i64, Arc<Action>>,
    action_order: VecDeque<i64>,
    /// How many jobs were seen, kept or not
    pub(crate) seen: u64,
}

impl Records {
    /// Keeps at most so many jobs, and as many actions.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            jobs: HashMap::new(),
            order: VecDeque::new(),
            actions: HashMap::new(),
            action_order: VecDeque::new(),
            seen: 0,
        }
    }

    /// The record of a job, made if there is none.
    pub(crate) fn record(&mut self, jid: &ByteString, origin: Option<Origin>, minions: usize) -> Arc<Record> {
        if let Some(record) = self.jobs.get(jid) {
            return record.clone();
        }
        let run = origin.map(|origin| self.run(origin, minions));
        let record = Arc::new(Record::new(jid, minions, run));
        self.seen += 1;
        self.jobs.insert(jid.clone(), record.clone());
        self.order.push_back(record.clone());
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.jobs.remove(&oldest.jid);
        }
        record
    }

    /// The record of a job that is kept.
    pub(crate) fn known(&self, jid: &str) -> Option<Arc<Record>> {
        self.jobs.get(jid).cloned()
    }

    /// The newest records, oldest first.
    pub(crate) fn newest(&self, most: usize) -> Vec<Arc<Record>> {
        self.order.iter().skip(self.order.len().saturating_sub(most)).cloned().collect()
    }

    /// How many jobs were seen whose records are gone.
    pub(crate) fn forgotten(&self) -> u64 {
        self.seen - self.order.len() as u64
    }

    fn run(&mut self, origin: Origin, minions: usize) -> Run {
        let action = match self.actions.get(&origin.action) {
            Some(action) => action.clone(),
            None => {
                let action = Arc::new(Action::new(minions));
                self.actions.insert(origin.action, action.clone());
                self.action_order.push_back(origin.action);
                if self.action_order.len() > self.most
                    && let Some(oldest) = self.action_order.pop_front()
                {
                    self.actions.remove(&oldest);
                }
                action
            }
        };
        Run { origin, attempt: action.attempt(origin.attempt, minions), action }
    }
}

/// What a poisoned lock guards here are numbers: none of them is half written.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jid(number: usize) -> ByteString {
        format!("{number:020}").into()
    }

    #[test]
    fn metadata_tell_the_action_and_the_attempt() {
        let metadata = |own: Value| Value::map([("user", Value::from("x")), ("saltern", own)]);
        let origin = Value::map([("action", 7), ("attempt", 2)]);
        assert_eq!(Origin::read(&metadata(origin)), Some(Origin { action: 7, attempt: 2 }));
        for other in [metadata(Value::map([("action", 7)])), metadata(Value::Nil), Value::from("text"), Value::Nil] {
            assert_eq!(Origin::read(&other), None, "{other:?}");
        }
    }

    #[test]
    fn records_are_bounded_and_the_oldest_go_first() {
        let mut records = Records::new(10);
        for number in 0..15 {
            records.record(&jid(number), Some(Origin { action: number as i64, attempt: 1 }), 1);
        }
        assert!(records.known(&jid(4)).is_none() && records.known(&jid(5)).is_some());
        assert_eq!((records.seen, records.forgotten(), records.actions.len()), (15, 5, 10));
        assert_eq!(records.newest(2)[1].jid, jid(14));
    }

    #[test]
    fn the_attempts_of_an_action_are_bounded() {
        let action = Action::new(1);
        (0..MOST_ATTEMPTS as i64 + 5).for_each(|number| drop(action.attempt(number, 1)));
        let attempts = lock(&action.attempts);
        assert_eq!((attempts.len(), attempts.keys().next()), (MOST_ATTEMPTS, Some(&5)));
    }

    #[test]
    fn executions_of_one_minion_are_counted_one_by_one() {
        let record = Records::new(1).record(&jid(1), None, 2);
        assert_eq!(
            [record.begins(0), record.begins(1), record.begins(1), record.begins(1)],
            [true, true, false, false]
        );
        assert_eq!((record.executions(0), record.executions(1), record.doubles.get()), (1, 3, 2));
    }
}
