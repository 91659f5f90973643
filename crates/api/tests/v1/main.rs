//! `/api/v1` with a real server behind it, asked without a socket between.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod chains;
mod errors;
mod fields;
mod functions;
mod idempotency;
mod launches;
mod pages;
mod people;
mod recurring;
mod sessions;
mod versions;
mod windows;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use saltern_core::access::Rights;
use saltern_core::value::Value as SaltValue;
use saltern_server::Server;
use saltern_server::app::Caller;
use saltern_server::config::{Config, Sources};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// A server, and who asks it.
struct House {
    router: axum::Router,
    caller: Option<Caller>,
    server: Server,
    _dir: TempDir,
}

/// What was answered.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl House {
    /// A server without minions; whoever asks may do everything.
    async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let setting = |key: &str, value: SaltValue| (key.to_owned(), value);
        let overrides = vec![
            setting("data_dir", dir.path().to_str().unwrap().into()),
            setting("interface", "127.0.0.1".into()),
            setting("publish_port", 0.into()),
            setting("ret_port", 0.into()),
            setting("auto_accept", true.into()),
        ];
        let config = Config::load(Sources { overrides, ..Sources::default() }).unwrap();
        let server = saltern_server::serve(config).await.unwrap();
        let router = saltern_api::router(server.app(), None, CancellationToken::new());
        Self { router, caller: Some(Caller::administrator("root", "test")), server, _dir: dir }
    }

    /// The same house, asked by somebody else.
    fn asked_by(&self, caller: Option<Caller>) -> Asked<'_> {
        Asked { router: &self.router, caller }
    }

    fn ask(&self, line: &str) -> Ask<'_> {
        Ask::new(&self.router, self.caller.clone(), line)
    }

    async fn close(self) {
        self.server.stop().await;
    }
}

/// A house as somebody else sees it.
struct Asked<'a> {
    router: &'a axum::Router,
    caller: Option<Caller>,
}

impl Asked<'_> {
    fn ask(&self, line: &str) -> Ask<'_> {
        Ask::new(self.router, self.caller.clone(), line)
    }
}

/// A request that is put together.
struct Ask<'a> {
    router: &'a axum::Router,
    request: Request<Body>,
}

impl<'a> Ask<'a> {
    /// `line` is a method and a path.
    fn new(router: &'a axum::Router, caller: Option<Caller>, line: &str) -> Self {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        if let Some(caller) = caller {
            request.extensions_mut().insert(caller);
        }
        Self { router, request }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.request.headers_mut().append(name, value.parse().unwrap());
        self
    }

    fn json(self, body: &Value) -> Self {
        self.text("application/json", &body.to_string())
    }

    fn text(mut self, content_type: &str, body: &str) -> Self {
        *self.request.body_mut() = Body::from(body.to_owned());
        self.with("content-type", content_type)
    }

    async fn answer(self) -> Answer {
        let answer = self.router.clone().oneshot(self.request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.into()).unwrap();
        Answer { status: parts.status.as_u16(), headers: parts.headers, text }
    }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The body, if it went well.
    #[track_caller]
    fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.json()
    }

    /// Status and code of a problem.
    #[track_caller]
    fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{self:?}");
        assert!(!body["detail"].as_str().unwrap().is_empty() && !body["title"].as_str().unwrap().is_empty());
        (self.status, body["code"].as_str().unwrap().to_owned())
    }
}

/// Somebody who may do nothing.
fn nobody() -> Option<Caller> {
    Some(Caller::with_rights("test", Rights::nobody("eve")))
}
