//! A common budget for the bytes of messages that have arrived and are not handled yet.
//!
//! The first request on a fresh connection may be a sealed return of many megabytes, so a small size limit before
//! authentication would cut honest minions. Instead every connection may send up to the full message size, and all
//! that are not trusted share one budget.
//!
//! When it is full, whoever has been sending for longer than [`GRACE`] yields, oldest first: an honest message arrives
//! within moments, so it is the slow hoarder that goes. When nobody is that old, the one that asks for more is cut, so
//! that under honest overload the messages in hand complete.
//!
//! Invariant: at most twice the limit is ever held (the second half only by connections that are being closed).

use super::error::Error;
use futures_util::future::AbortHandle;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// How long an unfinished message is safe from being dropped in favour of newer ones.
const GRACE: Duration = Duration::from_secs(5);

/// The budget.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of all holders, those of the leaving ones included.
    held: usize,
    /// Bytes of holders that have been told to go.
    leaving: usize,
    next_id: u64,
    /// By age: ids only grow.
    holders: BTreeMap<u64, Holder>,
}

#[derive(Debug)]
struct Holder {
    bytes: usize,
    since: Instant,
    abort: AbortHandle,
    /// A message that has arrived completely is being handled, and is not taken away any more.
    complete: bool,
    leaving: bool,
}

/// A connection's right to draw on a budget: the budget, and how to end the connection when it must yield.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) budget: Arc<Budget>,
    pub(crate) abort: AbortHandle,
}

/// The share of one message; given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    id: u64,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.lock().held
    }
}

impl Account {
    /// Opens a share of `bytes`.
    pub(crate) fn charge(&self, bytes: usize) -> Result<Charge, Error> {
        let mut state = self.budget.lock();
        let id = state.next_id;
        state.next_id += 1;
        let holder =
            Holder { bytes: 0, since: Instant::now(), abort: self.abort.clone(), complete: false, leaving: false };
        state.holders.insert(id, holder);
        drop(state);
        let charge = Charge { budget: self.budget.clone(), id };
        charge.grow_to(bytes)?;
        Ok(charge)
    }
}

impl Charge {
    /// Raises the share to `bytes`.
    pub(crate) fn grow_to(&self, bytes: usize) -> Result<(), Error> {
        let mut state = self.budget.lock();
        let state = &mut *state;
        let Some(own) = state.holders.get(&self.id) else { return Err(Error::Overloaded) };
        let extra = bytes.saturating_sub(own.bytes);
        let limit = self.budget.limit;
        if state.held - state.leaving + extra > limit {
            state.evict_until(limit.saturating_sub(extra), self.id);
        }
        if state.held - state.leaving + extra > limit || state.held + extra > limit.saturating_mul(2) {
            return Err(Error::Overloaded);
        }
        state.held += extra;
        if let Some(own) = state.holders.get_mut(&self.id) {
            own.bytes += extra;
        }
        Ok(())
    }

    /// Marks the message as complete: it is going to be handled.
    pub(crate) fn complete(&self) {
        if let Some(own) = self.budget.lock().holders.get_mut(&self.id) {
            own.complete = true;
        }
    }
}

impl State {
    fn evict_until(&mut self, wanted: usize, asker: u64) {
        let now = Instant::now();
        for (&id, holder) in &mut self.holders {
            // Ordered by age: from the first young one on all are young.
            if self.held - self.leaving <= wanted || now.duration_since(holder.since) < GRACE {
                return;
            }
            if id != asker && !holder.complete && !holder.leaving {
                holder.leaving = true;
                self.leaving += holder.bytes;
                holder.abort.abort();
            }
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut state = self.budget.lock();
        if let Some(holder) = state.holders.remove(&self.id) {
            state.held -= holder.bytes;
            if holder.leaving {
                state.leaving -= holder.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(budget: &Arc<Budget>) -> Account {
        Account { budget: budget.clone(), abort: AbortHandle::new_pair().0 }
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_budget_cuts_the_asker_while_all_are_young() {
        let budget = Budget::new(100);
        let (first, second) = (account(&budget), account(&budget));
        let _held = first.charge(80).unwrap();
        assert!(matches!(second.charge(30), Err(Error::Overloaded)));
        assert!(!first.abort.is_aborted());
        assert_eq!(budget.held(), 80, "a refused charge leaves nothing behind");
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_budget_cuts_the_oldest_after_its_grace() {
        let budget = Budget::new(100);
        let (slow, honest) = (account(&budget), account(&budget));
        let slow_share = slow.charge(80).unwrap();
        tokio::time::advance(GRACE).await;
        let _honest_share = honest.charge(30).unwrap();
        assert!(slow.abort.is_aborted());
        assert!(matches!(account(&budget).charge(100), Err(Error::Overloaded)), "never more than twice the limit");
        drop(slow_share);
        assert_eq!(budget.held(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_in_hand_is_never_taken_away() {
        let budget = Budget::new(100);
        let busy = account(&budget);
        let share = busy.charge(80).unwrap();
        share.complete();
        tokio::time::advance(GRACE * 2).await;
        assert!(matches!(account(&budget).charge(30), Err(Error::Overloaded)));
        assert!(!busy.abort.is_aborted());
    }

    #[test]
    fn what_is_dropped_is_given_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let budget = Budget::new(100);
            for _ in 0..10 {
                let share = account(&budget).charge(50).unwrap();
                share.grow_to(100).unwrap();
            }
            assert_eq!(budget.held(), 0);
        });
    }
}
