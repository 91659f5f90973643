//! Tokens: found by the hash of their secret, listed, used, removed.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, api_token, at, audit, audited, hash, session, token_ids};
use saltern_store::{Error, Store, Token, TokenKind};

on_both_databases! {
    a_token_is_found_by_its_hash,
    a_hash_is_used_once,
    tokens_come_in_pages,
    one_token_is_removed,
    the_tokens_of_a_user_are_removed_by_kind,
    the_last_use_of_a_token_only_moves_on,
    tokens_that_are_no_longer_valid_are_purged,
}

async fn a_token_is_found_by_its_hash(database: Database) {
    let store = database.open().await;
    let (one, other) = (session("s1", "alice"), Token { last_used: Some(at(9)), ..api_token("t1", "bob") });
    store.put_token(one.clone(), audit("session.begin")).await.unwrap();
    store.put_token(other.clone(), audit("token.create")).await.unwrap();
    assert_eq!(store.token(&hash("s1")).await.unwrap(), Some(one));
    assert_eq!(store.token(&hash("t1")).await.unwrap(), Some(other));
    assert_eq!(store.token(&hash("t2")).await.unwrap(), None);
    assert_eq!(audited(&store).await, ["session.begin", "token.create"]);
}

async fn a_hash_is_used_once(database: Database) {
    let store = database.open().await;
    store.put_token(session("s1", "alice"), audit("x")).await.unwrap();
    let twin = Token { hash: hash("s1"), ..session("s2", "mallory") };
    let refused = store.put_token(twin, audit("x")).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
    assert_eq!(token_ids(&store).await, ["s1"]);
}

async fn tokens_come_in_pages(database: Database) {
    let store = database.open().await;
    for (id, user) in [("c", "alice"), ("a", "alice"), ("B", "bob"), ("d", "alice")] {
        store.put_token(session(id, user), audit("x")).await.unwrap();
    }
    let page = async |user, after| {
        let tokens = store.tokens(user, after, 2).await.unwrap();
        tokens.into_iter().map(|token| token.id).collect::<Vec<_>>()
    };
    assert_eq!(page(None, "").await, ["B", "a"]);
    assert_eq!(page(None, "a").await, ["c", "d"]);
    assert_eq!(page(Some("alice"), "").await, ["a", "c"]);
    assert_eq!(page(Some("alice"), "c").await, ["d"]);
    assert_eq!(page(Some("nobody"), "").await, [""; 0]);
}

async fn one_token_is_removed(database: Database) {
    let store = database.open().await;
    store.put_token(session("s1", "alice"), audit("session.begin")).await.unwrap();
    assert!(store.delete_token("s1".into(), audit("session.end")).await.unwrap());
    assert!(!store.delete_token("s1".into(), audit("session.end")).await.unwrap());
    assert_eq!(store.token(&hash("s1")).await.unwrap(), None);
    assert_eq!(audited(&store).await, ["session.begin", "session.end"], "what was not there was not removed");
}

async fn the_tokens_of_a_user_are_removed_by_kind(database: Database) {
    let store = database.open().await;
    for id in ["a1", "a2"] {
        store.put_token(session(id, "alice"), audit("x")).await.unwrap();
    }
    store.put_token(api_token("a3", "alice"), audit("x")).await.unwrap();
    store.put_token(session("b1", "bob"), audit("x")).await.unwrap();
    let removed = async |kind| store.delete_tokens_of("alice".into(), kind, audit("session.end")).await.unwrap();
    assert_eq!(removed(Some(TokenKind::Session)).await, 2);
    assert_eq!(token_ids(&store).await, ["a3", "b1"]);
    assert_eq!(removed(Some(TokenKind::Session)).await, 0);
    assert_eq!(removed(None).await, 1);
    assert_eq!(token_ids(&store).await, ["b1"]);
    assert_eq!(audited(&store).await.iter().filter(|what| *what == "session.end").count(), 2);
}

async fn the_last_use_of_a_token_only_moves_on(database: Database) {
    let store = database.open().await;
    for id in ["a", "b"] {
        store.put_token(session(id, "alice"), audit("x")).await.unwrap();
    }
    let used = [("b", 30), ("gone", 99), ("a", 20), ("b", 10)];
    store.touch_tokens(used.map(|(id, n)| (id.to_owned(), at(n))).into()).await.unwrap();
    assert_eq!(last_used(&store).await, [Some(at(20)), Some(at(30))]);
    store.touch_tokens(vec![("a".into(), at(15)), ("b".into(), at(31))]).await.unwrap();
    assert_eq!(last_used(&store).await, [Some(at(20)), Some(at(31))]);
}

async fn tokens_that_are_no_longer_valid_are_purged(database: Database) {
    let store = database.open().await;
    for (id, expires) in [("a", 30), ("b", 10), ("c", 20), ("d", 40)] {
        store.put_token(Token { expires: at(expires), ..session(id, "alice") }, audit("x")).await.unwrap();
    }
    assert_eq!(store.purge_tokens(at(30), 2).await.unwrap(), 2, "no more than a step, those that ended first");
    assert_eq!(token_ids(&store).await, ["a", "d"]);
    assert_eq!(store.purge_tokens(at(30), 2).await.unwrap(), 1);
    assert_eq!(store.purge_tokens(at(30), 2).await.unwrap(), 0);
    assert_eq!(token_ids(&store).await, ["d"]);
}

#[test]
fn a_hash_is_never_shown() {
    let token = Token { hash: [171; 32], ..session("s1", "alice") };
    assert!(!format!("{token:?}").contains("171"));
}

async fn last_used(store: &Store) -> Vec<Option<saltern_core::time::Timestamp>> {
    store.tokens(None, "", ALL).await.unwrap().into_iter().map(|token| token.last_used).collect()
}
