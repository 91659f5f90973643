//! What can go wrong between us and a ZMTP peer.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a connection ended or an operation on it failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The peer went away, orderly or not.
    #[error("the peer closed the connection")]
    Closed,
    /// The transport failed in another way.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The peer sent bytes that no ZMTP peer of this kind sends.
    #[error("the peer broke the protocol: {0}")]
    Protocol(#[from] Violation),
    /// The peer did not do its part in time.
    #[error("timed out waiting for {0}")]
    TimedOut(Waiting),
    /// The bytes of unfinished messages would exceed their common budget.
    #[error("too many bytes of unhandled messages")]
    Overloaded,
    /// A subscriber fell further behind than the publisher remembers.
    #[error("the subscriber is too far behind")]
    Lagging,
    /// The peer sent an ERROR command.
    #[error("the peer refused the connection: {0}")]
    Refused(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Bind {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The address cannot be connected to.
    #[error("cannot connect to {addr}")]
    Connect {
        /// The address asked for.
        addr: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// What was being waited for when time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Greeting and READY.
    Handshake,
    /// The rest of a message that had begun.
    Message,
    /// Room to write: the peer does not read.
    Writing,
    /// Any sign of life.
    Heartbeat,
    /// The reply to a request.
    Reply,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handshake => "the handshake",
            Self::Message => "the rest of a message",
            Self::Writing => "the peer to read",
            Self::Heartbeat => "a sign of life",
            Self::Reply => "the reply",
        })
    }
}

/// Bytes that break ZMTP or our limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The first bytes are not a ZMTP signature: HTTP, a scanner, noise.
    #[error("not a ZMTP peer")]
    NotZmtp,
    /// A protocol older than ZMTP 3.
    #[error("unsupported protocol version {0}")]
    Version(u8),
    /// A security mechanism other than NULL.
    #[error("unsupported security mechanism")]
    Mechanism,
    /// A frame with flags that do not exist or contradict each other.
    #[error("invalid frame flags {0:#04x}")]
    Flags(u8),
    /// A frame or message above its limit.
    #[error("message of {size} bytes where at most {limit} are allowed")]
    TooLarge {
        /// The size announced.
        size: u64,
        /// The size allowed.
        limit: usize,
    },
    /// A message of more parts than anybody needs.
    #[error("too many parts in one message")]
    TooManyParts,
    /// A command that does not follow its grammar.
    #[error("malformed command")]
    Command,
    /// A well-formed frame at the wrong moment.
    #[error("unexpected frame")]
    Unexpected,
    /// A socket type that cannot talk to ours.
    #[error("incompatible socket type")]
    SocketType,
    /// More, or longer, subscriptions than one peer may have.
    #[error("too many or too long subscriptions")]
    Subscriptions,
}
