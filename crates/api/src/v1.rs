//! `/api/v1`: one file per resource, and the router that is made of them.
//!
//! Each file has its routes beside its handlers; the same lines make the router and the OpenAPI document. Whoever serves the
//! router has to put a [`saltern_server::app::Caller`] into the extensions of every request. What changes something runs in a
//! task of its own ([`to_the_end`]): a client that hangs up must not leave a thing half done.

mod actions;
mod audit;
mod calendars;
mod chains;
mod docs;
mod events;
mod functions;
mod groups;
mod jobs;
mod keys;
mod launches;
mod minions;
mod organisations;
mod recurring;
mod schedules;
mod sessions;
mod states;
mod status;
mod tokens;
mod users;
mod wait;
mod webhooks;
mod windows;

use crate::error::ApiError;
use crate::extract::not_modified;
use crate::fields::{self, Known};
use crate::login::Gate;
use crate::{idempotency, openapi};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use docs::Docs;
use saltern_server::Error;
use saltern_server::app::{App, Caller};
use std::future::Future;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) app: App,
    /// Ends the answers that have no end
    pub(crate) stop: CancellationToken,
    /// Who checks passwords; nothing where nobody has to log in
    gate: Option<Arc<Gate>>,
    docs: Arc<Docs>,
}

/// Everything under `/api/v1`, with its description.
pub(crate) fn routes() -> OpenApiRouter<Shared> {
    let v1 = OpenApiRouter::new()
        .merge(jobs::routes())
        .merge(wait::routes())
        .merge(actions::routes())
        .merge(chains::routes())
        .merge(launches::routes())
        .merge(recurring::routes())
        .merge(calendars::routes())
        .merge(schedules::routes())
        .merge(windows::routes())
        .merge(events::routes())
        .merge(minions::routes())
        .merge(keys::routes())
        .merge(functions::routes())
        .merge(groups::routes())
        .merge(organisations::routes())
        .merge(states::routes())
        .merge(users::routes())
        .merge(tokens::routes())
        .merge(sessions::routes())
        .merge(webhooks::routes())
        .merge(audit::routes())
        .merge(status::routes())
        .merge(docs::routes());
    OpenApiRouter::new().nest("/api/v1", v1)
}

/// The router. Streams end when `stop` is cancelled; without a `gate` there is no log-in.
pub fn router(app: App, gate: Option<Arc<Gate>>, stop: CancellationToken) -> Router {
    let (v1, document) = routes().split_for_parts();
    let document = openapi::complete(&document);
    // A job's arguments may carry a file.
    let limit = app.config().http.http_max_body;
    let shared = Shared { app, stop, gate, docs: Arc::new(Docs::new(&document)) };
    v1.route_layer(middleware::from_fn_with_state(shared.clone(), idempotency::keep))
        .route_layer(middleware::from_fn_with_state(Arc::new(Known::read(&document)), fields::select))
        .route_layer(middleware::from_fn(not_modified))
        .route("/healthz", get(status::healthz))
        .route("/readyz", get(status::readyz))
        .route("/metrics", get(status::metrics))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(move |request, next| refuse_large(limit, request, next)))
        .with_state(shared)
}

/// Refuses by what is announced, before a byte of it is read; what is not announced is counted while it comes.
async fn refuse_large(limit: usize, mut request: Request, next: Next) -> Response {
    // What a stranger may send is limited where it is found out that he is one.
    if request.extensions().get::<Caller>().is_some() {
        DefaultBodyLimit::max(limit).apply(&mut request);
    }
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        let message = format!("the body is larger than {limit} bytes");
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
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message, "the header Allow tells what it takes")
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
