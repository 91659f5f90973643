//! A light minion's two connections, without a task and a queue of their own: its one task owns both.
//!
//! `saltern-wire` has a REQ and a SUB that live in tasks, so that a busy caller never leaves a heartbeat unanswered. A light
//! minion is never busy, and with thousands of them those tasks would be half of the swarm's cost.

use bytes::Bytes;
use saltern_wire::zmtp::command::SocketType;
use saltern_wire::zmtp::handshake::handshake;
use saltern_wire::zmtp::{self, Error, Options, Waiting, frame};
use std::sync::Arc;
use tokio::net::TcpStream;

/// A connection to one of the master's ports.
pub(crate) type Connection = zmtp::connection::Connection<TcpStream>;

/// Connects to the request port.
pub(crate) async fn connect(address: &str, options: &Arc<Options>) -> Result<Connection, Error> {
    open(address, options, SocketType::Req).await
}

/// Connects to the publish port and subscribes to everything.
pub(crate) async fn subscribe(address: &str, options: &Arc<Options>) -> Result<Connection, Error> {
    let mut connection = open(address, options, SocketType::Sub).await?;
    // The form that every version of the protocol knows.
    connection.queue(frame::encode_message(&[&[1]]));
    connection.flush().await?;
    Ok(connection)
}

/// Sends a request and waits for its reply. When it is dropped half way, so must be the connection: a late reply would be
/// taken for that of the next request.
pub(crate) async fn exchange(connection: &mut Connection, request: Bytes) -> Result<Bytes, Error> {
    connection.queue(frame::encode_head(&[Bytes::new()], request.len()));
    connection.queue(request);
    loop {
        let mut parts = connection.message().await?.parts;
        // What is not a delimiter and a body is not a reply.
        if let (2, Some(reply)) = (parts.len(), parts.pop())
            && parts[0].is_empty()
        {
            return Ok(reply);
        }
    }
}

/// The next publication.
pub(crate) async fn publication(connection: &mut Connection) -> Result<Bytes, Error> {
    // With topics the first frame is only the topic.
    Ok(connection.message().await?.parts.pop().unwrap_or_default())
}

/// The name under which a failure is counted.
pub(crate) fn kind(error: &Error) -> &'static str {
    match error {
        Error::Closed => "connection_lost",
        Error::Connect { .. } => "connection_refused",
        Error::TimedOut(Waiting::Reply) => "no_answer",
        Error::TimedOut(_) => "transport_too_slow",
        _ => "transport_failed",
    }
}

async fn open(address: &str, options: &Arc<Options>, own: SocketType) -> Result<Connection, Error> {
    let refused = |source| Error::Connect { addr: address.to_owned(), source };
    let connecting = tokio::time::timeout(options.handshake_timeout, TcpStream::connect(address));
    let stream = connecting.await.map_err(|_| Error::TimedOut(Waiting::Handshake))?.map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    let mut connection = Connection::new(stream, options.clone());
    handshake(&mut connection, own).await?;
    Ok(connection)
}
