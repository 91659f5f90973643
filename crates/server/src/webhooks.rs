//! Outgoing webhooks: events are sent to receivers by HTTP, signed, in order, at least once, as far as their owner may see them.
//!
//! Each active webhook has a courier (`courier`), which follows the log from where the webhook has got to and notes every
//! step in the store. [`run`] sees to it that there is one for each, here or on another server of the same database, and
//! never two. What could not be delivered is put aside and sent again when somebody asks for it (`redelivery`).
//!
//! Nothing that happens to a webhook is an event: a receiver that fails would be told of it for ever.
//!
//! Invariants: an event counts as dealt with after its commit, so a crash means a double, never a gap; one request at a time
//! goes to a webhook, and [`SLOTS`] to all of them; neither secrets nor addresses are logged.

mod address;
mod backoff;
mod client;
mod courier;
mod message;
mod redelivery;

pub(crate) use address::Address;
pub(crate) use client::{Client, Failure, Reach};
pub(crate) use message::Message;
pub(crate) use redelivery::redeliver;

use crate::app::App;
use crate::clock;
use client::Connection;
use courier::Courier;
use hyper::StatusCode;
use saltern_core::time::Timestamp;
use saltern_store::Webhook;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::AbortOnDropHandle;

/// Most requests at once; more wait for their turn.
const SLOTS: usize = 16;

/// How often it is looked which webhooks there are, if nobody says that one was changed: another server may have done it.
const ROUND: Duration = Duration::from_secs(1);

/// How often old dead deliveries are removed.
const TIDY: Duration = Duration::from_secs(3_600);

/// Rows removed in one step.
const STEP: usize = 1_000;

/// What all couriers share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Webhooks(Arc<Shared>);

struct Shared {
    client: Client,
    slots: Semaphore,
    /// One way for each webhook, with the connection that was used last
    lanes: Mutex<HashMap<i64, Lane>>,
    /// Webhooks whose dead deliveries are being sent again
    redelivering: Mutex<HashSet<i64>>,
    changed: Notify,
}

type Lane = Arc<tokio::sync::Mutex<Option<Connection>>>;

/// Who delivers a webhook, and which version of it.
struct Assigned {
    version: i64,
    courier: AbortOnDropHandle<()>,
}

impl Webhooks {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            client: Client::default(),
            slots: Semaphore::new(SLOTS),
            lanes: Mutex::default(),
            redelivering: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// A webhook was made, changed or removed: it is looked at now.
    pub(crate) fn wake(&self) {
        self.0.changed.notify_one();
    }

    /// Sends a message once; the receiver has `limit` to answer, from when it is its turn.
    pub(crate) async fn send(
        &self,
        webhook: &Webhook,
        message: &Message,
        limit: Duration,
    ) -> Result<StatusCode, Failure> {
        let unsendable = |error: crate::Error| Failure::Unsendable(error.to_string());
        let address = Address::parse(&webhook.url).map_err(unsendable)?;
        let lane = lock(&self.0.lanes).entry(webhook.id).or_default().clone();
        // Who waits behind another request to the same receiver takes no slot meanwhile.
        let mut connection = lane.lock().await;
        let _slot = self.0.slots.acquire().await;
        let request = message.request(webhook, &address, clock::now()).map_err(unsendable)?;
        self.0.client.send(&mut connection, &address, request, limit).await
    }
}

/// Whether a receiver has taken what it was sent, or why not.
pub(crate) fn taken(outcome: Result<StatusCode, Failure>) -> Result<(), String> {
    match outcome {
        Ok(status) if status.is_success() => Ok(()),
        Ok(status) => Err(format!("the receiver answered {status}")),
        Err(failure) => Err(failure.to_string()),
    }
}

/// Keeps a courier for each active webhook until the server stops. A request under way is then broken off: whether it was
/// received is not known, and it is sent again after the next start.
pub(crate) async fn run(app: App) {
    let stop = app.master.tasks.stop_token();
    let mut couriers = HashMap::new();
    let mut next_tidy = clock::now();
    loop {
        // With several servers on one database, one of them delivers.
        if app.master.engine.is_first(clock::now()) {
            match app.master.store.webhooks().await {
                Ok(webhooks) => assign(&app, &mut couriers, webhooks),
                Err(error) => tracing::warn!(%error, "cannot look after webhooks"),
            }
            if clock::now() >= next_tidy {
                tidy(&app).await;
                next_tidy = clock::now().plus(TIDY);
            }
        } else {
            couriers.clear();
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.webhooks.0.changed.notified() => {}
            () = tokio::time::sleep(ROUND) => {}
        }
    }
}

/// Sends couriers out and calls back those whose webhook was changed or removed.
fn assign(app: &App, couriers: &mut HashMap<i64, Assigned>, webhooks: Vec<Webhook>) {
    let versions: HashMap<i64, i64> = webhooks.iter().map(|webhook| (webhook.id, webhook.version)).collect();
    let is_as_it_was = |id: &i64, assigned: &mut Assigned| {
        versions.get(id) == Some(&assigned.version) && !assigned.courier.is_finished()
    };
    couriers.retain(is_as_it_was);
    lock(&app.webhooks.0.lanes).retain(|id, _| versions.contains_key(id));
    for webhook in webhooks.into_iter().filter(|webhook| webhook.active) {
        let (id, version) = (webhook.id, webhook.version);
        couriers.entry(id).or_insert_with(|| {
            let courier = Courier::new(app.clone(), webhook);
            Assigned { version, courier: AbortOnDropHandle::new(tokio::spawn(courier.run())) }
        });
    }
}

/// A dead delivery is of no use for longer than its event is kept.
async fn tidy(app: &App) {
    let kept = app.master.config.keep_events;
    let before = if kept.is_zero() { Timestamp(0) } else { clock::now().minus(kept) };
    loop {
        match app.master.store.purge_dead_deliveries(before, STEP).await {
            Ok(STEP) => {}
            Ok(_) => return,
            Err(error) => return tracing::warn!(%error, "cannot remove old dead deliveries of webhooks"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
