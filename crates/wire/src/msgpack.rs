//! Salt's msgpack, read tolerantly and written in Salt's own dialect.
//!
//! Salt writes text and bytes alike in the *str* family and never uses str8 or bin on the network, so a strict reader fails
//! on the first `_auth` that carries a token. Here both families become [`Value::Text`] where they are UTF-8 and
//! [`Value::Bytes`] where they are not; leaves share the input's buffer.
//!
//! Invariants: nothing is reserved that a peer merely announced; an integer has one form ([`Value::UInt`] only above
//! `i64::MAX`); of two equal scalar keys the last wins, as in Python, so that no two readers of a load disagree about it.
//!
//! [`Value::Text`]: saltern_core::value::Value::Text
//! [`Value::Bytes`]: saltern_core::value::Value::Bytes
//! [`Value::UInt`]: saltern_core::value::Value::UInt

mod decode;
mod encode;

pub use decode::decode;
pub(crate) use encode::{Encoder, bound, map_bound};
pub use encode::{encode, encode_into, encode_map, encode_modern};

/// Why some bytes are not one msgpack value within its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The input is longer than allowed.
    #[error("{len} bytes of msgpack where {max} are allowed")]
    TooLong {
        /// Length of the input.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The input ends inside a value, or announces more than there is.
    #[error("msgpack ends early")]
    Truncated,
    /// Lists and maps are nested deeper than allowed.
    #[error("msgpack is nested too deeply")]
    TooDeep,
    /// There are more values than allowed.
    #[error("msgpack has too many values")]
    TooManyNodes,
    /// The byte `c1`, which msgpack never uses.
    #[error("msgpack has a byte that means nothing")]
    Reserved,
    /// Something follows the value.
    #[error("msgpack is followed by other bytes")]
    Trailing,
}
