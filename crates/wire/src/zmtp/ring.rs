//! The publisher's memory: the latest publications, shared by all subscribers, and who wants which of them.
//!
//! A publication is stored once; a subscriber keeps only the number of the next one it has to see. Publishing looks the
//! wanted prefixes up in a hash map and marks and wakes those that match, so a private topic costs nothing for the
//! others. A subscriber that needs a publication which is no longer remembered is [`Error::Lagging`].
//!
//! Invariants: a publication made after a subscription was added reaches it, in order; publishing never waits for a
//! subscriber; at most [`Options::ring_messages`] and [`Options::ring_bytes`] are remembered, plus the newest one.
//!
//! Locks: `index` orders publications and is held while marking; `memory` is only held for moments and taken alone by
//! subscribers, so they do not wait for each other's wake-ups.

use super::error::{Error, Violation};
use super::frame;
use super::options::{GATHER_BYTES, GATHER_MESSAGES, Options};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::AcqRel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

/// The mark of a subscriber that has seen everything.
const NOTHING: u64 = u64::MAX;

/// Publications and subscriptions of one publisher.
#[derive(Debug)]
pub(crate) struct Ring {
    max_messages: usize,
    max_bytes: usize,
    max_subscriptions: usize,
    max_topic: usize,
    index: Mutex<Index>,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Index {
    next_subscriber: u64,
    /// Subscribers with at least one topic.
    active: usize,
    topics: HashMap<Bytes, Subscribers>,
    /// How many topics there are of each length: the prefixes of a publication worth looking up.
    lengths: BTreeMap<usize, usize>,
}

/// Who is subscribed to one topic.
type Subscribers = HashMap<u64, Arc<Inbox>>;

#[derive(Debug, Default)]
struct Memory {
    /// The number of the oldest remembered publication.
    first: u64,
    items: VecDeque<Publication>,
    bytes: usize,
}

/// One message, ready to travel.
#[derive(Debug)]
pub(crate) struct Publication {
    /// As it travels, headers included.
    encoded: Bytes,
    /// What topics are compared with: the body of the first part.
    key: Bytes,
}

#[derive(Debug)]
struct Inbox {
    /// The number of the first publication that matched and has not been looked at.
    pending: AtomicU64,
    waker: AtomicWaker,
}

/// One subscriber's view; removed from the ring when dropped.
#[derive(Debug)]
pub(crate) struct Subscription {
    ring: Arc<Ring>,
    id: u64,
    inbox: Arc<Inbox>,
    topics: Vec<Bytes>,
    /// The number of the next publication to look at.
    next: u64,
}

impl Ring {
    pub(crate) fn new(options: &Options) -> Arc<Self> {
        Arc::new(Self {
            max_messages: options.ring_messages.max(1),
            max_bytes: options.ring_bytes,
            max_subscriptions: options.max_subscriptions,
            max_topic: options.max_topic,
            index: Mutex::default(),
            memory: Mutex::default(),
        })
    }

    /// Publishes a message of these parts to everyone subscribed to a prefix of the first, and returns to how many
    /// subscriptions that was.
    pub(crate) fn publish(&self, parts: &[&[u8]]) -> usize {
        self.publish_all([Publication::new(parts)])
    }

    /// Publishes messages in their order, as one: a subscriber is woken once and finds all of them. Returns how many
    /// deliveries to subscriptions that is.
    pub(crate) fn publish_all(&self, publications: impl IntoIterator<Item = Publication>) -> usize {
        let index = lock(&self.index);
        let mut marks: Vec<(u64, Vec<&Subscribers>)> = Vec::new();
        let mut delivered = 0;
        let mut memory = lock(&self.memory);
        for publication in publications {
            let wanted = index.wanted(&publication.key);
            if wanted.is_empty() {
                continue;
            }
            delivered += wanted.iter().map(|subscribers| subscribers.len()).sum::<usize>();
            let number = memory.push(publication, self.max_messages, self.max_bytes);
            // Those who are marked with the one before look at this one, too.
            let is_theirs = |before: &Vec<&Subscribers>| {
                before.len() == wanted.len()
                    && before.iter().zip(&wanted).all(|(one, other)| std::ptr::eq(*one, *other))
            };
            if !marks.last().is_some_and(|(_, before)| is_theirs(before)) {
                marks.push((number, wanted));
            }
        }
        drop(memory);
        for (number, wanted) in &marks {
            for inbox in wanted.iter().flat_map(|subscribers| subscribers.values()) {
                // Only the first mark after a look needs a wake-up: the look that follows finds the rest.
                if inbox.pending.fetch_min(*number, AcqRel) == NOTHING {
                    inbox.waker.wake();
                }
            }
        }
        delivered
    }

    /// How many subscribers have at least one topic.
    pub(crate) fn subscribers(&self) -> usize {
        lock(&self.index).active
    }

    /// A subscriber without topics.
    pub(crate) fn join(self: &Arc<Self>) -> Subscription {
        let mut index = lock(&self.index);
        let id = index.next_subscriber;
        index.next_subscriber += 1;
        let inbox = Arc::new(Inbox { pending: AtomicU64::new(NOTHING), waker: AtomicWaker::new() });
        Subscription { ring: self.clone(), id, inbox, topics: Vec::new(), next: 0 }
    }
}

impl Publication {
    pub(crate) fn new(parts: &[&[u8]]) -> Self {
        let encoded = frame::encode_message(parts);
        let key_len = parts.first().map_or(0, |part| part.len());
        let key_at = if key_len > usize::from(u8::MAX) { 9 } else { 2 };
        let key = encoded.slice(key_at..key_at + key_len);
        Self { encoded, key }
    }
}

impl Memory {
    fn push(&mut self, publication: Publication, max_messages: usize, max_bytes: usize) -> u64 {
        let number = self.first + self.items.len() as u64;
        self.bytes += publication.encoded.len();
        self.items.push_back(publication);
        while self.items.len() > 1 && (self.items.len() > max_messages || self.bytes > max_bytes) {
            if let Some(oldest) = self.items.pop_front() {
                self.bytes -= oldest.encoded.len();
                self.first += 1;
            }
        }
        number
    }
}

impl Subscription {
    /// Adds a topic; a second time changes nothing. Tells whether it is the subscriber's first.
    pub(crate) fn add(&mut self, topic: Bytes) -> Result<bool, Violation> {
        if self.topics.contains(&topic) {
            return Ok(false);
        }
        if topic.len() > self.ring.max_topic || self.topics.len() >= self.ring.max_subscriptions {
            return Err(Violation::Subscriptions);
        }
        let mut index = lock(&self.ring.index);
        let index = &mut *index;
        let subscribers = index.topics.entry(topic.clone()).or_default();
        if subscribers.is_empty() {
            *index.lengths.entry(topic.len()).or_default() += 1;
        }
        subscribers.insert(self.id, self.inbox.clone());
        let is_first = self.topics.is_empty();
        index.active += usize::from(is_first);
        self.topics.push(topic);
        Ok(is_first)
    }

    /// Removes a topic, if it is there.
    pub(crate) fn remove(&mut self, topic: &[u8]) {
        let Some(at) = self.topics.iter().position(|known| known == topic) else { return };
        let topic = self.topics.swap_remove(at);
        lock(&self.ring.index).forget(&topic, self.id);
        if self.topics.is_empty() {
            lock(&self.ring.index).active -= 1;
        }
    }

    /// Waits for publications and puts them, as they travel, into `batch`.
    pub(crate) fn poll_batch(&mut self, cx: &mut Context<'_>, batch: &mut Vec<Bytes>) -> Poll<Result<(), Error>> {
        loop {
            // Registered before the look, so that a publication between the two wakes us.
            self.inbox.waker.register(cx.waker());
            let pending = self.inbox.pending.swap(NOTHING, AcqRel);
            if pending == NOTHING {
                return Poll::Pending;
            }
            // What lies between did not match, or it would have been marked.
            self.next = self.next.max(pending);
            self.gather(batch)?;
            if !batch.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn gather(&mut self, batch: &mut Vec<Bytes>) -> Result<(), Error> {
        let memory = lock(&self.ring.memory);
        let Some(offset) = self.next.checked_sub(memory.first) else { return Err(Error::Lagging) };
        let mut bytes = 0;
        for publication in memory.items.iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            if batch.len() == GATHER_MESSAGES || bytes >= GATHER_BYTES {
                self.inbox.pending.fetch_min(self.next, AcqRel);
                break;
            }
            self.next += 1;
            if self.topics.iter().any(|topic| publication.key.starts_with(topic)) {
                bytes += publication.encoded.len();
                batch.push(publication.encoded.clone());
            }
        }
        Ok(())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.topics.is_empty() {
            return;
        }
        let mut index = lock(&self.ring.index);
        for topic in &self.topics {
            index.forget(topic, self.id);
        }
        index.active -= 1;
    }
}

impl Index {
    /// The subscribers of every prefix of this key.
    fn wanted(&self, key: &Bytes) -> Vec<&Subscribers> {
        let lengths = self.lengths.range(..=key.len()).map(|(&length, _)| length);
        lengths.filter_map(|length| self.topics.get(&key[..length])).collect()
    }

    fn forget(&mut self, topic: &Bytes, subscriber: u64) {
        let Some(subscribers) = self.topics.get_mut(topic) else { return };
        subscribers.remove(&subscriber);
        if !subscribers.is_empty() {
            return;
        }
        self.topics.remove(topic);
        if let Some(count) = self.lengths.get_mut(&topic.len()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&topic.len());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker_ref;
    use proptest::prelude::*;

    fn ring(messages: usize, bytes: usize) -> Arc<Ring> {
        Ring::new(&Options { ring_messages: messages, ring_bytes: bytes, ..Options::default() })
    }

    fn subscribe(ring: &Arc<Ring>, topics: &[&'static str]) -> Subscription {
        let mut subscription = ring.join();
        for topic in topics {
            subscription.add(Bytes::from_static(topic.as_bytes())).unwrap();
        }
        subscription
    }

    /// All that waits for a subscriber, without headers.
    fn receive(subscription: &mut Subscription) -> Result<Vec<String>, Error> {
        let mut cx = Context::from_waker(noop_waker_ref());
        let (mut received, mut batch) = (Vec::new(), Vec::new());
        while let Poll::Ready(result) = subscription.poll_batch(&mut cx, &mut batch) {
            result?;
            received.extend(batch.drain(..).map(|bytes| String::from_utf8_lossy(&bytes[2..]).into_owned()));
        }
        Ok(received)
    }

    #[test]
    fn only_matching_prefixes_are_received() {
        let ring = ring(100, 10_000);
        let mut all = subscribe(&ring, &[""]);
        let mut some = subscribe(&ring, &["ab", "x"]);
        let mut none = subscribe(&ring, &[]);
        for text in ["abc", "xyz", "a", "b"] {
            ring.publish(&[text.as_bytes()]);
        }
        assert_eq!(receive(&mut all).unwrap(), ["abc", "xyz", "a", "b"]);
        assert_eq!(receive(&mut some).unwrap(), ["abc", "xyz"]);
        assert!(receive(&mut none).unwrap().is_empty());
        assert_eq!(ring.subscribers(), 2);
    }

    #[test]
    fn what_is_published_together_reaches_everybody_once_and_in_order() {
        let ring = ring(100, 10_000);
        let (mut all, mut a, mut b) =
            (subscribe(&ring, &[""]), subscribe(&ring, &["a"]), subscribe(&ring, &["b", "c"]));
        let texts = ["a1", "a2", "b1", "x", "a3", "c1"];
        let together = texts.iter().map(|text| Publication::new(&[text.as_bytes()]));
        assert_eq!(ring.publish_all(together), 6 + 3 + 2);
        assert_eq!(receive(&mut all).unwrap(), texts);
        assert_eq!(receive(&mut a).unwrap(), ["a1", "a2", "a3"]);
        assert_eq!(receive(&mut b).unwrap(), ["b1", "c1"]);
        ring.publish(&[b"a4"]);
        assert_eq!(receive(&mut a).unwrap(), ["a4"]);
        assert_eq!(receive(&mut b).unwrap(), [""; 0]);
    }

    #[test]
    fn a_subscriber_to_several_matching_topics_receives_once() {
        let ring = ring(100, 10_000);
        let mut both = subscribe(&ring, &["", "a", "ab"]);
        ring.publish(&[b"abc"]);
        assert_eq!(receive(&mut both).unwrap(), ["abc"]);
    }

    #[test]
    fn what_was_published_before_the_subscription_is_not_received() {
        let ring = ring(100, 10_000);
        let _other = subscribe(&ring, &[""]);
        ring.publish(&[b"before"]);
        let mut late = subscribe(&ring, &[""]);
        ring.publish(&[b"after"]);
        assert_eq!(receive(&mut late).unwrap(), ["after"]);
    }

    #[test]
    fn a_cancelled_topic_is_not_received_any_more() {
        let ring = ring(100, 10_000);
        let mut subscription = subscribe(&ring, &["a", "b"]);
        subscription.remove(b"a");
        ring.publish(&[b"a"]);
        ring.publish(&[b"b"]);
        assert_eq!(receive(&mut subscription).unwrap(), ["b"]);
        subscription.remove(b"b");
        assert_eq!(ring.subscribers(), 0);
    }

    #[test]
    fn who_falls_behind_the_number_or_the_bytes_remembered_is_told() {
        for ring in [ring(3, 10_000), ring(100, 3 * 6)] {
            let mut slow = subscribe(&ring, &[""]);
            for _ in 0..4 {
                ring.publish(&[b"text"]);
            }
            assert!(matches!(receive(&mut slow), Err(Error::Lagging)));
        }
    }

    #[test]
    fn a_private_topic_does_not_fall_behind_others_traffic() {
        let ring = ring(3, 10_000);
        let _busy = subscribe(&ring, &["busy"]);
        let mut private = subscribe(&ring, &["private"]);
        for _ in 0..10 {
            ring.publish(&[b"busy"]);
        }
        ring.publish(&[b"private"]);
        assert_eq!(receive(&mut private).unwrap(), ["private"]);
    }

    #[test]
    fn a_publication_larger_than_the_memory_is_still_delivered() {
        let ring = ring(3, 1);
        let mut subscription = subscribe(&ring, &[""]);
        ring.publish(&[b"large"]);
        assert_eq!(receive(&mut subscription).unwrap(), ["large"]);
    }

    #[test]
    fn nothing_is_remembered_when_nobody_wants_it() {
        let ring = ring(100, 10_000);
        let _subscription = subscribe(&ring, &["a"]);
        assert_eq!(ring.publish(&[b"b"]), 0);
        assert_eq!(lock(&ring.memory).bytes, 0);
    }

    #[test]
    fn subscriptions_are_limited_in_number_and_length() {
        let mut subscription = ring(1, 1).join();
        let limits = Options::default();
        assert_eq!(subscription.add(Bytes::from(vec![0; limits.max_topic + 1])), Err(Violation::Subscriptions));
        for number in 0..limits.max_subscriptions {
            subscription.add(Bytes::from(number.to_string())).unwrap();
        }
        assert_eq!(subscription.add(Bytes::from_static(b"one more")), Err(Violation::Subscriptions));
        assert_eq!(subscription.add(Bytes::from_static(b"1")), Ok(false), "a repetition is no further one");
    }

    #[test]
    fn concurrent_publishers_lose_nothing() {
        let ring = ring(100_000, 100_000_000);
        let mut subscription = subscribe(&ring, &[""]);
        let received = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5_000).for_each(|_| assert_eq!(ring.publish(&[b"m"]), 1)));
            }
            let mut received = 0;
            while received < 20_000 {
                received += receive(&mut subscription).unwrap().len();
            }
            received
        });
        assert_eq!(received, 20_000);
        assert!(receive(&mut subscription).unwrap().is_empty());
    }

    proptest! {
        /// Whatever is published, subscribed and read in whatever order: a subscriber gets exactly the publications
        /// that match its topics at the time, in order.
        #[test]
        fn a_subscriber_gets_what_matches_in_order(
            steps in proptest::collection::vec((0u8..4, "[ab]{0,3}"), 0..200),
        ) {
            let ring = ring(1_000, 1_000_000);
            let _everything = subscribe(&ring, &[""]);
            let mut subscription = ring.join();
            let (mut expected, mut received, mut topics) = (Vec::new(), Vec::new(), Vec::<String>::new());
            for (step, text) in steps {
                match step {
                    0 => {
                        subscription.add(Bytes::from(text.clone())).unwrap();
                        topics.retain(|topic| *topic != text);
                        topics.push(text);
                    }
                    // A topic is taken back only when all is read: what was published before is not called back.
                    1 => {
                        received.extend(receive(&mut subscription).unwrap());
                        subscription.remove(text.as_bytes());
                        topics.retain(|topic| *topic != text);
                    }
                    2 => received.extend(receive(&mut subscription).unwrap()),
                    _ => {
                        ring.publish(&[text.as_bytes()]);
                        if topics.iter().any(|topic| text.starts_with(topic.as_str())) {
                            expected.push(text);
                        } else {
                            received.extend(receive(&mut subscription).unwrap());
                        }
                    }
                }
            }
            received.extend(receive(&mut subscription).unwrap());
            prop_assert_eq!(received, expected);
        }
    }
}
