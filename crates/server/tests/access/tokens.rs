//! Tokens: what they may, and how they end.

use crate::house::caller;
use crate::town::Town;
use saltern_core::access::Scope;
use saltern_core::value::Value;
use saltern_server::Error;
use saltern_server::app::{NewToken, UserChange};
use std::time::Duration;

fn token(scope: Scope, user: Option<&str>) -> NewToken {
    NewToken { user: user.map(str::to_owned), name: "test".into(), scope, lifetime: Duration::from_secs(3600) }
}

#[tokio::test]
async fn a_token_for_reading_only_reads() {
    let town = Town::open().await;
    let app = town.house.app();
    let webop = town.caller("webop").await;
    let (secret, entry) = app.create_token(&webop, token(Scope::Read, None)).await.unwrap();
    assert_eq!((entry.user.as_str(), entry.scope.as_str()), ("webop", "read"));
    let reading = app.caller_of_token(&secret, "here").await.unwrap().caller;
    assert_eq!(app.minions(&reading, None).await.unwrap().len(), 2);
    assert!(matches!(town.ping(&reading, "*").await, Err(Error::Forbidden(_))));
    // Nor does it make a token that may more.
    assert!(matches!(app.create_token(&reading, token(Scope::All, None)).await, Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn a_token_that_is_taken_back_is_gone_at_once() {
    let town = Town::open().await;
    let app = town.house.app();
    let webop = town.caller("webop").await;
    let (secret, entry) = app.create_token(&webop, token(Scope::All, None)).await.unwrap();
    app.caller_of_token(&secret, "here").await.unwrap();
    // Not by others of the same rank.
    assert!(matches!(app.delete_token(&town.caller("dbop").await, &entry.id).await, Err(Error::NotFound(_))));
    app.delete_token(&webop, &entry.id).await.unwrap();
    assert!(matches!(app.caller_of_token(&secret, "here").await, Err(Error::Unauthenticated(_))));
}

#[tokio::test]
async fn who_is_shut_out_or_loses_a_role_notices_at_once() {
    let town = Town::open().await;
    let app = town.house.app();
    let (secret, _) = app.create_token(&town.caller("webop").await, token(Scope::All, None)).await.unwrap();
    let known = app.user(&caller(), "webop").unwrap();
    let less = UserChange { roles: Some(vec!["reader:web".into()]), ..UserChange::default() };
    let known = app.change_user(&caller(), "webop", less, known.version).await.unwrap();
    let now = app.caller_of_token(&secret, "here").await.unwrap().caller;
    assert!(matches!(town.ping(&now, "*").await, Err(Error::Forbidden(_))));
    let out = UserChange { disabled: Some(true), ..UserChange::default() };
    app.change_user(&caller(), "webop", out, known.version).await.unwrap();
    assert!(matches!(app.caller_of_token(&secret, "here").await, Err(Error::Unauthenticated(_))));
}

#[tokio::test]
async fn sessions_outlive_a_restart_and_end_with_their_user() {
    let mut town = Town::open().await;
    let (secret, _) = town.session("webop").await;
    town.house.restart().await;
    let app = town.house.app();
    assert_eq!(app.caller_of_token(&secret, "here").await.unwrap().caller.who, "webop");
    let known = app.user(&caller(), "webop").unwrap();
    app.delete_user(&caller(), "webop", known.version).await.unwrap();
    assert!(app.caller_of_token(&secret, "here").await.is_err());
}

#[tokio::test]
async fn tokens_for_others_are_made_by_those_who_look_after_them() {
    let town = Town::open().await;
    let app = town.house.app();
    let boss = town.caller("boss").await;
    app.create_token(&boss, token(Scope::All, Some("webop"))).await.unwrap();
    for (who, user) in [("boss", "root"), ("boss", "northop"), ("webop", "dbop")] {
        let made = app.create_token(&town.caller(who).await, token(Scope::All, Some(user))).await;
        assert!(made.is_err(), "{who} for {user}");
    }
    let listed = app.tokens(&town.caller("dbop").await, None, "", 100).await.unwrap();
    assert!(listed.iter().all(|token| token.user == "dbop"));
}

#[tokio::test]
async fn one_name_is_one_person() {
    let town = Town::open().await;
    let app = town.house.app();
    // Somebody whom another way to log in knows under the name of a local user is not that user.
    let other = saltern_server::app::Identity { user: "root".into(), auth: "pam".into(), groups: vec![] };
    assert!(matches!(app.sign_in(other.clone(), "here", None).await, Err(Error::Unauthenticated(_))));
    assert!(matches!(app.caller_of(&other, "here").await, Err(Error::Unauthenticated(_))));
}

#[tokio::test]
async fn a_token_with_a_narrow_scope_makes_and_ends_no_tokens() {
    let town = Town::open().await;
    let app = town.house.app();
    let (_, session) = town.session("webop").await;
    for scope in [Scope::Read, Scope::Operate] {
        let (secret, _) = app.create_token(&session.caller, token(scope, None)).await.unwrap();
        let narrow = app.caller_of_token(&secret, "here").await.unwrap().caller;
        assert!(matches!(app.create_token(&narrow, token(Scope::Read, None)).await, Err(Error::Forbidden(_))));
        assert!(matches!(app.delete_token(&narrow, &session.token_id).await, Err(Error::Forbidden(_))));
        let refused = app.change_password(&narrow, crate::town::PASSWORD, "new password").await;
        assert!(matches!(refused, Err(Error::Forbidden(_))));
    }
}

#[tokio::test]
async fn an_org_admin_makes_no_token_for_whom_salts_rules_reach_further() {
    let rules = Value::map([("pam", Value::map([("*", Value::list([".*", "@wheel"]))]))]);
    let town = Town::with([("external_auth", rules)]).await;
    let app = town.house.app();
    let northboss = town.caller("northboss").await;
    let by_pam = UserChange { auth: Some("pam".into()), ..UserChange::default() };
    app.create_user(&northboss, "dora", by_pam).await.unwrap();
    let refused = app.create_token(&northboss, token(Scope::All, Some("dora"))).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))));
    app.create_token(&caller(), token(Scope::All, Some("dora"))).await.unwrap();
}

#[tokio::test]
async fn an_org_admin_does_not_end_the_log_ins_of_a_server_admin() {
    let town = Town::open().await;
    let app = town.house.app();
    let (secret, root) = town.session("root").await;
    let refused = app.delete_token(&town.caller("boss").await, &root.token_id).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))));
    app.caller_of_token(&secret, "here").await.unwrap();
}
