//! Salt's cryptography: RSA in four uses, and the AES + HMAC container.
//!
//! [`PrivateKey`] and [`PublicKey`] sign, verify, encrypt and decrypt with the algorithms a minion may name ([`SigAlgo`],
//! [`EncAlgo`]) and make and read X9.31 blocks (the token in every request, the signature of the shared key).
//! [`Crypticle`] seals and opens everything else with the key in a [`KeyString`].
//!
//! Invariants: secrets are wiped when dropped and never printed; a peer's key is RSA of 2048 to 8192 bits; whatever is
//! wrong with a sealed message, the answer is the one error [`Error::NotAuthentic`].
//! Not here: who may use which key, and how long (`server`). The crate's only `unsafe` is in `ffi`.

mod algo;
mod crypticle;
mod ffi;
mod key_string;
mod pem;
mod rsa;
mod x931;

pub use algo::{EncAlgo, SigAlgo};
pub use crypticle::Crypticle;
pub use key_string::KeyString;
pub use rsa::{PrivateKey, PublicKey};

use subtle::ConstantTimeEq;

/// What can go wrong with keys and sealed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not PEM of a kind expected here.
    #[error("not a key in PEM form")]
    NotPem,
    /// The PEM holds no RSA key, or one whose numbers do not fit together.
    #[error("not a usable RSA key")]
    NotRsa,
    /// The key is too short to be safe or too long to be cheap.
    #[error("an RSA key of {bits} bits, not of 2048 to 8192")]
    KeySize {
        /// Size of its modulus.
        bits: u32,
    },
    /// The message does not fit the key.
    #[error("message too long for the key")]
    MessageTooLong,
    /// The text is not the 76 characters of a shared, session or one-time key.
    #[error("not a key string")]
    NotKeyString,
    /// The sealed message was not made with this key, or was changed on its way.
    #[error("message is not authentic")]
    NotAuthentic,
    /// The cryptographic library gave up; it does so only when memory is short.
    #[error("cryptographic library failed")]
    Library,
}

/// Whether two byte strings are the same, in a time that depends on their lengths only.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Fills `bytes` from the operating system's generator.
pub(crate) fn fill_random(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).map(char::from).collect()
}
