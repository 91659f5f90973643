//! Where connections come from: a bound TCP port, or anything else that hands out byte streams.

use super::error::Error;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// How many connections may wait to be accepted: a highstate of a large fleet opens thousands within a second.
const BACKLOG: i32 = 4096;

/// A source of connections. Implemented for TCP; tests and simulations bring their own.
pub trait Listener: Send + 'static {
    /// The byte streams it hands out.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Io, SocketAddr)>> + Send;
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, addr) = TcpListener::accept(self).await?;
        tune(&stream)?;
        Ok((stream, addr))
    }
}

/// Listens on `addr` with a deep backlog; a port that a predecessor left in TIME_WAIT is taken over.
pub fn bind(addr: SocketAddr) -> Result<TcpListener, Error> {
    listen(addr).map_err(|source| Error::Bind { addr, source })
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Requests are small and answered one by one, so nothing may wait for more bytes; and a peer that vanished without a
/// word must be noticed even when it is too old for ZMTP heartbeats. The times are those of the stock master.
pub(crate) fn tune(stream: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15));
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&keepalive.with_retries(3))
}
