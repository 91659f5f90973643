//! A bounded pool for RSA work: a few threads, newest first, nothing that its sender no longer waits for.
//!
//! When two thousand minions sign in at once, serving them in order means that every answer comes after its asker has
//! given up and asked again, for ever. So the newest request is served first, what is older than its sender's patience is
//! dropped unserved, and a full queue drops its oldest.

use saltern_core::time::Timestamp;
use std::collections::VecDeque;
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
    waiting: VecDeque<(Timestamp, Work)>,
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

    /// Runs `work` on the pool; `None` if it was dropped because nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(&self, now: Timestamp, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.queue.lock();
            if state.waiting.len() >= self.queue.most {
                state.waiting.pop_front();
                state.dropped += 1;
            }
            let work: Work = Box::new(move || drop(answer.send(work())));
            state.waiting.push_back((now, work));
        }
        self.queue.wake.notify_one();
        answered.await.ok()
    }

    /// How many requests were dropped unserved since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue.lock().dropped
    }
}

fn serve(queue: &Queue) {
    loop {
        let mut state = queue.lock();
        let (asked, work) = loop {
            if let Some(newest) = state.waiting.pop_back() {
                break newest;
            }
            if state.closed {
                return;
            }
            state = queue.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        if crate::clock::now().since(asked) > queue.patience {
            // The newest is too old, so all the others are.
            state.dropped += 1 + state.waiting.len() as u64;
            state.waiting.clear();
            continue;
        }
        drop(state);
        work();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::sync::mpsc;

    #[tokio::test]
    async fn work_is_done_and_answered() {
        let pool = Pool::start("t", 2, 16, Duration::from_secs(60)).unwrap();
        assert_eq!(pool.run(clock::now(), || 41 + 1).await, Some(42));
    }

    #[tokio::test]
    async fn what_is_older_than_its_senders_patience_is_dropped() {
        let pool = Pool::start("t", 1, 16, Duration::from_secs(5)).unwrap();
        assert_eq!(pool.run(clock::now().minus(Duration::from_secs(6)), || ()).await, None);
        assert_eq!(pool.dropped(), 1);
    }

    #[tokio::test]
    async fn the_newest_is_served_first_and_the_oldest_is_dropped_when_full() {
        let pool = Pool::start("t", 1, 2, Duration::from_secs(60)).unwrap();
        let (release, held) = mpsc::channel::<()>();
        let (started, has_started) = oneshot::channel();
        let holder = tokio::spawn({
            let pool = pool.clone();
            async move {
                pool.run(clock::now(), move || {
                    let _ = started.send(());
                    let _ = held.recv();
                })
                .await
            }
        });
        has_started.await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..3 {
            let (pool, order) = (pool.clone(), order.clone());
            let mut run = Box::pin(async move { pool.run(clock::now(), move || order.lock().unwrap().push(number)).await });
            // Poll once so that the requests queue up in a known order.
            assert!(futures_util::poll!(run.as_mut()).is_pending());
            waiting.push(run);
        }
        release.send(()).unwrap();
        holder.await.unwrap();
        for run in waiting {
            run.await;
        }
        assert_eq!(*order.lock().unwrap(), [2, 1]);
    }
}
