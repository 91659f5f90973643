//! Errors on their way out: the only place where an error becomes an HTTP status.

use crate::shape::{ErrorBody, Problem};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use saltern_server::{Class, Error};

/// An error that is answered to a client.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    problem: Problem,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>, hint: &str) -> Self {
        Self { status, problem: Problem { code: code.into(), message: message.into(), hint: hint.into() } }
    }

    /// A request that makes no sense as it is.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Error::Invalid(message.into()).into()
    }

    pub(crate) fn problem(self) -> Problem {
        self.problem
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let (status, code, hint) = match error.class() {
            Class::Invalid => (StatusCode::BAD_REQUEST, "invalid", ""),
            Class::NotFound => (StatusCode::NOT_FOUND, "not_found", ""),
            Class::Conflict => (StatusCode::CONFLICT, "conflict", ""),
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
        (self.status, Json(ErrorBody { error: self.problem })).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_status() {
        let status = |error: Error| ApiError::from(error).into_response().status().as_u16();
        assert_eq!(status(Error::Invalid("x".into())), 400);
        assert_eq!(status(Error::NotFound("x".into())), 404);
        assert_eq!(status(Error::Conflict("x".into())), 409);
        assert_eq!(status(Error::Stopping), 503);
        assert_eq!(status(Error::Internal("x".into())), 500);
    }
}
