//! How much a request may send and how long it may take.
//!
//! A body is refused by what is announced before a byte of it is read, and by what has come while it is read; then the
//! answer is 413 whatever the handler made of the half body. The time is counted until the answer begins, so streams are not
//! cut; a handler that waits for something on purpose asks for more with [`TimeLimit`].

use super::socket::Unread;
use crate::error::ApiError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The largest body, in bytes
    pub(super) body: usize,
    /// The time until the answer begins
    pub(super) time: Duration,
}

/// Until when a request has to be answered. Handlers take it as an argument to ask for more.
#[derive(Clone, Debug)]
pub struct TimeLimit {
    until: Arc<Mutex<Instant>>,
    /// What a request has in all whose sender is known
    whole: Duration,
}

/// What a stranger has for his request: he could hold a connection by sending slowly.
const STRANGER: Duration = Duration::from_secs(60);

impl TimeLimit {
    fn new(whole: Duration) -> Self {
        Self { until: Arc::new(Mutex::new(after(whole.min(STRANGER)))), whole }
    }

    /// The sender is known: he may take as long as requests may.
    pub(super) fn grant(&self) {
        self.extend(self.whole);
    }

    /// Lets the request take `span` from now on; never less than it had.
    pub fn extend(&self, span: Duration) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = after(span).max(*until);
    }

    async fn passed(&self) {
        loop {
            let until = self.at();
            sleep_until(until).await;
            if self.at() == until {
                return;
            }
        }
    }

    fn at(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A moment that exists, however long `span` is.
fn after(span: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
    Instant::now() + span.min(LONGEST)
}

impl<S: Sync> FromRequestParts<S> for TimeLimit {
    type Rejection = Infallible;

    /// Where nobody limits the time, as on the control socket, asking for more changes nothing.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Self::new(Duration::ZERO)))
    }
}

/// Keeps the limits.
pub(super) async fn keep(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let unread = request.extensions().get::<Unread>().cloned().unwrap_or_default();
    let arrival = Arc::<Arrival>::default();
    let time = TimeLimit::new(limits.time);
    let mut response = if announced(request.headers()).is_some_and(|length| length > limits.body as u64) {
        too_large(limits.body)
    } else {
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(time.clone());
        arrival.is_whole.store(body.is_end_stream(), Ordering::Relaxed);
        let body = Body::new(Counted { body, left: limits.body, arrival: Arc::clone(&arrival) });
        let answer = next.run(Request::from_parts(parts, body));
        let answer = tokio::select! {
            answer = answer => Some(answer),
            () = time.passed() => None,
        };
        match answer {
            _ if arrival.is_too_much() => too_large(limits.body),
            Some(answer) => answer,
            None if arrival.is_whole() => too_slow(),
            None => too_slowly_sent(),
        }
    };
    unread.set(!arrival.is_whole());
    if matches!(response.status(), StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
        // The rest of the body would be read as the next request.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(limit: usize) -> Response {
    let message = format!("the body is larger than {limit} bytes");
    let hint = "send less in one request, or raise http_max_body";
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message, hint).into_response()
}

fn too_slow() -> Response {
    let message = "the request took too long and was given up";
    let hint = "what it began may go on: look before you ask again";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message, hint).into_response()
}

fn too_slowly_sent() -> Response {
    let message = "the body of the request took too long to arrive";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message, "nothing was done; send it again").into_response()
}

/// What the body tells of itself while a handler reads it.
#[derive(Debug, Default)]
struct Arrival {
    is_whole: AtomicBool,
    is_too_much: AtomicBool,
}

impl Arrival {
    fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Relaxed)
    }

    fn is_too_much(&self) -> bool {
        self.is_too_much.load(Ordering::Relaxed)
    }
}

/// A body that is counted.
struct Counted {
    body: Body,
    left: usize,
    arrival: Arc<Arrival>,
}

/// What a handler hears that reads on; what the client hears is 413.
#[derive(Debug, thiserror::Error)]
#[error("the body is larger than allowed")]
struct TooLarge;

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        if self.arrival.is_too_much() {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let size = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
        if size > self.left {
            self.arrival.is_too_much.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(TooLarge.into())));
        }
        self.left -= size;
        if frame.is_none() || self.body.is_end_stream() {
            self.arrival.is_whole.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt as _, StreamBody};

    /// A body that comes in pieces, as when its length is not announced.
    fn pieces(sizes: &[usize]) -> Body {
        let frames: Vec<_> = sizes.iter().map(|size| Ok::<_, Infallible>(Frame::data(vec![0; *size].into()))).collect();
        Body::new(StreamBody::new(futures_util::stream::iter(frames)))
    }

    async fn read(sizes: &[usize], limit: usize) -> (bool, Arc<Arrival>) {
        let arrival = Arc::<Arrival>::default();
        let counted = Counted { body: pieces(sizes), left: limit, arrival: Arc::clone(&arrival) };
        (counted.collect().await.is_ok(), arrival)
    }

    #[tokio::test]
    async fn a_body_as_large_as_the_limit_is_read() {
        let (is_read, arrival) = read(&[4, 4, 2], 10).await;
        assert!(is_read && arrival.is_whole() && !arrival.is_too_much());
    }

    #[tokio::test]
    async fn one_byte_more_is_too_much() {
        let (is_read, arrival) = read(&[4, 4, 3], 10).await;
        assert!(!is_read && !arrival.is_whole() && arrival.is_too_much());
    }

    #[tokio::test(start_paused = true)]
    async fn more_time_can_be_asked_for() {
        let limit = TimeLimit::new(Duration::from_secs(10));
        let started = Instant::now();
        let ask = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            limit.extend(Duration::from_secs(20));
            limit.extend(Duration::from_secs(1));
        };
        tokio::join!(limit.passed(), ask);
        assert_eq!(started.elapsed(), Duration::from_secs(25));
    }

    #[tokio::test]
    async fn a_span_beyond_all_time_is_cut() {
        TimeLimit::new(Duration::MAX).extend(Duration::MAX);
    }
}
