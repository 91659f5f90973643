//! The server's publish port: a PUB towards SUB and XSUB peers.
//!
//! A publication is encoded once and written to every subscriber from the same bytes. Publishing never waits: a
//! subscriber that does not keep up is cut off, visibly, and connects again by itself, where libzmq would drop single
//! publications in silence.

use super::command::SocketType;
use super::connection::{Connection, Event, Message};
use super::error::Error;
use super::handshake::handshake;
use super::listener::Listener;
use super::options::Options;
use super::peer::Peer;
use super::port::Port;
use super::ring::{Publication, Ring, Subscription};
use super::slots::{Phase, Slot};
use super::stats::Stats;
use bytes::Bytes;
use futures_util::future::AbortHandle;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// Who wants to know about subscribers. Called from the subscribers' tasks: it must return at once.
pub trait Observer: Send + Sync + 'static {
    /// A peer has finished its handshake.
    fn connected(&self, _peer: &Peer) {}

    /// From now on every publication that begins with `topic` reaches the peer.
    fn subscribed(&self, _peer: &Peer, _topic: &[u8]) {}

    /// The peer is gone.
    fn disconnected(&self, _peer: &Peer) {}
}

/// The publish port of a server; cheap to clone.
#[derive(Clone)]
pub struct Publisher {
    port: Arc<Port>,
    ring: Arc<Ring>,
    observer: Arc<dyn Observer>,
}

impl Publisher {
    /// A port nobody watches.
    pub fn new(options: Options) -> Self {
        Self::observed(options, Arc::new(Nobody))
    }

    /// A port whose subscribers `observer` is told about.
    pub fn observed(options: Options, observer: Arc<dyn Observer>) -> Self {
        Self { ring: Ring::new(&options), port: Port::new("publish", options), observer }
    }

    /// Publishes one frame, which is also what topics are compared with. Returns to how many subscriptions.
    pub fn publish(&self, frame: Bytes) -> usize {
        self.ring.publish(&[&frame])
    }

    /// Publishes several, each of one frame, in their order: a subscriber is woken once for all and sent them in one go.
    pub fn publish_all(&self, frames: &[Bytes]) -> usize {
        self.ring.publish_all(frames.iter().map(|frame| Publication::new(&[frame])))
    }

    /// Publishes two frames, a topic and its content (Salt's `zmq_filtering`). Returns to how many subscriptions.
    pub fn publish_to(&self, topic: &[u8], frame: Bytes) -> usize {
        self.ring.publish(&[topic, &frame])
    }

    /// How many peers have at least one subscription.
    pub fn subscribers(&self) -> usize {
        self.ring.subscribers()
    }

    /// How the port is doing.
    pub fn stats(&self) -> Stats {
        self.port.stats()
    }

    /// Accepts and serves subscribers until `stop`; then what is published already is written out, and this returns.
    pub async fn serve<L: Listener>(&self, listener: L, stop: CancellationToken) {
        self.port.serve(listener, stop.clone(), |io, addr| self.clone().attend(io, addr, stop.clone())).await;
    }

    /// Serves one subscriber over any byte stream to its end.
    pub async fn attend<S>(self, io: S, addr: SocketAddr, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        self.port.admit(addr, |slot, abort| self.converse(io, addr, slot, abort, &stop)).await;
    }

    async fn converse<S>(
        &self,
        io: S,
        addr: SocketAddr,
        slot: Slot,
        abort: AbortHandle,
        stop: &CancellationToken,
    ) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let mut stopped = pin!(stop.cancelled());
        let mut conn = Connection::new(io, self.port.options.clone());
        let ready = tokio::select! {
            biased;
            () = &mut stopped => return Ok(()),
            ready = handshake(&mut conn, SocketType::Pub) => ready?,
        };
        // All a subscriber has to say is a subscription, in ZMTP 3.0 as a message of one byte and the topic.
        conn.set_max_message(1 + self.port.options.max_topic);
        slot.enter(Phase::Untrusted);
        let peer = Peer::new(slot.id(), addr, ready.identity.unwrap_or_default(), abort);
        let _presence = Presence::open(&*self.observer, &peer);
        let mut subscription = self.ring.join();
        let mut stopping = false;
        loop {
            let event = tokio::select! {
                biased;
                () = &mut stopped, if !stopping => {
                    stopping = true;
                    continue;
                }
                event = deliver(&mut conn, &mut subscription, stopping) => event?,
            };
            match event.map(Wish::from_event) {
                None => return Ok(()),
                Some(Wish::Subscribe(topic)) => {
                    if subscription.add(topic.clone())? {
                        slot.enter(Phase::Trusted);
                    }
                    self.observer.subscribed(&peer, &topic);
                }
                Some(Wish::Cancel(topic)) => subscription.remove(&topic),
                Some(Wish::Nothing) => {}
            }
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("subscribers", &self.subscribers()).finish_non_exhaustive()
    }
}

/// Writes publications until the subscriber says something; `None` when `stopping` and everything is written.
async fn deliver<S>(
    conn: &mut Connection<S>,
    subscription: &mut Subscription,
    stopping: bool,
) -> Result<Option<Event>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(event) = conn.poll_event(cx) {
                return Poll::Ready(event.map(Some));
            }
            // The next batch is taken when the last one is out: a slow peer's backlog stays in the shared ring.
            if !conn.is_flushed() {
                return Poll::Pending;
            }
            let mut batch = Vec::new();
            match subscription.poll_batch(cx, &mut batch) {
                Poll::Ready(taken) => taken?,
                Poll::Pending if stopping => return Poll::Ready(Ok(None)),
                Poll::Pending => return Poll::Pending,
            }
            batch.into_iter().for_each(|publication| conn.queue(publication));
        }
    })
    .await
}

/// What a subscriber asks for.
enum Wish {
    Subscribe(Bytes),
    Cancel(Bytes),
    Nothing,
}

impl Wish {
    fn from_event(event: Event) -> Self {
        match event {
            Event::Subscribe(topic) => Self::Subscribe(topic),
            Event::Cancel(topic) => Self::Cancel(topic),
            Event::Message(message) => Self::from_message(&message),
            Event::Ready(_) => Self::Nothing,
        }
    }

    /// The form of ZMTP 3.0. Other messages of an XSUB peer are not for us, as libzmq's PUB sees it too.
    fn from_message(message: &Message) -> Self {
        match message.parts.as_slice() {
            [part] => match part.split_first() {
                Some((1, topic)) => Self::Subscribe(Bytes::copy_from_slice(topic)),
                Some((0, topic)) => Self::Cancel(Bytes::copy_from_slice(topic)),
                _ => Self::Nothing,
            },
            _ => Self::Nothing,
        }
    }
}

/// Tells the observer about the end of a connection however it ends.
struct Presence<'a> {
    observer: &'a dyn Observer,
    peer: &'a Peer,
}

impl<'a> Presence<'a> {
    fn open(observer: &'a dyn Observer, peer: &'a Peer) -> Self {
        observer.connected(peer);
        Self { observer, peer }
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.peer.mark_left();
        self.observer.disconnected(self.peer);
    }
}

struct Nobody;

impl Observer for Nobody {}
