//! Sends requests to receivers of webhooks: HTTP/1.1, one at a time over a connection that is kept for the next one.
//!
//! Whoever answers may be anybody: headers and bodies are limited, redirects are not followed, nothing of an answer is kept
//! but its status, and everything together has one time limit.

mod get;
mod reach;

pub(crate) use reach::Reach;

use super::address::Address;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

/// The most of an answer that is read; a connection with more to say is closed.
const LONGEST_ANSWER: usize = 64 << 10;

/// The most that is read at once of an answer's headers.
const HEADERS: usize = 64 << 10;

/// How long a connection is kept that nothing is sent over.
const IDLE: Duration = Duration::from_secs(20);

/// Why there is no answer. Nothing of the address is in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("cannot connect: {0}")]
    Unreachable(std::io::Error),
    #[error("no encrypted connection: {0}")]
    Untrusted(std::io::Error),
    #[error(
        "the URL leads to the server's own machine or network link, which the setting `calendar_near_urls` would allow"
    )]
    TooNear,
    #[error("there is no certificate on this machine to check the receiver's with")]
    NoAuthorities,
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("{0}")]
    Unsendable(String),
}

/// Makes connections.
#[derive(Default)]
pub(crate) struct Client {
    reach: Reach,
    tls: OnceCell<TlsConnector>,
}

/// A connection that was used and may be used again.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    address: Address,
    used: Instant,
    _driver: AbortOnDropHandle<()>,
}

impl Client {
    /// One that connects only so far.
    pub(crate) fn new(reach: Reach) -> Self {
        Self { reach, ..Self::default() }
    }

    /// Sends a request, over the connection in `kept` if there is a good one, and leaves it there for the next.
    pub(super) async fn send(
        &self,
        kept: &mut Option<Connection>,
        address: &Address,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<StatusCode, Failure> {
        let deadline = Instant::now() + limit;
        // It is put back when all went well: whoever is interrupted leaves no half-read answer behind.
        let open = kept.take();
        let asked = timeout_at(deadline, self.ask(open, address, request)).await;
        let (mut connection, answer) = asked.map_err(|_| Failure::TimedOut(limit))??;
        let status = answer.status();
        // The status is all that counts, also of a receiver that never ends.
        if timeout_at(deadline, drain(answer)).await.unwrap_or(false) {
            connection.used = Instant::now();
            *kept = Some(connection);
        }
        Ok(status)
    }

    async fn ask(
        &self,
        open: Option<Connection>,
        address: &Address,
        request: Request<Full<Bytes>>,
    ) -> Result<(Connection, Response<Incoming>), Failure> {
        if let Some(mut connection) = open.filter(|connection| connection.is_good_for(address))
            // It may have been closed at the other end just now. Whether it was is not known before it is tried.
            && let Ok(answer) = connection.ask(request.clone()).await
        {
            return Ok((connection, answer));
        }
        let mut connection = self.connect(address).await?;
        let answer = connection.ask(request).await?;
        Ok((connection, answer))
    }

    async fn connect(&self, address: &Address) -> Result<Connection, Failure> {
        let stream = self.reach.connect(address).await?;
        let _ = stream.set_nodelay(true);
        if !address.is_encrypted {
            return Connection::open(stream, address).await;
        }
        let tls = self.tls.get_or_try_init(system_trust).await?;
        let name = ServerName::try_from(address.host.clone())
            .map_err(|_| Failure::Unsendable("the host in the URL is not one that a certificate could name".into()))?;
        Connection::open(tls.connect(name, stream).await.map_err(Failure::Untrusted)?, address).await
    }
}

impl Connection {
    async fn open(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        address: &Address,
    ) -> Result<Self, Failure> {
        let (sender, driver) = http1::Builder::new().max_buf_size(HEADERS).handshake(TokioIo::new(stream)).await?;
        // Its errors are told to whoever waits for an answer.
        let driver = AbortOnDropHandle::new(tokio::spawn(async move { drop(driver.await) }));
        Ok(Self { sender, address: address.clone(), used: Instant::now(), _driver: driver })
    }

    fn is_good_for(&self, address: &Address) -> bool {
        let is_same = |of: &Address| (of.is_encrypted, of.host.clone(), of.port);
        is_same(&self.address) == is_same(address) && self.used.elapsed() < IDLE && !self.sender.is_closed()
    }

    async fn ask(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
        self.sender.ready().await?;
        self.sender.send_request(request).await
    }
}

/// Reads what is left of an answer; `false` if it is too much, or broke off.
async fn drain(answer: Response<Incoming>) -> bool {
    let mut body = Limited::new(answer.into_body(), LONGEST_ANSWER);
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}

/// Believes the authorities that this machine believes.
async fn system_trust() -> Result<TlsConnector, Failure> {
    let mut authorities = RootCertStore::empty();
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
    authorities.add_parsable_certificates(found.map_err(|_| Failure::NoAuthorities)?.certs);
    connector(authorities)
}

fn connector(authorities: RootCertStore) -> Result<TlsConnector, Failure> {
    if authorities.is_empty() {
        return Err(Failure::NoAuthorities);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::Untrusted(std::io::Error::other(error)))?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests;
