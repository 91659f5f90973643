//! The only way onto the publish port: sealed once, signed once and handed to every subscriber.
//!
//! Called by `engine::deliver` only, with what was claimed and committed before.

use super::Master;
use crate::Error;
use saltern_core::ids::Jid;
use saltern_core::time::Timestamp;
use saltern_core::value::Map;
use saltern_wire::crypto::SigAlgo;
use saltern_wire::envelope;
use saltern_wire::zmtp::publisher;
use std::sync::{Arc, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// The way to the thread that seals and signs. One thread, so publications go out in the order of their serials.
#[derive(Clone)]
pub(crate) struct Publisher {
    queue: mpsc::Sender<Publication>,
}

/// What waits to be published.
pub(crate) type PublishQueue = mpsc::Receiver<Publication>;

/// The parts of one job, and whom to tell when they have gone out.
pub(crate) type Publication = (Vec<Map>, oneshot::Sender<()>);

impl Publisher {
    /// Makes the queue; the thread is started with [`run`] when the master exists.
    pub(crate) fn new() -> (Self, PublishQueue) {
        let (queue, waiting) = mpsc::channel(256);
        (Self { queue }, waiting)
    }
}

/// Seals, signs and publishes until the server stops. `serial` is the first of a range reserved for this start.
pub(crate) async fn run(master: Arc<Master>, port: publisher::Publisher, mut serial: i64, mut waiting: PublishQueue) {
    let stop = master.tasks.stop_token();
    loop {
        let (loads, done) = tokio::select! {
            () = stop.cancelled() => return,
            next = waiting.recv() => match next { Some(next) => next, None => return },
        };
        let (sealer, port) = (master.clone(), port.clone());
        let first = serial;
        serial += i64::try_from(loads.len()).unwrap_or(0);
        // An RSA signature takes a millisecond: not on the threads that serve connections.
        let published = tokio::task::spawn_blocking(move || {
            let ring = sealer.ring();
            for (serial, mut load) in (first..).zip(loads) {
                load.insert("serial", serial);
                match envelope::publication(&ring.shared, &sealer.rsa, SigAlgo::default(), &load) {
                    Ok(frame) => drop(port.publish(frame)),
                    Err(error) => tracing::error!(%error, "cannot seal a publication"),
                }
            }
        })
        .await;
        if published.is_ok() {
            let _ = done.send(());
        }
    }
}

impl Master {
    /// A job id nobody has.
    pub(crate) fn next_jid(&self, now: Timestamp) -> Jid {
        self.jids.lock().unwrap_or_else(PoisonError::into_inner).next(now)
    }

    /// Publishes the parts of one job; returns when they have been handed to every subscriber.
    pub(crate) async fn publish(&self, loads: Vec<Map>) -> Result<(), Error> {
        let (done, published) = oneshot::channel();
        self.publisher.queue.send((loads, done)).await.map_err(|_| Error::Stopping)?;
        published.await.map_err(|_| Error::Stopping)
    }
}
