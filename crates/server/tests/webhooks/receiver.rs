//! A receiver of webhooks in the hands of a test: it decides what each request is answered, and hears of each.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Longer than anything here takes, on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What a receiver does with a request.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Status(u16),
    /// It says nothing, for ever
    Silence,
}

pub(crate) const OK: Answer = Answer::Status(204);

/// A request that has come.
pub(crate) struct Received {
    pub(crate) at: Instant,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

type Mind = Arc<Mutex<Box<dyn FnMut(&Received) -> Answer + Send>>>;

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    mind: Mind,
    heard: mpsc::UnboundedReceiver<Received>,
}

impl Received {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn number(&self) -> i64 {
        self.header("saltern-event").parse().unwrap()
    }

    pub(crate) fn tag(&self) -> String {
        self.json()["tag"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

impl Receiver {
    /// A receiver that takes everything.
    pub(crate) async fn start() -> Self {
        Self::answering(|_| OK).await
    }

    /// A receiver that answers like this.
    pub(crate) async fn answering(mind: impl FnMut(&Received) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mind: Mind = Arc::new(Mutex::new(Box::new(mind)));
        let (told, heard) = mpsc::unbounded_channel();
        tokio::spawn(accept(listener, mind.clone(), told));
        Self { address, mind, heard }
    }

    /// From now on it answers like this.
    pub(crate) fn change_mind(&self, mind: impl FnMut(&Received) -> Answer + Send + 'static) {
        *self.mind.lock().unwrap() = Box::new(mind);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/in", self.address)
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Received {
        tokio::time::timeout(LONG, self.heard.recv()).await.expect("a request arrives").unwrap()
    }

    /// The tags of the next requests.
    pub(crate) async fn tags(&mut self, count: usize) -> Vec<String> {
        let mut tags = Vec::new();
        for _ in 0..count {
            tags.push(self.next().await.tag());
        }
        tags
    }

    /// Whether every request was looked at.
    pub(crate) fn is_idle(&self) -> bool {
        self.heard.is_empty()
    }
}

async fn accept(listener: TcpListener, mind: Mind, told: mpsc::UnboundedSender<Received>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (mind, told) = (mind.clone(), told.clone());
        let service = service_fn(move |request| answer(request, mind.clone(), told.clone()));
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    mind: Mind,
    told: mpsc::UnboundedSender<Received>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    assert_eq!(request.method(), "POST");
    let (parts, body) = request.into_parts();
    let received = Received {
        at: Instant::now(),
        path: parts.uri.to_string(),
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes(),
    };
    let answer = mind.lock().unwrap()(&received);
    let _ = told.send(received);
    match answer {
        Answer::Status(status) => {
            let mut response = Response::new(Empty::new());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            Ok(response)
        }
        Answer::Silence => std::future::pending().await,
    }
}
