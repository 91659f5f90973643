//! The API on its control socket, with a real server behind it and the real client before it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod actions;
mod recurring;

use saltern_api::client::{Client, ClientError, Endpoint, EventQuery, JobQuery, KeyVerb, TargetQuery};
use saltern_api::control::{self, ControlSocket};
use saltern_api::shape::{Functions, KeyDecision, MinionChange, RunRequest};
use saltern_core::action::Policy;
use saltern_core::value::Value;
use saltern_server::Server;
use saltern_server::config::{Config, Sources};
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A server without minions, offered on a control socket.
struct House {
    client: Client,
    socket: PathBuf,
    stop: CancellationToken,
    api: JoinHandle<()>,
    server: Server,
    _dir: TempDir,
}

impl House {
    async fn open() -> Self {
        Self::with([]).await
    }

    /// With settings beyond the usual.
    async fn with<const N: usize>(more: [(&str, Value); N]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let setting = |key: &str, value: Value| (key.to_owned(), value);
        let mut overrides = vec![
            setting("data_dir", dir.path().to_str().unwrap().into()),
            setting("interface", "127.0.0.1".into()),
            setting("publish_port", 0.into()),
            setting("ret_port", 0.into()),
        ];
        overrides.extend(more.map(|(key, value)| setting(key, value)));
        let config = Config::load(Sources { overrides, ..Sources::default() }).unwrap();
        let server = saltern_server::serve(config).await.unwrap();
        let socket = dir.path().join(control::FILE_NAME);
        let control = ControlSocket::bind(&socket).await.unwrap();
        let stop = CancellationToken::new();
        let (app, told) = (server.app(), stop.clone());
        let api = tokio::spawn(async move { control.serve(app, told).await.unwrap() });
        Self { client: Client::new(Endpoint::Control(socket.clone())), socket, stop, api, server, _dir: dir }
    }

    /// Sends bytes as they are; gives the answer's status line and body.
    async fn raw(&self, request: &str) -> (String, String) {
        let mut stream = UnixStream::connect(&self.socket).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }

    async fn close(self) {
        self.stop.cancel();
        self.api.await.unwrap();
        self.server.stop().await;
    }
}

fn request(target: &str, fun: &str) -> RunRequest {
    RunRequest {
        target: target.into(),
        tgt_type: "glob".into(),
        delimiter: None,
        fun: Functions::One(fun.into()),
        arg: Vec::new(),
        kwarg: Value::Nil,
        ack: None,
        policy: Policy::default(),
        due: None,
        deadline: None,
        metadata: Value::Nil,
        ret: String::new(),
        in_window: false,
    }
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> (u16, String) {
    match outcome {
        Err(ClientError::Refused { status, problem }) => (status, problem.code),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_new_server_has_nothing_and_says_so() {
    let house = House::open().await;
    let client = &house.client;
    let status = client.status().await.unwrap();
    assert_eq!((status.accepted, status.pending), (0, 0));
    assert_eq!(status.publish_port.port, house.server.publish_address.port());
    assert!(client.minions(None).await.unwrap().minions.is_empty());
    assert!(client.keys().await.unwrap().keys.is_empty());
    assert!(client.jobs(&JobQuery::default()).await.unwrap().jobs.is_empty());
    house.close().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let house = House::open().await;
    let client = &house.client;
    let not_found = (404, "not_found".to_owned());
    assert_eq!(refusal(client.run(&request("*", "test.ping")).await), not_found);
    assert_eq!(refusal(client.job("20261115195631000000").await), not_found);
    assert_eq!(refusal(client.watch("20261115195631000000", None).await), not_found);
    assert_eq!(refusal(client.minion("web1").await), not_found);
    assert_eq!(
        refusal(client.change_minion("web1", &MinionChange { ack: Some(None), ..MinionChange::default() }).await),
        not_found
    );
    assert_eq!(refusal(client.key("web1").await), not_found);
    let decision = KeyDecision { pattern: Some("web*".into()), ..KeyDecision::default() };
    assert_eq!(refusal(client.decide_keys(KeyVerb::Accept, &decision).await), not_found);
    house.close().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_invalid() {
    let house = House::open().await;
    let client = &house.client;
    let invalid = (400, "invalid".to_owned());
    assert_eq!(refusal(client.run(&request("*", "ping")).await), invalid);
    assert_eq!(
        refusal(client.run(&RunRequest { tgt_type: "magic".into(), ..request("*", "test.ping") }).await),
        invalid
    );
    assert_eq!(refusal(client.run(&RunRequest { kwarg: 3.into(), ..request("*", "test.ping") }).await), invalid);
    assert_eq!(refusal(client.job("../../etc/passwd").await), invalid);
    assert_eq!(refusal(client.decide_keys(KeyVerb::Reject, &KeyDecision::default()).await), invalid);
    let target = TargetQuery { tgt: "web(".into(), tgt_type: "pcre".into(), delimiter: None };
    assert_eq!(refusal(client.minions(Some(&target)).await), invalid);
    house.close().await;
}

#[tokio::test]
async fn every_refusal_is_json() {
    let house = House::open().await;
    let ask = |line: &str, rest: &str| format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{rest}\r\n");
    let json = "Content-Type: application/json\r\n";
    for (request, status) in [
        (ask("GET /nowhere", ""), "404"),
        (ask("DELETE /api/v1/jobs", ""), "405"),
        (ask("GET /api/v1/jobs?limit=many", ""), "400"),
        (ask("GET /api/v1/jobs?typo=1", ""), "400"),
        (ask("POST /api/v1/run", "Content-Length: 0\r\n"), "415"),
        (ask("POST /api/v1/run", &format!("{json}Content-Length: 2\r\n")) + "{x", "400"),
        (ask("POST /api/v1/run", &format!("{json}Content-Length: 999999999\r\n")), "413"),
    ] {
        let (line, body) = house.raw(&request).await;
        assert!(line.contains(status), "{request} gave {line}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert!(body["code"].is_string() && body["detail"].is_string() && body["title"].is_string(), "{body}");
        assert_eq!(body["status"].to_string(), status, "{body}");
    }
    house.close().await;
}

#[tokio::test]
async fn the_server_is_healthy() {
    let house = House::open().await;
    let (line, body) = house.raw("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(line.contains("200"), "{line}");
    assert_eq!(body, r#"{"status":"ok"}"#);
    house.close().await;
}

#[tokio::test]
async fn stored_events_end_where_the_log_ends() {
    let house = House::open().await;
    let query = EventQuery { since: Some(0), stored_only: true, ..EventQuery::default() };
    let mut events = house.client.events(&query).await.unwrap();
    while let Some(event) = events.next().await {
        event.unwrap();
    }
    house.close().await;
}

#[tokio::test]
async fn a_stream_without_end_does_not_keep_the_server_from_stopping() {
    let house = House::open().await;
    let mut events = house.client.events(&EventQuery::default()).await.unwrap();
    house.close().await;
    assert!(!matches!(events.next().await, Some(Ok(_))), "nothing was logged");
}

#[tokio::test]
async fn a_server_that_is_gone_is_unreachable() {
    let house = House::open().await;
    let client = house.client.clone();
    house.close().await;
    assert!(matches!(client.status().await, Err(ClientError::Unreachable { .. })));
}
