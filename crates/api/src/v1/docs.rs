//! The API's description: for programs as OpenAPI, for people as a page.

use super::Shared;
use crate::extract::{Nothing, Query};
use crate::openapi::{self, STYLE};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The document and what is made of it, once.
#[derive(Debug)]
pub(crate) struct Docs {
    json: Bytes,
    page: Bytes,
}

impl Docs {
    pub(super) fn new(document: &Value) -> Self {
        Self { json: document.to_string().into(), page: openapi::page(document).into() }
    }
}

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(document)).routes(routes!(page)).routes(routes!(style))
}

/// Get this document
///
/// The OpenAPI description of everything under `/api/v1`. No log-in is needed.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "get_openapi", tag = "documentation", security(()),
    responses((status = 200, description = "The document", content_type = "application/openapi+json", body = Value))
)]
async fn document(State(shared): State<Shared>, Query(Nothing {}): Query<Nothing>) -> impl IntoResponse {
    let headers = [(header::CONTENT_TYPE, "application/openapi+json"), (header::CACHE_CONTROL, "no-cache")];
    (headers, shared.docs.json.clone())
}

/// Read the documentation
///
/// This document as a page for people. No log-in is needed.
#[utoipa::path(
    get, path = "/docs", operation_id = "get_docs", tag = "documentation", security(()),
    responses((status = 200, description = "The page", content_type = "text/html", body = String))
)]
async fn page(State(shared): State<Shared>, Query(Nothing {}): Query<Nothing>) -> impl IntoResponse {
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    (headers, shared.docs.page.clone())
}

/// Get the documentation's style sheet
///
/// What the page looks like.
#[utoipa::path(
    get, path = "/docs.css", operation_id = "get_docs_style", tag = "documentation", security(()),
    responses((status = 200, description = "The style sheet", content_type = "text/css", body = String))
)]
async fn style(Query(Nothing {}): Query<Nothing>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")], STYLE)
}
