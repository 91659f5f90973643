//! Numbers a server port tells about itself, for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The state of a server port at one moment. All but the first three only ever grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Connections open now.
    pub open: usize,
    /// Of them: handshake not finished.
    pub half_open: usize,
    /// Of them: not trusted yet (publish port: without a subscription).
    pub untrusted: usize,
    /// Connections turned away because a limit on connections was reached.
    pub refused: u64,
    /// Connections closed to make room for newer ones.
    pub evicted: u64,
    /// Connections closed because the peer broke the protocol or a size limit.
    pub violations: u64,
    /// Connections closed because the peer was silent or too slow in sending.
    pub timed_out: u64,
    /// Connections closed because the peer did not read.
    pub stalled: u64,
    /// Subscribers closed because they fell too far behind.
    pub lagging: u64,
    /// Connections closed because a byte budget was exhausted.
    pub overloaded: u64,
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) refused: AtomicU64,
    pub(crate) violations: AtomicU64,
    pub(crate) timed_out: AtomicU64,
    pub(crate) stalled: AtomicU64,
    pub(crate) lagging: AtomicU64,
    pub(crate) overloaded: AtomicU64,
}

impl Tally {
    /// The counters' values; what the slots count is left at zero.
    pub(crate) fn read(&self) -> Stats {
        Stats {
            refused: self.refused.load(Relaxed),
            violations: self.violations.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
            stalled: self.stalled.load(Relaxed),
            lagging: self.lagging.load(Relaxed),
            overloaded: self.overloaded.load(Relaxed),
            ..Stats::default()
        }
    }
}
