//! Every limit and interval of the ZMTP module, with defaults for a server of ten thousand minions.

use std::time::Duration;

/// The longest command body; the longest real one, READY with a full identity, is below 320 bytes.
pub const MAX_COMMAND: usize = 4096;

/// The most parts one message may have; Salt uses two.
pub const MAX_PARTS: usize = 8;

/// The most bytes one read takes from a socket. Messages up to this size need no share of a byte budget, so an `_auth`
/// always gets in.
pub const READ_CHUNK: usize = 16 * 1024;

/// The most publications, and about the most bytes, that one write to a subscriber gathers.
pub(crate) const GATHER_MESSAGES: usize = 64;
pub(crate) const GATHER_BYTES: usize = 256 * 1024;

/// Limits and intervals of one socket, server or client. A duration of zero switches a heartbeat interval off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The largest message accepted, all parts together.
    pub max_message: usize,
    /// How long greeting and READY may take.
    pub handshake_timeout: Duration,
    /// How long a quiet peer is left alone before it gets a PING (ZMTP 3.1 peers only).
    pub heartbeat_interval: Duration,
    /// How long a peer that knows PING may stay silent.
    pub heartbeat_timeout: Duration,
    /// How long a message may take from its first byte to its last.
    pub message_timeout: Duration,
    /// How long a peer may leave us without room to write a single byte.
    pub write_stall: Duration,
    /// How long a server that stops lets requests in hand finish.
    pub drain: Duration,
    /// The most connections of a server port.
    pub max_connections: usize,
    /// The most connections from one address (IPv6: from one /64 network).
    pub max_per_address: usize,
    /// The most connections that have not finished their handshake; above it the oldest of them goes.
    pub max_half_open: usize,
    /// The most connections the handler does not trust yet (on the publish port: without a subscription); above it the
    /// oldest idle one of them goes.
    pub max_untrusted: usize,
    /// The most bytes of unhandled messages on connections that are not trusted, all together. Messages of at most
    /// [`READ_CHUNK`] bytes do not count.
    pub untrusted_budget: usize,
    /// The same for trusted connections.
    pub trusted_budget: usize,
    /// The most subscriptions of one subscriber.
    pub max_subscriptions: usize,
    /// The longest topic of a subscription.
    pub max_topic: usize,
    /// How many publications the publisher remembers for subscribers that are behind.
    pub ring_messages: usize,
    /// How many bytes of publications the publisher remembers; the newest one always counts as remembered.
    pub ring_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_message: 64 << 20,
            handshake_timeout: Duration::from_secs(10),
            heartbeat_interval: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(30),
            message_timeout: Duration::from_secs(120),
            write_stall: Duration::from_secs(15),
            drain: Duration::from_secs(5),
            // A minion holds one connection for long and opens about twenty for a second during a highstate.
            max_connections: 40_000,
            max_per_address: 20_000,
            max_half_open: 1_024,
            max_untrusted: 20_000,
            untrusted_budget: 256 << 20,
            trusted_budget: 1 << 30,
            max_subscriptions: 64,
            max_topic: 256,
            ring_messages: 4_096,
            ring_bytes: 32 << 20,
        }
    }
}
