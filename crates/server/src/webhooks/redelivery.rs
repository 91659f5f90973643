//! Sends dead deliveries again because somebody asked for it: each once, in the order of events, beside what is delivered
//! otherwise. What is taken is a dead delivery no more; what is not stays one.

use super::{Message, Webhooks, lock, taken};
use crate::app::{App, WhichDead};
use crate::{Error, clock};
use saltern_store::DeadDelivery;

/// After so many failures in a row the rest is left for another time: the receiver is not there.
const PATIENCE: usize = 5;

/// Dead deliveries of a webhook that are being sent again; one such round at a time.
pub(crate) struct Round {
    webhooks: Webhooks,
    id: i64,
}

impl Webhooks {
    /// Begins a round; nothing if there is one under way.
    pub(crate) fn begin_round(&self, id: i64) -> Option<Round> {
        let is_first = lock(&self.0.redelivering).insert(id);
        is_first.then(|| Round { webhooks: self.clone(), id })
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        lock(&self.webhooks.0.redelivering).remove(&self.id);
    }
}

/// Goes through them until the end, or until the server stops.
pub(crate) async fn redeliver(app: App, round: Round, which: WhichDead) {
    let stop = app.master.tasks.stop_token();
    let done = tokio::select! {
        done = go_through(&app, round.id, which) => done,
        () = stop.cancelled() => Ok(()),
    };
    if let Err(error) = done {
        tracing::warn!(webhook = round.id, %error, "dead deliveries could not be sent again");
    }
}

async fn go_through(app: &App, id: i64, which: WhichDead) -> Result<(), Error> {
    let mut failures = 0;
    let mut step = async |dead: DeadDelivery| {
        failures = if send_again(app, dead).await? { 0 } else { failures + 1 };
        Ok::<_, Error>(failures < PATIENCE)
    };
    match which {
        WhichDead::All => {
            let mut after = 0;
            while let Some(dead) = first_after(app, id, after).await? {
                after = dead.number;
                if !step(dead).await? {
                    break;
                }
            }
        }
        WhichDead::These(mut numbers) => {
            numbers.sort_unstable();
            for number in numbers {
                let dead = first_after(app, id, number - 1).await?.filter(|dead| dead.number == number);
                // Somebody else may have been faster.
                if let Some(dead) = dead
                    && !step(dead).await?
                {
                    break;
                }
            }
        }
    }
    Ok(())
}

async fn first_after(app: &App, id: i64, after: i64) -> Result<Option<DeadDelivery>, Error> {
    Ok(app.master.store.dead_deliveries(id, after, 1).await?.into_iter().next())
}

/// Tries it once; tells whether the receiver may be asked for more.
async fn send_again(app: &App, dead: DeadDelivery) -> Result<bool, Error> {
    let store = &app.master.store;
    let Some(webhook) = store.webhook(dead.webhook).await? else { return Ok(false) };
    if app.suspension(&webhook.owner).is_some() {
        return Ok(false);
    }
    let owner = app.owner(&webhook.owner).await?;
    // Gone from the log, or not for him to see any more: nothing can be sent.
    let Some(event) = app.event_for(&owner, dead.number).await? else { return Ok(true) };
    let message = Message::new(&webhook, &event)?;
    match taken(app.webhooks.send(&webhook, &message, app.master.config.webhook_timeout).await) {
        Ok(()) => store.take_dead_delivery(dead.webhook, dead.number).await.map_err(Error::from),
        Err(error) => {
            let attempts = dead.attempts + 1;
            store.add_dead_delivery(DeadDelivery { at: clock::now(), attempts, error, ..dead }).await?;
            Ok(false)
        }
    }
}
