//! The server's request port: a ROUTER towards REQ and DEALER peers.
//!
//! REQ is lock-step, so one task per connection reads a request, handles it and writes the reply: no routing table, no
//! clash of identities, and a peer that does not read its replies slows down nobody but itself.

use super::budget::{Account, Budget};
use super::command::SocketType;
use super::connection::Connection;
use super::error::Error;
use super::frame;
use super::handshake::handshake;
use super::listener::Listener;
use super::options::Options;
use super::peer::Peer;
use super::port::Port;
use super::slots::{Phase, Slot};
use super::stats::Stats;
use bytes::Bytes;
use futures_util::future::AbortHandle;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// The most bytes before the delimiter: room for routing ids and request numbers.
const MAX_ENVELOPE: usize = 1024;

/// What answers requests.
pub trait Handler: Send + Sync + 'static {
    /// What the handler remembers about one connection, such as the minion it has proved to belong to.
    type Conn: Send;

    /// A peer has finished its handshake.
    fn opened(&self, peer: &Peer) -> Self::Conn;

    /// Answers one request; `None` leaves it without a reply. The next request of the same connection waits.
    ///
    /// It runs to its end even when the peer goes away meanwhile ([`Peer::has_left`] tells), unless the connection is
    /// [disconnected](Peer::disconnect) or the server stops and [`Options::drain`] is over.
    fn request(&self, conn: &mut Self::Conn, peer: &Peer, payload: Bytes)
    -> impl Future<Output = Option<Bytes>> + Send;

    /// Whether the limits for strangers are lifted from this connection; asked after each request.
    fn is_trusted(&self, conn: &Self::Conn) -> bool;

    /// The connection has ended, however it ended.
    fn closed(&self, conn: Self::Conn, peer: &Peer);
}

/// The request port of a server; cheap to clone.
#[derive(Debug)]
pub struct Replier<H> {
    handler: Arc<H>,
    port: Arc<Port>,
    untrusted: Arc<Budget>,
    trusted: Arc<Budget>,
}

/// Serves `listener` with `handler` until `stop`; [`Replier`] does the same and can be asked for its numbers.
pub async fn serve<H: Handler>(
    listener: tokio::net::TcpListener,
    options: Options,
    handler: Arc<H>,
    stop: CancellationToken,
) {
    Replier::new(options, handler).serve(listener, stop).await;
}

impl<H: Handler> Replier<H> {
    /// A port that answers through `handler`.
    pub fn new(options: Options, handler: Arc<H>) -> Self {
        let (untrusted, trusted) = (Budget::new(options.untrusted_budget), Budget::new(options.trusted_budget));
        Self { handler, port: Port::new("request", options), untrusted, trusted }
    }

    /// Accepts and answers until `stop`; then idle connections close, requests in hand are answered, and this returns.
    pub async fn serve<L: Listener>(&self, listener: L, stop: CancellationToken) {
        self.port.serve(listener, stop.clone(), |io, addr| self.clone().attend(io, addr, stop.clone())).await;
    }

    /// Serves one connection over any byte stream to its end.
    pub async fn attend<S>(self, io: S, addr: SocketAddr, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        self.port.admit(addr, |slot, abort| self.converse(io, addr, slot, abort, &stop)).await;
    }

    /// How the port is doing.
    pub fn stats(&self) -> Stats {
        self.port.stats()
    }

    async fn converse<S>(
        &self,
        io: S,
        addr: SocketAddr,
        slot: Slot,
        abort: AbortHandle,
        stop: &CancellationToken,
    ) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let account = |budget: &Arc<Budget>| Account { budget: budget.clone(), abort: abort.clone() };
        let mut stopped = pin!(stop.cancelled());
        let mut conn = Connection::new(io, self.port.options.clone());
        conn.set_account(account(&self.untrusted));
        let ready = tokio::select! {
            biased;
            () = &mut stopped => return Ok(()),
            ready = handshake(&mut conn, SocketType::Router) => ready?,
        };
        slot.enter(Phase::Untrusted);
        let peer = Peer::new(slot.id(), addr, ready.identity.unwrap_or_default(), abort.clone());
        let mut session = Session::open(&*self.handler, &peer);
        let mut trusted = false;
        loop {
            let message = tokio::select! {
                biased;
                () = &mut stopped => return Ok(()),
                message = conn.message() => message?,
            };
            let Some((envelope, payload)) = split_envelope(message.parts) else {
                debug!(?peer, "request without delimiter ignored");
                continue;
            };
            if !trusted {
                slot.enter(Phase::Busy);
            }
            let (reply, lost) = session.answer(&mut conn, payload).await;
            drop(message.charge);
            // The slot is only touched where something changes: all connections of the port share its lock.
            let was_trusted = std::mem::replace(&mut trusted, session.is_trusted());
            match (was_trusted, trusted) {
                (true, true) => {}
                (false, false) => slot.enter(Phase::Untrusted),
                (_, true) => {
                    slot.enter(Phase::Trusted);
                    conn.set_account(account(&self.trusted));
                }
                (_, false) => {
                    slot.enter(Phase::Untrusted);
                    conn.set_account(account(&self.untrusted));
                }
            }
            if let Some(error) = lost {
                return Err(error);
            }
            if let Some(reply) = reply {
                conn.queue(frame::encode_head(&envelope, reply.len()));
                conn.queue(reply);
                conn.flush().await?;
            }
        }
    }
}

impl<H> Clone for Replier<H> {
    fn clone(&self) -> Self {
        Self {
            handler: self.handler.clone(),
            port: self.port.clone(),
            untrusted: self.untrusted.clone(),
            trusted: self.trusted.clone(),
        }
    }
}

/// Ties the handler's state to the connection: `closed` is called even when the task is cut short.
struct Session<'a, H: Handler> {
    handler: &'a H,
    peer: &'a Peer,
    /// Only `None` after the end.
    state: Option<H::Conn>,
}

impl<'a, H: Handler> Session<'a, H> {
    fn open(handler: &'a H, peer: &'a Peer) -> Self {
        Self { handler, peer, state: Some(handler.opened(peer)) }
    }

    /// Handles one request while the connection is kept alive; also tells why it was lost, if it was.
    async fn answer<S>(&mut self, conn: &mut Connection<S>, payload: Bytes) -> (Option<Bytes>, Option<Error>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(state) = &mut self.state else { return (None, None) };
        // Boxed, so that an idle connection does not carry the room the handler needs at work.
        let mut handling = Box::pin(self.handler.request(state, self.peer, payload));
        let lost = tokio::select! {
            biased;
            reply = &mut handling => return (reply, None),
            lost = conn.idle() => lost,
        };
        self.peer.mark_left();
        (handling.await, Some(lost))
    }

    fn is_trusted(&self) -> bool {
        self.state.as_ref().is_some_and(|state| self.handler.is_trusted(state))
    }
}

impl<H: Handler> Drop for Session<'_, H> {
    fn drop(&mut self) {
        self.peer.mark_left();
        if let Some(state) = self.state.take() {
            self.handler.closed(state, self.peer);
        }
    }
}

/// Splits a request into what is sent back in front of the reply and its payload, as a REP socket does: the envelope
/// ends with the first empty part. `None` when there is no such part, not exactly one after it, or too much before it.
fn split_envelope(mut parts: Vec<Bytes>) -> Option<(Vec<Bytes>, Bytes)> {
    let delimiter = parts.iter().position(Bytes::is_empty)?;
    let envelope_bytes: usize = parts[..delimiter].iter().map(Bytes::len).sum();
    if parts.len() != delimiter + 2 || envelope_bytes > MAX_ENVELOPE {
        return None;
    }
    let payload = parts.pop()?;
    // A copy, so that the envelope does not keep the request's buffer alive.
    Some((parts.iter().map(|part| Bytes::copy_from_slice(part)).collect(), payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(parts: &[&'static str]) -> Option<(usize, Bytes)> {
        let parts = parts.iter().map(|part| Bytes::from_static(part.as_bytes())).collect();
        split_envelope(parts).map(|(envelope, payload)| (envelope.len(), payload))
    }

    #[test]
    fn the_envelope_ends_at_the_first_empty_part() {
        assert_eq!(split(&["", "request"]), Some((1, "request".into())));
        assert_eq!(split(&["correlation", "", "request"]), Some((2, "request".into())));
        assert_eq!(split(&["", ""]), Some((1, Bytes::new())));
    }

    #[test]
    fn a_request_of_another_shape_is_nothing() {
        assert_eq!(split(&["request"]), None);
        assert_eq!(split(&["", "one", "two"]), None);
        assert_eq!(split(&["address", ""]), None);
    }
}
