//! Frames however the network cuts them.

use crate::support::{Raw, echo_replier};
use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use saltern_wire::zmtp::command::{Command, Ready, SocketType};
use saltern_wire::zmtp::frame::{self, Frame};
use saltern_wire::zmtp::{Options, Violation};
use tokio_util::sync::CancellationToken;

const MAX_PART: usize = 1_000;

fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=max).prop_map(Bytes::from)
}

fn command() -> impl Strategy<Value = Command> {
    let socket_type = prop_oneof![
        Just(SocketType::Req),
        Just(SocketType::Dealer),
        Just(SocketType::Router),
        Just(SocketType::Sub),
        Just(SocketType::XPub),
    ];
    prop_oneof![
        (socket_type, proptest::option::of(bytes(255)))
            .prop_map(|(socket_type, identity)| Command::Ready(Ready { socket_type, identity })),
        bytes(300).prop_map(Command::Subscribe),
        bytes(300).prop_map(Command::Cancel),
        (any::<u16>(), bytes(16)).prop_map(|(ttl, context)| Command::Ping { ttl, context }),
        bytes(16).prop_map(|context| Command::Pong { context }),
        "[!-~]{0,50}".prop_map(Command::Error),
    ]
}

/// Messages and commands, as frames and as they travel.
fn traffic() -> impl Strategy<Value = (Vec<Frame>, Vec<u8>)> {
    let item = prop_oneof![vec(bytes(600), 1..4).prop_map(Ok), command().prop_map(Err)];
    vec(item, 0..12).prop_map(|items| {
        let (mut frames, mut travelling) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                Ok(parts) => {
                    travelling.extend(frame::encode_message(&parts.iter().map(|p| &p[..]).collect::<Vec<_>>()));
                    let last = parts.len() - 1;
                    let parts = parts.into_iter().enumerate();
                    frames.extend(parts.map(|(at, body)| Frame::Part { more: at < last, body }));
                }
                Err(command) => {
                    travelling.extend(command.encode());
                    frames.push(Frame::Command(command));
                }
            }
        }
        (frames, travelling)
    })
}

/// Decodes `input` as it arrives in pieces of the given sizes, the last one repeated.
fn decode_in_pieces(mut input: &[u8], pieces: &[usize]) -> (Vec<Frame>, Option<Violation>) {
    let (mut frames, mut arrived) = (Vec::new(), BytesMut::new());
    let mut sizes = pieces.iter().copied().chain(std::iter::repeat(1 + pieces.last().copied().unwrap_or(0)));
    loop {
        match frame::decode(&mut arrived, MAX_PART) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) if input.is_empty() => return (frames, None),
            Ok(None) => {
                let (piece, rest) = input.split_at(sizes.next().unwrap_or(1).min(input.len()));
                arrived.extend_from_slice(piece);
                input = rest;
            }
            Err(violation) => return (frames, Some(violation)),
        }
    }
}

proptest! {
    #[test]
    fn traffic_is_read_back_in_whatever_pieces(
        (frames, travelling) in traffic(),
        pieces in vec(0usize..40, 0..40),
    ) {
        prop_assert_eq!(decode_in_pieces(&travelling, &pieces), (frames, None));
    }

    #[test]
    fn nonsense_is_understood_alike_in_whatever_pieces(
        input in vec(prop_oneof![0u8..8, any::<u8>()], 0..400),
        pieces in vec(0usize..10, 0..40),
    ) {
        prop_assert_eq!(decode_in_pieces(&input, &pieces), decode_in_pieces(&input, &[input.len()]));
    }

    /// The same through a whole connection, with a transport that takes and gives a few bytes at a time.
    #[test]
    fn requests_are_answered_through_the_narrowest_transport(
        payloads in vec(bytes(700), 1..4),
        width in 1usize..40,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let (replier, _echo, _events) = echo_replier(Options::default());
            let (near, far) = tokio::io::duplex(width);
            let serving = replier.attend(far, crate::support::LOOPBACK, CancellationToken::new());
            let asking = async move {
                let (reading, mut writing) = tokio::io::split(near);
                let mut reader = Raw::over(tokio::io::join(reading, tokio::io::sink()));
                let mut sent = saltern_wire::zmtp::greeting::OURS.to_vec();
                sent.extend(crate::support::ready(SocketType::Dealer));
                payloads.iter().for_each(|payload| sent.extend(frame::encode_message(&[b"", payload])));
                let write = async { tokio::io::AsyncWriteExt::write_all(&mut writing, &sent).await };
                let read = async {
                    let mut greeting = [0; 64];
                    tokio::io::AsyncReadExt::read_exact(&mut reader.io, &mut greeting).await.expect("a greeting");
                    for payload in &payloads {
                        let expected = vec![Bytes::new(), payload.clone()];
                        assert_eq!(reader.receive_message().await, Some(expected));
                    }
                };
                let (written, ()) = tokio::join!(write, read);
                written.expect("all is read");
            };
            tokio::join!(serving, asking);
        });
    }
}
