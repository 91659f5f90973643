//! The request port towards peers that behave.

use crate::support::{EchoServer, Happened, LOOPBACK, PATIENCE, Raw, echo_replier, next, to_replier, until};
use bytes::Bytes;
use saltern_wire::zmtp::Options;
use saltern_wire::zmtp::command::{Command, SocketType};
use saltern_wire::zmtp::frame::{self, Frame};
use saltern_wire::zmtp::listener::Listener;
use saltern_wire::zmtp::requester::Requester;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_requester_gets_its_own_replies() {
    let server = EchoServer::start(Options::default());
    let requester = Requester::connect(server.addr, Options::default()).await.unwrap();
    for size in [0, 1, 255, 256, 70_000, 3 << 20] {
        let payload = Bytes::from(vec![b'x'; size]);
        assert_eq!(requester.request(payload.clone(), PATIENCE).await.unwrap(), payload);
    }
}

#[tokio::test]
async fn the_first_request_of_a_stranger_may_be_large() {
    let server = EchoServer::start(Options::default());
    let mut peer = Raw::connect(server.addr).await;
    peer.shake_hands(SocketType::Req, 1).await;
    let payload = vec![7; 20 << 20];
    let (mut reading, mut writing) = tokio::io::split(peer.io);
    let sent = frame::encode_message(&[b"", &payload]);
    let write = tokio::io::AsyncWriteExt::write_all(&mut writing, &sent);
    let mut reader = Raw::over(tokio::io::join(&mut reading, tokio::io::sink()));
    let (written, reply) = tokio::join!(write, reader.receive_message());
    written.unwrap();
    assert_eq!(reply, Some(vec![Bytes::new(), Bytes::from(payload)]));
}

#[tokio::test(start_paused = true)]
async fn a_dealer_gets_its_envelope_back() {
    let (replier, _echo, _events) = echo_replier(Options::default());
    let mut peer = to_replier(&replier);
    peer.shake_hands(SocketType::Dealer, 1).await;
    peer.send(&frame::encode_message(&[b"number", b"", b"request"])).await;
    assert_eq!(peer.receive_message().await.unwrap(), ["number", "", "request"]);
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order() {
    let (replier, _echo, _events) = echo_replier(Options::default());
    let mut peer = to_replier(&replier);
    peer.shake_hands(SocketType::Dealer, 1).await;
    let requests: Vec<u8> = (0..50).flat_map(|n: u8| frame::encode_message(&[b"", &[n]])).collect();
    peer.send(&requests).await;
    for n in 0..50 {
        assert_eq!(peer.receive_message().await.unwrap()[1], [n][..]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_delimiter_is_ignored_and_the_next_answered() {
    let (replier, _echo, _events) = echo_replier(Options::default());
    let mut peer = to_replier(&replier);
    peer.shake_hands(SocketType::Dealer, 1).await;
    peer.send(&frame::encode_message(&[b"no delimiter"])).await;
    assert_eq!(peer.request(b"request").await.unwrap(), "request");
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_leave_a_request_unanswered() {
    let (replier, _echo, _events) = echo_replier(Options::default());
    let mut peer = to_replier(&replier);
    peer.shake_hands(SocketType::Dealer, 1).await;
    peer.send(&frame::encode_message(&[b"", b"silence"])).await;
    assert_eq!(peer.request(b"request").await.unwrap(), "request");
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_while_a_request_is_in_hand() {
    let (replier, echo, mut events) = echo_replier(Options::default());
    let mut peer = to_replier(&replier);
    peer.shake_hands(SocketType::Req, 1).await;
    peer.send(&frame::encode_message(&[b"", b"wait"])).await;
    until(&mut events, Happened::Waiting).await;
    let context = Bytes::from_static(b"still there?");
    peer.send(&Command::Ping { ttl: 0, context: context.clone() }.encode()).await;
    assert_eq!(peer.receive().await, Some(Frame::Command(Command::Pong { context })));
    echo.permits.add_permits(1);
    assert_eq!(peer.receive_message().await.unwrap()[1], "wait");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_finished_though_its_peer_has_left() {
    let (replier, echo, mut events) = echo_replier(Options::default());
    let mut peer = to_replier(&replier);
    peer.shake_hands(SocketType::Req, 1).await;
    peer.send(&frame::encode_message(&[b"", b"wait"])).await;
    until(&mut events, Happened::Waiting).await;
    drop(peer);
    // The task sees the end of the stream before the handler gets on: it has been woken first.
    tokio::task::yield_now().await;
    echo.permits.add_permits(1);
    assert_eq!(next(&mut events).await, Happened::Answered { after_peer_left: true });
    assert_eq!(next(&mut events).await, Happened::Closed);
    assert_eq!(echo.open.load(SeqCst), 0);
}

#[tokio::test]
async fn a_connection_can_be_ended_by_the_server() {
    struct Bouncer;
    impl saltern_wire::zmtp::replier::Handler for Bouncer {
        type Conn = ();
        fn opened(&self, _peer: &saltern_wire::zmtp::Peer) {}
        async fn request(&self, _: &mut (), peer: &saltern_wire::zmtp::Peer, payload: Bytes) -> Option<Bytes> {
            peer.disconnect();
            Some(payload)
        }
        fn is_trusted(&self, _: &()) -> bool {
            true
        }
        fn closed(&self, _: (), _peer: &saltern_wire::zmtp::Peer) {}
    }
    let listener = saltern_wire::zmtp::bind(LOOPBACK).unwrap();
    let addr = listener.local_addr().unwrap();
    let handler = std::sync::Arc::new(Bouncer);
    tokio::spawn(saltern_wire::zmtp::replier::serve(listener, Options::default(), handler, CancellationToken::new()));
    let mut peer = Raw::connect(addr).await;
    peer.shake_hands(SocketType::Req, 1).await;
    peer.send(&frame::encode_message(&[b"", b"request"])).await;
    peer.closed().await;
}

#[tokio::test]
async fn stopping_answers_the_request_in_hand_and_closes_the_idle() {
    let mut server = EchoServer::start(Options::default());
    let mut idle = Raw::connect(server.addr).await;
    idle.shake_hands(SocketType::Req, 1).await;
    let mut busy = Raw::connect(server.addr).await;
    busy.shake_hands(SocketType::Req, 1).await;
    busy.send(&frame::encode_message(&[b"", b"wait"])).await;
    until(&mut server.events, Happened::Waiting).await;
    server.stop.cancel();
    idle.closed().await;
    server.echo.permits.add_permits(1);
    assert_eq!(busy.receive_message().await.unwrap()[1], "wait");
    busy.closed().await;
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_a_stuck_handler_only_so_long() {
    let (replier, _echo, mut events) = echo_replier(Options::default());
    let (near, far) = tokio::io::duplex(1024);
    let stop = CancellationToken::new();
    let task = tokio::spawn({
        let stop = stop.clone();
        async move { replier.serve(Scripted::new([Ok(far)]), stop).await }
    });
    let mut peer = Raw::over(near);
    peer.shake_hands(SocketType::Req, 1).await;
    peer.send(&frame::encode_message(&[b"", b"wait"])).await;
    until(&mut events, Happened::Waiting).await;
    stop.cancel();
    tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    assert_eq!(next(&mut events).await, Happened::Closed);
}

#[tokio::test(start_paused = true)]
async fn running_out_of_file_descriptors_is_survived() {
    const EMFILE: i32 = 24;
    let (replier, _echo, _events) = echo_replier(Options::default());
    let (near, far) = tokio::io::duplex(1024);
    let failures = (0..100).map(|_| Err(io::Error::from_raw_os_error(EMFILE)));
    let listener = Scripted::new(failures.chain([Ok(far)]));
    tokio::spawn(async move { replier.serve(listener, CancellationToken::new()).await });
    let mut peer = Raw::over(near);
    peer.shake_hands(SocketType::Req, 1).await;
    assert_eq!(peer.request(b"request").await.unwrap(), "request");
}

#[tokio::test]
async fn a_taken_port_is_named_in_the_error() {
    let listener = saltern_wire::zmtp::bind(LOOPBACK).unwrap();
    let addr = listener.local_addr().unwrap();
    let error = saltern_wire::zmtp::bind(addr).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {addr}"));
}

/// Hands out what it was given, then waits for ever.
struct Scripted(VecDeque<io::Result<DuplexStream>>);

impl Scripted {
    fn new(script: impl IntoIterator<Item = io::Result<DuplexStream>>) -> Self {
        Self(script.into_iter().collect())
    }
}

impl Listener for Scripted {
    type Io = DuplexStream;

    async fn accept(&mut self) -> io::Result<(DuplexStream, SocketAddr)> {
        match self.0.pop_front() {
            Some(step) => Ok((step?, LOOPBACK)),
            None => std::future::pending().await,
        }
    }
}
