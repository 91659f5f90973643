//! What both server ports share: accepting, admitting, ending and counting connections, and stopping.

use super::error::{Error, Waiting};
use super::listener::Listener;
use super::options::Options;
use super::slots::{Slot, Slots};
use super::stats::{Stats, Tally};
use super::throttle::Throttle;
use futures_util::future::{AbortHandle, Abortable};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

/// How long to wait when the system has no file descriptor left for a new connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// One listening side.
#[derive(Debug)]
pub(crate) struct Port {
    name: &'static str,
    pub(crate) options: Arc<Options>,
    slots: Arc<Slots>,
    tally: Tally,
    complaints: Throttle,
    accept_failures: Throttle,
    refusals: Throttle,
}

impl Port {
    pub(crate) fn new(name: &'static str, options: Options) -> Arc<Self> {
        Arc::new(Self {
            name,
            slots: Slots::new(&options),
            options: Arc::new(options),
            tally: Tally::default(),
            complaints: Throttle::default(),
            accept_failures: Throttle::default(),
            refusals: Throttle::default(),
        })
    }

    /// Accepts connections until `stop`, runs `attend` for each in its own task, and returns when all have ended: those
    /// that do not end by themselves within [`Options::drain`] are cut.
    pub(crate) async fn serve<L, Fut>(
        &self,
        mut listener: L,
        stop: CancellationToken,
        attend: impl Fn(L::Io, SocketAddr) -> Fut,
    ) where
        L: Listener,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let tasks = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((io, addr)) => drop(tasks.spawn(attend(io, addr))),
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    if let Some(suppressed) = self.accept_failures.pass() {
                        warn!(port = self.name, %error, suppressed, "cannot accept connections");
                    }
                    // Out of descriptors: a stranger's is the first to be given back.
                    self.slots.evict_half_open();
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    }
                }
            }
        }
        drop(listener);
        tasks.close();
        if tokio::time::timeout(self.options.drain, tasks.wait()).await.is_err() {
            self.slots.abort_all();
            tasks.wait().await;
        }
    }

    /// Runs one connection to its end if there is a place for it.
    pub(crate) async fn admit<Fut>(&self, addr: SocketAddr, attend: impl FnOnce(Slot, AbortHandle) -> Fut)
    where
        Fut: Future<Output = Result<(), Error>>,
    {
        let (abort, registration) = AbortHandle::new_pair();
        let Some(slot) = self.slots.admit(addr.ip(), abort.clone()) else {
            self.tally.refused.fetch_add(1, Relaxed);
            if let Some(suppressed) = self.refusals.pass() {
                warn!(port = self.name, peer = %addr, suppressed, "connection refused: too many are open");
            }
            return;
        };
        match Abortable::new(attend(slot, abort), registration).await {
            Ok(Ok(()) | Err(Error::Closed)) => {}
            Ok(Err(error)) => self.note(addr, &error),
            Err(_aborted) => debug!(port = self.name, peer = %addr, "connection dropped"),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let census = self.slots.census();
        Stats {
            open: census.open,
            half_open: census.half_open,
            untrusted: census.untrusted,
            evicted: census.evicted,
            ..self.tally.read()
        }
    }

    /// Counts a connection that did not end by itself, and says so: once a minute aloud.
    fn note(&self, addr: SocketAddr, error: &Error) {
        let counter = match error {
            Error::Protocol(_) => Some(&self.tally.violations),
            Error::TimedOut(Waiting::Writing) => Some(&self.tally.stalled),
            Error::TimedOut(_) => Some(&self.tally.timed_out),
            Error::Lagging => Some(&self.tally.lagging),
            Error::Overloaded => Some(&self.tally.overloaded),
            _ => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Relaxed);
        }
        match self.complaints.pass() {
            Some(suppressed) => warn!(port = self.name, peer = %addr, %error, suppressed, "connection cut"),
            None => debug!(port = self.name, peer = %addr, %error, "connection cut"),
        }
    }
}

/// Errors of accept(2) that say nothing about the next connection.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, InvalidInput,
        NetworkUnreachable, NotConnected, TimedOut,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            // From setting options on a socket whose peer is gone already.
            | InvalidInput
            | NetworkUnreachable
            | NotConnected
            | TimedOut
    )
}
