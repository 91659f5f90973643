//! What handlers take from a request; a request that does not fit is answered as every other error is.

mod limit;
mod version;

pub(crate) use limit::{Limit, Ordering, page};
pub(crate) use version::{Expected, Versioned, not_modified};

use crate::error::ApiError;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use saltern_server::Error;
use saltern_server::app::Caller;
use serde::de::DeserializeOwned;

/// The body: a JSON object.
pub(crate) struct Json<T>(pub(crate) T);

/// The query.
pub(crate) struct Query<T>(pub(crate) T);

/// The variable part of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            let hint = "send the header `Content-Type: application/json`";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid", "the body is not JSON", hint));
        }
        let body = Bytes::from_request(request, state).await.map_err(|rejection| {
            let text = rejection.body_text();
            match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text, "send less in one request")
                }
                _ => ApiError::invalid(text),
            }
        })?;
        // serde would take a list for an object, its items for the fields in the order they happen to be written down.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(ApiError::invalid("the body is not a JSON object"));
        }
        serde_json::from_slice(&body).map(Self).map_err(|error| ApiError::invalid(format!("the body: {error}")))
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

/// Who asks. A request nobody has shown a valid token for is refused here, before its handler runs.
pub(crate) struct Who(pub(crate) Caller);

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let known = parts.extensions.get::<Caller>().cloned();
        known.map(Self).ok_or_else(|| Error::Unauthenticated("log in first, or send a token".into()).into())
    }
}

/// The query of what takes none: whatever is there is a mistake.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

fn is_json(headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Change {
        #[serde(default)]
        name: Option<String>,
    }

    async fn read(content_type: &str, body: &str) -> Result<Option<String>, u16> {
        let request = Request::builder().header(header::CONTENT_TYPE, content_type).body(Body::from(body.to_owned()));
        let read = Json::<Change>::from_request(request.unwrap(), &()).await;
        read.map(|Json(change)| change.name).map_err(|error| error.into_response().status().as_u16())
    }

    #[tokio::test]
    async fn a_body_is_an_object() {
        assert_eq!(read("application/json", r#" {"name": "x"}"#).await, Ok(Some("x".into())));
        assert_eq!(read("application/merge-patch+json; charset=utf-8", "{}").await, Ok(None));
        for body in ["", "[]", r#"["x"]"#, "null", "7", "{", r#"{"nam": 1}"#, r#"{"name": "x", "name": "y"}"#] {
            assert_eq!(read("application/json", body).await, Err(400), "{body}");
        }
    }

    #[tokio::test]
    async fn a_body_says_that_it_is_json() {
        for content_type in ["text/plain", "application/x-www-form-urlencoded", "", "json"] {
            assert_eq!(read(content_type, "{}").await, Err(415), "{content_type}");
        }
    }
}
