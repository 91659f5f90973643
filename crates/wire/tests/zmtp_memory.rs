//! What an idle connection costs. A process of its own, so that nothing else moves the measure.

use bytes::Bytes;
use saltern_wire::zmtp::command::{Command, Ready, SocketType};
use saltern_wire::zmtp::publisher::Publisher;
use saltern_wire::zmtp::replier::{Handler, Replier};
use saltern_wire::zmtp::{Options, Peer, bind, greeting};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const CONNECTIONS: usize = 2_000;
const LIMIT_PER_CONNECTION: usize = 6 * 1024;

/// A handler whose work needs a lot of room, which idle connections must not carry.
struct Roomy;

impl Handler for Roomy {
    type Conn = ();

    fn opened(&self, _peer: &Peer) {}

    async fn request(&self, _conn: &mut (), _peer: &Peer, payload: Bytes) -> Option<Bytes> {
        let room = [0u8; 32 * 1024];
        tokio::task::yield_now().await;
        Some(payload.slice(..payload.len().min(room.len())))
    }

    fn is_trusted(&self, _conn: &()) -> bool {
        true
    }

    fn closed(&self, _conn: (), _peer: &Peer) {}
}

#[test]
fn an_idle_connection_costs_at_most_six_kilobytes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _guard = runtime.enter();
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let stop = CancellationToken::new();

    let replier = Replier::new(Options::default(), Arc::new(Roomy));
    let listener = bind(loopback).unwrap();
    let request_addr = listener.local_addr().unwrap();
    let (serving, stopping) = (replier.clone(), stop.clone());
    runtime.spawn(async move { serving.serve(listener, stopping).await });

    let publisher = Publisher::new(Options::default());
    let listener = bind(loopback).unwrap();
    let publish_addr = listener.local_addr().unwrap();
    let (serving, stopping) = (publisher.clone(), stop.clone());
    runtime.spawn(async move { serving.serve(listener, stopping).await });

    // The first few warm up what is allocated once.
    let mut clients: Vec<_> = (0..50).map(|_| ask(request_addr)).chain((0..50).map(|_| listen(publish_addr))).collect();

    let before = resident();
    clients.extend((0..CONNECTIONS).map(|_| ask(request_addr)));
    let between = resident();
    clients.extend((0..CONNECTIONS).map(|_| listen(publish_addr)));
    while publisher.subscribers() < CONNECTIONS + 50 {
        std::thread::yield_now();
    }
    let after = resident();
    // A burst to everyone must not leave its buffers behind.
    (0..100).for_each(|_| assert_eq!(publisher.publish(Bytes::from_static(&[0; 500])), CONNECTIONS + 50));
    for client in &mut clients[CONNECTIONS + 100..] {
        client.read_exact(&mut [0; 100 * 509]).unwrap();
    }
    let after_burst = resident();

    assert_eq!(replier.stats().open, CONNECTIONS + 50);
    let per_connection = |grown: usize| grown / CONNECTIONS;
    let request = per_connection(between.saturating_sub(before));
    let publish = per_connection(after.saturating_sub(between));
    let burst = per_connection(after_burst.saturating_sub(between));
    println!("bytes per idle connection: request {request}, publish {publish}, publish after a burst {burst}");
    assert!(request <= LIMIT_PER_CONNECTION, "{request} bytes per idle connection of the request port");
    assert!(burst <= LIMIT_PER_CONNECTION, "{burst} bytes per idle connection of the publish port");
    stop.cancel();
}

/// A client that has made one request and now is idle. It costs this process a descriptor and no memory.
fn ask(addr: SocketAddr) -> TcpStream {
    let mut stream = connect(addr, SocketType::Req);
    stream.read_exact(&mut [0; 64 + 43]).expect("greeting and READY");
    let request = saltern_wire::zmtp::frame::encode_message(&[b"", &[7; 200]]);
    stream.write_all(&request).expect("it reads");
    stream.read_exact(&mut [0; 2 + 202]).expect("the reply");
    stream
}

/// A client that has subscribed and now is idle.
fn listen(addr: SocketAddr) -> TcpStream {
    let mut stream = connect(addr, SocketType::Sub);
    stream.write_all(&Command::Subscribe(Bytes::new()).encode()).expect("it reads");
    stream.read_exact(&mut [0; 64 + 27]).expect("greeting and READY");
    stream
}

fn connect(addr: SocketAddr, socket_type: SocketType) -> TcpStream {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the hard limit it is allowed");
    let mut stream = TcpStream::connect(addr).expect("the port accepts");
    stream.write_all(&greeting::OURS).expect("it reads");
    stream.write_all(&Command::Ready(Ready { socket_type, identity: None }).encode()).expect("it reads");
    stream
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel tells it");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number of kilobytes") * 1024
}
