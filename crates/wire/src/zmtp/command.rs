//! ZMTP commands: what peers say to each other besides messages.

use super::error::Violation;
use super::frame;
use bytes::{BufMut, Bytes};

/// The longest context a PING may carry (ZMTP 3.1).
const MAX_PING_CONTEXT: usize = 16;

/// A command, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The peer's half of the NULL handshake.
    Ready(Ready),
    /// Ask for publications that begin with this topic (3.1; in 3.0 a message does it).
    Subscribe(Bytes),
    /// Take a subscription back.
    Cancel(Bytes),
    /// Ask for a PONG.
    Ping {
        /// How long, in tenths of a second, the sender wants to be thought alive; 0 says nothing.
        ttl: u16,
        /// To be repeated in the PONG.
        context: Bytes,
    },
    /// The answer to a PING.
    Pong {
        /// The PING's context.
        context: Bytes,
    },
    /// The peer gives up, with its reason.
    Error(String),
    /// A command we do not know; ZMTP asks to ignore it.
    Unknown,
}

/// The metadata of READY that matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// What kind of socket the peer is.
    pub socket_type: SocketType,
    /// The peer's routing id: unauthenticated, often empty, absent for SUB and PUB.
    pub identity: Option<Bytes>,
}

/// The socket types ZMTP knows and we meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketType {
    /// Lock-step client.
    Req,
    /// Lock-step server.
    Rep,
    /// Free-running client.
    Dealer,
    /// Server that addresses each peer.
    Router,
    /// Publisher.
    Pub,
    /// Subscriber.
    Sub,
    /// Publisher that sees subscriptions.
    XPub,
    /// Subscriber that sends subscriptions as messages.
    XSub,
    /// Any other.
    Other,
}

impl SocketType {
    const NAMES: [(Self, &str); 8] = [
        (Self::Req, "REQ"),
        (Self::Rep, "REP"),
        (Self::Dealer, "DEALER"),
        (Self::Router, "ROUTER"),
        (Self::Pub, "PUB"),
        (Self::Sub, "SUB"),
        (Self::XPub, "XPUB"),
        (Self::XSub, "XSUB"),
    ];

    fn from_name(name: &[u8]) -> Self {
        Self::NAMES.iter().find(|(_, known)| known.as_bytes() == name).map_or(Self::Other, |&(found, _)| found)
    }

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|&&(known, _)| known == self).map_or("", |&(_, name)| name)
    }

    /// Whether a socket of this type may be connected to one of type `peer`.
    pub fn accepts(self, peer: Self) -> bool {
        match self {
            Self::Router => matches!(peer, Self::Req | Self::Dealer | Self::Router),
            Self::Req => matches!(peer, Self::Rep | Self::Router),
            Self::Rep => matches!(peer, Self::Req | Self::Dealer),
            Self::Dealer => matches!(peer, Self::Rep | Self::Dealer | Self::Router),
            Self::Pub | Self::XPub => matches!(peer, Self::Sub | Self::XSub),
            Self::Sub | Self::XSub => matches!(peer, Self::Pub | Self::XPub),
            Self::Other => false,
        }
    }
}

impl Command {
    /// Reads a command frame's body. What is kept is copied: it is short, and must not pin a read buffer.
    pub fn parse(body: &[u8]) -> Result<Self, Violation> {
        let (name, rest) = split_prefixed(body).ok_or(Violation::Command)?;
        Ok(match name {
            b"READY" => Self::Ready(Ready::parse(rest)?),
            b"SUBSCRIBE" => Self::Subscribe(Bytes::copy_from_slice(rest)),
            b"CANCEL" => Self::Cancel(Bytes::copy_from_slice(rest)),
            b"PING" => {
                let (ttl, context) = rest.split_first_chunk::<2>().ok_or(Violation::Command)?;
                if context.len() > MAX_PING_CONTEXT {
                    return Err(Violation::Command);
                }
                Self::Ping { ttl: u16::from_be_bytes(*ttl), context: Bytes::copy_from_slice(context) }
            }
            b"PONG" => Self::Pong { context: Bytes::copy_from_slice(rest) },
            b"ERROR" => {
                let (reason, _) = split_prefixed(rest).ok_or(Violation::Command)?;
                // The reason goes into logs: keep what is printable.
                Self::Error(reason.iter().map(|&b| if b.is_ascii_graphic() { b as char } else { ' ' }).collect())
            }
            _ => Self::Unknown,
        })
    }

    /// The command as a complete frame. [`Command::Unknown`] has no bytes of its own and gives an empty buffer.
    pub fn encode(&self) -> Bytes {
        let mut body = Vec::with_capacity(64);
        match self {
            Self::Ready(ready) => {
                put_prefixed(&mut body, b"READY");
                put_property(&mut body, b"Socket-Type", ready.socket_type.name().as_bytes());
                if let Some(identity) = &ready.identity {
                    put_property(&mut body, b"Identity", identity);
                }
            }
            Self::Subscribe(topic) => {
                put_prefixed(&mut body, b"SUBSCRIBE");
                body.put_slice(topic);
            }
            Self::Cancel(topic) => {
                put_prefixed(&mut body, b"CANCEL");
                body.put_slice(topic);
            }
            Self::Ping { ttl, context } => {
                put_prefixed(&mut body, b"PING");
                body.put_u16(*ttl);
                body.put_slice(context);
            }
            Self::Pong { context } => {
                put_prefixed(&mut body, b"PONG");
                body.put_slice(context);
            }
            Self::Error(reason) => {
                put_prefixed(&mut body, b"ERROR");
                put_prefixed(&mut body, reason.as_bytes());
            }
            Self::Unknown => return Bytes::new(),
        }
        frame::encode_command(&body)
    }
}

impl Ready {
    fn parse(mut rest: &[u8]) -> Result<Self, Violation> {
        let (mut socket_type, mut identity) = (None, None);
        while !rest.is_empty() {
            let (name, after_name) = split_prefixed(rest).ok_or(Violation::Command)?;
            let (size, after_size) = after_name.split_first_chunk::<4>().ok_or(Violation::Command)?;
            let size = usize::try_from(u32::from_be_bytes(*size)).map_err(|_| Violation::Command)?;
            let (value, next) = after_size.split_at_checked(size).ok_or(Violation::Command)?;
            if name.eq_ignore_ascii_case(b"Socket-Type") {
                socket_type = Some(SocketType::from_name(value));
            } else if name.eq_ignore_ascii_case(b"Identity") {
                identity = Some(Bytes::copy_from_slice(value));
            }
            rest = next;
        }
        Ok(Self { socket_type: socket_type.ok_or(Violation::Command)?, identity })
    }
}

/// Splits off a text preceded by its length in one byte.
fn split_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(len))
}

/// Our own texts only: names and reasons of at most 255 bytes.
fn put_prefixed(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(usize::from(u8::MAX))];
    out.put_u8(text.len() as u8);
    out.put_slice(text);
}

fn put_property(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    put_prefixed(out, name);
    out.put_u32(value.len() as u32);
    out.put_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(command: &Command) -> Bytes {
        command.encode().slice(2..)
    }

    #[test]
    fn every_command_is_read_back() {
        for command in [
            Command::Ready(Ready { socket_type: SocketType::Router, identity: Some(Bytes::new()) }),
            Command::Ready(Ready { socket_type: SocketType::Sub, identity: None }),
            Command::Subscribe(Bytes::from_static(b"topic")),
            Command::Cancel(Bytes::new()),
            Command::Ping { ttl: 300, context: Bytes::from_static(b"context") },
            Command::Pong { context: Bytes::from_static(b"context") },
            Command::Error("no".into()),
        ] {
            assert_eq!(Command::parse(&body(&command)), Ok(command));
        }
    }

    #[test]
    fn unknown_commands_are_ignored_and_broken_ones_refused() {
        assert_eq!(Command::parse(b"\x05HELLO rest"), Ok(Command::Unknown));
        assert_eq!(Command::parse(b""), Err(Violation::Command));
        assert_eq!(Command::parse(b"\x09SHORT"), Err(Violation::Command));
        assert_eq!(Command::parse(b"\x04PING\x00"), Err(Violation::Command));
        assert_eq!(Command::parse(b"\x04PING\x00\x0012345678901234567"), Err(Violation::Command));
        assert_eq!(Command::parse(b"\x05READY"), Err(Violation::Command), "no socket type");
        assert_eq!(Command::parse(b"\x05READY\x0bSocket-Type\xff\xff\xff\xffREQ"), Err(Violation::Command));
    }

    #[test]
    fn property_names_ignore_case() {
        let ready = Command::parse(b"\x05READY\x0bsocket-type\x00\x00\x00\x03REQ");
        assert_eq!(ready, Ok(Command::Ready(Ready { socket_type: SocketType::Req, identity: None })));
    }
}
