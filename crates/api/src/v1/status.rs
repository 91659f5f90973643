//! How the server is doing: for people, for monitoring, and what it could not process.

use super::Shared;
use crate::error::ApiError;
use crate::extract::Query;
use crate::shape::{DeadLetterList, Status};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use rustix::process::{Resource, getrlimit};
use saltern_server::clock;
use serde::Deserialize;

/// How many dead letters a list has unless told.
const PAGE: usize = 50;

/// The text format of Prometheus.
const PROMETHEUS: &str = "text/plain; version=0.0.4";

pub(super) async fn show(State(shared): State<Shared>) -> Result<axum::Json<Status>, ApiError> {
    let status = shared.app.status().await?;
    Ok(axum::Json(Status::of(status, clock::now(), getrlimit(Resource::Nofile).current)))
}

/// Answers as long as the process does; whether the database answers is `status`.
pub(super) async fn healthz() -> axum::Json<serde_json::Value> {
    axum::Json(serde_json::json!({ "status": "ok" }))
}

pub(super) async fn metrics(State(shared): State<Shared>) -> Result<impl IntoResponse, ApiError> {
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], shared.app.metrics().await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeadLetterQuery {
    before: Option<i64>,
    limit: Option<usize>,
}

pub(super) async fn dead_letters(
    State(shared): State<Shared>,
    Query(query): Query<DeadLetterQuery>,
) -> Result<axum::Json<DeadLetterList>, ApiError> {
    let letters = shared.app.dead_letters(query.before, query.limit.unwrap_or(PAGE)).await?;
    Ok(axum::Json(DeadLetterList { dead_letters: letters.into_iter().map(Into::into).collect() }))
}
