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

/// Most jobs that are sealed before the first of them goes out: each takes a millisecond.
const TOGETHER: usize = 64;
/// Bytes from which on what is sealed goes out before more is.
const AT_ONCE_BYTES: usize = 4 << 20;

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
        let mut jobs = Vec::new();
        let count = tokio::select! {
            () = stop.cancelled() => return,
            count = waiting.recv_many(&mut jobs, TOGETHER) => count,
        };
        if count == 0 {
            return;
        }
        let (loads, done): (Vec<Vec<Map>>, Vec<oneshot::Sender<()>>) = jobs.into_iter().unzip();
        let loads: Vec<Map> = loads.into_iter().flatten().collect();
        let (sealer, port) = (master.clone(), port.clone());
        let first = serial;
        serial += i64::try_from(loads.len()).unwrap_or(0);
        // An RSA signature takes a millisecond: not on the threads that serve connections.
        let published = tokio::task::spawn_blocking(move || {
            let ring = sealer.ring();
            let seal = |(serial, mut load): (i64, Map)| {
                load.insert("serial", serial);
                let sealed = envelope::publication(&ring.shared, &sealer.rsa, SigAlgo::default(), &load);
                sealed.inspect_err(|error| tracing::error!(%error, "cannot seal a publication")).ok()
            };
            // Together: what costs most of a publication is to write to each subscriber, and this is one write. But not more than
            // the port remembers for all of them.
            let (mut frames, mut bytes) = (Vec::new(), 0);
            for frame in (first..).zip(loads).filter_map(seal) {
                bytes += frame.len();
                frames.push(frame);
                if bytes >= AT_ONCE_BYTES {
                    port.publish_all(&frames);
                    (frames, bytes) = (Vec::new(), 0);
                }
            }
            port.publish_all(&frames);
        })
        .await;
        if published.is_ok() {
            for done in done {
                let _ = done.send(());
            }
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
