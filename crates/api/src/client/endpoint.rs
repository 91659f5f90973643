//! How a server is reached. Today: the control socket of a server on this machine.

use super::ClientError;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The control socket in a data directory
    Control(PathBuf),
}

impl Endpoint {
    /// Connects.
    pub(super) async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        match self {
            Self::Control(path) => {
                let stream = UnixStream::connect(path).await;
                let stream = stream.map_err(|error| ClientError::Unreachable { place: path.clone(), error })?;
                speak(stream).await
            }
        }
    }

    /// What goes into the `Host` header.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Control(_) => "localhost",
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
