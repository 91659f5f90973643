//! The event stream shows what its reader may see, as long as he may.

use crate::house::caller;
use crate::town::{Town, id};
use saltern_core::access::Scope;
use saltern_core::value::Value;
use saltern_server::app::{EventQuery, EventStream, NewToken, UserChange};
use std::time::Duration;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn stored(town: &Town, user: &str) -> Vec<(String, Value)> {
    let who = town.caller(user).await;
    let query = EventQuery { since: Some(0), stored_only: true, ..EventQuery::default() };
    let mut stream = town.house.app().events(&who, &query).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        events.push((event.tag, event.data));
    }
    events
}

async fn next_tag(stream: &mut EventStream) -> Option<String> {
    let next = tokio::time::timeout(PATIENCE, stream.next()).await.expect("an event or the end");
    next.map(|event| event.unwrap().tag)
}

#[tokio::test]
async fn a_reader_hears_of_his_minions_and_of_no_others() {
    let town = Town::open().await;
    town.ping(&caller(), "*").await.unwrap();
    town.house.app().fire(&caller(), "my/secret", Value::map([("x", 1)])).await.unwrap();
    let all = stored(&town, "root").await;
    assert!(all.iter().any(|(tag, _)| tag == "my/secret"));
    let some = stored(&town, "dbop").await;
    assert!(!some.is_empty() && some.len() < all.len());
    for (tag, data) in &some {
        let text = format!("{tag} {data:?}");
        for other in ["web1", "web2", "north1", "my/secret"] {
            assert!(!text.contains(other), "{text}");
        }
    }
    let new = some.iter().find(|(tag, _)| tag.starts_with("salt/job/") && tag.ends_with("/new")).unwrap();
    assert_eq!(new.1.get("minions"), Some(&Value::list(["db1"])));
    assert_eq!(stored(&town, "nobody").await, []);
}

#[tokio::test]
async fn a_live_stream_is_filtered_as_the_stored_one_is() {
    let town = Town::open().await;
    let app = town.house.app();
    let who = town.caller("dbop").await;
    let mut stream =
        app.events(&who, &EventQuery { tag: Some("salt/key".into()), ..EventQuery::default() }).await.unwrap();
    for minion in ["web9", "db1"] {
        app.make_keys(&caller(), Some(&id(minion)), None, true).await.unwrap();
    }
    let event = tokio::time::timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(event.minion, Some(id("db1")));
}

#[tokio::test]
async fn a_log_out_ends_the_stream_at_once() {
    let town = Town::open().await;
    let app = town.house.app();
    let (_, session) = town.session("root").await;
    let mut stream = app.events(&session.caller, &EventQuery::default()).await.unwrap();
    app.fire(&caller(), "one", Value::Nil).await.unwrap();
    // The log-in of others may be in between.
    while next_tag(&mut stream).await.unwrap() != "one" {}
    app.sign_out(&session).await.unwrap();
    assert_eq!(next_tag(&mut stream).await, None);
}

#[tokio::test]
async fn a_log_out_also_ends_a_stream_that_is_far_behind() {
    let town = Town::open().await;
    let app = town.house.app();
    for _ in 0..1_100 {
        app.fire(&caller(), "many", Value::Nil).await.unwrap();
    }
    let (_, session) = town.session("root").await;
    let mut by_chunks =
        app.events(&session.caller, &EventQuery { since: Some(0), ..EventQuery::default() }).await.unwrap();
    let mut one_by_one =
        app.events(&session.caller, &EventQuery { since: Some(0), ..EventQuery::default() }).await.unwrap();
    by_chunks.next_chunk().await.unwrap().unwrap();
    one_by_one.next().await.unwrap().unwrap();
    app.sign_out(&session).await.unwrap();
    assert!(by_chunks.next_chunk().await.is_none());
    assert_eq!(next_tag(&mut one_by_one).await, None);
}

#[tokio::test]
async fn who_loses_a_role_hears_nothing_that_happens_after() {
    let town = Town::open().await;
    let app = town.house.app();
    let who = town.caller("dbop").await;
    let mut stream = app.events(&who, &EventQuery::default()).await.unwrap();
    let known = app.user(&caller(), "dbop").unwrap();
    let other = UserChange { roles: Some(vec!["reader:web".into()]), ..UserChange::default() };
    // A change of roles ends log-ins, so he reads with a token for programs.
    let (secret, _) = app.create_token(&who, token()).await.unwrap();
    let program = app.caller_of_token(&secret, "here").await.unwrap().caller;
    let mut program = app.events(&program, &EventQuery::default()).await.unwrap();
    app.change_user(&caller(), "dbop", other, known.version).await.unwrap();
    town.ping(&caller(), "db1").await.unwrap();
    town.ping(&caller(), "web1").await.unwrap();
    assert_eq!(next_tag(&mut stream).await, None);
    let event = tokio::time::timeout(PATIENCE, program.next()).await.unwrap().unwrap().unwrap();
    assert!(!format!("{event:?}").contains("db1"), "{event:?}");
}

fn token() -> NewToken {
    NewToken { user: None, name: "t".into(), scope: Scope::All, lifetime: Duration::from_secs(3600) }
}

#[tokio::test]
async fn events_are_numbered_without_a_gap_and_come_once() {
    let town = Town::open().await;
    let app = town.house.app();
    let query = EventQuery { since: Some(0), tag: Some("count/*".into()), ..EventQuery::default() };
    let mut stream = app.events(&caller(), &query).await.unwrap();
    for number in 0..700 {
        app.fire(&caller(), &format!("count/{number}"), Value::Nil).await.unwrap();
    }
    for number in 0..700 {
        assert_eq!(next_tag(&mut stream).await.unwrap(), format!("count/{number}"));
    }
}

#[tokio::test]
async fn what_was_forgotten_is_said() {
    let town = Town::open().await;
    let app = town.house.app();
    let stream = app.events(&caller(), &EventQuery { since: Some(0), ..EventQuery::default() }).await.unwrap();
    assert_eq!(stream.gap(), None);
    town.forget_events(3);
    let stream = app.events(&caller(), &EventQuery { since: Some(1), ..EventQuery::default() }).await.unwrap();
    assert_eq!(stream.gap(), Some((2, 3)));
}

#[tokio::test]
async fn tags_of_the_server_are_not_for_others_to_send() {
    let town = Town::open().await;
    let app = town.house.app();
    for tag in ["salt/job/20261115200427443183/ret/web1", "saltern/action/1/new", "salt/auth", ""] {
        assert!(app.fire(&caller(), tag, Value::Nil).await.is_err(), "{tag}");
    }
    let webop = town.caller("webop").await;
    assert!(matches!(app.fire(&webop, "my/tag", Value::Nil).await, Err(saltern_server::Error::Forbidden(_))));
}
