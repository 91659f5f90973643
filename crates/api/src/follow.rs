//! Following the event log over HTTP: an answer without an end, shaped once for all readers who get the same.
//!
//! A reader who does not read makes his own pump wait, nobody else's; he holds a short queue of shared bytes, and when
//! nothing moved for a while he is cut off. What he missed is in the log: he resumes by number.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use saltern_server::Error;
use saltern_server::app::{Chunk, EventEntry, EventStream, Heard};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How events look to a kind of client.
pub(crate) trait Form: Send + 'static {
    /// Where its bytes are kept for the next reader; each form has its own
    const SLOT: usize;
    /// What comes before the first event
    const HEAD: &'static str;
    /// What is sent when there is nothing to say
    const BEAT: &'static str;

    /// One event.
    fn shape(event: &EventEntry) -> Bytes;

    /// What tells of events that are not in the log any more: from number, to number.
    fn gap(from: i64, to: i64) -> Bytes;

    /// The last words to somebody who is cut off, or when the log cannot be read.
    fn farewell(why: &str) -> Bytes;
}

/// How long a stream may be silent.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a reader may take nothing before he is cut off.
const STALLED: Duration = Duration::from_secs(30);

/// Chunks that wait for a slow reader.
const QUEUE: usize = 16;

/// The largest piece that is handed over at once: more than that of old events is handed over in parts.
const PIECE: usize = 256 << 10;

/// Everything that `events` brings, until the reader leaves, is cut off, or the server stops.
pub(crate) fn body<F: Form>(events: EventStream, stop: CancellationToken) -> Body {
    let pieces = stream::unfold(pieces::<F>(events, stop, STALLED), |mut pieces| async move {
        let piece = match tokio::time::timeout(HEARTBEAT, pieces.recv()).await {
            Ok(piece) => piece?,
            Err(_) => Bytes::from_static(F::BEAT.as_bytes()),
        };
        Some((Ok::<_, Infallible>(piece), pieces))
    });
    Body::from_stream(pieces)
}

/// The same for whoever sends the pieces himself.
pub(crate) fn pieces<F: Form>(
    events: EventStream,
    stop: CancellationToken,
    stalled: Duration,
) -> mpsc::Receiver<Bytes> {
    let (queue, pieces) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        tokio::select! {
            () = pump::<F>(events, &queue, stalled) => {}
            () = queue.closed() => {}
            () = stop.cancelled() => {}
        }
    });
    pieces
}

async fn pump<F: Form>(mut events: EventStream, queue: &mpsc::Sender<Bytes>, stalled: Duration) {
    if !F::HEAD.is_empty() && queue.send(Bytes::from_static(F::HEAD.as_bytes())).await.is_err() {
        return;
    }
    if let Some((from, to)) = events.gap()
        && queue.send(F::gap(from, to)).await.is_err()
    {
        return;
    }
    loop {
        let (pieces, is_last) = match events.next_chunk().await {
            Some(Ok(chunk)) => (shape_chunk::<F>(&chunk), false),
            // Nobody may take what would follow for a sequence without a gap.
            Some(Err(error)) => (vec![F::farewell(&farewell(&error))], true),
            None => return,
        };
        for piece in pieces {
            // The reader's own slowness ends here: what he does not take in time he reads from the log later.
            match tokio::time::timeout(stalled, queue.reserve()).await {
                Ok(Ok(place)) => place.send(piece),
                Ok(Err(_)) => return,
                Err(_) => {
                    let _ = queue.try_send(F::farewell("too slow; resume from the last number you have"));
                    return;
                }
            }
        }
        if is_last {
            return;
        }
    }
}

fn shape_chunk<F: Form>(chunk: &Chunk) -> Vec<Bytes> {
    match chunk {
        Chunk::Whole(batch) => {
            let whole = batch.shaped.or_make(F::SLOT, || {
                let pieces = batch.events.iter().map(|heard| F::shape(&heard.entry));
                pieces
                    .fold(BytesMut::new(), |mut all, piece| {
                        all.extend_from_slice(&piece);
                        all
                    })
                    .freeze()
            });
            vec![whole]
        }
        Chunk::Some(events) => {
            let mut pieces = Vec::new();
            let mut piece = BytesMut::new();
            for heard in events {
                piece.extend_from_slice(&shape_one::<F>(heard));
                if piece.len() >= PIECE {
                    pieces.push(piece.split().freeze());
                }
            }
            if !piece.is_empty() {
                pieces.push(piece.freeze());
            }
            pieces
        }
    }
}

fn shape_one<F: Form>(heard: &Heard) -> Bytes {
    heard.shaped.or_make(F::SLOT, || F::shape(&heard.entry))
}

fn farewell(error: &Error) -> String {
    tracing::error!(%error, "a reader of events was cut off");
    "the log cannot be read now; resume from the last number you have".into()
}
