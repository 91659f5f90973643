//! What can go wrong between a client and its server.

use super::ServerUrl;
use crate::shape::Problem;
use std::borrow::Cow;
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
    /// Nobody answers at that URL.
    #[error("no server answers at {url}: {}", no_answer_text(error))]
    NoAnswer {
        /// Where
        url: ServerUrl,
        /// What the system said
        error: io::Error,
    },
    /// Whoever answers there cannot prove to be that server.
    #[error("the certificate of {url} is not trusted: {reason}")]
    Untrusted {
        /// Where
        url: ServerUrl,
        /// What is wrong with it
        reason: String,
    },
    /// Whoever answers there does not encrypt.
    #[error("what answers at {url} does not speak TLS")]
    NoTls {
        /// Where
        url: ServerUrl,
    },
    /// Nothing, or nothing valid, was shown for who asks.
    #[error("{url} does not know you: {detail}")]
    NotLoggedIn {
        /// Where
        url: ServerUrl,
        /// What it said
        detail: String,
    },
    /// The request cannot be made here.
    #[error("{0}")]
    Setup(String),
    /// The connection broke.
    #[error("the connection to the server was lost: {0}")]
    Lost(String),
    /// The server said no.
    #[error("{}", .problem.detail)]
    Refused {
        /// The HTTP status
        status: u16,
        /// What it said
        problem: Box<Problem>,
    },
    /// What came is not what this client understands.
    #[error("the server's answer cannot be read: {0}")]
    Protocol(String),
}

impl ClientError {
    /// What to do about it; empty if there is nothing to say.
    pub fn hint(&self) -> Cow<'_, str> {
        let fixed = match self {
            Self::Unreachable { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "use the account that the server runs as, or root"
            }
            Self::Unreachable { .. } => {
                "start it with `saltern serve`, say where its data is with --data-dir, or `saltern login URL` to one elsewhere"
            }
            Self::NoAnswer { url, .. } if !url.is_loopback() => {
                "check the URL, that the server listens on that address (`http: ADDRESS:PORT`), and the firewall"
            }
            Self::NoAnswer { .. } => "start it with `saltern serve`, or say where it is with --url or SALTERN_URL",
            Self::Untrusted { .. } => {
                "if a private authority has issued it, name that one's certificate with --ca-file or SALTERN_CA_FILE"
            }
            Self::NoTls { .. } => "if it is meant to be so, write http:// instead of https://",
            Self::NotLoggedIn { url, .. } => return format!("`saltern login {url}`").into(),
            Self::Refused { problem, .. } => &problem.hint,
            Self::Protocol(_) => "server and command line may be of different versions",
            Self::Lost(_) | Self::Setup(_) => "",
        };
        fixed.into()
    }

    /// Whether the server says that there is no such thing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Whether the server says that somebody was faster.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Refused { status: 412, .. })
    }

    pub(super) fn refused(status: u16, body: &[u8]) -> Self {
        let problem = serde_json::from_slice(body).unwrap_or_else(|_| Problem {
            kind: "about:blank".into(),
            title: String::new(),
            status,
            detail: format!("the server answered with status {status}"),
            code: "unknown".into(),
            hint: String::new(),
        });
        Self::Refused { status, problem: Box::new(problem) }
    }
}

fn no_answer_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the connection was refused".into(),
        io::ErrorKind::TimedOut => "it took too long".into(),
        _ => error.to_string(),
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
        assert!(error.hint().contains("--data-dir") && error.hint().contains("saltern login"));
    }

    #[test]
    fn a_refusal_is_problem_json() {
        let body = br#"{"type":"about:blank","title":"Conflict","status":409,"detail":"it is so","code":"conflict","hint":"wait"}"#;
        let error = ClientError::refused(409, body);
        assert_eq!((error.to_string().as_str(), &*error.hint()), ("it is so", "wait"));
    }

    #[test]
    fn who_is_not_logged_in_is_told_how() {
        let url = ServerUrl::parse("https://salt.example.org").unwrap();
        let error = ClientError::NotLoggedIn { url, detail: "the token is not valid".into() };
        assert_eq!(error.to_string(), "https://salt.example.org does not know you: the token is not valid");
        assert_eq!(error.hint(), "`saltern login https://salt.example.org`");
    }

    #[test]
    fn a_refusal_that_is_no_json_still_says_something() {
        let error = ClientError::refused(502, b"<html>");
        assert_eq!(error.to_string(), "the server answered with status 502");
    }
}
