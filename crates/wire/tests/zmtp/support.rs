//! Peers and servers the tests are made of.

use bytes::{Bytes, BytesMut};
use saltern_wire::zmtp::command::{Command, Ready, SocketType};
use saltern_wire::zmtp::frame::{self, Frame};
use saltern_wire::zmtp::publisher::{Observer, Publisher};
use saltern_wire::zmtp::replier::{Handler, Replier};
use saltern_wire::zmtp::{Options, Peer, bind, greeting};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A time nothing that works ever takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A peer made of plain bytes, so that it can do what no honest one would.
pub(crate) struct Raw<S> {
    pub(crate) io: S,
    inbound: BytesMut,
}

impl Raw<TcpStream> {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        Self::over(TcpStream::connect(addr).await.expect("the port is open"))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub(crate) fn over(io: S) -> Self {
        Self { io, inbound: BytesMut::new() }
    }

    /// Greets as ZMTP 3.`minor` and gets through the handshake as a socket of type `own`.
    pub(crate) async fn shake_hands(&mut self, own: SocketType, minor: u8) {
        self.greet(minor).await;
        self.send(&ready(own)).await;
        assert!(matches!(self.receive().await, Some(Frame::Command(Command::Ready(_)))));
    }

    pub(crate) async fn greet(&mut self, minor: u8) {
        let mut greeting = greeting::OURS;
        greeting[11] = minor;
        self.send(&greeting).await;
        let mut theirs = [0; greeting::LEN];
        self.io.read_exact(&mut theirs).await.expect("the server greets");
        assert_eq!(theirs, greeting::OURS);
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.io.write_all(bytes).await.expect("the peer is there");
    }

    /// Sends what the peer may no longer want to have.
    pub(crate) async fn send_regardless(&mut self, bytes: &[u8]) {
        let _ = self.io.write_all(bytes).await;
    }

    /// The next frame; `None` when the peer has closed.
    pub(crate) async fn receive(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = frame::decode(&mut self.inbound, usize::MAX).expect("our own frames are valid") {
                return Some(frame);
            }
            if !matches!(self.io.read_buf(&mut self.inbound).await, Ok(1..)) {
                return None;
            }
        }
    }

    /// The next message, PINGs aside.
    pub(crate) async fn receive_message(&mut self) -> Option<Vec<Bytes>> {
        let mut parts = Vec::new();
        loop {
            match self.receive().await? {
                Frame::Part { more: true, body } => parts.push(body),
                Frame::Part { more: false, body } => {
                    parts.push(body);
                    return Some(parts);
                }
                Frame::Command(_) => {}
            }
        }
    }

    pub(crate) async fn request(&mut self, payload: &[u8]) -> Option<Bytes> {
        self.send_regardless(&frame::encode_message(&[b"", payload])).await;
        self.receive_message().await.map(|mut parts| parts.pop().expect("a message has parts"))
    }

    /// Waits until the peer closes.
    pub(crate) async fn closed(&mut self) {
        let wait = async { while self.receive().await.is_some() {} };
        tokio::time::timeout(PATIENCE, wait).await.expect("the peer closes the connection");
    }
}

pub(crate) fn ready(socket_type: SocketType) -> Bytes {
    Command::Ready(Ready { socket_type, identity: None }).encode()
}

pub(crate) fn subscribe(topic: &'static str) -> Bytes {
    Command::Subscribe(Bytes::from_static(topic.as_bytes())).encode()
}

/// Echoes requests, with a few words of its own:
/// `trust` makes the connection trusted, `wait` waits for [`Echo::permits`], `silence` gets no reply.
pub(crate) struct Echo {
    pub(crate) open: AtomicUsize,
    pub(crate) permits: Semaphore,
    events: mpsc::UnboundedSender<Happened>,
}

/// What an [`Echo`] or a [`Watcher`] has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happened {
    Opened,
    Waiting,
    Answered { after_peer_left: bool },
    Closed,
    Subscribed(Bytes),
}

pub(crate) type Events = mpsc::UnboundedReceiver<Happened>;

pub(crate) async fn next(events: &mut Events) -> Happened {
    tokio::time::timeout(PATIENCE, events.recv()).await.expect("it happens soon").expect("somebody is there to tell")
}

/// Waits for one event and passes over the others.
pub(crate) async fn until(events: &mut Events, wanted: Happened) {
    while next(events).await != wanted {}
}

impl Handler for Echo {
    type Conn = bool;

    fn opened(&self, _peer: &Peer) -> bool {
        self.open.fetch_add(1, SeqCst);
        self.tell(Happened::Opened);
        false
    }

    async fn request(&self, trusted: &mut bool, peer: &Peer, payload: Bytes) -> Option<Bytes> {
        match &payload[..] {
            b"trust" => *trusted = true,
            b"silence" => return None,
            b"wait" => {
                self.tell(Happened::Waiting);
                self.permits.acquire().await.expect("never closed").forget();
                self.tell(Happened::Answered { after_peer_left: peer.has_left() });
            }
            _ => {}
        }
        Some(payload)
    }

    fn is_trusted(&self, trusted: &bool) -> bool {
        *trusted
    }

    fn closed(&self, _trusted: bool, _peer: &Peer) {
        self.open.fetch_sub(1, SeqCst);
        self.tell(Happened::Closed);
    }
}

impl Echo {
    fn tell(&self, event: Happened) {
        // A test that is not interested has dropped its end.
        let _ = self.events.send(event);
    }
}

/// A running request port.
pub(crate) struct EchoServer {
    pub(crate) addr: SocketAddr,
    pub(crate) replier: Replier<Echo>,
    pub(crate) echo: Arc<Echo>,
    pub(crate) events: Events,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) fn echo_replier(options: Options) -> (Replier<Echo>, Arc<Echo>, Events) {
    let (events, receiver) = mpsc::unbounded_channel();
    let echo = Arc::new(Echo { open: AtomicUsize::new(0), permits: Semaphore::new(0), events });
    (Replier::new(options, echo.clone()), echo, receiver)
}

impl EchoServer {
    pub(crate) fn start(options: Options) -> Self {
        Self::start_at(LOOPBACK, options)
    }

    pub(crate) fn start_at(addr: SocketAddr, options: Options) -> Self {
        let (replier, echo, events) = echo_replier(options);
        let listener = bind(addr).expect("the port is free");
        let addr = listener.local_addr().expect("it is bound");
        let stop = CancellationToken::new();
        let (serving, stopping) = (replier.clone(), stop.clone());
        let task = tokio::spawn(async move { serving.serve(listener, stopping).await });
        Self { addr, replier, echo, events, stop, task }
    }

    /// Stops and waits until the port is free again.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("it stops in time").expect("without a panic");
    }
}

/// An observer that reports to a test.
pub(crate) struct Watcher(mpsc::UnboundedSender<Happened>);

impl Observer for Watcher {
    fn connected(&self, _peer: &Peer) {
        let _ = self.0.send(Happened::Opened);
    }

    fn subscribed(&self, _peer: &Peer, topic: &[u8]) {
        let _ = self.0.send(Happened::Subscribed(Bytes::copy_from_slice(topic)));
    }

    fn disconnected(&self, _peer: &Peer) {
        let _ = self.0.send(Happened::Closed);
    }
}

/// A running publish port.
pub(crate) struct PublishServer {
    pub(crate) addr: SocketAddr,
    pub(crate) publisher: Publisher,
    pub(crate) events: Events,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) fn watched_publisher(options: Options) -> (Publisher, Events) {
    let (sender, events) = mpsc::unbounded_channel();
    (Publisher::observed(options, Arc::new(Watcher(sender))), events)
}

impl PublishServer {
    pub(crate) fn start(options: Options) -> Self {
        Self::start_at(LOOPBACK, options)
    }

    pub(crate) fn start_at(addr: SocketAddr, options: Options) -> Self {
        let (publisher, events) = watched_publisher(options);
        let listener = bind(addr).expect("the port is free");
        let addr = listener.local_addr().expect("it is bound");
        let stop = CancellationToken::new();
        let (serving, stopping) = (publisher.clone(), stop.clone());
        let task = tokio::spawn(async move { serving.serve(listener, stopping).await });
        Self { addr, publisher, events, stop, task }
    }

    /// Waits until a peer has subscribed to `topic`.
    pub(crate) async fn subscribed(&mut self, topic: &'static str) {
        until(&mut self.events, Happened::Subscribed(Bytes::from_static(topic.as_bytes()))).await;
    }

    /// Stops and waits until the port is free again.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("it stops in time").expect("without a panic");
    }
}

/// A peer connected in memory, where time can be paused, to a request port.
pub(crate) fn to_replier(replier: &Replier<Echo>) -> Raw<DuplexStream> {
    let (near, far) = duplex(64 * 1024);
    tokio::spawn(replier.clone().attend(far, LOOPBACK, CancellationToken::new()));
    Raw::over(near)
}

/// A peer connected in memory, where time can be paused, to a publish port.
pub(crate) fn to_publisher(publisher: &Publisher) -> Raw<DuplexStream> {
    let (near, far) = duplex(64 * 1024);
    tokio::spawn(publisher.clone().attend(far, LOOPBACK, CancellationToken::new()));
    Raw::over(near)
}
