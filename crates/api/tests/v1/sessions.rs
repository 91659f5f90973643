//! Logging in and out.

use super::{Ask, House};
use futures_util::future::BoxFuture;
use saltern_api::login::{self, Backends, Gate, Limits, LocalUsers};
use saltern_server::app::App;
use serde_json::json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The server's own users.
struct Users(App);

impl LocalUsers for Users {
    fn auth_of<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move { self.0.auth_of(user) })
    }

    fn check<'a>(&'a self, user: &'a str, password: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(self.0.check_password(user, password))
    }
}

const PASSWORD: &str = "correct horse battery";

/// A house with a log-in and the user `ann`.
async fn house_with_ann() -> House {
    let mut house = House::open().await;
    let user = json!({ "name": "ann", "password": PASSWORD, "roles": ["reader"] });
    house.ask("POST /api/v1/users").json(&user).answer().await.ok();
    let app = house.server.app();
    let backends = Backends::new(login::Settings::default(), Arc::new(Users(app.clone()))).unwrap();
    let gate = Arc::new(Gate::new(backends, &Limits { per_user: 3, ..Limits::default() }));
    house.router = saltern_api::router(app, Some(gate), CancellationToken::new());
    house
}

fn log_in<'a>(house: &'a House, user: &str, password: &str) -> Ask<'a> {
    Ask::new(&house.router, None, "POST /api/v1/sessions").json(&json!({ "user": user, "password": password }))
}

#[tokio::test]
async fn a_log_in_gives_a_token_by_body_header_and_cookie() {
    let house = house_with_ann().await;
    let answer = log_in(&house, "ann", PASSWORD).answer().await;
    assert_eq!((answer.status, answer.header("cache-control")), (201, Some("no-store")), "{answer:?}");
    let told = answer.json();
    let token = told["token"].as_str().unwrap();
    assert_eq!(answer.header("x-auth-token"), Some(token));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("session_id={token};")) && cookie.contains("HttpOnly"), "{cookie}");
    assert_eq!((&told["user"], &told["auth"]), (&json!("ann"), &json!("local")));
    assert!(house.server.app().caller_of_token(token, "test").await.is_ok());
    house.close().await;
}

#[tokio::test]
async fn every_refusal_says_the_same() {
    let house = house_with_ann().await;
    let wrong = log_in(&house, "ann", "wrong").answer().await;
    let unknown = log_in(&house, "nobody", PASSWORD).answer().await;
    assert_eq!(wrong.problem(), (401, "unauthenticated".into()));
    assert_eq!((wrong.text, wrong.headers), (unknown.text, unknown.headers));
    house.close().await;
}

#[tokio::test]
async fn who_tries_too_often_has_to_wait() {
    let house = house_with_ann().await;
    for _ in 0..3 {
        assert_eq!(log_in(&house, "ann", "wrong").answer().await.status, 401);
    }
    let answer = log_in(&house, "ann", PASSWORD).answer().await;
    assert_eq!(answer.problem(), (429, "too_many".into()));
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    house.close().await;
}

#[tokio::test]
async fn a_log_out_ends_the_session_and_takes_the_cookie() {
    let house = house_with_ann().await;
    let told = log_in(&house, "ann", PASSWORD).answer().await.ok();
    let token = told["token"].as_str().unwrap();
    let session = house.server.app().caller_of_token(token, "test").await.unwrap();
    let mut ask = Ask::new(&house.router, Some(session.caller.clone()), "DELETE /api/v1/sessions/current");
    ask.request.extensions_mut().insert(session);
    let answer = ask.answer().await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert!(answer.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert!(house.server.app().caller_of_token(token, "test").await.is_err());
    house.close().await;
}

#[tokio::test]
async fn one_changes_ones_own_password_by_knowing_it() {
    let house = house_with_ann().await;
    let told = log_in(&house, "ann", PASSWORD).answer().await.ok();
    let token = told["token"].as_str().unwrap();
    let ann = house.server.app().caller_of_token(token, "test").await.unwrap().caller;
    let change = |old: &str| {
        let body = json!({ "old": old, "new": "another good password" });
        Ask::new(&house.router, Some(ann.clone()), "PUT /api/v1/users/me/password").json(&body)
    };
    assert_eq!(change("wrong").answer().await.problem().0, 403);
    assert_eq!(change(PASSWORD).answer().await.status, 204);
    assert_eq!(log_in(&house, "ann", PASSWORD).answer().await.status, 401);
    assert_eq!(log_in(&house, "ann", "another good password").answer().await.status, 201);
    house.close().await;
}
