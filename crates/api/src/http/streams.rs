//! Answers that have no end: they are known by their type, are never compressed, and end when the server stops.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Extensions;
use axum::http::header::{self, HeaderMap};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

/// In a response's extensions: it has no end, whatever its content type.
#[derive(Clone, Copy, Debug)]
pub struct Endless;

const TYPES: [&str; 2] = ["text/event-stream", "application/x-ndjson"];

/// Whether an answer has no end.
pub(super) fn is_stream(headers: &HeaderMap, extensions: &Extensions) -> bool {
    extensions.get::<Endless>().is_some() || media_type(headers).is_some_and(|found| TYPES.contains(&found.as_str()))
}

/// The content type in lower case, without its parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next()?.trim().to_ascii_lowercase())
}

/// Ends streams at `stop`, so that no reader keeps the server from stopping.
pub(super) async fn end_at(State(stop): State<CancellationToken>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if !is_stream(response.headers(), response.extensions()) {
        return response;
    }
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(stop.cancelled_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn is_stream_of(content_type: &'static str) -> bool {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        is_stream(&headers, &Extensions::new())
    }

    #[test]
    fn streams_are_known_by_their_type() {
        assert!(is_stream_of("text/event-stream"));
        assert!(is_stream_of("Text/Event-Stream; charset=utf-8"));
        assert!(is_stream_of("application/x-ndjson"));
        assert!(!is_stream_of("application/json"));
    }

    #[test]
    fn a_handler_may_say_that_there_is_no_end() {
        let mut extensions = Extensions::new();
        assert!(!is_stream(&HeaderMap::new(), &extensions));
        extensions.insert(Endless);
        assert!(is_stream(&HeaderMap::new(), &extensions));
    }
}
