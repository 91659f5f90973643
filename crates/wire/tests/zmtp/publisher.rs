//! The publish port towards peers that behave, and one that does not keep up.

use crate::support::{Happened, PATIENCE, PublishServer, Raw, subscribe, to_publisher, until, watched_publisher};
use bytes::Bytes;
use saltern_wire::zmtp::Options;
use saltern_wire::zmtp::command::{Command, SocketType};
use saltern_wire::zmtp::frame;
use saltern_wire::zmtp::subscriber::Subscriber;
use std::time::Duration;

#[tokio::test]
async fn a_subscriber_gets_everything_in_order() {
    let mut server = PublishServer::start(Options::default());
    let mut subscriber = Subscriber::connect(server.addr, Options::default()).await.unwrap();
    server.subscribed("").await;
    assert_eq!(server.publisher.subscribers(), 1);
    let publications: Vec<_> = (0..500).map(|n| Bytes::from(vec![n as u8; n * 3])).collect();
    publications.iter().for_each(|publication| assert_eq!(server.publisher.publish(publication.clone()), 1));
    for publication in publications {
        assert_eq!(subscriber.recv().await.unwrap(), publication);
    }
}

#[tokio::test(start_paused = true)]
async fn both_forms_of_subscription_are_understood() {
    let (publisher, mut events) = watched_publisher(Options::default());
    let mut modern = to_publisher(&publisher);
    modern.shake_hands(SocketType::Sub, 1).await;
    modern.send(&subscribe("a")).await;
    until(&mut events, Happened::Subscribed(Bytes::from_static(b"a"))).await;
    let mut old = to_publisher(&publisher);
    old.shake_hands(SocketType::Sub, 0).await;
    old.send(&frame::encode_message(&[b"\x01b"])).await;
    until(&mut events, Happened::Subscribed(Bytes::from_static(b"b"))).await;
    publisher.publish(Bytes::from_static(b"alpha"));
    publisher.publish(Bytes::from_static(b"beta"));
    assert_eq!(modern.receive_message().await.unwrap(), ["alpha"]);
    assert_eq!(old.receive_message().await.unwrap(), ["beta"]);
}

#[tokio::test(start_paused = true)]
async fn both_forms_of_cancelling_are_understood() {
    let (publisher, mut events) = watched_publisher(Options::default());
    let mut peer = to_publisher(&publisher);
    peer.shake_hands(SocketType::XSub, 1).await;
    for topic in ["a", "b", "c"] {
        peer.send(&subscribe(topic)).await;
    }
    peer.send(&Command::Cancel(Bytes::from_static(b"a")).encode()).await;
    peer.send(&frame::encode_message(&[b"\x00b"])).await;
    peer.send(&subscribe("end")).await;
    until(&mut events, Happened::Subscribed(Bytes::from_static(b"end"))).await;
    for publication in ["a", "b", "c"] {
        publisher.publish(Bytes::from_static(publication.as_bytes()));
    }
    assert_eq!(peer.receive_message().await.unwrap(), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn a_topic_may_travel_in_a_frame_of_its_own() {
    let (publisher, mut events) = watched_publisher(Options::default());
    let mut peer = to_publisher(&publisher);
    peer.shake_hands(SocketType::Sub, 1).await;
    peer.send(&subscribe("broadcast")).await;
    until(&mut events, Happened::Subscribed(Bytes::from_static(b"broadcast"))).await;
    publisher.publish_to(b"syndic", Bytes::from_static(b"not for us"));
    publisher.publish_to(b"broadcast", Bytes::from_static(b"for us"));
    assert_eq!(peer.receive_message().await.unwrap(), ["broadcast", "for us"]);
}

#[tokio::test]
async fn the_observer_learns_of_every_end() {
    let mut server = PublishServer::start(Options::default());
    let mut peer = Raw::connect(server.addr).await;
    peer.shake_hands(SocketType::Sub, 1).await;
    until(&mut server.events, Happened::Opened).await;
    drop(peer);
    until(&mut server.events, Happened::Closed).await;
    assert_eq!(server.publisher.subscribers(), 0);
}

#[tokio::test]
async fn stopping_first_writes_what_is_published() {
    // The end must come from having written all, not from a drain or a heartbeat that ran out.
    let options = Options { drain: PATIENCE * 2, heartbeat_interval: Duration::ZERO, ..Options::default() };
    let mut server = PublishServer::start(options);
    let mut peer = Raw::connect(server.addr).await;
    peer.shake_hands(SocketType::Sub, 1).await;
    peer.send(&subscribe("")).await;
    server.subscribed("").await;
    for _ in 0..200 {
        server.publisher.publish(Bytes::from_static(b"publication"));
    }
    server.stop.cancel();
    for _ in 0..200 {
        assert_eq!(peer.receive_message().await.unwrap(), ["publication"]);
    }
    peer.closed().await;
    server.stop().await;
}

/// Guarantee: one slow subscriber touches no other, and memory does not grow with its backlog.
#[tokio::test]
async fn a_stalled_subscriber_is_cut_while_a_fast_one_gets_everything() {
    let options = Options { ring_bytes: 2 << 20, write_stall: Duration::from_millis(200), ..Options::default() };
    let mut server = PublishServer::start(options);
    let mut stalled = Raw::connect(server.addr).await;
    stalled.shake_hands(SocketType::Sub, 1).await;
    stalled.send(&subscribe("")).await;
    server.subscribed("").await;
    let mut fast = Subscriber::connect(server.addr, Options::default()).await.unwrap();
    server.subscribed("").await;
    for n in 0..600u32 {
        let publication = Bytes::from(vec![n as u8; 100_000]);
        server.publisher.publish(publication.clone());
        assert_eq!(fast.recv().await.unwrap(), publication, "publication {n}");
    }
    until(&mut server.events, Happened::Closed).await;
    let stats = server.publisher.stats();
    assert_eq!(stats.stalled + stats.lagging, 1, "{stats:?}");
    assert_eq!(server.publisher.subscribers(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_behind_the_ring_is_cut() {
    let (publisher, mut events) = watched_publisher(Options { ring_messages: 10, ..Options::default() });
    let mut peer = to_publisher(&publisher);
    peer.shake_hands(SocketType::Sub, 1).await;
    peer.send(&subscribe("")).await;
    until(&mut events, Happened::Subscribed(Bytes::new())).await;
    for _ in 0..11 {
        publisher.publish(Bytes::from_static(b"publication"));
    }
    peer.closed().await;
    assert_eq!(publisher.stats().lagging, 1);
}
