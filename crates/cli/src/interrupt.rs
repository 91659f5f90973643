//! Ctrl-C, for commands that wait.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C.
pub(crate) struct Interrupt(Signal);

impl Interrupt {
    /// From now on Ctrl-C no longer ends the program by itself.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let signal = signal(SignalKind::interrupt());
        Ok(Self(signal.map_err(|error| Failure::new(format!("cannot listen for Ctrl-C: {error}")))?))
    }

    /// Waits for it.
    pub(crate) async fn wait(&mut self) {
        self.0.recv().await;
    }
}
