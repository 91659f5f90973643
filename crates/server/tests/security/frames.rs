//! Bytes that are no request, or far too much of one. Whatever comes, an honest minion is served after it.

use crate::house::House;
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::{FakeMinion, Forgery, PATIENCE, clear};
use saltern_wire::crypto::Crypticle;
use saltern_wire::zmtp::command::SocketType;
use saltern_wire::zmtp::connection::Connection;
use saltern_wire::zmtp::handshake::handshake;
use saltern_wire::zmtp::{Options, frame, greeting};
use saltern_wire::{envelope, msgpack};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Writes bytes and asserts that the server hangs up.
async fn is_cut(address: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may hang up before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "still connected after {:?}", &bytes[..bytes.len().min(40)]);
}

/// A connection that has finished its handshake as a socket of this type.
pub(crate) async fn open(address: SocketAddr, own: SocketType) -> Connection<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut connection = Connection::new(stream, Arc::new(Options::default()));
    handshake(&mut connection, own).await.unwrap();
    connection
}

/// Bytes that look random and are the same in every run.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

#[tokio::test]
async fn garbage_on_either_port_is_hung_up_on() {
    let house = House::open().await;
    let before = house.rows();
    let long_greeting = [&greeting::OURS[..], &[0xff; 100]].concat();
    let unfinished_command = [&greeting::OURS[..], b"\x06\xff\xff\xff\xff\xff\xff\xff\xff"].concat();
    for address in [house.requests, house.publications] {
        for bytes in [
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(20),
            b"SSH-2.0-OpenSSH_9.2p1\r\n".repeat(10),
            vec![0; 4096],
            vec![0xff; 4096],
            noise(1, 4096),
            long_greeting.clone(),
            unfinished_command.clone(),
        ] {
            is_cut(address, &bytes).await;
        }
    }
    assert_eq!(house.rows(), before);
    house.serves().await;
}

#[tokio::test]
async fn a_connection_that_closes_at_once_is_nothing() {
    let house = House::open().await;
    for address in [house.requests, house.publications] {
        for _ in 0..50 {
            drop(TcpStream::connect(address).await.unwrap());
        }
    }
    house.serves().await;
}

#[tokio::test]
async fn the_wrong_kind_of_socket_is_hung_up_on() {
    let house = House::open().await;
    for (address, own) in [(house.requests, SocketType::Sub), (house.publications, SocketType::Req)] {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut connection = Connection::new(stream, Arc::new(Options::default()));
        assert!(handshake(&mut connection, own).await.is_err());
    }
    house.serves().await;
}

#[tokio::test]
async fn malformed_requests_are_refused_and_the_connection_goes_on() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    let deep = |open: u8, depth: usize| vec![open; depth];
    let mut bombs: Vec<Vec<u8>> = vec![
        Vec::new(),
        // Announced sizes that never come.
        b"\xdd\xff\xff\xff\xff".to_vec(),
        b"\xdf\xff\xff\xff\xff".to_vec(),
        b"\xdb\xff\xff\xff\xff".to_vec(),
        b"\xc6\xff\xff\xff\xff".to_vec(),
        b"\xc9\xff\xff\xff\xff\x4e".to_vec(),
        b"\x81\xa3enc\xdb\xff\xff\xff\xff".to_vec(),
        // Depth.
        deep(0x91, 100_000),
        deep(0x81, 100_000),
        [b"\x83\xa3enc\xa5clear\xa7version\x03\xa4load".as_slice(), &deep(0x91, 60_000)].concat(),
        // A million small values.
        [b"\xdd\x00\x0f\x42\x40".as_slice(), &deep(0xc0, 1_000_000)].concat(),
        // Values that are no request.
        b"\xc0".to_vec(),
        b"\xc1".to_vec(),
        b"\x80".to_vec(),
        b"\x90".to_vec(),
        b"\xa0".to_vec(),
        b"\x81\xc0\xc0".to_vec(),
        // One request and a byte more.
        [clear(minion.auth_load(), 3).as_ref(), b"\xc0"].concat(),
    ];
    bombs.extend((0..200).map(|seed| noise(seed, seed as usize * 7)));
    for bomb in bombs {
        let shown = format!("{:?}", &bomb[..bomb.len().min(20)]);
        assert_eq!(minion.raw_request(bomb).await, envelope::bad_load(), "{shown}");
    }
    assert_eq!(house.rows(), before);
    minion.request("_file_envs", ()).await;
    house.serves().await;
}

#[tokio::test]
async fn a_clear_request_longer_than_any_genuine_one_is_refused() {
    let house = House::open().await;
    let stranger = FakeMinion::connect(house.requests, "a").await;
    let mut load = stranger.auth_load();
    load.push("padding", "x".repeat(100_000));
    assert_eq!(stranger.raw_request(clear(load, 3)).await, envelope::bad_load());
    assert!(house.app().keys(&crate::house::caller()).is_empty());
}

#[tokio::test]
async fn sealed_garbage_is_refused() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    for len in (0..130).chain([1_000, 100_000]) {
        let envelope = Value::map([
            ("enc", Value::from("aes")),
            ("load", noise(len as u64, len).into()),
            ("version", 3.into()),
            ("id", "a".into()),
        ]);
        assert_eq!(minion.raw_request(msgpack::encode(&envelope)).await, envelope::bad_load(), "{len}");
    }
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn a_genuine_request_changed_on_its_way_is_refused() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let fields = || Value::map([("tag", "custom"), ("data", "x")]).as_map().unwrap().clone();
    let before = house.rows();
    let honest = minion.sealed("_minion_event", fields(), &Forgery::default());
    // Beyond the head of the envelope everything is sealed, but for the names at its end.
    for place in (20..honest.len() - 70).step_by(13) {
        let mut changed = honest.to_vec();
        changed[place] ^= 0x40;
        assert_eq!(minion.raw_request(changed).await, envelope::bad_load(), "byte {place}");
    }
    assert_eq!(house.rows(), before);
    assert_ne!(minion.raw_request(honest).await, envelope::bad_load());
}

#[tokio::test]
async fn bombs_inside_the_seal_are_refused() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let session = Crypticle::new(&minion.access().session);
    let before = house.rows();
    for inner in [
        vec![0x91; 1_000_000],
        b"\xdf\xff\xff\xff\xff".to_vec(),
        [b"\xdd\x00\x20\x00\x00".as_slice(), &vec![0xc0; 0x20_0000]].concat(),
        b"\xc0".to_vec(),
        Vec::new(),
        msgpack::encode(&Value::Map(Map::new())),
        msgpack::encode(&Value::map([("cmd", "_file_envs"), ("id", "a"), ("nonce", "short")])),
    ] {
        for sealed in [session.seal(&[b"pickle::", &inner]), session.seal(&[&inner])] {
            let envelope = Value::map([
                ("enc", Value::from("aes")),
                ("load", sealed.into()),
                ("version", 3.into()),
                ("id", "a".into()),
            ]);
            let answer = minion.raw_request(msgpack::encode(&envelope)).await;
            assert_eq!(answer, envelope::bad_load(), "{:?}", &inner[..inner.len().min(8)]);
        }
    }
    assert_eq!(house.rows(), before);
    house.serves().await;
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_hung_up_on() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    assert!(minion.try_raw_request(vec![0; 70 << 20], PATIENCE).await.is_err());
    // The limit is for the whole message, however it is cut.
    let mut connection = open(house.requests, SocketType::Req).await;
    let part = vec![0; 40 << 20];
    connection.queue(frame::encode_message(&[b"", &part, &part]));
    assert!(connection.message().await.is_err());
    // On the publish port a few hundred bytes are too many.
    let mut connection = open(house.publications, SocketType::Sub).await;
    connection.queue(frame::encode_message(&[&[1; 10_000]]));
    assert!(connection.message().await.is_err());
    house.serves().await;
}

#[tokio::test]
async fn a_message_that_is_announced_and_never_sent_costs_nobody_else() {
    let house = House::open().await;
    let mut waiting = Vec::new();
    for _ in 0..100 {
        let mut connection = open(house.requests, SocketType::Req).await;
        // A part of 64 MiB less one byte, of which one byte comes.
        connection.queue(vec![0x01, 0x00, 0x02, 0, 0, 0, 0, 0x03, 0xff, 0xff, 0xff, 0xc0].into());
        connection.flush().await.unwrap();
        waiting.push(connection);
    }
    house.serves().await;
}

#[tokio::test]
async fn messages_with_the_wrong_number_of_parts_are_ignored() {
    let house = House::open().await;
    let mut connection = open(house.requests, SocketType::Req).await;
    for parts in [&[b"x".as_slice()][..], &[b"", b"x", b"y"], &[b"address", b""], &[b"", b"", b""]] {
        connection.queue(frame::encode_message(parts));
    }
    let ping = clear(Value::map([("cmd", "ping")]), 3);
    connection.queue(frame::encode_message(&[b"", &ping]));
    let answered = tokio::time::timeout(PATIENCE, connection.message()).await.unwrap().unwrap();
    assert_eq!(answered.parts[1], envelope::plain_reply(&Value::map([("cmd", "ping")])));
    let mut connection = open(house.requests, SocketType::Req).await;
    connection.queue(frame::encode_message(&[b"x".as_slice(); 40]));
    assert!(connection.message().await.is_err());
    house.serves().await;
}
