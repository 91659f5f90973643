//! How a server is reached: the control socket of one on this machine, or HTTP with a token from anywhere.

use super::{ClientError, ServerUrl, tls};
use crate::login::Secret;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A server's address, and what is shown to it.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// The control socket in a data directory
    Control(PathBuf),
    /// HTTP
    Remote {
        /// Where
        url: ServerUrl,
        /// Who asks; nothing: nobody in particular
        token: Option<Secret>,
        /// Whose certificates are believed, if not those that the system trusts
        ca_file: Option<PathBuf>,
    },
}

/// The header that carries a token.
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// How long a server may take to take a connection: more than one lost packet, less than somebody's patience.
const CONNECT: Duration = Duration::from_secs(15);

/// How long it may take to begin with its answer: more than the server gives itself for whatever waits for minions.
const ANSWER: Duration = Duration::from_secs(660);

impl Endpoint {
    /// Connects.
    pub(super) async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        match self {
            Self::Control(path) => {
                let stream = UnixStream::connect(path).await;
                let stream = stream.map_err(|error| ClientError::Unreachable { place: path.clone(), error })?;
                speak(stream).await
            }
            Self::Remote { url, ca_file, .. } => {
                let connecting = async {
                    let stream = TcpStream::connect((url.host(), url.port())).await;
                    let stream = stream.map_err(|error| ClientError::NoAnswer { url: url.clone(), error })?;
                    // A request is one write: nothing is gained by waiting for more.
                    let _ = stream.set_nodelay(true);
                    if !url.is_secure() {
                        return speak(stream).await;
                    }
                    speak(tls::encrypt(stream, url, ca_file.as_deref()).await?).await
                };
                let silent = |_| ClientError::NoAnswer { url: url.clone(), error: io::ErrorKind::TimedOut.into() };
                tokio::time::timeout(CONNECT, connecting).await.map_err(silent)?
            }
        }
    }

    /// Addresses a request to it and shows who asks.
    pub(super) fn address(&self, request: &mut Request<Full<Bytes>>) -> Result<(), ClientError> {
        let wrong = |what: &str| ClientError::Setup(format!("{what} cannot stand in a request"));
        let host = match self {
            Self::Control(_) => HeaderValue::from_static("localhost"),
            Self::Remote { url, token, .. } => {
                if let Some(token) = token {
                    let mut token = HeaderValue::from_str(token.reveal()).map_err(|_| wrong("the token"))?;
                    token.set_sensitive(true);
                    request.headers_mut().insert(TOKEN, token);
                }
                HeaderValue::from_str(&url.authority()).map_err(|_| wrong("the host of the URL"))?
            }
        };
        request.headers_mut().insert(header::HOST, host);
        Ok(())
    }

    /// A path of the API as it is there.
    pub(super) fn path(&self, path: &str) -> String {
        match self {
            Self::Control(_) => path.to_owned(),
            Self::Remote { url, .. } => format!("{}{path}", url.prefix()),
        }
    }

    /// How long its answer is waited for; nothing: as long as it lives.
    pub(super) const fn patience(&self) -> Option<Duration> {
        match self {
            // The kernel says when the other end is gone.
            Self::Control(_) => None,
            Self::Remote { .. } => Some(ANSWER),
        }
    }

    /// Its URL, if it is reached by one.
    pub fn url(&self) -> Option<&ServerUrl> {
        match self {
            Self::Control(_) => None,
            Self::Remote { url, .. } => Some(url),
        }
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<SendRequest<Full<Bytes>>, ClientError> {
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| ClientError::Lost(error.to_string()))?;
    // Drives the connection; ends with it. What goes wrong there is told by the request that waits for its answer.
    tokio::spawn(connection);
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_sent_and_never_shown() {
        let endpoint = Endpoint::Remote {
            url: ServerUrl::parse("https://example.org:8443/salt").unwrap(),
            token: Some("0123abcd".into()),
            ca_file: None,
        };
        let mut request = Request::new(Full::new(Bytes::new()));
        endpoint.address(&mut request).unwrap();
        assert_eq!(request.headers()[TOKEN], "0123abcd");
        assert_eq!(request.headers()[header::HOST], "example.org:8443");
        assert_eq!(endpoint.path("/api/v1/status"), "/salt/api/v1/status");
        assert!(!format!("{endpoint:?}{request:?}").contains("0123abcd"));
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_told_by_its_url() {
        let port = saltern_testkit::ports::free();
        let url = ServerUrl::parse(&format!("http://127.0.0.1:{port}")).unwrap();
        let endpoint = Endpoint::Remote { url: url.clone(), token: None, ca_file: None };
        let error = endpoint.connect().await.unwrap_err();
        assert_eq!(error.to_string(), format!("no server answers at {url}: the connection was refused"));
    }
}
