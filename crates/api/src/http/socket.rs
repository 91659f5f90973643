//! One connection's stream: it holds its place among the connections, gives up a peer that takes nothing, and parts politely.
//!
//! The place is kept in the stream and not in the task that serves it, because a WebSocket outlives that task.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long a peer may take none of what we send.
const STALL: Duration = Duration::from_secs(60);

/// How long we read on, and throw away, what a peer sends after its answer.
const FAREWELL: Duration = Duration::from_secs(3);

/// What a connection occupies; given back on drop.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) _permit: OwnedSemaphorePermit,
    pub(super) _counted: TaskTrackerToken,
}

/// Whether the peer may still be sending a body that nobody reads.
///
/// To close then would make its kernel throw away our answer, so it would never learn why it was refused.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(Arc<AtomicBool>);

impl Unread {
    pub(super) fn set(&self, is_unread: bool) {
        self.0.store(is_unread, Ordering::Relaxed);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A stream to a peer.
#[derive(Debug)]
pub(super) struct Socket<S> {
    stream: S,
    stalled: Option<Pin<Box<Sleep>>>,
    farewell: Option<Pin<Box<Sleep>>>,
    unread: Unread,
    _place: Place,
}

impl<S> Socket<S> {
    pub(super) fn new(stream: S, unread: Unread, place: Place) -> Self {
        Self { stream, stalled: None, farewell: None, unread, _place: place }
    }

    /// Lets an attempt to write wait, but not for ever.
    fn patient<T>(&mut self, cx: &mut Context<'_>, attempt: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.stalled = None;
            return attempt;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALL)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.patient(cx, attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.patient(cx, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_flush(cx);
        self.patient(cx, attempt)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.farewell.is_none() {
            let attempt = Pin::new(&mut self.stream).poll_shutdown(cx);
            ready!(self.patient(cx, attempt))?;
            if !self.unread.get() {
                return Poll::Ready(Ok(()));
            }
        }
        let Self { stream, farewell, .. } = &mut *self;
        let farewell = farewell.get_or_insert_with(|| Box::pin(sleep(FAREWELL)));
        let mut scrap = [0; 4096];
        loop {
            if farewell.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buf = ReadBuf::new(&mut scrap);
            match ready!(Pin::new(&mut *stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::sync::Semaphore;
    use tokio::time::Instant;
    use tokio_util::task::TaskTracker;

    fn socket(unread: &Unread) -> (Socket<DuplexStream>, DuplexStream, Arc<Semaphore>) {
        let (ours, theirs) = duplex(64);
        let places = Arc::new(Semaphore::new(1));
        let place =
            Place { _permit: Arc::clone(&places).try_acquire_owned().unwrap(), _counted: TaskTracker::new().token() };
        (Socket::new(ours, unread.clone(), place), theirs, places)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up() {
        let (mut socket, _theirs, _) = socket(&Unread::default());
        let started = Instant::now();
        let error = socket.write_all(&[0; 65]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), STALL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_slowly_is_not_given_up() {
        let (mut socket, mut theirs, _) = socket(&Unread::default());
        let reader = async {
            let mut got = 0;
            while got < 640 {
                tokio::time::sleep(STALL / 2).await;
                got += theirs.read(&mut [0; 64]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(socket.write_all(&[0; 640]), reader);
        written.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_refused_peer_still_sends_is_read_for_a_while() {
        let unread = Unread::default();
        unread.set(true);
        let (mut socket, mut theirs, _) = socket(&unread);
        let started = Instant::now();
        let sender = async {
            while theirs.write_all(&[0; 1024]).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            done = socket.shutdown() => done.unwrap(),
            () = sender => {}
        }
        assert_eq!(started.elapsed(), FAREWELL);
    }

    #[tokio::test(start_paused = true)]
    async fn parting_takes_no_time_otherwise() {
        let (mut socket, _theirs, _) = socket(&Unread::default());
        let started = Instant::now();
        socket.shutdown().await.unwrap();
        assert!(started.elapsed().is_zero());
    }

    #[tokio::test]
    async fn the_place_is_free_when_the_stream_is_gone() {
        let (socket, _theirs, places) = socket(&Unread::default());
        assert_eq!(places.available_permits(), 0);
        drop(socket);
        assert_eq!(places.available_permits(), 1);
    }
}
