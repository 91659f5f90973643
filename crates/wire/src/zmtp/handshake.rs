//! The opening of a connection: greetings, then READY with the socket types.

use super::command::{Command, Ready, SocketType};
use super::connection::{Connection, Event};
use super::error::{Error, Violation};
use super::greeting;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

/// Opens `conn` as a socket of type `own`, on either side, and returns what the peer said about itself.
///
/// Our whole greeting goes out at once: libzmq sends only the first ten bytes of its own before it has seen ours.
pub async fn handshake<S>(conn: &mut Connection<S>, own: SocketType) -> Result<Ready, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    conn.queue(Bytes::from_static(&greeting::OURS));
    let greeting = conn.greeting().await?;
    conn.queue(Command::Ready(Ready { socket_type: own, identity: identity_of(own) }).encode());
    let Event::Ready(ready) = conn.event().await? else { return Err(Violation::Unexpected.into()) };
    if !own.accepts(ready.socket_type) {
        return Err(Violation::SocketType.into());
    }
    conn.establish(greeting.is_modern());
    Ok(ready)
}

/// Sockets that route by identity announce one, if only an empty one; the publish pair does not.
fn identity_of(own: SocketType) -> Option<Bytes> {
    matches!(own, SocketType::Req | SocketType::Dealer | SocketType::Router).then(Bytes::new)
}
