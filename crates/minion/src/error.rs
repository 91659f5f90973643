//! What can go wrong for the minion as a whole. What goes wrong in a function is its return.

/// An error of the minion.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// The minion's own files cannot be read or written.
    #[error("cannot {verb} {path}: {source}")]
    File {
        /// What was tried
        verb: &'static str,
        /// On what
        path: String,
        /// What the system said
        source: std::io::Error,
    },
    /// The master cannot be reached.
    #[error("the master cannot be reached")]
    Unreachable(#[source] saltern_wire::zmtp::Error),
    /// The master's answer cannot be trusted or understood.
    #[error("the master's answer was refused")]
    Refused(#[from] saltern_wire::envelope::Error),
    /// The master has not accepted this minion's key yet.
    #[error("the master has not accepted the key yet")]
    Pending,
    /// The master has rejected this minion's key.
    #[error("the master has rejected the key")]
    Rejected,
    /// The master has no room.
    #[error("the master is full")]
    Full,
    /// Cryptography failed on our side.
    #[error(transparent)]
    Crypto(#[from] saltern_wire::crypto::Error),
    /// The minion is stopping.
    #[error("the minion is stopping")]
    Stopping,
}

impl Error {
    pub(crate) fn file(verb: &'static str, path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File { verb, path: path.display().to_string(), source }
    }
}
