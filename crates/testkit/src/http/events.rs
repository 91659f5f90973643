//! Server-sent events, read as they come.

use std::time::Duration;

use serde_json::Value;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::error::Elapsed;

use super::body::Body;
use super::{Http, PATIENCE, Reply, Request};

/// An open stream of events.
#[derive(Debug)]
pub struct Events {
    /// Status and headers of the reply; no body
    pub head: Reply,
    /// Read by a task of its own: whoever stops waiting for a line loses none of it
    lines: mpsc::UnboundedReceiver<String>,
}

/// One event of the server's bus.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its tag
    pub tag: String,
    /// Its data
    pub data: Value,
    /// The lines it was made of, without the blank one
    pub fields: Vec<String>,
}

impl Events {
    /// Opens a stream; whatever is not 200 is a reply like any other.
    pub async fn open(http: &Http, request: &Request) -> Result<Self, Reply> {
        let (mut connection, mut head) = match tokio::time::timeout(PATIENCE, http.open(request)).await {
            Ok(opened) => opened,
            Err(_) => panic!("the stream was not answered within {PATIENCE:?}"),
        };
        let mut body = Body::of(&head, "GET");
        if head.status == 200 {
            let (sender, lines) = mpsc::unbounded_channel();
            tokio::spawn(read_lines(connection, body, sender));
            return Ok(Self { head, lines });
        }
        while let Some(bytes) = body.next(&mut connection).await {
            head.body.extend_from_slice(&bytes);
        }
        Err(head)
    }

    /// The next line; nothing when the server has ended the stream.
    pub async fn line(&mut self) -> Option<String> {
        match self.line_within(PATIENCE).await {
            Ok(line) => line,
            Err(_) => panic!("nothing came on the stream within {PATIENCE:?}"),
        }
    }

    /// The next line if it comes within this time.
    pub async fn line_within(&mut self, patience: Duration) -> Result<Option<String>, Elapsed> {
        tokio::time::timeout(patience, self.lines.recv()).await
    }

    /// The next event if it comes within this time.
    pub async fn next_within(&mut self, patience: Duration) -> Result<Option<Event>, Elapsed> {
        tokio::time::timeout(patience, self.next()).await
    }

    /// The next event, comments and `retry` left out; nothing when the server has ended the stream.
    pub async fn next(&mut self) -> Option<Event> {
        let mut fields = Vec::new();
        loop {
            let line = self.line().await?;
            if line.starts_with("tag: ") || line.starts_with("data: ") {
                fields.push(line);
            } else if line.is_empty() && !fields.is_empty() {
                return Some(event(fields));
            }
        }
    }

    /// The next event of which this is true; fails the test when the stream ends before.
    pub async fn until(&mut self, what: &str, mut wanted: impl FnMut(&Event) -> bool) -> Event {
        loop {
            match self.next().await {
                Some(event) if wanted(&event) => return event,
                Some(_) => {}
                None => panic!("the stream ended before {what}"),
            }
        }
    }
}

async fn read_lines(mut connection: BufReader<TcpStream>, mut body: Body, lines: mpsc::UnboundedSender<String>) {
    let mut rest: Vec<u8> = Vec::new();
    while let Some(bytes) = body.next(&mut connection).await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            if lines.send(String::from_utf8_lossy(&line[..end]).into_owned()).is_err() {
                return;
            }
        }
    }
}

fn event(fields: Vec<String>) -> Event {
    let data = fields.iter().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
    let mut body: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("no JSON ({error}): {data}"));
    let tag = body["tag"].as_str().unwrap_or_else(|| panic!("an event without a tag: {data}")).to_owned();
    Event { tag, data: body["data"].take(), fields }
}
