//! Requests that are none: they are answered 4xx or cut off, and the server goes on.

use crate::house::{House, get};
use axum::Router;
use axum::routing::{any, get as on_get};

async fn house() -> House {
    let router = Router::new().route("/", on_get(|| async { "fine" })).route("/any/{*rest}", any(|| async { "any" }));
    House::open(router).await
}

async fn is_refused(house: &House, bytes: &[u8]) {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
    let answer = house.raw(bytes).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{shown:?} gave {answer:?}");
    assert_eq!(house.ask(get("/")).await.text(), "fine", "after {shown:?}");
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    let house = house().await;
    for bytes in [
        b"\xff\xfe\x00\x01 / HTTP/1.1\r\n\r\n".as_slice(),
        b"GET /\xff\xfe\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nBad Name: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET http://[::bad/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ] {
        is_refused(&house, bytes).await;
    }
    house.close().await;
}

#[tokio::test]
async fn huge_headers_are_refused() {
    let house = house().await;
    let line = "GET / HTTP/1.1\r\nHost: x\r\n";
    is_refused(&house, format!("{line}X: {}\r\n\r\n", "a".repeat(200_000)).as_bytes()).await;
    is_refused(&house, format!("{line}{}\r\n", "X: a\r\n".repeat(1000)).as_bytes()).await;
    is_refused(&house, format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(200_000)).as_bytes()).await;
    house.close().await;
}

#[tokio::test]
async fn odd_bytes_in_headers_and_paths_make_nothing_panic() {
    let house = house().await;
    for bytes in [
        b"GET /any/%ff%fe%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".as_slice(),
        b"GET /any/x?%ff=%00&token=\xc3\xa4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /any/x HTTP/1.1\r\nHost: \xff\r\nCookie: session_id=\xff\xfe\r\nX-Auth-Token: \xff\r\nConnection: close\r\n\r\n",
        b"GET /any/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\nX-Request-Id: \xff\r\nOrigin: \xff\r\nConnection: close\r\n\r\n",
        b"POST /any/x HTTP/1.1\r\nHost: x\r\nAccept-Encoding: \xff\r\nContent-Type: \xff\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ] {
        let answer = house.raw(bytes).await;
        let shown = String::from_utf8_lossy(bytes);
        assert!(answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 4"), "{shown:?} gave {answer:?}");
    }
    house.close().await;
}
