//! What one light minion is at: the jobs it knows, those it works on, and the returns it has not got rid of.
//!
//! Nothing here speaks to the master, so all of it outlives a connection: a minion that lost the master goes on working and
//! returns when it is back.

use crate::chance::Chance;
use crate::load::Load;
use crate::options::Options;
use crate::publications::Job;
use crate::tally::{InProgress, Tally};
use bytestring::ByteString;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many jobs a minion remembers, to know one that comes again (`minion_jid_queue_hwm`).
const REMEMBERED: usize = 100;
/// How many jobs and returns a minion has at once; further jobs wait in the connection.
const MOST_AT_ONCE: usize = 1_000;

/// A minion's work.
#[derive(Default)]
pub(crate) struct Work {
    /// The last jobs it took up. By id: the record of a job may be gone, or another, when it comes again
    known: VecDeque<ByteString>,
    running: Vec<Running>,
    /// The jobs that end by themselves, when they do
    ends: FuturesUnordered<BoxFuture<'static, ByteString>>,
    /// Oldest first
    unsent: VecDeque<Return>,
}

/// A job that the minion is at.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) job: Arc<Job>,
    /// When it reached the minion
    pub(crate) since: Instant,
    pub(crate) fate: Fate,
    _in_progress: InProgress,
}

/// A return that the master has not confirmed.
#[derive(Debug, Clone)]
pub(crate) struct Return {
    pub(crate) job: Arc<Job>,
    pub(crate) since: Instant,
    pub(crate) load: Load,
    /// How often it was sent in vain
    pub(crate) tries: u32,
}

/// What chance has in store for an execution; decided when it begins, so that it is known whatever happens later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) loses_ack: bool,
    pub(crate) fails: bool,
    pub(crate) loses_return: bool,
}

impl Fate {
    pub(crate) fn draw(chance: &mut Chance, options: &Options) -> Self {
        Self {
            loses_ack: chance.happens(options.lose_acks),
            fails: chance.happens(options.fail_rate),
            loses_return: chance.happens(options.lose_returns),
        }
    }
}

impl Running {
    pub(crate) fn new(job: Arc<Job>, since: Instant, fate: Fate, tally: &Tally) -> Self {
        Self { _in_progress: tally.in_progress(&job.record), job, since, fate }
    }

    /// From now on it is no longer in progress.
    pub(crate) fn end(self) -> (Arc<Job>, Instant, Fate) {
        (self.job, self.since, self.fate)
    }
}

impl Work {
    /// Whether a job is new to the minion; from now on it is not.
    pub(crate) fn is_new(&mut self, jid: &ByteString) -> bool {
        if self.known.iter().rev().any(|known| known == jid) {
            return false;
        }
        if self.known.len() == REMEMBERED {
            self.known.pop_front();
        }
        self.known.push_back(jid.clone());
        true
    }

    /// Whether there is room for another job.
    pub(crate) fn has_room(&self) -> bool {
        self.running.len() + self.unsent.len() < MOST_AT_ONCE
    }

    /// Whether the minion is at this job.
    pub(crate) fn is_at(&self, jid: &str) -> bool {
        self.running.iter().any(|running| *running.job.record.jid == *jid)
    }

    pub(crate) fn running(&self) -> &[Running] {
        &self.running
    }

    /// Begins a job, which goes on until somebody ends it.
    pub(crate) fn begin(&mut self, running: Running) {
        self.running.push(running);
    }

    /// Lets a job end by itself after so long.
    pub(crate) fn end_after(&mut self, jid: ByteString, time: Duration) {
        self.ends.push(Box::pin(async move {
            tokio::time::sleep(time).await;
            jid
        }));
    }

    /// Ends a job; nothing if the minion is not at it.
    pub(crate) fn end(&mut self, jid: &str) -> Option<Running> {
        let at = self.running.iter().position(|running| *running.job.record.jid == *jid)?;
        Some(self.running.remove(at))
    }

    /// Ends all jobs and forgets those it knew: the minion starts again. What it has yet to return waits.
    pub(crate) fn start_again(&mut self) -> Vec<Running> {
        self.known.clear();
        self.ends.clear();
        std::mem::take(&mut self.running)
    }

    /// The next job that ends by itself; nothing if there is none that will. May be dropped at any time.
    pub(crate) async fn ended(&mut self) -> Option<Running> {
        while let Some(jid) = self.ends.next().await {
            // One that was killed has ended before its time.
            if let Some(running) = self.end(&jid) {
                return Some(running);
            }
        }
        None
    }

    /// Adds a return that is to be sent.
    pub(crate) fn queue(&mut self, job: Arc<Job>, since: Instant, load: Load) {
        self.unsent.push_back(Return { job, since, load, tries: 0 });
    }

    /// The return that is to be sent next.
    pub(crate) fn next_return(&mut self) -> Option<&mut Return> {
        self.unsent.front_mut()
    }

    /// The return that was to be sent next has been confirmed.
    pub(crate) fn is_confirmed(&mut self) -> Option<Return> {
        self.unsent.pop_front()
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Purpose;
    use crate::publications::tests::job;

    fn jid(number: usize) -> ByteString {
        format!("{number:020}").into()
    }

    #[test]
    fn a_job_is_new_once_until_a_hundred_others_came() {
        let mut work = Work::default();
        assert!(work.is_new(&jid(0)) && !work.is_new(&jid(0)));
        assert!((1..=REMEMBERED).all(|number| work.is_new(&jid(number))));
        assert!(!work.is_new(&jid(1)) && work.is_new(&jid(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_end_in_their_time_and_one_that_was_killed_does_not_end_again() {
        let (tally, mut work) = (Tally::new(10), Work::default());
        for (number, millis) in [(1, 300), (2, 200), (3, 100)] {
            let job = job(&tally, &jid(number), "cmd.run");
            work.begin(Running::new(job, Instant::now(), Fate::default(), &tally));
            work.end_after(jid(number), Duration::from_millis(millis));
        }
        assert_eq!(tally.at_once().now(), 3);
        assert!(work.end(&jid(2)).is_some() && work.end(&jid(2)).is_none());
        assert_eq!(work.ended().await.unwrap().job.record.jid, jid(3));
        assert_eq!(work.ended().await.unwrap().job.record.jid, jid(1));
        assert!(work.ended().await.is_none() && work.running().is_empty());
        assert_eq!((tally.at_once().now(), tally.at_once().most()), (0, 3));
    }

    #[test]
    fn a_minion_with_its_hands_full_takes_nothing_more() {
        let (tally, mut work) = (Tally::new(10), Work::default());
        let job = job(&tally, &jid(1), "cmd.run");
        for _ in 0..MOST_AT_ONCE - 1 {
            work.begin(Running::new(job.clone(), Instant::now(), Fate::default(), &tally));
        }
        assert!(work.has_room());
        work.queue(job.clone(), Instant::now(), Load::new(&saltern_core::value::Map::new()));
        assert!(!work.has_room());
    }

    #[test]
    fn the_fate_of_an_execution_depends_on_the_seed_and_on_each_rate_alone() {
        let draw = |seed, options: &Options| {
            let mut chance = Chance::new(seed, 3, Purpose::Executions);
            (0..50).map(|_| Fate::draw(&mut chance, options)).collect::<Vec<_>>()
        };
        let failing = Options { fail_rate: 0.3, ..Options::default() };
        let all = Options { lose_acks: 0.5, lose_returns: 0.2, ..failing.clone() };
        assert_eq!(draw(1, &all), draw(1, &all));
        assert_ne!(draw(1, &all), draw(2, &all));
        let fails = |fates: Vec<Fate>| fates.iter().map(|fate| fate.fails).collect::<Vec<_>>();
        assert_eq!(fails(draw(1, &failing)), fails(draw(1, &all)));
    }
}
