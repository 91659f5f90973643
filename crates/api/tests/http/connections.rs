//! How many connections there are, and how long one may do nothing.

use crate::house::{House, get, in_time, read_to_end};
use axum::Router;
use axum::extract::{Path, Request};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get as on_get;
use hyper_util::rt::TokioIo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

fn router() -> Router {
    Router::new().route("/", on_get(|| async { "fine" }))
}

async fn hasty_house() -> House {
    House::open_with(router(), |settings| settings.header_timeout = Duration::from_millis(200)).await
}

#[tokio::test]
async fn headers_that_do_not_end_are_cut_off() {
    let house = hasty_house().await;
    let mut stream = house.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
    let answer = read_to_end(&mut stream).await;
    assert!(!answer.contains("200"), "{answer}");
    house.close().await;
}

#[tokio::test]
async fn headers_that_drip_are_cut_off() {
    let house = hasty_house().await;
    let (mut reader, mut writer) = house.connect().await.into_split();
    let drip = async {
        writer.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
        // Never silent for as long as the limit is.
        while writer.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    in_time("the cut", async {
        tokio::select! {
            answer = read_to_end(&mut reader) => assert!(!answer.contains("200"), "{answer}"),
            () = drip => {}
        }
    })
    .await;
    house.close().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let house = hasty_house().await;
    assert_eq!(read_to_end(&mut house.connect().await).await, "");
    house.close().await;
}

#[tokio::test]
async fn a_connection_that_is_kept_but_not_used_is_closed() {
    let house = hasty_house().await;
    let answer = house.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("fine"), "{answer}");
    house.close().await;
}

#[tokio::test]
async fn a_connection_takes_many_requests() {
    let house = House::open(router()).await;
    let mut client = house.client().await;
    for _ in 0..3 {
        assert_eq!(client.ask(get("/")).await.text(), "fine");
    }
    house.close().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let router = Router::new()
        .route("/{name}", on_get(move |Path(name): Path<String>| async move { note.lock().unwrap().push(name) }));
    let house = House::open_with(router, |settings| settings.max_connections = 1).await;
    let mut first = house.client().await;
    first.ask(get("/first")).await;
    let mut others = Vec::new();
    for _ in 0..10 {
        let mut stream = house.connect().await;
        stream.write_all(b"GET /other HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        others.push(stream);
    }
    for _ in 0..100 {
        first.ask(get("/first")).await;
    }
    assert!(!seen.lock().unwrap().iter().any(|name| name == "other"), "somebody was let in beyond the limit");
    drop(first);
    for mut stream in others {
        assert!(read_to_end(&mut stream).await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(seen.lock().unwrap().len(), 111);
    house.close().await;
}

#[tokio::test]
async fn a_connection_that_was_upgraded_keeps_its_place_until_it_is_gone() {
    let is_asked = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&is_asked);
    let router = Router::new()
        .route("/upgrade", on_get(echo_upgraded))
        .route("/", on_get(move || async move { note.store(true, Ordering::Relaxed) }));
    let house = House::open_with(router, |settings| settings.max_connections = 1).await;
    let mut upgraded = BufReader::new(house.connect().await);
    let ask = b"GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: test\r\n\r\n";
    upgraded.write_all(ask).await.unwrap();
    while next_line(&mut upgraded).await != "\r\n" {}
    let mut second = house.connect().await;
    second.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    for _ in 0..100 {
        upgraded.write_all(b"hello\n").await.unwrap();
        assert_eq!(next_line(&mut upgraded).await, "hello\n");
    }
    assert!(!is_asked.load(Ordering::Relaxed), "the upgraded connection gave up its place");
    drop(upgraded);
    assert!(read_to_end(&mut second).await.starts_with("HTTP/1.1 200"));
    house.close().await;
}

async fn echo_upgraded(request: Request) -> impl IntoResponse {
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async {
        let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgrade.await.unwrap()));
        tokio::io::copy(&mut reader, &mut writer).await
    });
    (StatusCode::SWITCHING_PROTOCOLS, [("connection", "upgrade"), ("upgrade", "test")])
}

async fn next_line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    in_time("a line", stream.read_line(&mut line)).await.unwrap();
    line
}
