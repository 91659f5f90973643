//! Errors as JSON.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error: the body of every answer that is one, as RFC 9457 has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What kind it is; `about:blank` means that `status` and `code` say it
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words
    pub title: String,
    /// The status
    pub status: u16,
    /// One sentence on what is wrong
    pub detail: String,
    /// A stable word: `invalid`, `not_found`, `conflict`, `busy`, `internal` …
    pub code: String,
    /// What to do about it
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

/// The last line of a stream that ended because of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorLine {
    /// The error
    pub error: LineError,
}

/// An error within a stream, whose status has been told long ago.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineError {
    /// A stable word, as in [`Problem`]
    pub code: String,
    /// One sentence
    pub message: String,
    /// What to do about it
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

impl From<Problem> for ErrorLine {
    fn from(problem: Problem) -> Self {
        Self { error: LineError { code: problem.code, message: problem.detail, hint: problem.hint } }
    }
}

impl From<LineError> for Problem {
    fn from(error: LineError) -> Self {
        Self {
            kind: "about:blank".into(),
            title: "Internal Server Error".into(),
            status: 500,
            detail: error.message,
            code: error.code,
            hint: error.hint,
        }
    }
}
