//! Who may be connected: limits on connections in total, per address, half open and untrusted.
//!
//! A full house of strangers must not keep the next honest peer out, so where a limit concerns strangers the oldest of
//! them makes room; an honest peer passes through that phase in milliseconds.

use super::options::Options;
use futures_util::future::AbortHandle;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In its handshake.
    HalfOpen,
    /// Through the handshake, not vouched for, idle.
    Untrusted,
    /// Not vouched for, with a request in hand that must not be cancelled.
    Busy,
    /// Vouched for.
    Trusted,
}

/// All connections of one port.
#[derive(Debug)]
pub(crate) struct Slots {
    max_connections: usize,
    max_per_address: usize,
    max_half_open: usize,
    max_untrusted: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_id: u64,
    entries: HashMap<u64, Entry>,
    per_address: HashMap<IpAddr, usize>,
    /// Ids only grow, so the first is the oldest.
    half_open: BTreeSet<u64>,
    untrusted: BTreeSet<u64>,
    evicted: u64,
}

#[derive(Debug)]
struct Entry {
    abort: AbortHandle,
    address: IpAddr,
    phase: Phase,
}

/// A connection's place; freed when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    id: u64,
}

/// How many connections there are, by phase, and how many had to make room so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) open: usize,
    pub(crate) half_open: usize,
    pub(crate) untrusted: usize,
    pub(crate) evicted: u64,
}

impl Slots {
    pub(crate) fn new(options: &Options) -> Arc<Self> {
        Arc::new(Self {
            max_connections: options.max_connections,
            max_per_address: options.max_per_address,
            max_half_open: options.max_half_open.max(1),
            max_untrusted: options.max_untrusted.max(1),
            state: Mutex::default(),
        })
    }

    /// A place for a new connection from `ip`, or `None` when there is none to be had. `abort` ends the connection.
    pub(crate) fn admit(self: &Arc<Self>, ip: IpAddr, abort: AbortHandle) -> Option<Slot> {
        let address = network(ip);
        let mut state = self.lock();
        if state.per_address.get(&address).is_some_and(|&count| count >= self.max_per_address) {
            return None;
        }
        if state.half_open.len() >= self.max_half_open {
            state.evict_half_open();
        }
        if state.entries.len() >= self.max_connections && !state.evict_half_open() && !state.evict_untrusted() {
            return None;
        }
        let id = state.next_id;
        state.next_id += 1;
        state.entries.insert(id, Entry { abort, address, phase: Phase::HalfOpen });
        *state.per_address.entry(address).or_default() += 1;
        state.half_open.insert(id);
        Some(Slot { slots: self.clone(), id })
    }

    /// Ends the oldest half-open connection, if there is one.
    pub(crate) fn evict_half_open(&self) {
        self.lock().evict_half_open();
    }

    /// Ends all connections.
    pub(crate) fn abort_all(&self) {
        for entry in self.lock().entries.values() {
            entry.abort.abort();
        }
    }

    pub(crate) fn census(&self) -> Census {
        let state = self.lock();
        Census {
            open: state.entries.len(),
            half_open: state.half_open.len(),
            untrusted: state.untrusted.len(),
            evicted: state.evicted,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Slot {
    /// A number that no other connection of this port has or had.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Moves the connection to another phase.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut state = self.slots.lock();
        let state = &mut *state;
        let Some(entry) = state.entries.get_mut(&self.id) else { return };
        match entry.phase {
            Phase::HalfOpen => state.half_open.remove(&self.id),
            Phase::Untrusted => state.untrusted.remove(&self.id),
            Phase::Busy | Phase::Trusted => false,
        };
        entry.phase = phase;
        match phase {
            Phase::HalfOpen => state.half_open.insert(self.id),
            Phase::Untrusted => {
                if state.untrusted.len() >= self.slots.max_untrusted {
                    state.evict_untrusted();
                }
                state.untrusted.insert(self.id)
            }
            Phase::Busy | Phase::Trusted => false,
        };
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().remove(self.id);
    }
}

impl State {
    fn evict_half_open(&mut self) -> bool {
        let oldest = self.half_open.first().copied();
        self.evict(oldest)
    }

    fn evict_untrusted(&mut self) -> bool {
        let oldest = self.untrusted.first().copied();
        self.evict(oldest)
    }

    fn evict(&mut self, id: Option<u64>) -> bool {
        let Some(entry) = id.and_then(|id| self.remove(id)) else { return false };
        entry.abort.abort();
        self.evicted += 1;
        true
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.half_open.remove(&id);
        self.untrusted.remove(&id);
        if let Some(count) = self.per_address.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&entry.address);
            }
        }
        Some(entry)
    }
}

/// What counts as one address: one host commands a whole IPv6 /64, so that counts as one.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(change: impl FnOnce(&mut Options)) -> Arc<Slots> {
        let mut options = Options::default();
        change(&mut options);
        Slots::new(&options)
    }

    fn admit(slots: &Arc<Slots>, ip: &str) -> Option<(Slot, AbortHandle)> {
        let (abort, _) = AbortHandle::new_pair();
        slots.admit(ip.parse().unwrap(), abort.clone()).map(|slot| (slot, abort))
    }

    #[test]
    fn the_oldest_half_open_connection_makes_room() {
        let slots = slots(|options| options.max_half_open = 2);
        let (_first, first) = admit(&slots, "10.0.0.1").unwrap();
        let (_second, second) = admit(&slots, "10.0.0.1").unwrap();
        let (_third, _) = admit(&slots, "10.0.0.1").unwrap();
        assert!(first.is_aborted() && !second.is_aborted());
        assert_eq!(slots.census(), Census { open: 2, half_open: 2, untrusted: 0, evicted: 1 });
    }

    #[test]
    fn the_oldest_idle_stranger_makes_room_but_never_a_busy_or_trusted_one() {
        let slots = slots(|options| options.max_untrusted = 1);
        let connections: Vec<_> = (0..4).map(|_| admit(&slots, "10.0.0.1").unwrap()).collect();
        connections[0].0.enter(Phase::Busy);
        connections[1].0.enter(Phase::Trusted);
        connections[2].0.enter(Phase::Untrusted);
        connections[3].0.enter(Phase::Untrusted);
        let aborted: Vec<_> = connections.iter().map(|(_, abort)| abort.is_aborted()).collect();
        assert_eq!(aborted, [false, false, true, false]);
    }

    #[test]
    fn one_address_cannot_take_all_places() {
        let slots = slots(|options| options.max_per_address = 1);
        let first = admit(&slots, "10.0.0.1");
        assert!(first.is_some());
        assert!(admit(&slots, "10.0.0.1").is_none());
        assert!(admit(&slots, "::ffff:10.0.0.1").is_none());
        assert!(admit(&slots, "10.0.0.2").is_some());
        drop(first);
        assert!(admit(&slots, "10.0.0.1").is_some());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let slots = slots(|options| options.max_per_address = 1);
        let _first = admit(&slots, "2001:db8::1").unwrap();
        assert!(admit(&slots, "2001:db8::2").is_none());
        assert!(admit(&slots, "2001:db8:0:1::1").is_some());
    }

    #[test]
    fn a_house_full_of_trusted_peers_refuses() {
        let slots = slots(|options| options.max_connections = 1);
        let (first, _) = admit(&slots, "10.0.0.1").unwrap();
        first.enter(Phase::Trusted);
        assert!(admit(&slots, "10.0.0.2").is_none());
        first.enter(Phase::Untrusted);
        assert!(admit(&slots, "10.0.0.2").is_some());
    }
}
