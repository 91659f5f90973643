//! Who asks, as handlers see it.

use crate::house::{House, get, request, with};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::any;
use saltern_api::http::{Identified, Identify, Peer, identified};
use saltern_server::Error;

/// Knows one token, and none while the store is away.
struct Doorman;

#[derive(Clone)]
struct User(String);

impl Identify for Doorman {
    async fn identify(&self, secret: &str, origin: &str) -> Result<Option<Identified>, Error> {
        match secret {
            "right" => Ok(Some(Identified::new("ann").with(User(format!("ann from {origin}"))))),
            "unlucky" => Err(Error::Stopping),
            _ => Ok(None),
        }
    }
}

async fn house() -> House {
    let who = |request: Request| async move {
        assert!(!request.extensions().get::<Peer>().unwrap().secure);
        request.extensions().get::<User>().map_or("nobody".to_owned(), |user| user.0.clone())
    };
    House::open(identified(Router::new().route("/", any(who)), Doorman)).await
}

#[tokio::test]
async fn a_valid_token_is_somebodys() {
    let house = house().await;
    for header in [("x-auth-token", "right"), ("authorization", "Bearer right"), ("cookie", "session_id=right")] {
        assert_eq!(house.ask(with("/", &[header])).await.text(), "ann from 127.0.0.1", "{header:?}");
    }
    house.close().await;
}

#[tokio::test]
async fn no_token_or_a_wrong_one_is_nobodys() {
    let house = house().await;
    assert_eq!(house.ask(get("/")).await.text(), "nobody");
    assert_eq!(house.ask(with("/", &[("x-auth-token", "wrong")])).await.text(), "nobody");
    let wrong_before_right = [("x-auth-token", "wrong"), ("cookie", "session_id=right")];
    assert_eq!(house.ask(with("/", &wrong_before_right)).await.text(), "nobody");
    house.close().await;
}

#[tokio::test]
async fn a_cookie_from_another_sites_page_is_nobodys() {
    let house = house().await;
    let post = |headers: &[(&str, &str)]| request("POST", "/", headers, Body::empty());
    let cookie = ("cookie", "session_id=right");
    let own = house.ask(post(&[cookie, ("origin", "http://salt.example.org")])).await;
    assert_eq!(own.text(), "ann from 127.0.0.1");
    for foreign in [("origin", "http://evil.example.org"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
        assert_eq!(house.ask(post(&[cookie, foreign])).await.text(), "nobody", "{foreign:?}");
    }
    house.close().await;
}

#[tokio::test]
async fn not_to_know_is_not_to_refuse() {
    let house = house().await;
    let answer = house.ask(with("/", &[("x-auth-token", "unlucky")])).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    house.close().await;
}
