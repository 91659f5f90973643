//! People who have webhooks, and what they do with them.

use crate::house::{House, caller};
use crate::receiver::Receiver;
use saltern_core::ids::MinionId;
use saltern_core::value::Value;
use saltern_server::app::{
    Caller, DeadDelivery, Group, Identity, NewWebhook, UserChange, WebhookChange, WebhookEntry, WebhookFilter,
};
use saltern_store::ANY_VERSION;

pub(crate) const SECRET: &str = "a secret that is never shown";

/// A server that accepts every key and gives up after few tries.
pub(crate) async fn house(tries: i64) -> House {
    House::with([("auto_accept", true.into()), ("webhook_tries", tries.into())]).await
}

/// Everything that is sent to this receiver.
pub(crate) fn wanted(receiver: &Receiver) -> NewWebhook {
    NewWebhook {
        name: "hook".into(),
        url: receiver.url(),
        secret: Some(SECRET.into()),
        filter: WebhookFilter::default(),
        active: true,
        owner: None,
    }
}

impl House {
    /// A user with these roles, logged in.
    pub(crate) async fn person(&self, name: &str, roles: &[&str]) -> Caller {
        let change = UserChange {
            password: Some("long enough to be a password".into()),
            roles: Some(roles.iter().map(|role| (*role).to_owned()).collect()),
            ..UserChange::default()
        };
        self.app().create_user(&caller(), name, change).await.unwrap();
        let identity = Identity { user: name.into(), auth: "local".into(), groups: Vec::new() };
        self.app().sign_in(identity, "test", None).await.unwrap().session.caller
    }

    /// A group of minions.
    pub(crate) async fn group(&self, name: &str, members: &[&str]) {
        let group = Group {
            name: name.into(),
            org: "default".into(),
            description: String::new(),
            target: None,
            members: members.iter().map(|id| MinionId::new(id).unwrap()).collect(),
            created: saltern_server::clock::now(),
            version: 0,
        };
        self.app().put_group(&caller(), group, None).await.unwrap();
    }

    /// A webhook of his for everything he sees.
    pub(crate) async fn webhook(&self, owner: &Caller, receiver: &Receiver) -> WebhookEntry {
        self.app().create_webhook(owner, wanted(receiver)).await.unwrap().0
    }

    pub(crate) async fn change_user(&self, name: &str, change: UserChange) {
        self.app().change_user(&caller(), name, change, ANY_VERSION).await.unwrap();
    }

    pub(crate) async fn change(&self, id: i64, change: WebhookChange) -> WebhookEntry {
        self.app().change_webhook(&caller(), id, change, ANY_VERSION).await.unwrap()
    }

    pub(crate) async fn dead(&self, id: i64) -> Vec<DeadDelivery> {
        self.app().dead_deliveries(&caller(), id, 0, 1_000).await.unwrap()
    }

    /// Logs an event; tells its number.
    pub(crate) async fn fire(&self, tag: &str) -> i64 {
        self.app().fire(&caller(), tag, Value::map([("n", 1)])).await.unwrap();
        let event = self.events_after(0).await.into_iter().rev().find(|event| event.tag == tag);
        event.unwrap().number
    }
}
