//! The number a request is asked under, which its answer must repeat.

use super::Error;
use crate::crypto::{fill_random, hex};
use saltern_core::value::{Map, Value};
use std::fmt;

/// 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce([u8; 32]);

impl Nonce {
    /// How long it is in a sealed reply.
    pub const LEN: usize = 32;

    /// A new random one. Salt's are version 4 UUIDs, but nobody looks at the version.
    pub fn generate() -> Self {
        let mut bytes = [0; 16];
        fill_random(&mut bytes);
        Self::parse(&hex(&bytes)).expect("16 bytes have 32 hexadecimal digits")
    }

    /// Reads exactly 32 hexadecimal digits. Anything else has no place at the head of a reply.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 32] = text.as_bytes().try_into().ok()?;
        digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')).then_some(Self(digits))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("")
    }

    /// The one in a load.
    pub(crate) fn of(load: &Map) -> Result<Self, Error> {
        let value = load.get("nonce").ok_or(Error::Missing("nonce"))?;
        let wrong = Error::Wrong { field: "nonce", wanted: "32 hexadecimal digits" };
        value.as_str().and_then(Self::parse).ok_or(wrong)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Nonce> for Value {
    fn from(nonce: Nonce) -> Self {
        Self::from(nonce.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ones_are_read_back_and_differ() {
        let (a, b) = (Nonce::generate(), Nonce::generate());
        assert_eq!(Nonce::parse(a.as_str()), Some(a));
        assert_ne!(a, b);
    }

    #[test]
    fn only_32_lower_case_digits_are_one() {
        for bad in ["", "0", &"0".repeat(31), &"0".repeat(33), &"A".repeat(32), &"g".repeat(32)] {
            assert_eq!(Nonce::parse(bad), None, "{bad}");
        }
    }
}
