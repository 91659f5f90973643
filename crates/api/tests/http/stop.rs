//! The stop: what is in hand is finished, what has no end is ended, nobody new is let in.

use crate::house::{House, get, in_time, read_to_end};
use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::get as on_get;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::Notify;

#[tokio::test]
async fn a_request_in_hand_is_answered() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&begun), Arc::clone(&go_on));
    let router = Router::new().route(
        "/",
        on_get(move || async move {
            tell.notify_one();
            wait.notified().await;
            "done"
        }),
    );
    let house = House::open(router).await;
    let mut client = house.client().await;
    let ask = async { client.ask(get("/")).await };
    let stop = async {
        begun.notified().await;
        house.stop.cancel();
        // The listener is closed by the time nobody can connect any more.
        while TcpStream::connect(house.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        go_on.notify_one();
    };
    let (answer, ()) = in_time("the answer", async { tokio::join!(ask, stop) }).await;
    assert_eq!((answer.status, answer.text()), (StatusCode::OK, "done"));
    house.ended().await;
}

#[tokio::test]
async fn a_stream_without_end_is_ended() {
    let router = Router::new().route(
        "/",
        on_get(|| async {
            let first = stream::once(async { Ok::<_, Infallible>(Bytes::from("data: x\n\n")) });
            let lines = futures_util::StreamExt::chain(first, stream::pending());
            ([("content-type", "text/event-stream")], Body::from_stream(lines))
        }),
    );
    let house = House::open(router).await;
    let mut client = house.client().await;
    let mut body = client.begin(get("/")).await.into_body();
    let first = in_time("the first event", body.frame()).await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "data: x\n\n");
    house.stop.cancel();
    // A whole body: the end was told, the connection was not broken.
    assert_eq!(in_time("the end of the stream", body.collect()).await.unwrap().to_bytes(), "");
    house.ended().await;
}

#[tokio::test]
async fn connections_without_a_request_are_closed() {
    let house = House::open(Router::new().route("/", on_get(|| async { "fine" }))).await;
    let mut used = house.client().await;
    used.ask(get("/")).await;
    let mut fresh = house.connect().await;
    // The answer to a second connection means that the first was accepted.
    house.ask(get("/")).await;
    house.stop.cancel();
    assert_eq!(read_to_end(&mut fresh).await, "");
    house.ended().await;
}

#[tokio::test]
async fn a_client_that_stops_in_the_middle_of_a_request_does_not_keep_the_server() {
    let house = House::open(Router::new().route("/", on_get(|| async { "fine" }))).await;
    let mut half = house.connect().await;
    tokio::io::AsyncWriteExt::write_all(&mut half, b"GET / HT").await.unwrap();
    house.ask(get("/")).await;
    let started = std::time::Instant::now();
    house.close().await;
    assert!(started.elapsed().as_secs() < 15, "{:?}", started.elapsed());
}
