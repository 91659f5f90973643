//! Counts tries to log in, by address and by address and name, in a bounded amount of memory.
//!
//! Time comes in as an argument. A try counts from its arrival and is taken back if it succeeds, so that programs which
//! send their password with every request are not slowed down, and guessing is, also when it is done in parallel.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

use super::Limits;

/// All tries of the last while.
pub(super) struct Tries {
    window: Duration,
    by_network: Table<Network>,
    by_person: Table<Person>,
    hasher: RandomState,
}

/// One try that counts.
pub(super) struct Try {
    person: Person,
    at: Instant,
}

/// An address, or the network that one IPv6 customer has to choose addresses from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Network(IpAddr);

/// A name at an address. The name is kept as a keyed hash: short, and nobody can aim at a collision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Person {
    network: Network,
    name: u64,
}

impl Tries {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            window: limits.window,
            by_network: Table::new(limits.per_address, limits.keys),
            by_person: Table::new(limits.per_user, limits.keys),
            hasher: RandomState::new(),
        }
    }

    /// Counts a try, or says how long to wait before the next one.
    pub(super) fn take(&mut self, from: IpAddr, user: &str, now: Instant) -> Result<Try, Duration> {
        let network = Network::of(from);
        // Backends that do not tell upper from lower case must not give every spelling tries of its own.
        let person = Person { network, name: self.hasher.hash_one(user.to_lowercase()) };
        let waits = [self.by_network.wait(&network, now, self.window), self.by_person.wait(&person, now, self.window)];
        if let Some(wait) = waits.into_iter().flatten().max() {
            return Err(wait);
        }
        self.by_network.note(network, now, self.window);
        self.by_person.note(person, now, self.window);
        Ok(Try { person, at: now })
    }

    /// Takes a try back that has succeeded.
    pub(super) fn give_back(&mut self, done: Try) {
        self.by_network.forget(&done.person.network, done.at);
        self.by_person.forget(&done.person, done.at);
    }
}

impl Network {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => Self(IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into())),
            v4 => Self(v4),
        }
    }
}

/// When each key was tried within the window, oldest first.
struct Table<K> {
    limit: usize,
    capacity: usize,
    tries: HashMap<K, VecDeque<Instant>>,
}

impl<K: Copy + Eq + Hash> Table<K> {
    fn new(limit: usize, capacity: usize) -> Self {
        Self { limit: limit.max(1), capacity: capacity.max(1), tries: HashMap::new() }
    }

    /// How long the key has to wait, if it has to.
    fn wait(&mut self, key: &K, now: Instant, window: Duration) -> Option<Duration> {
        let tries = self.tries.get_mut(key)?;
        drop_old(tries, now, window);
        let oldest = *tries.front()?;
        (tries.len() >= self.limit).then(|| (oldest + window).duration_since(now))
    }

    fn note(&mut self, key: K, now: Instant, window: Duration) {
        if !self.tries.contains_key(&key) {
            self.make_room(now, window);
        }
        self.tries.entry(key).or_default().push_back(now);
    }

    fn forget(&mut self, key: &K, at: Instant) {
        if let Some(tries) = self.tries.get_mut(key) {
            if let Some(index) = tries.iter().rposition(|tried| *tried == at) {
                tries.remove(index);
            }
            if tries.is_empty() {
                self.tries.remove(key);
            }
        }
    }

    /// Sees to it that one more key fits: what is over goes first, and then whoever has been quiet for longest, so that
    /// neither a crowd nor a hardly hidden attacker can lock everybody else out.
    fn make_room(&mut self, now: Instant, window: Duration) {
        if self.tries.len() < self.capacity {
            return;
        }
        self.tries.retain(|_, tries| {
            drop_old(tries, now, window);
            !tries.is_empty()
        });
        while self.tries.len() >= self.capacity {
            let quietest = self.tries.iter().min_by_key(|(_, tries)| tries.back().copied()).map(|(key, _)| *key);
            match quietest {
                Some(key) => self.tries.remove(&key),
                None => return,
            };
        }
    }
}

fn drop_old(tries: &mut VecDeque<Instant>, now: Instant, window: Duration) {
    while tries.front().is_some_and(|oldest| now.duration_since(*oldest) >= window) {
        tries.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERE: &str = "192.0.2.1";

    fn tries() -> Tries {
        Tries::new(&Limits::default())
    }

    fn take(tries: &mut Tries, from: &str, user: &str, now: Instant) -> Option<Duration> {
        tries.take(from.parse().unwrap(), user, now).err()
    }

    #[test]
    fn the_eleventh_try_of_one_name_waits_until_the_first_is_a_minute_old() {
        let (mut tries, start) = (tries(), Instant::now());
        for second in 0..10 {
            assert_eq!(take(&mut tries, HERE, "ann", start + Duration::from_secs(second)), None);
        }
        let later = start + Duration::from_secs(20);
        assert_eq!(take(&mut tries, HERE, "ann", later), Some(Duration::from_secs(40)));
        assert_eq!(take(&mut tries, HERE, "ANN", later), Some(Duration::from_secs(40)));
        assert_eq!(take(&mut tries, HERE, "bob", later), None);
        assert_eq!(take(&mut tries, "192.0.2.2", "ann", later), None);
        assert_eq!(take(&mut tries, HERE, "ann", start + Duration::from_secs(60)), None);
        assert_eq!(take(&mut tries, HERE, "ann", start + Duration::from_secs(60)), Some(Duration::from_secs(1)));
    }

    #[test]
    fn an_address_that_tries_many_names_waits_after_sixty() {
        let (mut tries, now) = (tries(), Instant::now());
        for name in 0..60 {
            assert_eq!(take(&mut tries, HERE, &format!("user{name}"), now), None);
        }
        assert_eq!(take(&mut tries, HERE, "somebody", now), Some(Duration::from_secs(60)));
        assert_eq!(take(&mut tries, "198.51.100.7", "somebody", now), None);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one_and_a_mapped_one_as_its_ipv4() {
        let (mut tries, now) = (tries(), Instant::now());
        for host in 0..10 {
            assert_eq!(take(&mut tries, &format!("2001:db8::{host}"), "ann", now), None);
        }
        assert!(take(&mut tries, "2001:db8::ffff:1", "ann", now).is_some());
        assert!(take(&mut tries, "2001:db8:0:1::1", "ann", now).is_none());
        for _ in 0..10 {
            assert_eq!(take(&mut tries, HERE, "ann", now), None);
        }
        assert!(take(&mut tries, "::ffff:192.0.2.1", "ann", now).is_some());
    }

    #[test]
    fn tries_that_succeed_do_not_count() {
        let (mut tries, now) = (tries(), Instant::now());
        for _ in 0..100 {
            let done = tries.take(HERE.parse().unwrap(), "ann", now).map_err(|_| "must not wait").unwrap();
            tries.give_back(done);
        }
        assert!(tries.by_network.tries.is_empty() && tries.by_person.tries.is_empty());
    }

    #[test]
    fn a_full_table_forgets_whoever_has_been_quiet_for_longest() {
        let limits = Limits { keys: 3, per_user: 1, ..Limits::default() };
        let (mut tries, start) = (Tries::new(&limits), Instant::now());
        for (second, host) in (1..=4).enumerate() {
            let now = start + Duration::from_secs(second as u64);
            assert_eq!(take(&mut tries, &format!("192.0.2.{host}"), "ann", now), None);
        }
        let now = start + Duration::from_secs(5);
        assert!(take(&mut tries, "192.0.2.4", "ann", now).is_some());
        assert!(take(&mut tries, "192.0.2.1", "ann", now).is_none());
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_no_name_gets_more_than_its_tries(
            steps in prop::collection::vec((0u8..6, 0u8..6, 0u64..30, any::<bool>()), 0..200)
        ) {
            let limits = Limits { keys: 4, per_user: 3, per_address: 5, ..Limits::default() };
            let (mut tries, mut now) = (Tries::new(&limits), Instant::now());
            for (host, user, seconds, succeeds) in steps {
                now += Duration::from_secs(seconds);
                let taken = tries.take(IpAddr::from([192, 0, 2, host]), &user.to_string(), now);
                match taken {
                    Ok(done) if succeeds => tries.give_back(done),
                    Ok(_) => {}
                    Err(wait) => prop_assert!(wait > Duration::ZERO && wait <= limits.window),
                }
                prop_assert!(tries.by_network.tries.len() <= 4 && tries.by_person.tries.len() <= 4);
                prop_assert!(tries.by_person.tries.values().all(|tries| tries.len() <= 3));
                prop_assert!(tries.by_network.tries.values().all(|tries| tries.len() <= 5));
            }
        }
    }
}
