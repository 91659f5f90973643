//! What every request passes, in order. What is outside sees what is inside fail: a handler's panic is logged, has the
//! security headers, and can be read by a page of an allowed origin.

use super::cors::{self, Origins};
use super::headers::{self, Secured};
use super::limits::{self, Limits};
use super::log::{self, Ids};
use super::{HttpSettings, compress, streams};
use crate::error::ApiError;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router, middleware};
use std::any::Any;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

/// Puts everything around `router`. The last one named here is the first to see a request.
pub(super) fn around(router: Router, settings: &HttpSettings, origins: Origins, stop: CancellationToken) -> Router {
    let limits = Limits { body: settings.max_body, time: settings.request_timeout };
    let secured = Secured(settings.tls.is_some());
    router
        // Bodies are counted by `limits` for all handlers alike; a router may still ask for less.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(limits, limits::keep))
        .layer(CatchPanicLayer::custom(answer_for_panic))
        .layer(middleware::from_fn_with_state(stop, streams::end_at))
        .layer(compress::layer())
        .layer(middleware::from_fn(compress::choose))
        .layer(cors::layer(&origins))
        .layer(Extension(origins))
        .layer(middleware::from_fn_with_state(secured, headers::secure))
        .layer(middleware::from_fn_with_state(Arc::new(Ids::new()), log::write))
}

/// The answer of a handler that panicked. What the panic says is for the log: it may quote anything.
fn answer_for_panic(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    tracing::error!(panic = text, "a handler panicked");
    let message = "the request could not be served because of a defect in the server";
    let hint = "the server's log tells more, under the id in X-Request-Id";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message, hint).into_response()
}
