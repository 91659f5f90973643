//! What a peer may make us spend on one message, before and after it has proved who it is.
//!
//! Every border of this crate takes its bounds from here, so that there is one place to read them and to change them.

/// Bounds on decoding one msgpack value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decode {
    /// Longest input in bytes.
    pub max_bytes: usize,
    /// Deepest nesting of lists and maps.
    pub max_depth: usize,
    /// Most values in all, map keys included: what bounds memory, since a one-byte value takes forty in a tree.
    pub max_nodes: usize,
}

/// Python's own msgpack refuses to nest deeper than a few hundred; real grains, pillar and returns stay below twenty.
const MAX_DEPTH: usize = 128;

impl Decode {
    /// For peers that have proved nothing: a genuine `_auth` stays below 8 KiB and has about ten fields.
    pub const fn before_auth() -> Self {
        Self { max_bytes: 64 << 10, max_depth: MAX_DEPTH, max_nodes: 1 << 10 }
    }

    /// For peers whose key was accepted: `_master_tops` and `_pillar` carry whole configurations and grains.
    pub const fn after_auth() -> Self {
        Self { max_bytes: 64 << 20, max_depth: MAX_DEPTH, max_nodes: 1 << 20 }
    }

    /// For the outside of a request: the sealed load in it may be long, but it is one value among six.
    pub const fn envelope() -> Self {
        Self { max_bytes: Self::after_auth().max_bytes, max_depth: MAX_DEPTH, max_nodes: Self::before_auth().max_nodes }
    }
}
