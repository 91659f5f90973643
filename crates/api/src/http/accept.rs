//! The accept loop: a bounded number of connections, each served in a task of its own until it ends or the server stops.

use super::socket::{Place, Socket, Unread};
use super::tls::Certificates;
use super::{HttpSettings, Peer};
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long answers in hand may take after the stop.
const DRAIN: Duration = Duration::from_secs(10);

/// The most bytes of a request's line and headers.
const HEADER_SIZE: usize = 64 << 10;

/// The most headers of a request.
const HEADER_COUNT: usize = 100;

/// The first and the longest pause after a failed accept.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// How often the same trouble is logged.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Serves connections until `stop`, then waits for those in hand.
pub(super) async fn serve(
    listener: TcpListener,
    certificates: Option<Certificates>,
    router: Router,
    settings: &HttpSettings,
    stop: CancellationToken,
) {
    let house = Arc::new(House {
        http: protocol(settings.header_timeout),
        router: TowerToHyperService::new(router),
        tls: certificates.as_ref().map(Certificates::acceptor),
        handshake: settings.header_timeout,
        stop: stop.clone(),
        abandon: CancellationToken::new(),
    });
    let connections = TaskTracker::new();
    let watch = async {
        match &certificates {
            Some(certificates) => certificates.watch().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = accept(&listener, settings.max_connections, &house, &connections) => {}
        () = watch => {}
    }
    drop(listener);
    connections.close();
    if timeout(DRAIN, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "requests that did not end in time were abandoned");
        house.abandon.cancel();
    }
}

/// What connections share.
struct House {
    http: http1::Builder,
    router: TowerToHyperService<Router>,
    tls: Option<TlsAcceptor>,
    handshake: Duration,
    stop: CancellationToken,
    /// Ends what did not end by itself
    abandon: CancellationToken,
}

fn protocol(header_timeout: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    // The timer runs from the moment the connection waits for a request, so it also ends idle ones.
    http.timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_header_size(HEADER_SIZE)
        .max_headers(HEADER_COUNT)
        .max_buf_size(4 * HEADER_SIZE);
    http
}

async fn accept(listener: &TcpListener, most: usize, house: &Arc<House>, connections: &TaskTracker) {
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    let (mut full, mut failing) = (Seldom::default(), Seldom::default());
    let mut pause = PAUSES.0;
    loop {
        if places.available_permits() == 0 && full.is_due() {
            tracing::warn!(connections = most, "all connections are in use; others wait (http_max_connections)");
        }
        // A place first: a connection that is not accepted costs nothing and waits in the kernel.
        let Ok(permit) = Arc::clone(&places).acquire_owned().await else { return };
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if is_the_peers(&error) => continue,
            Err(error) => {
                if failing.is_due() {
                    tracing::error!(%error, "cannot accept HTTP connections; trying on");
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
                continue;
            }
        };
        pause = PAUSES.0;
        let place = Place { _permit: permit, _counted: connections.token() };
        connections.spawn(connection(stream, address, place, Arc::clone(house)));
    }
}

/// Whether only this one connection failed, and not our ability to accept.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

async fn connection(stream: TcpStream, address: SocketAddr, place: Place, house: Arc<House>) {
    // Answers are written whole; waiting for more to send only delays them.
    let _ = stream.set_nodelay(true);
    let peer = Peer { address, secure: house.tls.is_some() };
    let served = async {
        match &house.tls {
            None => requests(stream, peer, place, &house).await,
            Some(tls) => {
                let handshake = timeout(house.handshake, tls.accept(stream));
                match house.stop.run_until_cancelled(handshake).await {
                    Some(Ok(Ok(stream))) => requests(stream, peer, place, &house).await,
                    Some(Ok(Err(error))) => tracing::debug!(peer = %address, %error, "a TLS handshake failed"),
                    Some(Err(_)) => tracing::debug!(peer = %address, "a TLS handshake took too long"),
                    None => {}
                }
            }
        }
    };
    tokio::select! {
        () = served => {}
        () = house.abandon.cancelled() => {}
    }
}

async fn requests<S>(stream: S, peer: Peer, place: Place, house: &House)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let unread = Unread::default();
    let socket = Socket::new(stream, unread.clone(), place);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(unread.clone());
        house.router.call(request)
    });
    let mut serving = pin!(house.http.serve_connection(TokioIo::new(socket), service).with_upgrades());
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = house.stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(peer = %peer.address, %error, "a connection ended");
    }
}

/// Says yes once in a while, so that lasting trouble does not fill the log.
#[derive(Default)]
struct Seldom(Option<Instant>);

impl Seldom {
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.0.is_none_or(|last| now.duration_since(last) >= LOG_EVERY);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lasting_trouble_is_logged_once_in_a_while() {
        let mut seldom = Seldom::default();
        assert!(seldom.is_due());
        assert!(!seldom.is_due());
        tokio::time::advance(LOG_EVERY).await;
        assert!(seldom.is_due());
    }

    #[test]
    fn running_out_of_files_is_not_the_peers_fault() {
        const EMFILE: i32 = 24;
        assert!(!is_the_peers(&io::Error::from_raw_os_error(EMFILE)));
        assert!(is_the_peers(&io::ErrorKind::ConnectionAborted.into()));
    }
}
