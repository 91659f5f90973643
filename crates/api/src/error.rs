//! Errors on their way out: the only place where an error becomes an HTTP status.
//!
//! The body is problem JSON (RFC 9457) whatever refused the request: a handler, an extractor, a limit, or the router itself.

use crate::shape::{ErrorLine, Problem};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use saltern_server::{Class, Error};
use std::time::Duration;

/// The content type of errors.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An error that is answered to a client.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    detail: String,
    hint: &'static str,
    retry_after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>, hint: &'static str) -> Self {
        Self { status, code, detail: detail.into(), hint, retry_after: None }
    }

    /// A request that makes no sense as it is.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Error::Invalid(message.into()).into()
    }

    /// Too often; again after `wait`.
    pub(crate) fn too_many(message: impl Into<String>, wait: Duration) -> Self {
        let hint = "wait as long as Retry-After says";
        Self { retry_after: Some(wait), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many", message, hint) }
    }

    /// The body of the answer.
    pub(crate) fn problem(self) -> Problem {
        Problem {
            kind: "about:blank".into(),
            title: self.status.canonical_reason().unwrap_or_default().into(),
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code.into(),
            hint: self.hint.into(),
        }
    }

    /// The last line of a stream.
    pub(crate) fn line(self) -> ErrorLine {
        self.problem().into()
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let (status, code, hint) = match error.class() {
            Class::Invalid => (StatusCode::BAD_REQUEST, "invalid", ""),
            Class::NotFound => (StatusCode::NOT_FOUND, "not_found", ""),
            Class::Conflict => (StatusCode::CONFLICT, "conflict", ""),
            Class::Unauthenticated => {
                let hint = "POST /api/v1/sessions, or `saltern token create`, gives a token";
                (StatusCode::UNAUTHORIZED, "unauthenticated", hint)
            }
            Class::Forbidden => (StatusCode::FORBIDDEN, "forbidden", ""),
            Class::Stale => (StatusCode::PRECONDITION_FAILED, "stale", "read it again, then change it"),
            Class::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", "try again in a moment"),
            Class::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server's log tells more"),
        };
        if error.class() == Class::Internal {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(%error, source, "a request failed");
        }
        Self::new(status, code, error.to_string(), hint)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.status, self.retry_after);
        let body = serde_json::to_vec(&self.problem()).unwrap_or_default();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = retry_after {
            headers.insert(header::RETRY_AFTER, wait.as_secs().max(1).into());
        }
        (status, headers, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[test]
    fn each_class_has_its_status() {
        let status = |error: Error| ApiError::from(error).into_response().status().as_u16();
        assert_eq!(status(Error::Invalid("x".into())), 400);
        assert_eq!(status(Error::Unauthenticated("x".into())), 401);
        assert_eq!(status(Error::Forbidden("x".into())), 403);
        assert_eq!(status(Error::NotFound("x".into())), 404);
        assert_eq!(status(Error::Conflict("x".into())), 409);
        assert_eq!(status(Error::Stale("x".into())), 412);
        assert_eq!(status(Error::Stopping), 503);
        assert_eq!(status(Error::Internal("x".into())), 500);
    }

    #[tokio::test]
    async fn errors_are_problem_json() {
        let answer = ApiError::from(Error::NotFound("there is no job 7".into())).into_response();
        assert_eq!(answer.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let expected = r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"there is no job 7","code":"not_found"}"#;
        assert_eq!(body, expected);
    }

    #[test]
    fn who_has_to_wait_is_told_how_long() {
        let answer = ApiError::too_many("x", Duration::from_millis(200)).into_response();
        assert_eq!(answer.headers()[header::RETRY_AFTER], "1");
    }
}
