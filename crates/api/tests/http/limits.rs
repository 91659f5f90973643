//! How much a request may send, and how long it may take.

use crate::house::{Answer, House, get, request};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::{get as on_get, post};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use saltern_api::http::TimeLimit;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const LIMIT: usize = 100_000;

fn router() -> Router {
    Router::new()
        .route("/", on_get(|| async { "fine" }))
        .route("/echo", post(|body: Bytes| async { body }))
        // Makes of a half body what a careless handler makes of it.
        .route(
            "/careless",
            post(|request: Request| async {
                match request.into_body().collect().await {
                    Ok(_) => StatusCode::OK.into_response(),
                    Err(_) => StatusCode::BAD_REQUEST.into_response(),
                }
            }),
        )
        .route("/deaf", post(|| async { StatusCode::UNAUTHORIZED }))
}

async fn house() -> House {
    House::open_with(router(), |settings| settings.max_body = LIMIT).await
}

/// A body whose length is not announced.
fn in_pieces(pieces: usize, size: usize) -> Body {
    let pieces = (0..pieces).map(move |_| Ok::<_, Infallible>(Bytes::from(vec![b'x'; size])));
    Body::from_stream(stream::iter(pieces.collect::<Vec<_>>()))
}

fn is_too_large(answer: &Answer) {
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "too_large"));
}

#[tokio::test]
async fn a_body_up_to_the_limit_is_taken() {
    let house = house().await;
    let answer = house.ask(request("POST", "/echo", &[], vec![b'x'; LIMIT].into())).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, LIMIT));
    let answer = house.ask(request("POST", "/echo", &[], in_pieces(10, LIMIT / 10))).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, LIMIT));
    house.close().await;
}

#[tokio::test]
async fn an_announced_body_is_refused_before_it_is_sent() {
    let house = house().await;
    let head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n";
    let answer = house.raw(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{answer}");
    assert!(answer.contains(r#""code":"too_large""#), "{answer}");
    house.close().await;
}

#[tokio::test]
async fn a_body_that_is_not_announced_is_counted() {
    let house = house().await;
    is_too_large(&house.ask(request("POST", "/echo", &[], in_pieces(11, LIMIT / 10))).await);
    house.close().await;
}

#[tokio::test]
async fn too_much_is_told_whatever_the_handler_made_of_it() {
    let house = house().await;
    is_too_large(&house.ask(request("POST", "/careless", &[], in_pieces(11, LIMIT / 10))).await);
    house.close().await;
}

/// A client that sends everything before it listens, as most do, must not find a broken connection instead of the answer.
async fn is_heard_after_sending(path: &str, status: &str) {
    const MUCH: usize = 16 << 20;
    let house = house().await;
    let mut stream = house.connect().await;
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {MUCH}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; MUCH]).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(std::str::from_utf8(&answer).unwrap(), format!("HTTP/1.1 {status}"));
    house.close().await;
}

#[tokio::test]
async fn a_refusal_is_heard_by_a_client_that_sends_first() {
    is_heard_after_sending("/echo", "413").await;
}

#[tokio::test]
async fn an_answer_that_needs_no_body_is_heard_by_a_client_that_sends_first() {
    let house = House::open_with(router(), |settings| settings.max_body = 32 << 20).await;
    let mut stream = house.connect().await;
    stream.write_all(b"POST /deaf HTTP/1.1\r\nHost: x\r\nContent-Length: 16000000\r\n\r\n").await.unwrap();
    stream.write_all(&vec![b'x'; 16_000_000]).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 401");
    house.close().await;
}

fn slow_router() -> Router {
    Router::new()
        .route("/never", on_get(|| async { pending::<()>().await }))
        .route("/echo", post(|body: Bytes| async { body }))
        .route(
            "/patient",
            on_get(|limit: TimeLimit| async move {
                limit.extend(Duration::from_secs(60));
                tokio::time::sleep(Duration::from_millis(500)).await;
                "at last"
            }),
        )
        .route(
            "/stream",
            on_get(|| async {
                let lines = stream::unfold(0, |number| async move {
                    tokio::time::sleep(Duration::from_millis(150)).await;
                    (number < 4).then(|| (Ok::<_, Infallible>(Bytes::from("data: x\n\n")), number + 1))
                });
                ([("content-type", "text/event-stream")], Body::from_stream(lines))
            }),
        )
}

async fn hasty_house() -> House {
    House::open_with(slow_router(), |settings| settings.request_timeout = Duration::from_millis(200)).await
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_given_up() {
    let house = hasty_house().await;
    let mut client = house.client().await;
    let answer = client.ask(get("/never")).await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "timeout"));
    let answer = client.ask(request("POST", "/echo", &[], "again".into())).await;
    assert_eq!(answer.text(), "again");
    house.close().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let house = hasty_house().await;
    let answer = house.raw(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf").await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    house.close().await;
}

#[tokio::test]
async fn a_handler_may_ask_for_more_time() {
    let house = hasty_house().await;
    assert_eq!(house.ask(get("/patient")).await.text(), "at last");
    house.close().await;
}

#[tokio::test]
async fn a_stream_may_take_longer_than_a_request() {
    let house = hasty_house().await;
    assert_eq!(house.ask(get("/stream")).await.text(), "data: x\n\n".repeat(4));
    house.close().await;
}
