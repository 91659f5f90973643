//! HTTP on a TCP port: the listener with its TLS and limits, and what every request passes before it reaches a handler.
//!
//! Nothing here knows what is offered: it takes any router. `accept` owns connections, `socket` a single one, `tls` the
//! certificate; `layers` lists in order what a request goes through, one file each. Handlers find in a request's extensions:
//! [`Peer`] (who connected, and whether by TLS), [`RequestId`], [`Who`] (to name the user for the log) and [`TimeLimit`]
//! (to ask for more time). A response that has no end is known by its content type, or by [`Endless`] in its extensions.

mod accept;
mod compress;
mod cors;
mod headers;
mod identify;
mod layers;
mod limits;
mod log;
mod socket;
mod streams;
mod tls;

pub use identify::{Identified, Identify, OwnPage, identified};
pub use limits::TimeLimit;
pub use log::{RequestId, Who};
pub use streams::Endless;

use axum::Router;
use cors::Origins;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tls::Certificates;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

/// Connections that the kernel keeps for us while all places are taken.
const BACKLOG: u32 = 1024;

/// How HTTP is offered.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Where to listen; port 0 takes a free one
    pub address: SocketAddr,
    /// The certificate; none means plain HTTP
    pub tls: Option<TlsFiles>,
    /// Whether plain HTTP is allowed beyond loopback
    pub allow_plain: bool,
    /// Other sites whose pages may use the API, as browsers write them: `https://gui.example.org`
    pub cors_origins: Vec<String>,
    /// How long a handler may take until its answer begins, unless it asks for more by [`TimeLimit`]
    pub request_timeout: Duration,
    /// The largest body of a request, in bytes
    pub max_body: usize,
    /// Connections at once; further ones wait
    pub max_connections: usize,
    /// How long a connection may take for the TLS handshake, for the headers of a request, and be idle between two requests
    pub header_timeout: Duration,
}

impl HttpSettings {
    /// Plain HTTP at `address` with the usual limits.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            tls: None,
            allow_plain: false,
            cors_origins: Vec::new(),
            request_timeout: Duration::from_secs(600),
            max_body: 32 << 20,
            max_connections: 4096,
            header_timeout: Duration::from_secs(30),
        }
    }
}

/// The PEM files of a certificate. They are read again when they change.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, then those between it and its root
    pub cert: PathBuf,
    /// Its private key
    pub key: PathBuf,
}

/// Why HTTP is not offered.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Tokens and passwords would be readable on the network.
    #[error(
        "plain HTTP on {0} would show passwords and tokens to the network: set tls_cert and tls_key, listen on 127.0.0.1, or allow it with http_plain"
    )]
    Plain(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen for HTTP on {address}: {error}")]
    Bind {
        /// Which
        address: SocketAddr,
        /// Why
        error: io::Error,
    },
    /// A file of the certificate cannot be used.
    #[error("cannot use {} for HTTPS: {reason}", path.display())]
    Tls {
        /// Which
        path: PathBuf,
        /// Why
        reason: String,
    },
    /// Certificate and key are not a pair.
    #[error("the private key in {} does not belong to the certificate in {}", .0.key.display(), .0.cert.display())]
    Mismatch(TlsFiles),
    /// An allowed origin that no browser would ever send.
    #[error(
        "{0:?} in cors_origins is not an origin: write scheme, host and port only, such as https://gui.example.org"
    )]
    Origin(String),
    /// No connection, or no time for one.
    #[error("{0} of HTTP must be larger than 0")]
    Zero(&'static str),
}

/// Who is at the other end of a request's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address
    pub address: SocketAddr,
    /// Whether it came by TLS: then cookies are marked `Secure`
    pub secure: bool,
}

impl Peer {
    /// The address without the port: how log-ins are counted and audit entries are written.
    pub fn origin(&self) -> String {
        self.address.ip().to_canonical().to_string()
    }
}

/// A listener that is bound and has its certificate; it answers once it is served.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    local: SocketAddr,
    certificates: Option<Certificates>,
    origins: Origins,
    settings: HttpSettings,
}

impl HttpListener {
    /// Checks the settings, reads the certificate and takes the address.
    pub fn bind(settings: HttpSettings) -> Result<Self, HttpError> {
        let address = settings.address;
        if settings.tls.is_none() && !settings.allow_plain && !address.ip().to_canonical().is_loopback() {
            return Err(HttpError::Plain(address));
        }
        for (name, is_zero) in [
            ("the number of connections", settings.max_connections == 0),
            ("the time for headers", settings.header_timeout.is_zero()),
            ("the time for a request", settings.request_timeout.is_zero()),
        ] {
            if is_zero {
                return Err(HttpError::Zero(name));
            }
        }
        let origins = Origins::parse(&settings.cors_origins)?;
        let certificates = settings.tls.clone().map(Certificates::load).transpose()?;
        let failed = |error| HttpError::Bind { address, error };
        let listener = listen(address).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, local, certificates, origins, settings })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Its URL as this machine can use it.
    pub fn url(&self) -> String {
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        let mut address = self.local;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        format!("{scheme}://{address}")
    }

    /// Answers with `router` until `stop`; then ends streams, lets answers in hand finish for a while, and returns.
    pub async fn serve(self, router: Router, stop: CancellationToken) {
        let Self { listener, certificates, origins, settings, .. } = self;
        let router = layers::around(router, &settings, origins, stop.clone());
        accept::serve(listener, certificates, router, &settings, stop).await;
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restarted server must not wait for the last one's connections to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(address: &str) -> HttpSettings {
        HttpSettings::new(address.parse().unwrap())
    }

    #[tokio::test]
    async fn plain_http_beyond_loopback_is_refused() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let error = HttpListener::bind(settings(address)).unwrap_err();
            assert!(matches!(error, HttpError::Plain(_)), "{address}: {error}");
            assert!(error.to_string().contains("tls_cert"), "{error}");
        }
    }

    #[tokio::test]
    async fn plain_http_on_loopback_needs_no_permission() {
        for address in ["127.0.0.1:0", "127.8.9.1:0"] {
            HttpListener::bind(settings(address)).unwrap();
        }
    }

    #[tokio::test]
    async fn plain_http_beyond_loopback_can_be_allowed() {
        let listener = HttpListener::bind(HttpSettings { allow_plain: true, ..settings("0.0.0.0:0") }).unwrap();
        assert_eq!(listener.url(), format!("http://127.0.0.1:{}", listener.local_addr().port()));
    }

    #[tokio::test]
    async fn settings_that_would_answer_nobody_are_refused() {
        let none = HttpSettings { max_connections: 0, ..settings("127.0.0.1:0") };
        assert!(matches!(HttpListener::bind(none), Err(HttpError::Zero(_))));
        let origin = HttpSettings { cors_origins: vec!["*".into()], ..settings("127.0.0.1:0") };
        assert!(matches!(HttpListener::bind(origin), Err(HttpError::Origin(_))));
    }

    #[tokio::test]
    async fn an_address_in_use_is_told() {
        let first = HttpListener::bind(settings("127.0.0.1:0")).unwrap();
        let error = HttpListener::bind(HttpSettings::new(first.local_addr())).unwrap_err();
        assert!(error.to_string().starts_with("cannot listen for HTTP on 127.0.0.1:"), "{error}");
    }

    #[test]
    fn an_origin_is_an_address_without_a_port() {
        let origin = |address: &str| Peer { address: address.parse().unwrap(), secure: false }.origin();
        assert_eq!(origin("192.0.2.1:4000"), "192.0.2.1");
        assert_eq!(origin("[::ffff:192.0.2.1]:4000"), "192.0.2.1");
        assert_eq!(origin("[2001:db8::1]:4000"), "2001:db8::1");
    }
}
