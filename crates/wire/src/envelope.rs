//! How loads travel: clear, sealed, signed; requests, replies, publications; seen from either end.
//!
//! The server's end reads requests ([`parse`], [`open_request`]) and writes answers ([`seal_reply`], [`private_reply`],
//! [`accepted_reply`], [`verdict_reply`]) and [`publication()`]s. The minion's end writes requests ([`AuthRequest`],
//! [`request`]) and checks everything that comes back ([`AuthExpected`], [`open_reply`], [`open_private_reply`],
//! [`open_publication`]).
//!
//! Three plaintext forms differ in one detail each: a request has its nonce as a field, a reply has it before the msgpack,
//! a pillar or a publication has none there. All begin with `pickle::`, a name from Salt's past.

mod auth;
mod minion;
mod publication;
mod server;

pub use auth::{Accepted, AuthExpected, AuthReply, AuthRequest};
pub use minion::{RequestHead, open_private_reply, open_reply, request, request_v2};
pub use publication::{Publication, Signatures, Subscription, open_publication, publication};
pub use server::{
    Refused, Request, Sealed, accepted_reply, bad_enc_algo, bad_load, bad_sig_algo, open_request, parse, plain_reply,
    private_reply, seal_reply, signed_reply, verdict_reply,
};

use crate::crypto::{self, Crypticle};
use crate::limits::Decode;
use crate::msgpack;
use bytes::Bytes;
use saltern_core::value::{Map, Value};

/// The protocol version of requests sealed with a session key; stock masters refuse older ones.
pub const VERSION: u32 = 3;

/// The version of 3006.0–3006.11 and 3007.0–3007.3: requests sealed with the key all minions share.
pub const SHARED_KEY_VERSION: u32 = 2;

const MARKER: &[u8] = b"pickle::";

/// What a server says to a minion whose key is not, or not yet, accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The key waits for somebody's decision; the minion asks again.
    Pending,
    /// The key is rejected; a default minion's process ends.
    Rejected,
    /// There are too many minions; this one asks again.
    Full,
}

/// Why a message did not open or did not pass its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A seal is broken or a key is unusable. For [`crypto::Error::NotAuthentic`] a minion authenticates again.
    #[error(transparent)]
    Crypto(#[from] crypto::Error),
    /// What was inside is not msgpack within its limits.
    #[error(transparent)]
    Msgpack(#[from] msgpack::Error),
    /// The plaintext does not begin with `pickle::`.
    #[error("sealed message lacks its marker")]
    NoMarker,
    /// A map was expected.
    #[error("message is not a map")]
    NotAMap,
    /// A field is missing or of the wrong kind.
    #[error("message has no usable {0}")]
    Field(&'static str),
    /// The server answered `bad load`: authenticate again, then resend.
    #[error("the server does not know this session")]
    BadLoad,
    /// The reply is not sealed. Stock minions take an unsealed nil or empty value for a result; nobody should.
    #[error("reply is not sealed")]
    NotSealed,
    /// The reply belongs to another request.
    #[error("reply has another nonce")]
    WrongNonce,
    /// A signature is missing where one is required.
    #[error("message is not signed")]
    NotSigned,
    /// A signature is not the server's.
    #[error("message is not signed by the server")]
    WrongSignature,
    /// The server's public key is not the one stored.
    #[error("the server's key has changed")]
    ServerKeyChanged,
    /// The server sent a signature of its public key that this minion was not told to expect.
    #[error("unexpected signature of the server's key")]
    UnexpectedPubSig,
    /// A secret was not encrypted for this minion.
    #[error("{0} is not encrypted for this minion")]
    NotForUs(&'static str),
    /// The shared key is not signed by the server.
    #[error("the shared key is not signed by the server")]
    SharedKeySignature,
    /// The server did not return the secret it was sent.
    #[error("the server did not return the token")]
    WrongToken,
    /// The server's key does not have the configured fingerprint.
    #[error("the server's key has another fingerprint")]
    WrongFingerprint,
    /// The server knows no algorithm by the name it was sent.
    #[error("the server refuses the algorithm")]
    AlgorithmRefused,
    /// The key in a private reply is not the one it was encrypted with.
    #[error("private reply holds another key")]
    WrongInnerKey,
    /// The publication is not newer than the last one.
    #[error("publication {got} is not newer than {last}")]
    StaleSerial {
        /// Its number.
        got: i64,
        /// The last number seen under this key.
        last: i64,
    },
}

/// Opens a sealed message and checks its marker; what follows the marker is left.
fn unseal(crypticle: &Crypticle, sealed: &[u8]) -> Result<Bytes, Error> {
    let plain = crypticle.open(sealed)?;
    if !plain.starts_with(MARKER) {
        return Err(Error::NoMarker);
    }
    Ok(plain.slice(MARKER.len()..))
}

/// Seals msgpack without a nonce: requests, pillar, publications.
fn seal_map(crypticle: &Crypticle, map: &Map) -> Vec<u8> {
    crypticle.seal_with(0, MARKER.len() + msgpack::map_bound(map), |out| {
        out.extend_from_slice(MARKER);
        msgpack::encode_map(map, out);
    })
}

fn decode_map(bytes: Bytes, limits: &Decode) -> Result<Map, Error> {
    match msgpack::decode(bytes, limits)? {
        Value::Map(map) => Ok(map),
        _ => Err(Error::NotAMap),
    }
}

fn raw(map: &Map, field: &'static str) -> Result<Bytes, Error> {
    map.get(field).and_then(Value::to_raw).ok_or(Error::Field(field))
}
