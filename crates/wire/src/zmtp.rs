//! ZeroMQ's wire protocol, ZMTP 3.0 and 3.1 with the NULL mechanism: the four socket ends that Salt uses.
//!
//! The server's ends are [`replier`] (a ROUTER that answers one request at a time per connection) and [`publisher`] (a
//! PUB that shares one copy of a publication between all subscribers). The minion's ends are [`requester`] (REQ) and
//! [`subscriber`] (SUB). [`frame`], [`greeting`] and [`command`] are the bytes and know no socket; [`connection`] is one
//! peer over any byte stream; [`options::Options`] holds every limit.
//!
//! Invariants: one task per connection and no thread; an idle connection owns no buffer; memory grows with bytes that
//! have *arrived*, never with what a peer announces; whatever a peer does ends at worst with the loss of its own
//! connection.
//!
//! Not here: what the payloads mean (`msgpack`, `envelope`), and who a peer is. A ZMTP identity is unauthenticated and
//! often absent, so nothing is decided by it.

pub mod command;
pub mod connection;
pub mod error;
pub mod frame;
pub mod greeting;
pub mod handshake;
pub mod listener;
pub mod options;
pub mod peer;
pub mod publisher;
pub mod replier;
pub mod requester;
pub mod stats;
pub mod subscriber;

mod budget;
mod port;
mod ring;
mod slots;
mod throttle;

pub use error::{Error, Violation, Waiting};
pub use listener::bind;
pub use options::Options;
pub use peer::Peer;
