//! Arbitrary bytes into everything that reads them before a peer is authenticated.
//!
//! Under `cargo test` each target runs for about a second; `cargo bolero test` runs one for as long as one likes.

use bytes::{Bytes, BytesMut};
use saltern_wire::zmtp::command::{Command, SocketType};
use saltern_wire::zmtp::frame::{self, Frame};
use saltern_wire::zmtp::greeting::{self, Greeting};
use saltern_wire::zmtp::publisher::Publisher;
use saltern_wire::zmtp::replier::{Handler, Replier};
use saltern_wire::zmtp::{Options, Peer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_util::sync::CancellationToken;

const TIME: Duration = Duration::from_millis(1_200);

#[test]
fn greeting_parse() {
    bolero::check!().with_test_time(TIME).for_each(|input: &[u8]| {
        if let Ok(Some(_)) = Greeting::parse(input) {
            assert!(input.len() >= greeting::LEN);
        }
    });
}

#[test]
fn frame_parse() {
    bolero::check!().with_test_time(TIME).for_each(|input: &[u8]| {
        let mut bytes = BytesMut::from(input);
        while let Ok(Some(parsed)) = frame::decode(&mut bytes, 1_000) {
            if let Frame::Part { body, .. } = parsed {
                assert!(body.len() <= 1_000);
            }
        }
    });
}

#[test]
fn command_parse() {
    bolero::check!().with_test_time(TIME).for_each(|input: &[u8]| {
        let Ok(command) = Command::parse(input) else { return };
        // What was understood means the same when we say it; an unknown command has no words of ours.
        if let Ok(Some(Frame::Command(again))) = frame::decode(&mut BytesMut::from(&command.encode()[..]), 0) {
            assert_eq!(again, command);
        } else {
            assert_eq!(command, Command::Unknown);
        }
    });
}

#[test]
fn request_port_from_the_first_byte() {
    fuzz_port(b"", |io| replier().attend(io, address(), CancellationToken::new()));
}

#[test]
fn request_port_after_the_handshake() {
    fuzz_port(&opening(SocketType::Req), |io| replier().attend(io, address(), CancellationToken::new()));
}

#[test]
fn publish_port_from_the_first_byte() {
    fuzz_port(b"", |io| Publisher::new(options()).attend(io, address(), CancellationToken::new()));
}

#[test]
fn publish_port_after_the_handshake() {
    fuzz_port(&opening(SocketType::Sub), |io| {
        let publisher = Publisher::new(options());
        async move {
            let publishing = async {
                for _ in 0..3 {
                    publisher.publish(Bytes::from_static(b"publication"));
                    tokio::task::yield_now().await;
                }
            };
            tokio::join!(publisher.clone().attend(io, address(), CancellationToken::new()), publishing);
        }
    });
}

/// Feeds `opening` and then the input to a port; the connection must end by itself once the input is over.
fn fuzz_port<Fut: Future<Output = ()>>(opening: &[u8], attend: impl Fn(DuplexStream) -> Fut) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    // bolero wants to survive a panic in between; nothing here is used after one.
    let attend = std::panic::AssertUnwindSafe(attend);
    let runtime = std::panic::AssertUnwindSafe(runtime);
    bolero::check!().with_test_time(TIME).for_each(|input: &[u8]| {
        let (near, far) = tokio::io::duplex(64);
        let (mut reading, mut writing) = tokio::io::split(near);
        runtime.block_on(async {
            let feed = async {
                // The port may hang up in the middle.
                let _ = writing.write_all(opening).await;
                let _ = writing.write_all(input).await;
                let _ = writing.shutdown().await;
            };
            let drain = async {
                let mut answers = Vec::new();
                let _ = reading.read_to_end(&mut answers).await;
                assert!(answers.starts_with(&greeting::OURS));
            };
            tokio::join!(attend(far), feed, drain);
        });
    });
}

fn opening(socket_type: SocketType) -> Vec<u8> {
    let ready = Command::Ready(saltern_wire::zmtp::command::Ready { socket_type, identity: None });
    [&greeting::OURS[..], &ready.encode()].concat()
}

fn options() -> Options {
    Options { max_message: 512, untrusted_budget: 1024, ..Options::default() }
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn replier() -> Replier<Echo> {
    Replier::new(options(), Arc::new(Echo))
}

struct Echo;

impl Handler for Echo {
    type Conn = ();

    fn opened(&self, _peer: &Peer) {}

    async fn request(&self, _conn: &mut (), _peer: &Peer, payload: Bytes) -> Option<Bytes> {
        Some(payload)
    }

    fn is_trusted(&self, _conn: &()) -> bool {
        false
    }

    fn closed(&self, _conn: (), _peer: &Peer) {}
}
