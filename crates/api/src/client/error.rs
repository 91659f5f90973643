//! What can go wrong between a client and its server.

use crate::shape::{ErrorBody, Problem};
use std::io;
use std::path::PathBuf;

/// An error of a client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers there.
    #[error("{}", unreachable_text(place, error))]
    Unreachable {
        /// The socket
        place: PathBuf,
        /// What the system said
        error: io::Error,
    },
    /// The connection broke.
    #[error("the connection to the server was lost: {0}")]
    Lost(String),
    /// The server said no.
    #[error("{}", .problem.message)]
    Refused {
        /// The HTTP status
        status: u16,
        /// What it said
        problem: Problem,
    },
    /// What came is not what this client understands.
    #[error("the server's answer cannot be read: {0}")]
    Protocol(String),
}

impl ClientError {
    /// What to do about it; empty if there is nothing to say.
    pub fn hint(&self) -> &str {
        match self {
            Self::Unreachable { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "use the account that the server runs as, or root"
            }
            Self::Unreachable { .. } => {
                "start it with `saltern serve`, or say where its data is with --data-dir or SALTERN_DATA_DIR"
            }
            Self::Refused { problem, .. } => &problem.hint,
            Self::Protocol(_) => "server and command line may be of different versions",
            Self::Lost(_) => "",
        }
    }

    /// Whether the server says that there is no such thing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    pub(super) fn refused(status: u16, body: &[u8]) -> Self {
        let problem = serde_json::from_slice::<ErrorBody>(body).map(|body| body.error);
        let problem = problem.unwrap_or_else(|_| Problem {
            code: "unknown".into(),
            message: format!("the server answered with status {status}"),
            hint: String::new(),
        });
        Self::Refused { status, problem }
    }
}

fn unreachable_text(place: &std::path::Path, error: &io::Error) -> String {
    let place = place.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("no server has its control socket at {place}"),
        io::ErrorKind::ConnectionRefused => format!("no server answers on {place}: it is not running"),
        io::ErrorKind::PermissionDenied => format!("no permission to use {place}"),
        _ => format!("cannot connect to {place}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_server_is_told_with_the_way_out() {
        let error = io::Error::from(io::ErrorKind::NotFound);
        let error = ClientError::Unreachable { place: "/var/lib/saltern/control.sock".into(), error };
        assert_eq!(error.to_string(), "no server has its control socket at /var/lib/saltern/control.sock");
        assert!(error.hint().contains("SALTERN_DATA_DIR"));
    }

    #[test]
    fn a_refusal_that_is_no_json_still_says_something() {
        let error = ClientError::refused(502, b"<html>");
        assert_eq!(error.to_string(), "the server answered with status 502");
    }
}
