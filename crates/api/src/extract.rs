//! What handlers take from a request; a request that does not fit is answered as every other error is.

use crate::error::ApiError;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// The body, as JSON.
pub(crate) struct Json<T>(pub(crate) T);

/// The query.
pub(crate) struct Query<T>(pub(crate) T);

/// The variable part of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = axum::Json::<T>::from_request(request, state).await;
        body.map(|axum::Json(body)| Self(body)).map_err(refuse_body)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0)).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}

fn refuse_body(rejection: JsonRejection) -> ApiError {
    let status = rejection.status();
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::new(status, "too_large", rejection.body_text(), "send less in one request")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            ApiError::new(status, "invalid", "the body is not JSON", "send the header `Content-Type: application/json`")
        }
        _ => ApiError::invalid(rejection.body_text()),
    }
}
