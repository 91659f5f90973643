//! The line in the log that each request leaves, and what never is in it.

use crate::house::{House, get, request, with};
use axum::body::Body;
use axum::extract::Request;
use axum::routing::{any, get as on_get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use saltern_api::http::{Identified, Identify, RequestId, Who, identified};
use saltern_server::Error;
use serde_json::Value;
use std::future::pending;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// All that is logged in this test's thread, where its server runs too.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn listen() -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber =
            tracing_subscriber::fmt().json().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The fields of the lines about requests.
    fn requests(&self) -> Vec<Value> {
        let lines = self.text();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["fields"]["method"].is_string()).collect()
    }
}

impl Write for Log {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

struct Doorman;

impl Identify for Doorman {
    async fn identify(&self, secret: &str, _: &str) -> Result<Option<Identified>, Error> {
        Ok(secret.ends_with(SECRET).then(|| Identified::new("ann")))
    }
}

const SECRET: &str = "feedfacefeedfacefeedfacefeedfacefeedfacefeedfacefeedfacefeedface";

fn router() -> Router {
    let router = Router::new()
        .route("/", any(|| async { "fine" }))
        .route("/login", post(|Extension(who): Extension<Who>, _: Bytes| async move { who.is("bob") }))
        .route("/ws/{token}", on_get(|| async { "ws" }))
        .route("/id", on_get(|Extension(id): Extension<RequestId>| async move { id.0.to_string() }))
        .route("/never", on_get(|| async { pending::<()>().await }))
        .route("/healthz", on_get(|| async { "ok" }))
        .route(
            "/panic",
            any(|request: Request| async move {
                assert_eq!(request.method(), "BREW", "no coffee");
            }),
        );
    identified(router, Doorman)
}

#[tokio::test]
async fn a_request_leaves_one_line() {
    let (log, _guard) = Log::listen();
    let house = House::open(router()).await;
    let headers = [("x-auth-token", SECRET), ("x-request-id", "build-7")];
    house.ask(request("DELETE", "/?force=yes", &headers, Body::empty())).await;
    house.ask(request("POST", "/login", &[], "password".into())).await;
    house.ask(get("/nowhere")).await;
    house.close().await;
    let lines = log.requests();
    assert_eq!(lines.len(), 3, "{}", log.text());
    let fields = &lines[0]["fields"];
    assert_eq!((&fields["method"], &fields["path"], &fields["status"]), (&"DELETE".into(), &"/".into(), &200.into()));
    assert_eq!(
        (&fields["user"], &fields["peer"], &fields["id"]),
        (&"ann".into(), &"127.0.0.1".into(), &"build-7".into())
    );
    assert!(fields["ms"].is_u64(), "{fields}");
    assert_eq!(lines[1]["fields"]["user"], "bob");
    assert_eq!((&lines[2]["fields"]["status"], &lines[2]["fields"]["user"]), (&404.into(), &"".into()));
}

#[tokio::test]
async fn no_secret_is_logged_wherever_it_came() {
    let (log, _guard) = Log::listen();
    let house = House::open(router()).await;
    let bearer = format!("Bearer {SECRET}");
    let cookie = format!("session_id={SECRET}");
    house.ask(with("/", &[("x-auth-token", SECRET)])).await;
    house.ask(with("/", &[("authorization", &bearer)])).await;
    house.ask(with("/", &[("cookie", &cookie)])).await;
    house.ask(with("/panic", &[("x-auth-token", SECRET)])).await;
    house
        .ask(request("POST", "/", &[("cookie", &cookie), ("origin", "https://evil.example.org")], Body::empty()))
        .await;
    house.ask(get(&format!("/?token={SECRET}"))).await;
    house.ask(get(&format!("/ws/{SECRET}"))).await;
    house.ask(get(&format!("/nowhere/{SECRET}/there"))).await;
    house.ask(get("/ws/hunter2")).await;
    house.ask(request("POST", "/login", &[], format!("password=hunter2&token={SECRET}").into())).await;
    house.raw(format!("GET / HTTP/1.1\r\nX-Auth-Token: {SECRET}\r\nBad Name: {SECRET}\r\n\r\n").as_bytes()).await;
    house.close().await;
    let text = log.text();
    assert_eq!(log.requests().len(), 10, "{text}");
    assert!(!text.contains(&SECRET[..16]) && !text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_panic_is_logged_with_the_requests_id() {
    let (log, _guard) = Log::listen();
    let house = House::open(router()).await;
    house.ask(with("/panic", &[("x-request-id", "build-8")])).await;
    house.close().await;
    let text = log.text();
    let line = text.lines().find(|line| line.contains("a handler panicked")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("no coffee") && line.contains("build-8"), "{line}");
    assert_eq!(log.requests()[0]["level"], "WARN");
}

#[tokio::test]
async fn a_client_that_leaves_early_leaves_a_line() {
    let (log, _guard) = Log::listen();
    let house = House::open(router()).await;
    let mut stream = house.connect().await;
    stream.write_all(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    drop(stream);
    let left = || async { log.text().contains("a client left before its answer") };
    saltern_testkit::wait::until("the line", Duration::from_secs(10), left).await;
    assert_eq!(log.requests()[0]["fields"]["path"], "/never");
    house.close().await;
}

#[tokio::test]
async fn probes_are_not_worth_a_line_for_people() {
    let (log, _guard) = Log::listen();
    let house = House::open(router()).await;
    house.ask(get("/healthz")).await;
    house.close().await;
    assert_eq!(log.requests()[0]["level"], "DEBUG");
}

#[tokio::test]
async fn the_answer_carries_the_id_the_handler_saw() {
    let house = House::open(router()).await;
    let answer = house.ask(with("/id", &[("x-request-id", "build-9")])).await;
    assert_eq!((answer.text(), answer.header("x-request-id")), ("build-9", "build-9"));
    for id in ["", "has spaces", "quote\"", &"x".repeat(65)] {
        let answer = house.ask(with("/id", &[("x-request-id", id)])).await;
        assert_eq!(answer.text(), answer.header("x-request-id"));
        assert!(!answer.text().is_empty() && answer.text() != id, "{id:?} became {:?}", answer.text());
    }
    let (first, second) = (house.ask(get("/id")).await, house.ask(get("/nowhere")).await);
    assert!(!second.header("x-request-id").is_empty());
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
    house.close().await;
}
