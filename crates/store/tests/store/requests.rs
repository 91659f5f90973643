//! Idempotency keys: a request is carried out once, however often it is sent.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{at, body, hash};
use saltern_store::{Begun, Error, Reply, Store};

on_both_databases! {
    a_repeated_request_gets_the_first_reply,
    another_request_with_the_same_key_is_told_so,
    keys_of_different_users_do_not_meet,
    a_reply_is_given_once,
    a_request_that_came_to_nothing_may_be_tried_again,
    of_requests_at_the_same_time_one_is_carried_out,
    an_endless_key_is_refused,
    old_requests_are_purged,
}

async fn a_repeated_request_gets_the_first_reply(database: Database) {
    let store = database.open().await;
    assert_eq!(begin(&store, "alice", "k").await, Begun::New);
    assert_eq!(begin(&store, "alice", "k").await, Begun::Running);
    end(&store, "alice", "k", reply(201)).await;
    assert_eq!(begin(&store, "alice", "k").await, Begun::Done(reply(201)));
    store.close().await;
    assert_eq!(begin(&database.open().await, "alice", "k").await, Begun::Done(reply(201)), "after a restart, too");
}

async fn another_request_with_the_same_key_is_told_so(database: Database) {
    let store = database.open().await;
    let other = async || store.begin_request("alice".into(), "k".into(), hash("other"), at(1)).await.unwrap();
    begin(&store, "alice", "k").await;
    assert_eq!(other().await, Begun::Other);
    end(&store, "alice", "k", reply(201)).await;
    assert_eq!(other().await, Begun::Other);
}

async fn keys_of_different_users_do_not_meet(database: Database) {
    let store = database.open().await;
    begin(&store, "alice", "k").await;
    end(&store, "alice", "k", reply(201)).await;
    assert_eq!(begin(&store, "bob", "k").await, Begun::New);
    assert_eq!(begin(&store, "alice", "k2").await, Begun::New);
}

async fn a_reply_is_given_once(database: Database) {
    let store = database.open().await;
    end(&store, "alice", "k", reply(500)).await;
    begin(&store, "alice", "k").await;
    end(&store, "alice", "k", reply(201)).await;
    end(&store, "alice", "k", reply(500)).await;
    assert_eq!(begin(&store, "alice", "k").await, Begun::Done(reply(201)));
}

async fn a_request_that_came_to_nothing_may_be_tried_again(database: Database) {
    let store = database.open().await;
    begin(&store, "alice", "k").await;
    store.drop_request("alice".into(), "k".into()).await.unwrap();
    assert_eq!(begin(&store, "alice", "k").await, Begun::New);
}

async fn of_requests_at_the_same_time_one_is_carried_out(database: Database) {
    let stores = [database.open().await, database.open().await];
    let all = (0..40).map(|n| begin(&stores[n % 2], "alice", "k"));
    let begun = futures_util::future::join_all(all).await;
    assert_eq!(begun.iter().filter(|begun| **begun == Begun::New).count(), 1);
    assert_eq!(begun.iter().filter(|begun| **begun == Begun::Running).count(), 39);
}

async fn an_endless_key_is_refused(database: Database) {
    let store = database.open().await;
    assert_eq!(begin(&store, "alice", &"k".repeat(255)).await, Begun::New);
    let refused = store.begin_request("alice".into(), "k".repeat(256), hash("r"), at(1)).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

async fn old_requests_are_purged(database: Database) {
    let store = database.open().await;
    for (key, n) in [("c", 30), ("a", 10), ("b", 20), ("d", 40)] {
        store.begin_request("alice".into(), key.into(), hash("request"), at(n)).await.unwrap();
    }
    end(&store, "alice", "a", reply(201)).await;
    assert_eq!(store.purge_requests(at(40), 2).await.unwrap(), 2);
    assert_eq!(begin(&store, "alice", "c").await, Begun::Running, "the oldest went first");
    assert_eq!(store.purge_requests(at(40), 2).await.unwrap(), 1);
    assert_eq!(store.purge_requests(at(40), 2).await.unwrap(), 0);
    assert_eq!(begin(&store, "alice", "d").await, Begun::Running);
    assert_eq!(begin(&store, "alice", "a").await, Begun::New);
}

#[test]
fn what_was_said_is_never_shown() {
    let secret = Reply { body: body("hunter2"), headers: vec![("set-cookie".into(), "hunter2".into())], status: 200 };
    let shown = format!("{secret:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("104, 117"), "{shown}");
}

fn reply(status: i64) -> Reply {
    let headers = vec![("location".into(), "/api/v1/users/bob".into()), ("etag".into(), "\"1\"".into())];
    Reply { status, headers, body: body("made") }
}

async fn begin(store: &Store, user: &str, key: &str) -> Begun {
    store.begin_request(user.into(), key.into(), hash("request"), at(1)).await.unwrap()
}

async fn end(store: &Store, user: &str, key: &str, reply: Reply) {
    store.end_request(user.into(), key.into(), reply).await.unwrap();
}
