//! Answers that have no end yet: one JSON value per line, a blank line when there was nothing to say for a while.
//!
//! What makes the lines runs in a task of its own and is never interrupted half way; between it and the client is a short
//! queue. A client that reads slowly makes it wait, which costs nothing: followers of the event log read on from the
//! database when they have fallen behind.

use crate::error::ApiError;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use saltern_server::Error;
use serde::Serialize;
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long a stream may be silent.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// Lines that wait for a slow client.
const QUEUE: usize = 64;

/// Something that yields values until it has no more.
pub(crate) trait Source: Send + 'static {
    /// One line
    type Item: Serialize + Send;

    /// The next one; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Result<Self::Item, Error>>> + Send;
}

/// An answer made of what `source` yields, until it ends, the client leaves or the server stops.
///
/// An error is the last line: nobody may take what would follow for a sequence without a gap.
pub(crate) fn lines(mut source: impl Source, stop: CancellationToken) -> Response {
    let (queue, lines) = mpsc::channel::<Bytes>(QUEUE);
    tokio::spawn(async move {
        let pump = async {
            while let Some(item) = source.next().await {
                let (line, is_last) = match item {
                    Ok(item) => (line(&item), false),
                    Err(error) => (line(&ApiError::from(error).line()), true),
                };
                if queue.send(line).await.is_err() || is_last {
                    break;
                }
            }
        };
        tokio::select! {
            () = pump => {}
            () = queue.closed() => {}
            () = stop.cancelled() => {}
        }
    });
    let body = stream::unfold(lines, |mut lines| async move {
        let line = match tokio::time::timeout(HEARTBEAT, lines.recv()).await {
            Ok(line) => line?,
            Err(_) => Bytes::from_static(b"\n"),
        };
        Some((Ok::<_, Infallible>(line), lines))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(body)).into_response()
}

fn line(item: &impl Serialize) -> Bytes {
    // Our shapes are maps with text keys, which JSON can always carry; a blank line would be skipped by clients.
    let mut line = serde_json::to_vec(item).unwrap_or_default();
    line.push(b'\n');
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    struct Count(u32, u32);

    impl Source for Count {
        type Item = u32;
        async fn next(&mut self) -> Option<Result<u32, Error>> {
            self.0 += 1;
            (self.0 <= self.1).then_some(Ok(self.0))
        }
    }

    struct Never;

    impl Source for Never {
        type Item = u32;
        async fn next(&mut self) -> Option<Result<u32, Error>> {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn each_value_is_a_line() {
        let answer = lines(Count(0, 3), CancellationToken::new());
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "1\n2\n3\n");
    }

    struct Broken;

    impl Source for Broken {
        type Item = u32;
        async fn next(&mut self) -> Option<Result<u32, Error>> {
            Some(Err(Error::Stopping))
        }
    }

    #[tokio::test]
    async fn an_error_is_the_last_line() {
        let answer = lines(Broken, CancellationToken::new());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&body).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with(r#"{"error":{"code":"busy""#), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_by_a_blank_line() {
        let mut body = lines(Never, CancellationToken::new()).into_body();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "\n");
    }

    #[tokio::test]
    async fn a_stream_ends_when_the_server_stops() {
        let stop = CancellationToken::new();
        let answer = lines(Never, stop.clone());
        stop.cancel();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "");
    }

    struct Dropped(Option<tokio::sync::oneshot::Sender<()>>);

    impl Source for Dropped {
        type Item = u32;
        async fn next(&mut self) -> Option<Result<u32, Error>> {
            std::future::pending().await
        }
    }

    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.take().map(|told| told.send(()));
        }
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_its_source() {
        let (tell, told) = tokio::sync::oneshot::channel();
        drop(lines(Dropped(Some(tell)), CancellationToken::new()));
        told.await.unwrap();
    }
}
