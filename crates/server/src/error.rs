//! What can go wrong for whoever calls the server, each with a class that exit codes and statuses are made from.

/// An error of the server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request makes no sense as it is.
    #[error("{0}")]
    Invalid(String),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It contradicts what is there.
    #[error("{0}")]
    Conflict(String),
    /// Not now.
    #[error("{0}")]
    Busy(String),
    /// He may not.
    #[error("{0}")]
    Forbidden(String),
    /// Nobody knows who he is.
    #[error("{0}")]
    Unauthenticated(String),
    /// It was changed since he looked.
    #[error("{0}")]
    Stale(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] saltern_store::Error),
    /// A defect of ours, or a broken database.
    #[error("{0}")]
    Internal(String),
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
    /// The server cannot start; the sentence says what to do.
    #[error("{0}")]
    Start(String),
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The caller must change the request
    Invalid,
    /// The thing is not there
    NotFound,
    /// Somebody was faster, or it is so already
    Conflict,
    /// Try again later
    Busy,
    /// Not for him
    Forbidden,
    /// Log in first
    Unauthenticated,
    /// Look again, then change
    Stale,
    /// Not the caller's fault
    Internal,
}

impl Error {
    /// Its class.
    pub const fn class(&self) -> Class {
        match self {
            Self::Invalid(_) => Class::Invalid,
            Self::NotFound(_) => Class::NotFound,
            Self::Conflict(_) => Class::Conflict,
            Self::Forbidden(_) => Class::Forbidden,
            Self::Unauthenticated(_) => Class::Unauthenticated,
            Self::Stale(_) => Class::Stale,
            Self::Busy(_)
            | Self::Stopping
            | Self::Store(
                saltern_store::Error::Full | saltern_store::Error::Unreachable(_) | saltern_store::Error::Conflict,
            ) => Class::Busy,
            Self::Store(_) | Self::Internal(_) | Self::Start(_) => Class::Internal,
        }
    }
}
