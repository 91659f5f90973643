//! Two servers on one database: one of them delivers, and the other goes on when that one is gone.

use crate::house::{House, caller};
use crate::people::wanted;
use crate::receiver::{LONG, Receiver};
use saltern_core::value::Value;
use saltern_server::app::NewWebhook;
use saltern_testkit::{postgres, wait};

async fn server(database: &str, name: &str) -> House {
    let settings = vec![("database".to_owned(), Value::from(database)), ("id".to_owned(), name.into())];
    House::furnished(settings, |_| {}).await
}

#[tokio::test]
async fn one_server_delivers_and_the_other_goes_on_when_it_is_gone() {
    let Some(database) = tokio::task::spawn_blocking(postgres::fresh_database).await.unwrap() else { return };
    let (mut one, mut receiver) = (server(&database, "one").await, Receiver::start().await);
    one.person("ann", &["server-admin"]).await;
    let other = server(&database, "other").await;
    // Made at the server that does not deliver.
    let named = NewWebhook { owner: Some("ann".into()), ..wanted(&receiver) };
    let id = other.app().create_webhook(&caller(), named).await.unwrap().0.id;
    for n in 0..6 {
        let house = if n % 2 == 0 { &one } else { &other };
        house.app().fire(&caller(), &format!("n/{n}"), 1.into()).await.unwrap();
    }
    assert_eq!(receiver.tags(6).await, (0..6).map(|n| format!("n/{n}")).collect::<Vec<_>>());
    let newest = other.last_event().await;
    wait::until("it to be noted", LONG, || async {
        other.app().webhook(&caller(), id).await.unwrap().cursor == newest
    })
    .await;
    assert!(receiver.is_idle(), "each arrives once");
    one.kill().await;
    other.app().fire(&caller(), "after", 1.into()).await.unwrap();
    assert_eq!(receiver.next().await.tag(), "after");
    assert!(receiver.is_idle());
}
