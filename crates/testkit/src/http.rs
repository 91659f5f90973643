//! A plain HTTP/1.1 client that hides nothing: requests are sent as they are written, replies are given as they came.
//!
//! One connection per request, as scripts do it. Streams that do not end are read piece by piece: server-sent events by
//! [`Events`], websockets by [`WebSocket`]. Whatever is no HTTP fails the test.

mod body;
mod events;
mod websocket;

pub use events::{Event, Events};
pub use websocket::{Message, WebSocket};

use std::net::SocketAddr;
use std::time::Duration;

use body::Body;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// How long a reply may take. Never waited for when things go well.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A server that is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http {
    server: SocketAddr,
}

/// What is sent.
#[derive(Debug, Clone, Default)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    chunked: bool,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code
    pub status: u16,
    /// The words after it
    pub reason: String,
    /// All headers, in the order they came
    pub headers: Vec<(String, String)>,
    /// The body, chunks put together
    pub body: Vec<u8>,
}

impl Http {
    /// The server on this address.
    pub fn new(server: SocketAddr) -> Self {
        Self { server }
    }

    /// The server of a URL of the form `http://address:port`.
    pub fn at(url: &str) -> Self {
        let address = url.strip_prefix("http://").and_then(|address| address.parse().ok());
        Self::new(address.unwrap_or_else(|| panic!("no URL of plain HTTP with an address: {url}")))
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.server
    }

    /// `http://address`, for programs that want a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.server)
    }

    /// Whether anybody listens there.
    pub async fn is_up(&self) -> bool {
        TcpStream::connect(self.server).await.is_ok()
    }

    /// Sends a request and gives the whole reply.
    pub async fn send(&self, request: &Request) -> Reply {
        match self.send_within(PATIENCE, request).await {
            Some(reply) => reply,
            None => panic!("{} {} was not answered within {PATIENCE:?}", request.method, request.path),
        }
    }

    /// Sends a request and gives the whole reply if it comes within this time.
    pub async fn send_within(&self, patience: Duration, request: &Request) -> Option<Reply> {
        let answer = async {
            let (mut connection, mut head) = self.open(request).await;
            let mut body = Body::of(&head, &request.method);
            while let Some(bytes) = body.next(&mut connection).await {
                head.body.extend_from_slice(&bytes);
            }
            head
        };
        tokio::time::timeout(patience, answer).await.ok()
    }

    /// Opens a connection, sends the request and reads the reply's head.
    async fn open(&self, request: &Request) -> (BufReader<TcpStream>, Reply) {
        let connected = TcpStream::connect(self.server).await;
        let mut socket = connected.unwrap_or_else(|error| panic!("cannot connect to {}: {error}", self.server));
        let bytes = request.bytes(self.server);
        // A server may refuse what it has not read to the end: then the reply counts, not the broken pipe.
        let _ = socket.write_all(&bytes).await;
        let mut connection = BufReader::new(socket);
        let head = read_head(&mut connection).await;
        (connection, head)
    }
}

impl Request {
    /// A request without body.
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), ..Self::default() }
    }

    /// `GET path`.
    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// `POST path` with a JSON body.
    pub fn post(path: &str, body: &Value) -> Self {
        Self::new("POST", path).header("Content-Type", "application/json").body(body.to_string())
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With `X-Auth-Token`.
    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.header("X-Auth-Token", token)
    }

    /// With this body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// With the body in chunks and without `Content-Length`.
    #[must_use]
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    fn bytes(&self, server: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {server}\r\n", self.method, self.path);
        let has = |name: &str| self.headers.iter().any(|(found, _)| found.eq_ignore_ascii_case(name));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !has("Connection") {
            head += "Connection: close\r\n";
        }
        let mut body = self.body.clone();
        if self.chunked {
            head += "Transfer-Encoding: chunked\r\n";
            let middle = body.len() / 2;
            let chunks = [&body[..middle], &body[middle..]].into_iter().filter(|chunk| !chunk.is_empty());
            let chunks =
                chunks.flat_map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
            body = chunks.chain(*b"0\r\n\r\n").collect();
        } else if (!body.is_empty() || self.method == "POST") && !has("Content-Length") {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        [head.as_bytes(), &body].concat()
    }
}

impl Reply {
    /// The first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).into_iter().next()
    }

    /// All headers of this name.
    pub fn headers_named(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; fails the test where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{} {}: no JSON ({error}): {}", self.status, self.reason, self.text()))
    }
}

/// Reads the status line and the headers.
async fn read_head(connection: &mut BufReader<TcpStream>) -> Reply {
    let first = read_line(connection).await.unwrap_or_else(|| panic!("the server closed without an answer"));
    let mut parts = first.splitn(3, ' ');
    let version = parts.next().unwrap_or_default();
    assert!(version.starts_with("HTTP/1."), "no HTTP: {first:?}");
    let status = parts.next().and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {first:?}"));
    let reason = parts.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    while let Some(line) = read_line(connection).await.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no header: {line:?}"));
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Reply { status, reason, headers, body: Vec::new() }
}

/// One line without its end; nothing when the connection is closed.
async fn read_line(connection: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = Vec::new();
    let read = connection.read_until(b'\n', &mut line).await;
    if read.is_ok_and(|count| count > 0) {
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        return Some(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    /// A server that says this to whoever connects, and gives what it was told.
    async fn say(answer: &'static [u8]) -> (Http, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = Http::new(listener.local_addr().unwrap());
        let heard = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut heard = vec![0; 4096];
            let count = socket.read(&mut heard).await.unwrap();
            socket.write_all(answer).await.unwrap();
            String::from_utf8_lossy(&heard[..count]).into_owned()
        });
        (http, heard)
    }

    #[tokio::test]
    async fn a_reply_is_given_as_it_came() {
        let (http, heard) =
            say(b"HTTP/1.1 202 Accepted\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 8\r\n\r\n{\"a\": 1}").await;
        let reply = http.send(&Request::post("/x", &json!([1])).token("t")).await;
        assert_eq!((reply.status, reply.reason.as_str(), reply.json()), (202, "Accepted", json!({ "a": 1 })));
        assert_eq!(reply.headers_named("X-A"), ["1", "2"]);
        let heard = heard.await.unwrap();
        assert!(heard.starts_with("POST /x HTTP/1.1\r\nHost: ") && heard.ends_with("\r\n\r\n[1]"), "{heard}");
        assert!(heard.contains("Content-Length: 3\r\n") && heard.contains("X-Auth-Token: t\r\n"), "{heard}");
    }

    #[tokio::test]
    async fn chunks_are_put_together_and_sent() {
        let (http, heard) =
            say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n").await;
        let reply = http.send(&Request::new("POST", "/").body("four").chunked()).await;
        assert_eq!(reply.text(), "abc");
        let heard = heard.await.unwrap();
        assert!(
            heard.ends_with("\r\n\r\n2\r\nfo\r\n2\r\nur\r\n0\r\n\r\n") && !heard.contains("Content-Length"),
            "{heard}"
        );
    }

    #[tokio::test]
    async fn an_answer_to_head_has_no_body() {
        let (http, _heard) = say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
        assert_eq!(http.send(&Request::new("HEAD", "/")).await.body, b"");
    }

    #[tokio::test]
    async fn events_are_read_line_by_line_and_the_end_is_noticed() {
        let stream = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
            b\r\nretry: 400\n\r\n1b\r\ntag: a/b\ndata: {\"data\": {}\r\nd\r\n,\"tag\":\"a/b\"}\r\n2\r\n\n\n\r\ne\r\n: keepalive\n\nx\r\n0\r\n\r\n";
        let (http, _heard) = say(stream).await;
        let mut events = Events::open(&http, &Request::get("/events")).await.unwrap();
        assert_eq!(events.line().await.as_deref(), Some("retry: 400"));
        let event = events.next().await.unwrap();
        assert_eq!((event.tag.as_str(), &event.data, event.fields.len()), ("a/b", &json!({}), 2));
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn a_stream_that_is_refused_is_a_reply() {
        let (http, _heard) = say(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await;
        assert_eq!(Events::open(&http, &Request::get("/events")).await.unwrap_err().status, 401);
    }
}
