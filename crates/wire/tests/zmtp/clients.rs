//! The minion's ends: time-outs, lost servers, dropped calls.

use crate::support::{EchoServer, Happened, LOOPBACK, PATIENCE, PublishServer, Raw, until};
use bytes::Bytes;
use saltern_wire::zmtp::command::SocketType;
use saltern_wire::zmtp::frame;
use saltern_wire::zmtp::requester::Requester;
use saltern_wire::zmtp::subscriber::Subscriber;
use saltern_wire::zmtp::{Error, Options, Waiting};
use std::time::Duration;
use tokio::net::TcpListener;

#[tokio::test]
async fn after_a_timeout_the_late_reply_is_not_taken_for_the_next() {
    let mut server = EchoServer::start(Options::default());
    let requester = Requester::connect(server.addr, Options::default()).await.unwrap();
    let late = requester.request(Bytes::from_static(b"wait"), Duration::from_millis(50)).await;
    assert!(matches!(late, Err(Error::TimedOut(Waiting::Reply))));
    until(&mut server.events, Happened::Waiting).await;
    server.echo.permits.add_permits(1);
    assert_eq!(requester.request(Bytes::from_static(b"next"), PATIENCE).await.unwrap(), "next");
}

#[tokio::test]
async fn a_requester_finds_a_restarted_server() {
    let server = EchoServer::start(Options::default());
    let addr = server.addr;
    let requester = Requester::connect(addr, Options::default()).await.unwrap();
    assert_eq!(requester.request(Bytes::from_static(b"before"), PATIENCE).await.unwrap(), "before");
    server.stop().await;
    let waiting = tokio::spawn({
        let requester = requester.clone();
        async move { requester.request(Bytes::from_static(b"after"), PATIENCE).await }
    });
    let _server = EchoServer::start_at(addr, Options::default());
    assert_eq!(waiting.await.unwrap().unwrap(), "after");
}

#[tokio::test]
async fn requests_of_clones_are_made_one_after_the_other() {
    let server = EchoServer::start(Options::default());
    let requester = Requester::connect(server.addr, Options::default()).await.unwrap();
    let calls: Vec<_> = (0..100u8)
        .map(|n| {
            let requester = requester.clone();
            tokio::spawn(async move { (n, requester.request(Bytes::from(vec![n]), PATIENCE).await) })
        })
        .collect();
    for call in calls {
        let (n, reply) = call.await.unwrap();
        assert_eq!(reply.unwrap(), [n][..]);
    }
    assert_eq!(server.replier.stats().open, 1);
}

#[tokio::test]
async fn a_server_that_never_answers_pings_is_given_up() {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mute = tokio::spawn(async move {
        let mut peer = Raw::over(listener.accept().await.unwrap().0);
        peer.shake_hands(SocketType::Pub, 1).await;
        std::future::pending::<()>().await;
    });
    let options = Options {
        heartbeat_interval: Duration::from_millis(20),
        heartbeat_timeout: Duration::from_millis(60),
        ..Options::default()
    };
    let mut subscriber = Subscriber::connect(addr, options).await.unwrap();
    assert!(matches!(subscriber.recv().await, Err(Error::TimedOut(Waiting::Heartbeat))));
    mute.abort();
}

#[tokio::test]
async fn a_dropped_receive_loses_nothing() {
    let mut server = PublishServer::start(Options::default());
    let mut subscriber = Subscriber::connect(server.addr, Options::default()).await.unwrap();
    server.subscribed("").await;
    for n in 0..200u8 {
        // Dropped at its first pause, whatever had arrived by then.
        let polled_once = tokio::time::timeout(Duration::ZERO, subscriber.recv()).await;
        assert!(polled_once.is_err());
        server.publisher.publish(Bytes::from(vec![n; 10_000]));
        assert_eq!(subscriber.recv().await.unwrap()[0], n);
    }
}

#[tokio::test]
async fn a_subscriber_is_told_when_its_server_goes_and_can_come_back() {
    let server = PublishServer::start(Options::default());
    let addr = server.addr;
    let mut subscriber = Subscriber::connect(addr, Options::default()).await.unwrap();
    server.stop().await;
    assert!(matches!(subscriber.recv().await, Err(Error::Closed)));
    let mut server = PublishServer::start_at(addr, Options::default());
    let mut subscriber = Subscriber::connect(addr, Options::default()).await.unwrap();
    server.subscribed("").await;
    server.publisher.publish(Bytes::from_static(b"again"));
    assert_eq!(subscriber.recv().await.unwrap(), "again");
}

#[tokio::test]
async fn an_old_publisher_gets_the_old_form_of_subscription() {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let old = async move {
        let mut peer = Raw::over(listener.accept().await.unwrap().0);
        peer.shake_hands(SocketType::Pub, 0).await;
        assert_eq!(peer.receive_message().await.unwrap(), ["\u{1}topic"]);
        peer.send(&frame::encode_message(&[b"topic", b"content"])).await;
        peer
    };
    let (peer, subscriber) = tokio::join!(old, Subscriber::connect_to(addr, Options::default(), &[b"topic"]));
    assert_eq!(subscriber.unwrap().recv().await.unwrap(), "content");
    drop(peer);
}

#[tokio::test]
async fn an_unreachable_server_is_named_in_the_error() {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let error = Requester::connect(addr, Options::default()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot connect to {addr}"));
}
