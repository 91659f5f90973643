//! Who asks, as handlers see it.

use crate::house::{House, get, request, with};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::any;
use saltern_api::http::{Identified, Identify, OwnPage, Peer, identified};
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

#[tokio::test]
async fn a_stranger_is_heard_out_only_so_far() {
    let size = |body: axum::body::Bytes| async move { body.len().to_string() };
    let house = House::open(identified(Router::new().route("/", any(size)), Doorman)).await;
    let post = |headers: &[(&str, &str)], size: usize| request("POST", "/", headers, vec![b' '; size].into());
    assert_eq!(house.ask(post(&[], 200 << 10)).await.text(), (200 << 10).to_string());
    for stranger in [&[][..], &[("x-auth-token", "wrong")]] {
        assert_eq!(house.ask(post(stranger, 300 << 10)).await.status, StatusCode::PAYLOAD_TOO_LARGE, "{stranger:?}");
    }
    assert_eq!(house.ask(post(&[("x-auth-token", "right")], 300 << 10)).await.text(), (300 << 10).to_string());
    house.close().await;
}

#[tokio::test]
async fn handlers_know_a_page_of_another_site() {
    let page = |axum::Extension(OwnPage(is_own)): axum::Extension<OwnPage>| async move { is_own.to_string() };
    let house = House::open(identified(Router::new().route("/", any(page)), Doorman)).await;
    let post = |headers: &[(&str, &str)]| request("POST", "/", headers, Body::empty());
    assert_eq!(house.ask(post(&[])).await.text(), "true");
    assert_eq!(house.ask(post(&[("origin", "http://salt.example.org")])).await.text(), "true");
    assert_eq!(house.ask(post(&[("origin", "http://evil.example.org")])).await.text(), "false");
    house.close().await;
}
