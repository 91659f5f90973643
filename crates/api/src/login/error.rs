//! What can be wrong with a backend: at start, and while it is asked.

/// Why the backends cannot be made ready.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that could never work, or would let in whom it should not.
    #[error("{key}: {problem}")]
    Setting {
        /// The key as it is written in the configuration.
        key: String,
        /// What to do about it.
        problem: String,
    },
    /// PAM is wanted where there is none.
    #[error("the system's PAM library cannot be loaded: install it, or remove `pam` from external_auth")]
    NoPam(#[source] libloading::Error),
    /// The certificates that an LDAP server would be checked against.
    #[error("the certificates to check the LDAP server with cannot be used: {0}")]
    Certificates(String),
}

impl Error {
    pub(super) fn setting(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Setting { key: key.into(), problem: problem.into() }
    }
}

/// Why a backend could not tell. For the log, never for the person at the door, and without his password.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Trouble(String);

impl Trouble {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}
