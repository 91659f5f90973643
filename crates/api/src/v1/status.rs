//! How the server is doing.

use super::Shared;
use crate::error::ApiError;
use crate::shape::Status;
use axum::extract::State;
use rustix::process::{Resource, getrlimit};
use saltern_server::clock;

pub(super) async fn show(State(shared): State<Shared>) -> Result<axum::Json<Status>, ApiError> {
    let status = shared.app.status().await?;
    Ok(axum::Json(Status::of(status, clock::now(), getrlimit(Resource::Nofile).current)))
}

/// Answers as long as the process does; whether the database answers is `status`.
pub(super) async fn healthz() -> axum::Json<serde_json::Value> {
    axum::Json(serde_json::json!({ "status": "ok" }))
}
