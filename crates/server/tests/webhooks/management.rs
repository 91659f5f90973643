//! Who may do what with webhooks, and what is told of them.

use crate::house::caller;
use crate::logs;
use crate::people::{SECRET, house, wanted};
use crate::receiver::{Answer, Receiver};
use saltern_core::access::Scope;
use saltern_server::app::{
    AuditFilter, AuditQuery, Identity, NewToken, NewWebhook, WebhookChange, WebhookFilter, WhichDead,
};
use saltern_server::{Class, Error};
use saltern_store::ANY_VERSION;
use std::time::Duration;

fn class<T>(outcome: Result<T, Error>) -> Option<Class> {
    outcome.err().map(|error| error.class())
}

#[tokio::test]
async fn the_webhooks_of_others_do_not_exist() {
    let (house, receiver) = (house(3).await, Receiver::start().await);
    let (ann, bob) = (house.person("ann", &["reader"]).await, house.person("bob", &["org-admin"]).await);
    let (app, id) = (house.app(), house.webhook(&ann, &receiver).await.id);
    assert_eq!(app.webhooks(&bob).await.unwrap().len(), 0);
    let hidden = [
        class(app.webhook(&bob, id).await),
        class(app.change_webhook(&bob, id, WebhookChange::default(), ANY_VERSION).await),
        class(app.delete_webhook(&bob, id, ANY_VERSION).await),
        class(app.dead_deliveries(&bob, id, 0, 10).await),
        class(app.redeliver(&bob, id, WhichDead::All).await),
        class(app.replay(&bob, id, 1).await),
        class(app.test_webhook(&bob, id).await),
    ];
    assert_eq!(hidden, [Some(Class::NotFound); 7]);
    let for_ann = NewWebhook { owner: Some("ann".into()), ..wanted(&receiver) };
    assert_eq!(class(app.create_webhook(&bob, for_ann).await), Some(Class::Forbidden));
    for who in [&ann, &caller()] {
        assert_eq!(app.webhooks(who).await.unwrap().len(), 1);
        assert_eq!(app.webhook(who, id).await.unwrap().owner, "ann");
    }
}

#[tokio::test]
async fn somebody_of_the_same_name_whom_another_log_in_vouches_for_is_not_let_in() {
    let (house, receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    house.webhook(&ann, &receiver).await;
    let identity = Identity { user: "ann".into(), auth: "pam".into(), groups: Vec::new() };
    assert_eq!(class(house.app().sign_in(identity, "test", None).await.map(drop)), Some(Class::Unauthenticated));
}

#[tokio::test]
async fn a_token_that_is_not_for_managing_only_looks() {
    let (house, receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["server-admin"]).await;
    let (app, id) = (house.app(), house.webhook(&ann, &receiver).await.id);
    for scope in [Scope::Read, Scope::Operate] {
        let wish = NewToken { user: None, name: "t".into(), scope, lifetime: Duration::from_secs(60) };
        let (token, _) = app.create_token(&ann, wish).await.unwrap();
        let narrow = app.caller_of_token(&token, "test").await.unwrap().caller;
        assert_eq!(app.webhooks(&narrow).await.unwrap().len(), 1);
        let refused = [
            class(app.create_webhook(&narrow, wanted(&receiver)).await),
            class(app.change_webhook(&narrow, id, WebhookChange::default(), ANY_VERSION).await),
            class(app.delete_webhook(&narrow, id, ANY_VERSION).await),
            class(app.redeliver(&narrow, id, WhichDead::All).await),
            class(app.replay(&narrow, id, 1).await),
            class(app.test_webhook(&narrow, id).await),
        ];
        assert_eq!(refused, [Some(Class::Forbidden); 6]);
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let (house, receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["reader"]).await;
    let tag = |text: String| WebhookFilter { tag: Some(text), ..WebhookFilter::default() };
    for (wrong, reason) in [
        (NewWebhook { url: "ftp://example.org".into(), ..wanted(&receiver) }, "https:// or http://"),
        (NewWebhook { url: "https://ann:pw@example.org".into(), ..wanted(&receiver) }, "no user or password"),
        (NewWebhook { secret: Some("short".into()), ..wanted(&receiver) }, "a secret has 16 to 256 bytes"),
        (NewWebhook { name: "a b".into(), ..wanted(&receiver) }, "the name of a webhook"),
        (NewWebhook { filter: tag("x".repeat(2_000)), ..wanted(&receiver) }, "a pattern has"),
        (NewWebhook { filter: tag(String::new()), ..wanted(&receiver) }, "a pattern has"),
    ] {
        let error = house.app().create_webhook(&ann, wrong).await.err().unwrap();
        assert_eq!(error.class(), Class::Invalid);
        assert!(error.to_string().contains(reason), "{error}");
    }
    // The operator at the machine has everybody's rights and is nobody in particular.
    let error = house.app().create_webhook(&caller(), wanted(&receiver)).await.err().unwrap();
    assert!(error.to_string().contains("name its owner"), "{error}");
    let named = NewWebhook { owner: Some("ann".into()), ..wanted(&receiver) };
    assert_eq!(house.app().create_webhook(&caller(), named).await.unwrap().0.owner, "ann");
}

#[tokio::test]
async fn changes_are_made_to_what_was_seen() {
    let (house, receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["reader"]).await;
    let (app, webhook) = (house.app(), house.webhook(&ann, &receiver).await);
    let renamed = WebhookChange { name: Some("new".into()), ..WebhookChange::default() };
    let changed = app.change_webhook(&ann, webhook.id, renamed.clone(), webhook.version).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.version), ("new", webhook.version + 1));
    assert_eq!(class(app.change_webhook(&ann, webhook.id, renamed, webhook.version).await), Some(Class::Stale));
    let to_bob = WebhookChange { owner: Some("bob".into()), ..WebhookChange::default() };
    assert_eq!(class(app.change_webhook(&ann, webhook.id, to_bob, changed.version).await), Some(Class::Forbidden));
    assert_eq!(class(app.delete_webhook(&ann, webhook.id, webhook.version).await), Some(Class::Stale));
    app.delete_webhook(&ann, webhook.id, changed.version).await.unwrap();
    assert_eq!(class(app.webhook(&ann, webhook.id).await), Some(Class::NotFound));
}

#[tokio::test]
async fn a_test_tells_what_the_receiver_answers() {
    let (house, mut receiver) = (house(3).await, Receiver::start().await);
    let ann = house.person("ann", &["reader"]).await;
    let off = NewWebhook { active: false, ..wanted(&receiver) };
    let id = house.app().create_webhook(&ann, off).await.unwrap().0.id;
    let good = house.app().test_webhook(&ann, id).await.unwrap();
    assert_eq!((good.status, good.error), (Some(204), None));
    let sample = receiver.next().await;
    assert_eq!((sample.number(), sample.tag()), (0, "saltern/webhook/test".into()));
    receiver.change_mind(|_| Answer::Status(401));
    let bad = house.app().test_webhook(&ann, id).await.unwrap();
    assert_eq!((bad.status, bad.error.as_deref()), (Some(401), Some("the receiver answered 401 Unauthorized")));
    let nowhere = WebhookChange { url: Some("http://127.0.0.1:1/".into()), ..WebhookChange::default() };
    house.change(id, nowhere).await;
    let unreachable = house.app().test_webhook(&ann, id).await.unwrap();
    assert_eq!(unreachable.status, None);
    assert!(unreachable.error.unwrap().starts_with("cannot connect: "));
}

#[tokio::test]
async fn a_secret_is_told_once_and_no_log_knows_it() {
    let (house, mut receiver) = (house(1).await, Receiver::answering(|_| Answer::Status(500)).await);
    let ann = house.person("ann", &["server-admin"]).await;
    let url = format!("{}/path-that-is-a-secret", receiver.url());
    let generated = NewWebhook { secret: None, url: url.clone(), ..wanted(&receiver) };
    let (made, secret) = house.app().create_webhook(&ann, generated).await.unwrap();
    assert_eq!(secret.reveal().len(), 64);
    house.app().create_webhook(&ann, NewWebhook { url, ..wanted(&receiver) }).await.unwrap();
    let last = house.fire("n/1").await;
    receiver.tags(2).await;
    house.app().test_webhook(&ann, made.id).await.unwrap();
    saltern_testkit::wait::until("it to be put aside", crate::receiver::LONG, || async {
        !house.dead(made.id).await.is_empty()
    })
    .await;
    let query = AuditQuery { before: None, limit: 100, filter: AuditFilter::default() };
    let audit = format!("{:?}", house.app().audit(&caller(), &query).await.unwrap());
    assert!(audit.contains("webhook.create") && audit.contains("webhook.test"));
    let mut told = format!("{audit} {:?} {:?}", house.dead(made.id).await, house.events_after(last).await);
    told.push_str(&format!("{secret:?}"));
    for hidden in [secret.reveal(), SECRET, "path-that-is-a-secret"] {
        assert!(!told.contains(hidden), "{told}");
        assert!(!logs::contain(hidden.as_bytes()), "{hidden}");
    }
}
