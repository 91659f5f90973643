//! What a client can ask about webhooks.

use super::{Client, ClientError, Page, Query};
use crate::shape::{
    CreatedWebhook, DeadDelivery, DeadDeliveryList, NewWebhook, Redelivery, Replay, Webhook, WebhookChange,
    WebhookList, WebhookTest,
};
use hyper::Method;

impl Client {
    /// The webhooks, oldest first.
    pub async fn webhooks(&self) -> Result<Vec<Webhook>, ClientError> {
        self.pages::<WebhookList>("/api/v1/webhooks", Query::new()).await
    }

    /// One webhook.
    pub async fn webhook(&self, id: i64) -> Result<Webhook, ClientError> {
        self.get(&path(id, "")).await
    }

    /// Makes a webhook. Its secret is in the answer and nowhere else, so a lost answer is a lost secret.
    pub async fn create_webhook(&self, webhook: &NewWebhook) -> Result<CreatedWebhook, ClientError> {
        self.send(Method::POST, "/api/v1/webhooks", webhook).await
    }

    /// Changes a webhook that is still at that version.
    pub async fn change_webhook(&self, id: i64, version: i64, change: &WebhookChange) -> Result<Webhook, ClientError> {
        self.change(Method::PATCH, &path(id, ""), version, change).await
    }

    /// Removes a webhook that is still at that version.
    pub async fn delete_webhook(&self, id: i64, version: i64) -> Result<(), ClientError> {
        self.remove(&path(id, ""), Some(version)).await
    }

    /// The events that could not be delivered.
    pub async fn dead_deliveries(&self, id: i64) -> Result<Vec<DeadDelivery>, ClientError> {
        self.pages::<DeadDeliveryList>(&path(id, "/dead-deliveries"), Query::new()).await
    }

    /// Begins to send dead deliveries again.
    pub async fn redeliver(&self, id: i64, which: &Redelivery) -> Result<(), ClientError> {
        self.tell(Method::POST, &path(id, "/redeliver"), which).await
    }

    /// Lets a webhook go on from an event.
    pub async fn replay(&self, id: i64, from: i64) -> Result<Webhook, ClientError> {
        self.send(Method::POST, &path(id, "/replay"), &Replay { from }).await
    }

    /// Sends an event that never happened, now and once.
    pub async fn test_webhook(&self, id: i64) -> Result<WebhookTest, ClientError> {
        self.send(Method::POST, &path(id, "/test"), &()).await
    }
}

impl Page for WebhookList {
    type Item = Webhook;

    fn split(self) -> (Vec<Webhook>, Option<String>) {
        (self.webhooks, self.next.map(|number| number.to_string()))
    }
}

impl Page for DeadDeliveryList {
    type Item = DeadDelivery;

    fn split(self) -> (Vec<DeadDelivery>, Option<String>) {
        (self.dead_deliveries, self.next.map(|number| number.to_string()))
    }
}

fn path(id: i64, more: &str) -> String {
    format!("/api/v1/webhooks/{id}{more}")
}
