//! The client's end of the request port: a REQ.
//!
//! A task owns the connection, so that heartbeats are answered between requests and the loss of the server is noticed
//! at once. A lost connection is opened again when the next request needs it.

use super::command::SocketType;
use super::connection::Connection;
use super::error::{Error, Waiting};
use super::frame;
use super::handshake::handshake;
use super::listener::tune;
use super::options::Options;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tracing::debug;

/// How long to wait between attempts to connect: doubled from the first to the last, as a stock minion does.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// How many requests may wait for the one in hand; further callers wait before they may queue.
const QUEUE: usize = 16;

/// A connection to a request port; cheap to clone, requests are made one after the other.
#[derive(Debug, Clone)]
pub struct Requester {
    calls: mpsc::Sender<Call>,
}

#[derive(Debug)]
struct Call {
    payload: Bytes,
    answer: oneshot::Sender<Result<Bytes, Error>>,
}

impl Requester {
    /// Connects to `addr` (`host:port`). The name is looked up again for every later connection.
    pub async fn connect(addr: impl ToString, options: Options) -> Result<Self, Error> {
        let server = Server { addr: addr.to_string(), options: Arc::new(options) };
        let conn = server.open(SocketType::Req).await?;
        let (calls, queue) = mpsc::channel(QUEUE);
        tokio::spawn(run(server, conn, queue));
        Ok(Self { calls })
    }

    /// Sends a request and waits for its reply, connecting again if need be, for at most `timeout`.
    ///
    /// A request whose reply was not awaited, or was lost with the connection, may or may not have been handled.
    pub async fn request(&self, payload: Bytes, timeout: Duration) -> Result<Bytes, Error> {
        let (answer, reply) = oneshot::channel();
        let exchange = async {
            self.calls.send(Call { payload, answer }).await.map_err(|_| Error::Closed)?;
            reply.await.map_err(|_| Error::Closed)?
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(Error::TimedOut(Waiting::Reply)))
    }
}

/// Where a client connects to.
pub(crate) struct Server {
    pub(crate) addr: String,
    pub(crate) options: Arc<Options>,
}

impl Server {
    /// Opens a connection as a socket of type `own`.
    pub(crate) async fn open(&self, own: SocketType) -> Result<Connection<TcpStream>, Error> {
        let connect_error = |source| Error::Connect { addr: self.addr.clone(), source };
        let connecting = tokio::time::timeout(self.options.handshake_timeout, TcpStream::connect(&self.addr));
        let stream = connecting.await.map_err(|_| Error::TimedOut(Waiting::Handshake))?.map_err(connect_error)?;
        tune(&stream).map_err(connect_error)?;
        let mut conn = Connection::new(stream, self.options.clone());
        handshake(&mut conn, own).await?;
        Ok(conn)
    }
}

async fn run(server: Server, conn: Connection<TcpStream>, mut queue: mpsc::Receiver<Call>) {
    let mut link = Some(conn);
    loop {
        let call = match &mut link {
            None => queue.recv().await,
            Some(conn) => tokio::select! {
                call = queue.recv() => call,
                // A message nobody asked for is as bad as the end: the next reply could not be told from it.
                ended = conn.message() => {
                    debug!(server = server.addr, cause = ?ended.err(), "connection to the request port lost");
                    link = None;
                    continue;
                }
            },
        };
        let Some(Call { payload, mut answer }) = call else { return };
        let outcome = tokio::select! {
            outcome = exchange(&server, &mut link, payload) => Some(outcome),
            () = answer.closed() => None,
        };
        // After a failure or a reply that nobody waits for any more, lock-step is lost: start afresh.
        if !matches!(outcome, Some(Ok(_))) {
            link = None;
        }
        if let Some(outcome) = outcome {
            // The caller may have given up this moment; there is nobody else to tell.
            let _ = answer.send(outcome);
        }
    }
}

async fn exchange(server: &Server, link: &mut Option<Connection<TcpStream>>, payload: Bytes) -> Result<Bytes, Error> {
    let conn = match link {
        Some(conn) => conn,
        None => link.insert(reopen(server).await),
    };
    conn.queue(frame::encode_head(&[Bytes::new()], payload.len()));
    conn.queue(payload);
    loop {
        let mut parts = conn.message().await?.parts;
        // As a REQ does: what is not a delimiter and a body is not a reply.
        if let (2, Some(reply)) = (parts.len(), parts.pop())
            && parts[0].is_empty()
        {
            return Ok(reply);
        }
    }
}

/// Connects until it succeeds; the caller's patience is the limit.
async fn reopen(server: &Server) -> Connection<TcpStream> {
    let mut pause = FIRST_PAUSE;
    loop {
        match server.open(SocketType::Req).await {
            Ok(conn) => return conn,
            Err(error) => debug!(server = server.addr, %error, "cannot connect to the request port"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}
