//! How a command ends when it cannot do what it was asked: what is said, and with which exit code.

use saltern_api::client::ClientError;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Something failed, or a minion did.
pub(crate) const FAILED: u8 = 1;
/// The command makes no sense as it is.
pub(crate) const USAGE: u8 = 2;
/// No server answers.
pub(crate) const UNREACHABLE: u8 = 3;
/// Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
/// Whoever read our output has gone.
const NO_READER: u8 = 141;

/// The end of a command that did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: String,
}

impl Failure {
    /// Something failed.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: FAILED, message: message.into(), hint: String::new() }
    }

    /// The command makes no sense as it is.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::new(message) }
    }

    /// Nothing more is to be said.
    pub(crate) fn silent(code: u8) -> Self {
        Self { code, ..Self::new("") }
    }

    /// With what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// With what it is about.
    pub(crate) fn about(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// Says it on stderr and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            let _ = writeln!(io::stderr(), "saltern: {self}");
        }
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::Unreachable { .. }
            | ClientError::NoAnswer { .. }
            | ClientError::Untrusted { .. }
            | ClientError::NoTls { .. }
            | ClientError::Lost(_) => UNREACHABLE,
            ClientError::Refused { status: 400, .. } => USAGE,
            ClientError::Refused { .. }
            | ClientError::NotLoggedIn { .. }
            | ClientError::Setup(_)
            | ClientError::Protocol(_) => FAILED,
        };
        Self { code, message: error.to_string(), hint: error.hint().into_owned() }
    }
}

/// Writing to stdout or stderr failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::silent(NO_READER),
            _ => Self::new(format!("cannot write: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Problem;

    #[test]
    fn the_exit_code_says_whose_fault_it_is() {
        let refused = |status| {
            let problem = Problem {
                kind: "about:blank".into(),
                title: String::new(),
                status,
                detail: "x".into(),
                code: "x".into(),
                hint: String::new(),
            };
            Failure::from(ClientError::Refused { status, problem: Box::new(problem) }).code
        };
        assert_eq!(refused(400), USAGE);
        assert_eq!(refused(404), FAILED);
        assert_eq!(refused(500), FAILED);
        assert_eq!(Failure::from(ClientError::Lost("x".into())).code, UNREACHABLE);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).code, NO_READER);
    }
}
