//! SIGTERM and Ctrl-C: the first asks for an orderly end, the next one is obeyed at once.

use crate::failure::{Failure, INTERRUPTED};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals.
pub(crate) struct Signals(Option<Pair>);

struct Pair {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::new(format!("cannot listen for signals: {error}")));
        let (terminate, interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        Ok(Self(Some(Pair { terminate, interrupt })))
    }

    /// Waits for the first one.
    pub(crate) async fn first(&mut self) {
        match &mut self.0 {
            Some(pair) => pair.next().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the process when another one comes.
    pub(crate) fn exit_on_next(&mut self) {
        if let Some(mut pair) = self.0.take() {
            tokio::spawn(async move {
                pair.next().await;
                std::process::exit(i32::from(INTERRUPTED));
            });
        }
    }
}

impl Pair {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
