//! The client over TCP and TLS, before small handlers and hostile servers: what it sends, and what it says when things fail.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use saltern_api::client::{Client, ClientError, Endpoint, ServerUrl};
use saltern_api::http::{HttpListener, HttpSettings, TlsFiles};
use saltern_api::shape::{Functions, RunRequest};
use saltern_core::action::Policy;
use saltern_core::value::Value;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A listener with a test's router; stops when dropped.
struct House {
    address: SocketAddr,
    _stop: DropGuard,
}

impl House {
    fn open(router: Router, tls: Option<TlsFiles>) -> Self {
        let settings = HttpSettings { tls, ..HttpSettings::new(([127, 0, 0, 1], 0).into()) };
        let listener = HttpListener::bind(settings).unwrap();
        let (address, stop) = (listener.local_addr(), CancellationToken::new());
        tokio::spawn(listener.serve(router, stop.clone()));
        Self { address, _stop: stop.drop_guard() }
    }

    fn client(&self, scheme: &str, prefix: &str, ca_file: Option<PathBuf>) -> Client {
        let url = ServerUrl::parse(&format!("{scheme}://localhost:{}{prefix}", self.address.port())).unwrap();
        Client::new(Endpoint::Remote { url, token: Some("0123abcd".into()), ca_file })
    }
}

/// Whoever asks with the right token; as the API tells it.
async fn me(headers: HeaderMap, uri: Uri) -> impl IntoResponse {
    if headers.get("x-auth-token").is_none_or(|token| token != "0123abcd") {
        return (StatusCode::UNAUTHORIZED, Json(json!({}))).into_response();
    }
    let (name, host) = (uri.path().to_owned(), headers["host"].to_str().unwrap().to_owned());
    let me = json!({
        "name": name, "org": host, "server_admin": false, "org_admin": false, "scope": "all",
        "user": null, "auth": null, "expires": null,
    });
    Json(me).into_response()
}

fn router() -> Router {
    Router::new().route("/tools/salt/api/v1/users/me", get(me)).route("/api/v1/users/me", get(me))
}

/// A certificate for these names, believed by whoever is given its file.
fn certificate(dir: &Path, name: &str) -> TlsFiles {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let files = TlsFiles { cert: dir.join("cert.pem"), key: dir.join("key.pem") };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

fn secure_house(name: &str) -> (House, PathBuf, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let files = certificate(dir.path(), name);
    let cert = files.cert.clone();
    (House::open(router(), Some(files)), cert, dir)
}

#[tokio::test]
async fn the_token_goes_along_and_the_prefix_is_kept() {
    let house = House::open(router(), None);
    let me = house.client("http", "/tools/salt/", None).me().await.unwrap();
    assert_eq!(me.name, "/tools/salt/api/v1/users/me");
    assert_eq!(me.org, format!("localhost:{}", house.address.port()));
}

#[tokio::test]
async fn a_private_authority_is_believed_when_it_is_named() {
    let (house, cert, _dir) = secure_house("localhost");
    assert_eq!(house.client("https", "", Some(cert)).me().await.unwrap().name, "/api/v1/users/me");
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused_with_the_way_out() {
    let (house, _, _dir) = secure_house("localhost");
    let error = house.client("https", "", None).me().await.unwrap_err();
    assert!(matches!(error, ClientError::Untrusted { .. }), "{error}");
    assert!(error.hint().contains("--ca-file") && !error.to_string().contains("0123abcd"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (house, cert, _dir) = secure_house("salt.example.org");
    let error = house.client("https", "", Some(cert)).me().await.unwrap_err();
    assert!(error.to_string().ends_with("it is not for localhost"), "{error}");
}

#[tokio::test]
async fn tls_where_there_is_none_is_told() {
    let house = House::open(router(), None);
    let error = house.client("https", "", None).me().await.unwrap_err();
    assert!(matches!(error, ClientError::NoTls { .. }), "{error}");
    assert!(error.hint().contains("http://"), "{error}");
}

#[tokio::test]
async fn who_is_not_known_is_told_to_log_in() {
    let house = House::open(router(), None);
    let url = ServerUrl::parse(&format!("http://{}", house.address)).unwrap();
    let stranger = Client::new(Endpoint::Remote { url: url.clone(), token: Some("ffff".into()), ca_file: None });
    let error = stranger.me().await.unwrap_err();
    assert!(matches!(error, ClientError::NotLoggedIn { .. }), "{error}");
    assert_eq!(error.hint(), format!("`saltern login {url}`"));
}

fn request() -> RunRequest {
    RunRequest {
        target: Value::from("*"),
        tgt_type: "glob".into(),
        delimiter: None,
        fun: Functions::One("test.ping".into()),
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

/// Reads a request up to the end of its head and body; gives its idempotency key.
async fn key_of(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains("test.ping") {
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "the request ended early: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    let line = text.lines().find_map(|line| line.strip_prefix("idempotency-key: "));
    line.unwrap_or_else(|| panic!("no key: {text}")).to_owned()
}

#[tokio::test]
async fn a_job_whose_answer_got_lost_is_asked_for_again_under_the_same_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = ServerUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        let lost = key_of(&mut first).await;
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        let repeated = key_of(&mut second).await;
        let body = r#"{"jid":"20261115195631000000","action":7,"minions":["web1"],"missing":[]}"#;
        let answer = format!("HTTP/1.1 202 Accepted\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        second.write_all(answer.as_bytes()).await.unwrap();
        (lost, repeated)
    });
    let client = Client::new(Endpoint::Remote { url, token: None, ca_file: None });
    assert_eq!(client.run(&request()).await.unwrap().action, 7);
    let (lost, repeated) = server.await.unwrap();
    assert_eq!(lost, repeated);
}

#[tokio::test]
async fn a_job_is_asked_for_until_the_first_request_has_been_carried_out() {
    let seen = Arc::new(Mutex::new(0));
    let answers = Arc::clone(&seen);
    // The first connection breaks, the second comes while the first request is still carried out.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = ServerUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let run = post(move || async move {
        let mut count = answers.lock().unwrap();
        *count += 1;
        match *count {
            1 => {
                let problem = json!({
                    "type": "about:blank", "title": "Conflict", "status": 409, "detail": "x", "code": "in_progress",
                });
                (StatusCode::CONFLICT, Json(problem))
            }
            _ => (StatusCode::ACCEPTED, Json(json!({"jid": null, "action": 7, "minions": [], "missing": []}))),
        }
    });
    tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        key_of(&mut first).await;
        drop(first);
        axum::serve(listener, Router::new().route("/api/v1/run", run)).await.unwrap();
    });
    let client = Client::new(Endpoint::Remote { url, token: None, ca_file: None });
    assert_eq!(client.run(&request()).await.unwrap().action, 7);
    assert_eq!(*seen.lock().unwrap(), 2);
}

#[tokio::test]
async fn a_server_that_is_gone_for_good_is_told_as_a_lost_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = ServerUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        // No further connection can be made once the first one breaks.
        drop(listener);
        key_of(&mut first).await;
    });
    let client = Client::new(Endpoint::Remote { url, token: None, ca_file: None });
    assert!(matches!(client.run(&request()).await, Err(ClientError::Lost(_))));
}
