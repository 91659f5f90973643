//! Everything that can go wrong in this room, in one type for callers that only pass it on.

use crate::{crypto, envelope, load, msgpack};

/// Why bytes were not what the protocol wants. Each module has its own error; this one holds any of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not msgpack within their limits.
    #[error(transparent)]
    Msgpack(#[from] msgpack::Error),
    /// A key or a sealed message is not usable.
    #[error(transparent)]
    Crypto(#[from] crypto::Error),
    /// A request's envelope was refused.
    #[error(transparent)]
    Refused(#[from] envelope::Refused),
    /// A message did not open or did not pass its checks.
    #[error(transparent)]
    Envelope(#[from] envelope::Error),
    /// A load lacks a field or has a wrong one.
    #[error(transparent)]
    Load(#[from] load::Error),
}
