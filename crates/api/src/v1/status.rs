//! How the server is doing: for people, for monitoring, and what it could not process.

use super::Shared;
use crate::error::ApiError;
use crate::extract::{Limit, Nothing, Query, Who};
use crate::shape::{DeadLetterList, Status};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use rustix::process::{Resource, getrlimit};
use saltern_server::{Error, clock};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The text format of Prometheus.
const PROMETHEUS: &str = "text/plain; version=0.0.4";

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(dead_letters))
}

/// Show how the server is doing
///
/// Versions, ports, counts, the newest event, the backlog of writes. For server admins.
#[utoipa::path(
    get, path = "/status", operation_id = "show_status", tag = "server",
    responses((status = 200, description = "How it is doing", body = Status))
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<Status>, ApiError> {
    let status = shared.app.status(&caller).await?;
    Ok(axum::Json(Status::of(status, clock::now(), getrlimit(Resource::Nofile).current)))
}

/// Answers as long as the process does; whether it can work is `readyz`.
pub(super) async fn healthz() -> axum::Json<serde_json::Value> {
    axum::Json(serde_json::json!({ "status": "ok" }))
}

/// Answers 200 if the server can work: its database answers. That somebody reads this shows that the listener is up.
pub(super) async fn readyz(State(shared): State<Shared>) -> Result<axum::Json<serde_json::Value>, ApiError> {
    let not_ready = |error: Error| {
        tracing::warn!(%error, "not ready");
        let message = "the database does not answer";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message, "the server's log tells more")
    };
    shared.app.ready().await.map_err(not_ready)?;
    Ok(axum::Json(serde_json::json!({ "status": "ready" })))
}

pub(super) async fn metrics(State(shared): State<Shared>, Who(caller): Who) -> Result<impl IntoResponse, ApiError> {
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], shared.app.metrics(&caller).await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeadLetterQuery {
    /// Only letters before this number
    before: Option<i64>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// List dead letters
///
/// What was received and could not be processed, newest first. For server admins.
#[utoipa::path(
    get, path = "/dead-letters", operation_id = "list_dead_letters", tag = "server", params(DeadLetterQuery),
    responses((status = 200, description = "A page of letters", body = DeadLetterList))
)]
async fn dead_letters(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<DeadLetterQuery>,
) -> Result<axum::Json<DeadLetterList>, ApiError> {
    let letters = shared.app.dead_letters(&caller, query.before, query.limit.0).await?;
    let next = query.limit.next(&letters, |(number, _)| *number);
    Ok(axum::Json(DeadLetterList { dead_letters: letters.into_iter().map(Into::into).collect(), next }))
}
