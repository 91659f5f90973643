//! Peers that mean harm, on both ports: each loses its own connection and nothing else happens.

use crate::support::{
    Echo, EchoServer, Events, Happened, PublishServer, Raw, echo_replier, next, ready, subscribe, to_publisher,
    to_replier, until, watched_publisher,
};
use bytes::Bytes;
use saltern_wire::zmtp::Options;
use saltern_wire::zmtp::command::{Command, SocketType};
use saltern_wire::zmtp::frame;
use saltern_wire::zmtp::greeting;
use saltern_wire::zmtp::publisher::Publisher;
use saltern_wire::zmtp::replier::Replier;
use saltern_wire::zmtp::stats::Stats;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::time::Instant;

/// Either port, so that every hostile act is tried on both.
enum Port {
    Request(Replier<Echo>),
    Publish(Publisher),
}

impl Port {
    /// Both ports, and who keeps their reports from piling up.
    fn both(options: &Options) -> [(Self, Events); 2] {
        let (replier, _echo, replier_events) = echo_replier(options.clone());
        let (publisher, publisher_events) = watched_publisher(options.clone());
        [(Self::Request(replier), replier_events), (Self::Publish(publisher), publisher_events)]
    }

    fn connect(&self) -> Raw<DuplexStream> {
        match self {
            Self::Request(replier) => to_replier(replier),
            Self::Publish(publisher) => to_publisher(publisher),
        }
    }

    fn fitting_type(&self) -> SocketType {
        match self {
            Self::Request(_) => SocketType::Req,
            Self::Publish(_) => SocketType::Sub,
        }
    }

    async fn connect_through(&self, minor: u8) -> Raw<DuplexStream> {
        let mut peer = self.connect();
        peer.shake_hands(self.fitting_type(), minor).await;
        peer
    }

    fn stats(&self) -> Stats {
        match self {
            Self::Request(replier) => replier.stats(),
            Self::Publish(publisher) => publisher.stats(),
        }
    }

    /// An honest peer gets what it came for.
    async fn serves(&self, events: &mut Events) {
        let mut peer = self.connect_through(1).await;
        match self {
            Self::Request(_) => assert_eq!(peer.request(b"honest").await.expect("a reply"), "honest"),
            Self::Publish(publisher) => {
                peer.send(&subscribe("honest")).await;
                until(events, Happened::Subscribed(Bytes::from_static(b"honest"))).await;
                publisher.publish(Bytes::from_static(b"honest"));
                assert_eq!(peer.receive_message().await.expect("a publication"), ["honest"]);
            }
        }
    }
}

/// After a handshake sends `bytes`; the connection must be closed as a violation, at once.
async fn is_cut_after_handshake(bytes: &[u8]) {
    for (port, mut events) in Port::both(&Options::default()) {
        let begun = Instant::now();
        let mut peer = port.connect_through(1).await;
        peer.send_regardless(bytes).await;
        peer.closed().await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "closed at once, not by a timer");
        assert_eq!(port.stats().violations, 1);
        assert_eq!(port.stats().open, 0);
        port.serves(&mut events).await;
    }
}

fn announce(flags: u8, size: u64) -> Vec<u8> {
    [&[flags][..], &size.to_be_bytes()].concat()
}

#[tokio::test(start_paused = true)]
async fn an_announcement_of_2_to_the_60_bytes_is_cut() {
    is_cut_after_handshake(&announce(0b010, 1 << 60)).await;
    is_cut_after_handshake(&announce(0b010, u64::MAX)).await;
}

#[tokio::test(start_paused = true)]
async fn an_announcement_of_4_gib_is_cut() {
    is_cut_after_handshake(&announce(0b010, 4 << 30)).await;
    is_cut_after_handshake(&announce(0b110, 4 << 30)).await;
}

#[tokio::test(start_paused = true)]
async fn ten_million_empty_parts_are_cut() {
    is_cut_after_handshake(&[1, 0].repeat(10_000_000)).await;
}

#[tokio::test(start_paused = true)]
async fn parts_that_exceed_the_message_limit_together_are_cut() {
    let options = Options { max_message: 1_000, ..Options::default() };
    for (port, mut events) in Port::both(&options) {
        let mut peer = port.connect_through(1).await;
        let part = [&[1, 250][..], &[0; 250]].concat();
        peer.send_regardless(&part.repeat(5)).await;
        peer.closed().await;
        assert_eq!(port.stats().violations, 1);
        port.serves(&mut events).await;
    }
}

#[tokio::test(start_paused = true)]
async fn broken_frames_and_commands_are_cut() {
    is_cut_after_handshake(&[0xff; 100]).await;
    is_cut_after_handshake(b"\x04\x02\x09X").await;
    is_cut_after_handshake(b"\x04\x05\x04PING").await;
    is_cut_after_handshake(b"GET / HTTP/1.1\r\n\r\n").await;
}

#[tokio::test(start_paused = true)]
async fn garbage_and_http_are_cut_at_once() {
    for bytes in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0; 64], b"\x16\x03\x01", &[0xff; 64]] {
        for (port, mut events) in Port::both(&Options::default()) {
            let begun = Instant::now();
            let mut peer = port.connect();
            peer.send_regardless(bytes).await;
            let mut rest = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut peer.io, &mut rest).await.unwrap();
            assert_eq!(rest, greeting::OURS, "all it learns is that ZMTP lives here");
            assert_eq!(begun.elapsed(), Duration::ZERO);
            assert_eq!(port.stats().violations, 1);
            port.serves(&mut events).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bare_connect_and_close_is_nothing() {
    for (port, mut events) in Port::both(&Options::default()) {
        drop(port.connect());
        port.serves(&mut events).await;
        assert_eq!(
            port.stats(),
            Stats { open: port.stats().open, untrusted: port.stats().untrusted, ..Stats::default() }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_of_the_wrong_type_is_cut() {
    for (port, _events) in Port::both(&Options::default()) {
        let wrong = if port.fitting_type() == SocketType::Req { SocketType::Sub } else { SocketType::Req };
        let mut peer = port.connect();
        peer.greet(1).await;
        peer.send(&ready(wrong)).await;
        peer.closed().await;
        assert_eq!(port.stats().violations, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_before_ready_is_not_even_read() {
    for (port, _events) in Port::both(&Options::default()) {
        let mut peer = port.connect();
        peer.greet(1).await;
        peer.send_regardless(&announce(0b010, 1 << 20)).await;
        peer.closed().await;
        assert_eq!(port.stats().violations, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_cut_when_the_handshake_is_overdue() {
    let options = Options::default();
    // Nothing at all, half a greeting, a greeting without READY.
    for bytes in [&[][..], &greeting::OURS[..30], &greeting::OURS] {
        for (port, _events) in Port::both(&options) {
            let begun = Instant::now();
            let mut peer = port.connect();
            peer.send(bytes).await;
            let mut rest = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut peer.io, &mut rest).await.unwrap();
            assert!((options.handshake_timeout..options.handshake_timeout * 2).contains(&begun.elapsed()));
            assert_eq!(port.stats().timed_out, 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_no_ping_is_cut() {
    let options = Options::default();
    for (port, _events) in Port::both(&options) {
        let begun = Instant::now();
        let mut peer = port.connect_through(1).await;
        let mut pings = 0;
        while let Some(frame) = peer.receive().await {
            assert!(matches!(frame, frame::Frame::Command(Command::Ping { .. })));
            pings += 1;
        }
        assert_eq!(pings, 2, "after 10 and 20 seconds");
        assert!((options.heartbeat_timeout..options.heartbeat_timeout * 2).contains(&begun.elapsed()));
        assert_eq!(port.stats().timed_out, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_pings_stays_for_days() {
    for (port, _events) in Port::both(&Options::default()) {
        let mut peer = port.connect_through(1).await;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2 * 24 * 3600) {
            peer.receive().await.expect("still connected");
            peer.send(&Command::Pong { context: Bytes::new() }.encode()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_too_old_for_pings_is_left_alone() {
    for (port, _events) in Port::both(&Options::default()) {
        let mut peer = port.connect_through(0).await;
        let silence = tokio::time::timeout(Duration::from_secs(24 * 3600), peer.receive()).await;
        assert!(silence.is_err(), "neither a PING nor the end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_trickles_in_is_cut() {
    let options = Options::default();
    for (port, _events) in Port::both(&options) {
        let mut peer = port.connect_through(0).await;
        peer.send(&[0, 200]).await;
        let begun = Instant::now();
        while port.stats().timed_out == 0 && begun.elapsed() < options.message_timeout * 2 {
            peer.send_regardless(b".").await;
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!((options.message_timeout..options.message_timeout * 2).contains(&begun.elapsed()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_pings_without_reading_is_cut() {
    for (port, mut events) in Port::both(&Options::default()) {
        let mut peer = port.connect_through(1).await;
        let pings = Command::Ping { ttl: 0, context: Bytes::from_static(b"0123456789abcdef") }.encode().repeat(1_000);
        // Blocks once neither side reads, until the port gives up.
        let mut sent = 0;
        while sent < 1 << 20 && tokio::io::AsyncWriteExt::write_all(&mut peer.io, &pings).await.is_ok() {
            sent += pings.len();
        }
        assert!(sent < 1 << 20, "answers must not pile up");
        assert_eq!(port.stats().stalled, 1);
        port.serves(&mut events).await;
    }
}

#[tokio::test(start_paused = true)]
async fn more_subscriptions_than_allowed_are_cut() {
    let options = Options { max_subscriptions: 3, max_topic: 8, ..Options::default() };
    let (publisher, _events) = watched_publisher(options);
    let mut greedy = to_publisher(&publisher);
    greedy.shake_hands(SocketType::Sub, 1).await;
    for topic in ["a", "b", "c", "d"] {
        greedy.send(&subscribe(topic)).await;
    }
    greedy.closed().await;
    let mut verbose = to_publisher(&publisher);
    verbose.shake_hands(SocketType::Sub, 1).await;
    verbose.send(&subscribe("123456789")).await;
    verbose.closed().await;
    assert_eq!(publisher.stats().violations, 2);
    assert_eq!(publisher.subscribers(), 0);
}

/// Sends a request's first `arrived` of `announced` bytes.
async fn send_partly(peer: &mut Raw<DuplexStream>, announced: u64, arrived: usize) {
    peer.send(&[1, 0]).await;
    peer.send(&announce(0b010, announced)).await;
    peer.send_regardless(&vec![0; arrived]).await;
}

#[tokio::test(start_paused = true)]
async fn strangers_share_a_byte_budget_and_small_requests_need_none() {
    let options = Options { untrusted_budget: 1 << 20, ..Options::default() };
    let (replier, _echo, _events) = echo_replier(options);
    let mut hoarder = to_replier(&replier);
    hoarder.shake_hands(SocketType::Req, 0).await;
    send_partly(&mut hoarder, 10 << 20, 900_000).await;
    let mut asker = to_replier(&replier);
    asker.shake_hands(SocketType::Req, 0).await;
    send_partly(&mut asker, 500_000, 499_999).await;
    asker.closed().await;
    assert_eq!(replier.stats().overloaded, 1);
    let mut small = to_replier(&replier);
    small.shake_hands(SocketType::Req, 0).await;
    assert_eq!(small.request(&[0; 10_000]).await.unwrap().len(), 10_000);
    let mut trusted = to_replier(&replier);
    trusted.shake_hands(SocketType::Req, 0).await;
    trusted.request(b"trust").await.unwrap();
    send_partly(&mut trusted, 500_000, 499_999).await;
    trusted.send(&[0]).await;
    assert_eq!(trusted.receive_message().await.unwrap()[1].len(), 500_000);
}

#[tokio::test(start_paused = true)]
async fn who_hoards_bytes_for_long_yields_to_the_next() {
    let options = Options { untrusted_budget: 1 << 20, ..Options::default() };
    let (replier, _echo, _events) = echo_replier(options);
    let mut hoarder = to_replier(&replier);
    hoarder.shake_hands(SocketType::Req, 0).await;
    send_partly(&mut hoarder, 10 << 20, 900_000).await;
    tokio::time::advance(Duration::from_secs(6)).await;
    let mut honest = to_replier(&replier);
    honest.shake_hands(SocketType::Req, 0).await;
    send_partly(&mut honest, 500_000, 499_999).await;
    honest.send(&[0]).await;
    assert_eq!(honest.receive_message().await.unwrap()[1].len(), 500_000);
    hoarder.closed().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_strangers_make_room_but_trusted_peers_stay() {
    let (replier, _echo, _events) = echo_replier(Options { max_untrusted: 2, ..Options::default() });
    let mut trusted = to_replier(&replier);
    trusted.shake_hands(SocketType::Req, 0).await;
    trusted.request(b"trust").await.unwrap();
    let mut strangers = Vec::new();
    for _ in 0..3 {
        let mut stranger = to_replier(&replier);
        stranger.shake_hands(SocketType::Req, 0).await;
        strangers.push(stranger);
    }
    strangers[0].closed().await;
    assert_eq!(strangers[1].request(b"one").await.unwrap(), "one");
    assert_eq!(strangers[2].request(b"two").await.unwrap(), "two");
    assert_eq!(trusted.request(b"three").await.unwrap(), "three");
    assert_eq!(replier.stats().evicted, 1);
}

#[tokio::test]
async fn one_address_cannot_take_all_connections() {
    let server = EchoServer::start(Options { max_per_address: 2, ..Options::default() });
    let mut first = Raw::connect(server.addr).await;
    first.shake_hands(SocketType::Req, 1).await;
    let mut second = Raw::connect(server.addr).await;
    second.shake_hands(SocketType::Req, 1).await;
    Raw::connect(server.addr).await.closed().await;
    assert_eq!(first.request(b"still here").await.unwrap(), "still here");
    assert_eq!(server.replier.stats().refused, 1);
}

/// Opens 5,000 connections to `addr` that say nothing.
async fn open_half(addr: SocketAddr) -> Vec<std::net::TcpStream> {
    raise_descriptor_limit();
    tokio::task::spawn_blocking(move || {
        (0..5_000).map(|_| std::net::TcpStream::connect(addr).expect("the port accepts")).collect()
    })
    .await
    .expect("no panic")
}

/// Many systems start processes with 1,024 descriptors and allow far more.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the hard limit it is allowed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_half_open_connections_do_not_keep_a_real_peer_out_of_the_request_port() {
    let server = EchoServer::start(Options::default());
    let half_open = open_half(server.addr).await;
    let begun = Instant::now();
    let mut peer = Raw::connect(server.addr).await;
    peer.shake_hands(SocketType::Req, 1).await;
    assert_eq!(peer.request(b"honest").await.unwrap(), "honest");
    assert!(begun.elapsed() < Options::default().handshake_timeout, "served while they were there");
    assert!(server.replier.stats().half_open <= Options::default().max_half_open);
    drop(half_open);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_half_open_connections_do_not_keep_a_real_peer_out_of_the_publish_port() {
    let mut server = PublishServer::start(Options::default());
    let half_open = open_half(server.addr).await;
    let begun = Instant::now();
    let mut peer = Raw::connect(server.addr).await;
    peer.shake_hands(SocketType::Sub, 1).await;
    peer.send(&subscribe("")).await;
    server.subscribed("").await;
    server.publisher.publish(Bytes::from_static(b"honest"));
    assert_eq!(peer.receive_message().await.unwrap(), ["honest"]);
    assert!(begun.elapsed() < Options::default().handshake_timeout, "served while they were there");
    assert!(server.publisher.stats().half_open <= Options::default().max_half_open);
    drop(half_open);
}

#[tokio::test(start_paused = true)]
async fn a_handler_learns_of_every_end_of_a_hostile_peer() {
    let (replier, _echo, mut events) = echo_replier(Options::default());
    for bytes in [announce(0b010, 1 << 60), vec![0xff], [1, 0].repeat(100)] {
        let mut peer = to_replier(&replier);
        peer.shake_hands(SocketType::Req, 1).await;
        peer.send_regardless(&bytes).await;
        assert_eq!(next(&mut events).await, Happened::Opened);
        assert_eq!(next(&mut events).await, Happened::Closed);
    }
}
