//! Refuses a request that was seen before.
//!
//! A minion that repeats a request makes a new nonce for it, so the same nonce again is never the minion. Each minion has
//! its own window: the nonces of the last few minutes, bounded in number. When the window is full its oldest entries go,
//! and with them every request with an older time stamp: what cannot be remembered cannot be replayed either.
//!
//! Not here: what a restart remembers (`journal`).

use std::collections::{HashSet, VecDeque};

/// Most nonces remembered per minion. A state run of a thousand files makes some three thousand requests.
const MOST: usize = 8192;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its nonce was seen before
    Replayed,
    /// It is older, by its own time stamp, than what can be remembered or is allowed
    TooOld,
    /// It is dated further ahead than is allowed: it would outlive the memory of its nonce
    TooNew,
}

/// The nonces of one minion.
#[derive(Debug, Default)]
pub(crate) struct Window {
    seen: HashSet<[u8; 16]>,
    order: VecDeque<(i64, [u8; 16])>,
    /// Requests older than this cannot be told from replays
    floor: i64,
}

impl Window {
    /// Takes note of a request made at `ts` (the minion's clock, seconds), or refuses it.
    pub(crate) fn admit(&mut self, nonce: &str, ts: Option<i64>, now: i64, ttl: Option<i64>) -> Result<(), Refused> {
        let oldest = ttl.map_or(i64::MIN, |ttl| now.saturating_sub(ttl));
        let ts = ts.unwrap_or(if ttl.is_some() { i64::MIN } else { now });
        if ts < oldest || ts < self.floor {
            return Err(Refused::TooOld);
        }
        if ttl.is_some_and(|ttl| ts > now.saturating_add(ttl)) {
            return Err(Refused::TooNew);
        }
        self.note(nonce, ts)?;
        while let Some((front_ts, front)) = self.order.front().copied() {
            let full = self.order.len() > MOST;
            // Past the time to live a nonce need not be remembered: its request is refused by age.
            let is_outlived = ttl.is_some() && front_ts < oldest;
            if !full && !is_outlived {
                break;
            }
            self.order.pop_front();
            self.seen.remove(&front);
            if full {
                // Where requests of any age are served, a minion whose clock was ahead must not be locked out for as long
                // when it is set right; elsewhere it was at most the time to live ahead.
                let gone = if ttl.is_some() { front_ts } else { front_ts.min(now) };
                self.floor = self.floor.max(gone.saturating_add(1));
            }
        }
        Ok(())
    }

    /// Takes note of a request that has no time stamp, as those of version 2, or refuses it. Its nonce is remembered until
    /// newer ones need the room: what has no age cannot be refused for it.
    pub(crate) fn admit_undated(&mut self, nonce: &str, now: i64) -> Result<(), Refused> {
        self.note(nonce, now)?;
        if self.order.len() > MOST
            && let Some((ts, oldest)) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
            self.floor = self.floor.max(ts.saturating_add(1));
        }
        Ok(())
    }

    fn note(&mut self, nonce: &str, ts: i64) -> Result<(), Refused> {
        if !self.seen.insert(key(nonce)) {
            return Err(Refused::Replayed);
        }
        self.order.push_back((ts, key(nonce)));
        Ok(())
    }

    /// Takes up what was known before a restart.
    pub(crate) fn remember(&mut self, nonce: [u8; 16], ts: i64) {
        if self.order.len() < MOST && self.seen.insert(nonce) {
            self.order.push_back((ts, nonce));
        }
    }
}

/// Nonces are 32 hex digits; anything else is folded to the same size, which can only refuse too much.
pub(crate) fn key(nonce: &str) -> [u8; 16] {
    let mut key = [0_u8; 16];
    for (index, byte) in nonce.bytes().enumerate() {
        let digit = char::from(byte).to_digit(16).map_or(byte, |digit| digit as u8);
        let cell = &mut key[(index / 2) % 16];
        *cell = cell.rotate_left(4) ^ digit;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_nonce_is_refused_the_second_time() {
        let mut window = Window::default();
        assert_eq!(window.admit("0123456789abcdef0123456789abcdef", Some(100), 100, Some(300)), Ok(()));
        assert_eq!(window.admit("0123456789abcdef0123456789abcdef", Some(100), 101, Some(300)), Err(Refused::Replayed));
        assert_eq!(window.admit("0123456789abcdef0123456789abcdee", Some(100), 101, Some(300)), Ok(()));
    }

    #[test]
    fn an_old_request_is_refused_by_its_time_stamp() {
        let mut window = Window::default();
        assert_eq!(window.admit("a", Some(100), 401, Some(300)), Err(Refused::TooOld));
        assert_eq!(window.admit("a", None, 401, Some(300)), Err(Refused::TooOld));
        assert_eq!(window.admit("a", Some(100), 401, None), Ok(()));
    }

    #[test]
    fn a_request_dated_far_ahead_is_refused() {
        let mut window = Window::default();
        assert_eq!(window.admit("a", Some(401), 100, Some(300)), Err(Refused::TooNew));
        assert_eq!(window.admit("a", Some(400), 100, Some(300)), Ok(()));
        assert_eq!(window.admit("b", Some(4_000), 100, None), Ok(()));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_lock_its_minion_out() {
        let mut window = Window::default();
        for number in 0..MOST + 1 {
            window.admit(&format!("{number:032x}"), Some(9_000), 1_000, None).unwrap();
        }
        assert_eq!(window.admit("ff", Some(1_001), 1_001, None), Ok(()));
    }

    #[test]
    fn requests_without_a_time_stamp_are_told_apart_by_their_nonce_alone() {
        let mut window = Window::default();
        for number in 0..2 * MOST {
            assert_eq!(window.admit_undated(&format!("{number:032x}"), 1_000), Ok(()));
        }
        assert_eq!(window.admit_undated(&format!("{:032x}", 2 * MOST - 1), 1_000), Err(Refused::Replayed));
        assert_eq!(window.order.len(), MOST);
    }

    #[test]
    fn what_was_known_before_a_restart_is_refused_after_it() {
        let mut window = Window::default();
        window.remember(key("0123456789abcdef0123456789abcdef"), 100);
        assert_eq!(window.admit("0123456789abcdef0123456789abcdef", Some(100), 101, Some(300)), Err(Refused::Replayed));
    }

    #[test]
    fn what_is_forgotten_cannot_be_replayed() {
        let mut window = Window::default();
        for number in 0..MOST + 10 {
            let ts = 1000 + number as i64;
            assert_eq!(window.admit(&format!("{number:032x}"), Some(ts), ts, None), Ok(()));
        }
        assert!(window.order.len() <= MOST && window.seen.len() == window.order.len());
        assert_eq!(window.admit(&format!("{:032x}", 0), Some(1000), 1000, None), Err(Refused::TooOld));
    }

    #[test]
    fn memory_shrinks_when_time_passes() {
        let mut window = Window::default();
        for number in 0..100 {
            window.admit(&format!("{number:032x}"), Some(0), 0, Some(300)).unwrap();
        }
        window.admit("ff", Some(1000), 1000, Some(300)).unwrap();
        assert_eq!(window.order.len(), 1);
    }
}
