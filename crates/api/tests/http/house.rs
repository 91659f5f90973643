//! A listener that serves a test's router, and clients for it.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use saltern_api::http::{HttpListener, HttpSettings};
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than anything takes that works.
const TOO_LONG: Duration = Duration::from_secs(20);

pub(crate) async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TOO_LONG, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what} took longer than {TOO_LONG:?}"),
    }
}

pub(crate) struct House {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl House {
    /// With the usual settings.
    pub(crate) async fn open(router: Router) -> Self {
        Self::open_with(router, |_| {}).await
    }

    pub(crate) async fn open_with(router: Router, change: impl FnOnce(&mut HttpSettings)) -> Self {
        Self::open_by(|_| router, change).await
    }

    /// With a router that knows when the server stops.
    pub(crate) async fn open_by(
        router: impl FnOnce(CancellationToken) -> Router,
        change: impl FnOnce(&mut HttpSettings),
    ) -> Self {
        let mut settings = HttpSettings::new(([127, 0, 0, 1], 0).into());
        change(&mut settings);
        let listener = HttpListener::bind(settings).unwrap();
        let address = listener.local_addr();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(router(stop.clone()), stop.clone()));
        Self { address, stop, serving }
    }

    /// A connection without any HTTP.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection for many requests.
    pub(crate) async fn client(&self) -> Client {
        Client::over(self.connect().await).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        self.client().await.ask(request).await
    }

    /// Sends bytes and reads until the server closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // A server that refuses need not read to the end.
        let _ = stream.write_all(bytes).await;
        read_to_end(&mut stream).await
    }

    /// Waits for the end of a server that was stopped.
    pub(crate) async fn ended(self) {
        in_time("the end of the listener", self.serving).await.unwrap();
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.ended().await;
    }
}

/// What comes until the server closes, or the connection breaks.
pub(crate) async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut got = Vec::new();
    let _ = in_time("reading to the end", stream.read_to_end(&mut got)).await;
    String::from_utf8_lossy(&got).into_owned()
}

pub(crate) struct Client(SendRequest<Body>);

impl Client {
    pub(crate) async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, connection) = in_time("a connection", handshake(TokioIo::new(stream))).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    pub(crate) async fn ask(&mut self, request: Request<Body>) -> Answer {
        let (parts, body) = self.begin(request).await.into_parts();
        let body = in_time("the body of an answer", body.collect()).await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// An answer whose body is still to come.
    pub(crate) async fn begin(&mut self, mut request: Request<Body>) -> hyper::Response<Incoming> {
        request.headers_mut().entry("host").or_insert_with(|| "salt.example.org".parse().unwrap());
        in_time("a connection that is ready", self.0.ready()).await.unwrap();
        in_time("an answer", self.0.send_request(request)).await.unwrap()
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The code of a problem.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        body["code"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub(crate) fn get(path: &str) -> Request<Body> {
    with(path, &[])
}

pub(crate) fn with(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    request("GET", path, headers, Body::empty())
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Request<Body> {
    let mut builder = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(body).unwrap()
}
