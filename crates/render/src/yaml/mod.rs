//! YAML as Salt reads it, into [`Value`].
//!
//! Salt speaks YAML 1.1 (`yes` and `on` are true, `1:30` is ninety) with rules of its own: `0644` is the integer 644,
//! dates stay text, duplicate keys are refused. The grammar comes from `saphyr-parser`; what the scalars mean is decided
//! here: events become nodes (`compose`), nodes become values (`construct`), scalars are typed by `resolve`.
//!
//! Invariants: no input panics; the work is bounded by [`MAX_NODES`] and [`MAX_DEPTH`] however often an alias is used.

mod compose;
mod construct;
mod resolve;
mod write;

use saltern_core::value::Value;

use crate::error::Error;

pub(crate) use write::{double_quoted, single_quoted};
pub use write::{to_flow, to_yaml};

/// How deep collections may nest.
pub const MAX_DEPTH: usize = 100;

/// How many values one document may become, each use of an alias counted anew.
pub const MAX_NODES: usize = 1_000_000;

/// Reads one document. No document at all is `Nil`; a second document is an error.
pub fn load(text: &str) -> Result<Value, Error> {
    match compose::compose(text)? {
        Some(document) => construct::construct(document),
        None => Ok(Value::Nil),
    }
}
