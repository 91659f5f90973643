//! The bytes recorded between stock minions and masters (`vectors/zmtp.json`).

use bytes::{Bytes, BytesMut};
use saltern_wire::zmtp::command::{Command, Ready, SocketType};
use saltern_wire::zmtp::frame::{self, Frame};
use saltern_wire::zmtp::greeting::{self, Greeting};

fn vector(name: &str) -> Vec<u8> {
    let vectors: serde_json::Value = serde_json::from_str(include_str!("../vectors/zmtp.json")).expect("it is JSON");
    let hex = vectors[name].as_str().expect(name);
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("it is hex")).collect()
}

fn check_command(name: &str, command: Command) {
    let bytes = vector(name);
    assert_eq!(command.encode(), bytes, "{name} encoded");
    let decoded = frame::decode(&mut BytesMut::from(&bytes[..]), 0);
    assert_eq!(decoded, Ok(Some(Frame::Command(command))), "{name} decoded");
}

#[test]
fn greetings() {
    assert_eq!(greeting::OURS.to_vec(), vector("greeting_server"));
    assert_eq!(Greeting::parse(&vector("greeting_client_req_3006")), Ok(Some(Greeting { minor: 1 })));
}

#[test]
fn commands() {
    let ready = |socket_type, identity| Command::Ready(Ready { socket_type, identity });
    check_command("ready_router", ready(SocketType::Router, Some(Bytes::new())));
    check_command("ready_pub", ready(SocketType::Pub, None));
    check_command("subscribe_all_zmtp31", Command::Subscribe(Bytes::new()));
    check_command("ping_ttl0", Command::Ping { ttl: 0, context: Bytes::new() });
    check_command("pong", Command::Pong { context: Bytes::new() });
}

#[test]
fn the_subscription_of_zmtp_3_0_is_a_message() {
    assert_eq!(frame::encode_message(&[&[1]]), vector("subscribe_all_zmtp30"));
}
