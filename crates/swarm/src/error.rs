//! Why a swarm cannot begin, or write down what it knows. What goes wrong once it lives is counted, not raised: see `tally`.

use std::path::PathBuf;

/// Why a swarm cannot begin, or write down what it knows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// A key cannot be made, or used.
    #[error("cannot make an RSA key")]
    Key(#[from] saltern_wire::crypto::Error),
    /// A kept key cannot be read or written.
    #[error("cannot keep keys in {path}: {source}")]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The ledger cannot be written.
    #[error("cannot write the ledger {path}: {source}")]
    Ledger {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
