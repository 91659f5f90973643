//! What is inside the envelopes: typed views of the loads the server dispatches on, and builders for those it sends.
//!
//! A view checks the fields that decisions hang on and leaves the rest in the map it was read from, because events carry
//! the load as the minion sent it. Errors name the field.
//!
//! Not here: whether a minion may say what it says (`server`).

mod auth;
mod channel;
mod event;
mod field;
mod kwargs;
mod nonce;
mod publish;
mod returned;

pub use auth::Auth;
pub(crate) use auth::{enc_algo, sig_algo};
pub use channel::{Channel, sign_message, strip_channel_fields, verify_message};
pub use event::{Event, MinionEvent};
pub use kwargs::{kwargs, split_kwargs};
pub use nonce::Nonce;
pub use publish::Publish;
pub use returned::{Return, ReturnJid};

use bytestring::ByteString;
use saltern_core::value::Value;

/// What is wrong with a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A field that must be there is not.
    #[error("load has no {0}")]
    Missing(&'static str),
    /// A field holds something of the wrong kind.
    #[error("{field} in the load is not {wanted}")]
    Wrong {
        /// The field.
        field: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// `enc_algo` names an algorithm nobody knows; Salt has an answer of its own for it.
    #[error("unknown enc_algo")]
    BadEncAlgo,
    /// `sig_algo` names an algorithm nobody knows; Salt has an answer of its own for it.
    #[error("unknown sig_algo")]
    BadSigAlgo,
}

/// What a job runs: one function, or several in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fun {
    /// One function.
    One(ByteString),
    /// Several functions in one job; arguments and results are then by function.
    Many(Vec<ByteString>),
}

impl Fun {
    /// Reads text, or a list of text.
    pub fn read(value: &Value) -> Option<Self> {
        let text = |value: &Value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        match value {
            Value::List(items) => items.iter().map(text).collect::<Option<_>>().map(Self::Many),
            one => text(one).map(Self::One),
        }
    }

    /// The functions in order.
    pub fn names(&self) -> &[ByteString] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

impl From<&str> for Fun {
    fn from(name: &str) -> Self {
        Self::One(name.into())
    }
}

impl From<Fun> for Value {
    fn from(fun: Fun) -> Self {
        match fun {
            Fun::One(name) => Self::Text(name),
            Fun::Many(names) => Self::list(names),
        }
    }
}
