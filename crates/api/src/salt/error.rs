//! Errors as clients of salt-api know them: the status says what happened, the body says it in JSON.
//!
//! `return` holds the sentence that rest_cherrypy has on its error pages, which scripts search for; `error` says more where
//! we know more. Permission failures are 401 like failed log-ins: SaltGUI and pepper rely on it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use saltern_server::{Class, Error};
use std::time::Duration;

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    /// What salt-api says
    message: String,
    /// What we know besides
    detail: Option<String>,
    retry_after: Option<Duration>,
}

/// Whose words a refusal is told in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// The `local` family
    Local,
    /// Runners and wheel functions
    Master,
}

/// How somebody showed who he is: it is named in refusals of runners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// By a token
    Token,
    /// By user name, password and backend
    Password,
}

impl Failure {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), detail: None, retry_after: None }
    }

    /// A request that makes no sense as it is.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// No session, or one that is not known.
    pub(super) fn no_session() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "No permission -- see authorization schemes")
    }

    /// Credentials that are wrong at the door.
    pub(super) fn not_signed_in() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Could not authenticate using provided credentials")
    }

    /// A command without any credentials.
    pub(super) fn no_credentials() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "No authentication credentials given")
    }

    /// A token that cannot be one.
    pub(super) fn no_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Invalid token")
    }

    /// A path, or a part of one, that leads nowhere.
    pub(super) fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Nothing matches the given URI")
    }

    /// A body that is too much.
    pub(super) fn too_large(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {limit} bytes"))
    }

    /// A runner that takes longer than the caller wanted to wait.
    pub(super) fn too_late() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "The gateway server did not receive a timely response")
    }

    /// Too many tries.
    pub(super) fn too_many(retry_after: Duration) -> Self {
        let message = "Too many failed log-ins; try again later";
        Self { retry_after: Some(retry_after), ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// Credentials inside a command that are wrong.
    pub(super) fn wrong_credentials(voice: Voice, proof: Proof, user: &str) -> Self {
        match voice {
            Voice::Local => Self::new(StatusCode::UNAUTHORIZED, "Authentication error occurred."),
            Voice::Master => Self::new(StatusCode::UNAUTHORIZED, master_refusal(proof, user)),
        }
    }

    /// Something that is not permitted.
    pub(super) fn forbidden(voice: Voice, proof: Proof, user: &str, why: impl Into<String>) -> Self {
        let message = match voice {
            Voice::Local => "Authorization error occurred.".into(),
            Voice::Master => master_refusal(proof, user),
        };
        Self { detail: Some(why.into()), ..Self::new(StatusCode::UNAUTHORIZED, message) }
    }

    /// What the server says, in the words of this caller's client.
    pub(super) fn of(error: Error, voice: Voice, proof: Proof, user: &str) -> Self {
        match error.class() {
            Class::Forbidden => Self::forbidden(voice, proof, user, error.to_string()),
            Class::Unauthenticated => Self::wrong_credentials(voice, proof, user),
            _ => error.into(),
        }
    }

    /// Its status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// What it says.
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

fn master_refusal(proof: Proof, user: &str) -> String {
    let how = match proof {
        Proof::Token => "token",
        Proof::Password => "eauth",
    };
    format!("Authentication failure of type \"{how}\" occurred for user {user}.")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.class() {
            Class::Invalid => StatusCode::BAD_REQUEST,
            Class::Forbidden | Class::Unauthenticated => StatusCode::UNAUTHORIZED,
            Class::NotFound => StatusCode::NOT_FOUND,
            Class::Conflict | Class::Stale => StatusCode::CONFLICT,
            Class::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Class::Internal => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, source, "a salt-api request failed");
                return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred");
            }
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let code = match self.status.as_u16() {
            400 => "invalid",
            401 if self.detail.is_some() => "forbidden",
            401 => "unauthenticated",
            404 => "not_found",
            405 => "method",
            406 => "not_acceptable",
            409 => "conflict",
            413 => "too_large",
            429 => "too_many",
            503 => "busy",
            504 => "timeout",
            _ => "internal",
        };
        let said = self.detail.as_deref().unwrap_or(&self.message);
        let body = serde_json::json!({
            "status": self.status.as_u16(),
            "return": self.message,
            "error": { "code": code, "message": said },
        });
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        let mut response = (self.status, headers, body.to_string()).into_response();
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn an_error_is_json_with_the_sentence_that_scripts_search_for() {
        let response = Failure::no_session().into_response();
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()["content-type"], "application/json");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["status"], 401);
        assert_eq!(body["return"], "No permission -- see authorization schemes");
        assert_eq!(body["error"]["code"], "unauthenticated");
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_its_client() {
        let refuse = |voice, proof| {
            Failure::of(Error::Forbidden("ann may not call cmd.run".into()), voice, proof, "ann").message().to_owned()
        };
        assert_eq!(refuse(Voice::Local, Proof::Token), "Authorization error occurred.");
        assert_eq!(
            refuse(Voice::Master, Proof::Token),
            "Authentication failure of type \"token\" occurred for user ann."
        );
        assert_eq!(
            refuse(Voice::Master, Proof::Password),
            "Authentication failure of type \"eauth\" occurred for user ann."
        );
    }

    #[test]
    fn what_is_not_permitted_is_401_and_says_why_beside() {
        let failure = Failure::of(Error::Forbidden("why".into()), Voice::Local, Proof::Token, "ann");
        assert_eq!(failure.status(), 401);
        assert_eq!(failure.detail.as_deref(), Some("why"));
    }

    #[test]
    fn internal_errors_tell_nothing() {
        let failure = Failure::from(Error::Internal("disk /dev/sda1".into()));
        assert_eq!((failure.status().as_u16(), failure.message()), (500, "An unexpected error occurred"));
    }

    #[test]
    fn whoever_tried_too_often_is_told_when_to_come_back() {
        let response = Failure::too_many(Duration::from_secs(7)).into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "7");
    }
}
