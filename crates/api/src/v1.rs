//! `/api/v1`: one file per resource, and the table of routes.
//!
//! Whoever serves the router has to put a [`Caller`] into the extensions of every request. What changes something runs in a
//! task of its own ([`to_the_end`]): a client that hangs up must not leave a thing half done.

mod actions;
mod events;
mod jobs;
mod keys;
mod minions;
mod status;

use crate::error::ApiError;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use saltern_server::Error;
use saltern_server::app::{App, Caller};
use std::future::Future;
use tokio_util::sync::CancellationToken;

/// The largest body that is read: a job's arguments may carry a file.
const BODY_LIMIT: usize = 32 << 20;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) app: App,
    /// Ends the answers that have no end
    pub(crate) stop: CancellationToken,
}

/// The routes. Streams end when `stop` is cancelled.
pub fn router(app: App, stop: CancellationToken) -> Router {
    let v1 = Router::new()
        .route("/run", post(jobs::run))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{jid}", get(jobs::show))
        .route("/jobs/{jid}/watch", get(jobs::watch))
        .route("/actions", get(actions::list).post(actions::create))
        // One segment names an action to look at, or a verb for many.
        .route("/actions/{id}", get(actions::show).post(actions::act_on_many))
        .route("/actions/{id}/{verb}", post(actions::act_on_one))
        .route("/actions/{id}/runs", get(actions::runs))
        .route("/actions/{id}/runs/{minion}", get(actions::run))
        .route("/actions/{id}/runs/{minion}/explain", get(actions::explain))
        .route("/action-types", get(actions::types))
        .route("/dead-letters", get(status::dead_letters))
        .route("/keys", get(keys::list))
        .route("/keys/{id}", get(keys::show))
        .route("/keys/accept", post(keys::accept))
        .route("/keys/reject", post(keys::reject))
        .route("/keys/delete", post(keys::delete))
        .route("/minions", get(minions::list))
        .route("/minions/{id}", get(minions::show).patch(minions::change))
        .route("/events", get(events::follow))
        .route("/status", get(status::show));
    Router::new()
        .nest("/api/v1", v1)
        .route("/healthz", get(status::healthz))
        .route("/metrics", get(status::metrics))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(middleware::from_fn(refuse_large))
        .with_state(Shared { app, stop })
}

/// Refuses by what is announced, before a byte of it is read; what is not announced is counted while it comes.
async fn refuse_large(request: Request, next: Next) -> Response {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > BODY_LIMIT) {
        let message = format!("the body is larger than {BODY_LIMIT} bytes");
        let hint = "send less in one request";
        return ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message, hint).into_response();
    }
    next.run(request).await
}

async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("there is nothing at {}", uri.path()), "")
}

async fn no_such_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not take {method}", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid", message, "")
}

/// Runs to its end what the client may not interrupt by hanging up.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::spawn(work).await {
        Ok(outcome) => Ok(outcome?),
        Err(error) => Err(Error::Internal(format!("the request was not finished: {error}")).into()),
    }
}
