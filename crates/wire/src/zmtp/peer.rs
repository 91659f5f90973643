//! The other side of a server's connection, as handlers and observers see it.

use bytes::Bytes;
use futures_util::future::AbortHandle;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A connected peer; cheap to clone.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    id: u64,
    addr: SocketAddr,
    identity: Bytes,
    left: AtomicBool,
    abort: AbortHandle,
}

impl Peer {
    pub(crate) fn new(id: u64, addr: SocketAddr, identity: Bytes, abort: AbortHandle) -> Self {
        Self(Arc::new(Inner { id, addr, identity, left: AtomicBool::new(false), abort }))
    }

    /// The connection's number: unique on its port for the life of the process.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Where the peer connects from.
    pub fn addr(&self) -> SocketAddr {
        self.0.addr
    }

    /// The ZMTP identity the peer gave itself, often empty. Nobody has checked it: good for logs, never for decisions.
    pub fn identity(&self) -> &[u8] {
        &self.0.identity
    }

    /// Whether the peer is gone. A handler that had to queue a request can ask, and spare itself the work.
    pub fn has_left(&self) -> bool {
        self.0.left.load(Relaxed)
    }

    /// Closes the connection, now; a request in hand is cancelled.
    pub fn disconnect(&self) {
        self.0.abort.abort();
    }

    pub(crate) fn mark_left(&self) {
        self.0.left.store(true, Relaxed);
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peer {} at {}", self.0.id, self.0.addr)
    }
}
