//! A bounded pool for RSA work: a few threads, fair between addresses, newest first, nothing its sender gave up on.
//!
//! When two thousand minions sign in at once, serving them in order means that every answer comes after its asker has
//! given up and asked again, for ever. So the newest request is served first, what is older than its sender's patience is
//! dropped unserved, and a full queue drops the oldest of whoever has most. Addresses take turns, so one that floods the
//! port takes no more than its share.

use saltern_core::time::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The pool. Dropping the last handle ends its threads.
#[derive(Clone)]
pub(crate) struct Pool {
    queue: Arc<Queue>,
    _alive: Arc<Alive>,
}

struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    most: usize,
    patience: Duration,
}

#[derive(Default)]
struct State {
    /// What waits, by address, oldest first
    lanes: HashMap<IpAddr, VecDeque<(Timestamp, Work)>>,
    /// Whose turn it is; every address with something waiting is here once
    turns: VecDeque<IpAddr>,
    waiting: usize,
    closed: bool,
    dropped: u64,
}

type Work = Box<dyn FnOnce() + Send>;

struct Alive(Arc<Queue>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.wake.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// Starts `threads` threads. At most `most` requests wait; one that has waited longer than `patience` is dropped.
    pub(crate) fn start(name: &str, threads: usize, most: usize, patience: Duration) -> std::io::Result<Self> {
        let queue = Arc::new(Queue { state: Mutex::default(), wake: Condvar::new(), most, patience });
        for number in 0..threads.max(1) {
            let queue = queue.clone();
            std::thread::Builder::new().name(format!("{name}-{number}")).spawn(move || serve(&queue))?;
        }
        Ok(Self { _alive: Arc::new(Alive(queue.clone())), queue })
    }

    /// Runs `work` of `address` on the pool; `None` if it was dropped because nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        address: IpAddr,
        now: Timestamp,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move || drop(answer.send(work())));
        self.queue.lock().push(address, now, work, self.queue.most);
        self.queue.wake.notify_one();
        answered.await.ok()
    }

    /// How many requests were dropped unserved since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue.lock().dropped
    }
}

impl State {
    fn push(&mut self, address: IpAddr, now: Timestamp, work: Work, most: usize) {
        if self.waiting >= most
            && let Some(longest) = self.lanes.values_mut().max_by_key(|lane| lane.len())
        {
            longest.pop_front();
            self.waiting -= 1;
            self.dropped += 1;
        }
        let lane = self.lanes.entry(address).or_default();
        if lane.is_empty() && !self.turns.contains(&address) {
            self.turns.push_back(address);
        }
        lane.push_back((now, work));
        self.waiting += 1;
    }

    /// The newest of the address whose turn it is.
    fn pop(&mut self, now: Timestamp, patience: Duration) -> Option<Work> {
        while let Some(address) = self.turns.pop_front() {
            let Some(lane) = self.lanes.get_mut(&address) else { continue };
            let newest = lane.pop_back();
            self.waiting -= usize::from(newest.is_some());
            match newest {
                Some((asked, work)) if now.since(asked) <= patience => {
                    if lane.is_empty() {
                        self.lanes.remove(&address);
                    } else {
                        self.turns.push_back(address);
                    }
                    return Some(work);
                }
                // The newest is too old, so all the others of this address are.
                too_old => {
                    self.dropped += u64::from(too_old.is_some()) + lane.len() as u64;
                    self.waiting -= lane.len();
                    self.lanes.remove(&address);
                }
            }
        }
        None
    }
}

fn serve(queue: &Queue) {
    loop {
        let mut state = queue.lock();
        let work = loop {
            if let Some(work) = state.pop(crate::clock::now(), queue.patience) {
                break work;
            }
            if state.closed {
                return;
            }
            state = queue.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        work();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use futures_util::poll;
    use std::sync::mpsc;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

    /// Queues numbered work behind a request that holds the only thread, lets go, and tells what was done in which order.
    async fn order_of(most: usize, asked: &[(IpAddr, u32)]) -> Vec<u32> {
        let pool = Pool::start("t", 1, most, Duration::from_secs(60)).unwrap();
        let (release, held) = mpsc::channel::<()>();
        let (started, has_started) = oneshot::channel();
        let hold = move || {
            let _ = started.send(());
            let _ = held.recv();
        };
        let mut holder = Box::pin(pool.run(HERE, clock::now(), hold));
        assert!(poll!(holder.as_mut()).is_pending());
        has_started.await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for (address, number) in asked.iter().copied() {
            let done = order.clone();
            let mut run = Box::pin(pool.run(address, clock::now(), move || done.lock().unwrap().push(number)));
            // Poll once, so that the requests queue up in this order.
            assert!(poll!(run.as_mut()).is_pending());
            waiting.push(run);
        }
        release.send(()).unwrap();
        holder.await;
        for run in waiting {
            run.await;
        }
        Arc::into_inner(order).unwrap().into_inner().unwrap()
    }

    #[tokio::test]
    async fn what_is_older_than_its_senders_patience_is_dropped() {
        let pool = Pool::start("t", 1, 16, Duration::from_secs(5)).unwrap();
        assert_eq!(pool.run(HERE, clock::now().minus(Duration::from_secs(6)), || ()).await, None);
        assert_eq!(pool.dropped(), 1);
        assert_eq!(pool.run(HERE, clock::now(), || 42).await, Some(42));
    }

    #[tokio::test]
    async fn the_newest_is_served_first_and_the_oldest_is_dropped_when_full() {
        assert_eq!(order_of(2, &[(HERE, 0), (HERE, 1), (HERE, 2)]).await, [2, 1]);
    }

    #[tokio::test]
    async fn addresses_take_turns() {
        let flood = [(HERE, 0), (HERE, 1), (HERE, 2), (HERE, 3), (THERE, 10)];
        assert_eq!(order_of(16, &flood).await, [3, 10, 2, 1, 0]);
    }

    #[tokio::test]
    async fn a_flood_from_one_address_pushes_out_its_own() {
        let flood = [(THERE, 10), (HERE, 0), (HERE, 1), (HERE, 2)];
        assert_eq!(order_of(3, &flood).await, [10, 2, 1]);
    }
}
