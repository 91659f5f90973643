//! What browsers are told: who may read answers, what pages may do, what comes compressed.

use crate::house::{House, get, request, with};
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::{get as on_get, post};
use axum::{Json, Router};
use bytes::Bytes;

const OURS: &str = "https://gui.example.org";
const FOREIGN: &str = "https://evil.example.org";
const ALLOW_ORIGIN: &str = "access-control-allow-origin";

fn large() -> Vec<String> {
    vec!["a line that is repeated".to_owned(); 1000]
}

#[expect(unreachable_code, reason = "the handler panics on purpose")]
async fn panics() -> &'static str {
    panic!("on purpose");
    ""
}

fn router() -> Router {
    Router::new()
        .route("/", on_get(|| async { "fine" }))
        .route("/login", post(|_: Bytes| async { "token" }))
        .route("/large", on_get(|| async { Json(large()) }))
        .route("/picture", on_get(|| async { ([("content-type", "image/png")], large().concat()) }))
        .route("/events", on_get(|| async { ([("content-type", "text/event-stream")], large().concat()) }))
        .route("/lines", on_get(|| async { ([("content-type", "application/x-ndjson")], large().concat()) }))
        .route("/page", on_get(|| async { ([("content-security-policy", "default-src 'none'")], "page") }))
        .route("/panic", on_get(panics))
}

async fn house() -> House {
    House::open_with(router(), |settings| {
        settings.cors_origins = vec![OURS.into()];
        settings.max_body = 1000;
    })
    .await
}

#[tokio::test]
async fn a_preflight_is_answered_at_every_url() {
    let house = house().await;
    for path in ["/", "/login", "/large", "/nowhere", "/api/v1/jobs"] {
        let headers = [("origin", OURS), ("access-control-request-method", "POST")];
        let answer = house.ask(request("OPTIONS", path, &headers, Body::empty())).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert_eq!(answer.header(ALLOW_ORIGIN), OURS, "{path}");
        assert_eq!(answer.header("access-control-allow-credentials"), "true");
        let methods = answer.header("access-control-allow-methods");
        assert!(["GET", "POST", "PUT", "PATCH", "DELETE"].iter().all(|method| methods.contains(method)), "{methods}");
        let headers = answer.header("access-control-allow-headers");
        for header in [
            "content-type",
            "x-auth-token",
            "x-requested-with",
            "authorization",
            "if-match",
            "idempotency-key",
            "last-event-id",
        ] {
            assert!(headers.contains(header), "{header} in {headers}");
        }
    }
    house.close().await;
}

#[tokio::test]
async fn a_foreign_origin_gets_no_permission() {
    let house = house().await;
    for origin in [FOREIGN, "null", "https://gui.example.org.evil.example.org", "http://gui.example.org"] {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        for (method, path) in [("OPTIONS", "/"), ("GET", "/"), ("GET", "/nowhere"), ("GET", "/panic")] {
            let answer = house.ask(request(method, path, &headers, Body::empty())).await;
            assert_eq!(answer.headers.get(ALLOW_ORIGIN), None, "{method} {path} {origin}");
        }
    }
    house.close().await;
}

#[tokio::test]
async fn nobody_has_permission_unless_named() {
    let house = House::open(router()).await;
    assert_eq!(house.ask(with("/", &[("origin", OURS)])).await.headers.get(ALLOW_ORIGIN), None);
    house.close().await;
}

#[tokio::test]
async fn an_allowed_origin_can_read_answers_and_errors() {
    let house = house().await;
    let origin = [("origin", OURS)];
    for (answer, status) in [
        (house.ask(with("/", &origin)).await, 200),
        (house.ask(with("/nowhere", &origin)).await, 404),
        (house.ask(request("POST", "/login", &origin, vec![0; 1001].into())).await, 413),
        (house.ask(with("/panic", &origin)).await, 500),
    ] {
        assert_eq!(answer.status, status);
        assert_eq!(answer.header(ALLOW_ORIGIN), OURS, "{status}");
        assert!(answer.header("access-control-expose-headers").contains("x-auth-token"), "{answer:?}");
        assert!(answer.headers.get_all("vary").iter().any(|vary| vary.to_str().unwrap().contains("origin")));
    }
    house.close().await;
}

#[tokio::test]
async fn every_answer_has_the_security_headers() {
    let house = house().await;
    for path in ["/", "/nowhere", "/panic"] {
        let answer = house.ask(get(path)).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert!(answer.header("content-security-policy").starts_with("default-src 'self'"));
        assert_eq!(answer.headers.get("strict-transport-security"), None, "without TLS");
    }
    assert_eq!(house.ask(get("/page")).await.header("content-security-policy"), "default-src 'none'");
    house.close().await;
}

#[tokio::test]
async fn a_panic_is_answered_and_the_connection_goes_on() {
    let house = house().await;
    let mut client = house.client().await;
    let answer = client.ask(get("/panic")).await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::INTERNAL_SERVER_ERROR, "internal"));
    assert!(!answer.text().contains("on purpose"), "{}", answer.text());
    assert_eq!(client.ask(get("/")).await.text(), "fine");
    house.close().await;
}

#[tokio::test]
async fn large_text_is_compressed_when_asked_for() {
    let house = house().await;
    let plain = serde_json::to_vec(&large()).unwrap();
    let answer = house.ask(with("/large", &[("accept-encoding", "gzip, deflate, br")])).await;
    assert_eq!(answer.header("content-encoding"), "gzip");
    assert!(answer.headers.get_all("vary").iter().any(|vary| vary == "accept-encoding"));
    assert!(answer.body.starts_with(&[0x1f, 0x8b]) && answer.body.len() < plain.len() / 10, "{}", answer.body.len());
    // The last four bytes of gzip are the length of what was compressed.
    assert_eq!(answer.body[answer.body.len() - 4..], u32::try_from(plain.len()).unwrap().to_le_bytes());
    house.close().await;
}

#[tokio::test]
async fn nothing_is_compressed_that_was_not_asked_for_or_should_not_be() {
    let house = house().await;
    for (path, accepted) in [
        ("/large", ""),
        ("/large", "br, zstd"),
        ("/large", "gzip;q=0"),
        ("/large", "identity;q=0, *;q=0"),
        ("/", "gzip"),
        ("/picture", "gzip"),
        ("/events", "gzip"),
        ("/lines", "gzip"),
    ] {
        let answer = house.ask(with(path, &[("accept-encoding", accepted)])).await;
        assert_eq!(answer.status, StatusCode::OK, "{path} {accepted}");
        assert_eq!(answer.headers.get("content-encoding"), None, "{path} {accepted}");
    }
    house.close().await;
}
