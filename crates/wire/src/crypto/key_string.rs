//! The 76 characters in which Salt hands out AES keys.

use super::{Error, fill_random, hex, same};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// The secret of a [`Crypticle`](super::Crypticle), as text: base64 of 24 bytes of AES key and 32 bytes of HMAC key.
///
/// Wiped when dropped; printed as `***`; compared in constant time.
#[derive(Clone)]
pub struct KeyString {
    text: Zeroizing<String>,
    raw: Zeroizing<[u8; Self::RAW_LEN]>,
}

impl KeyString {
    const RAW_LEN: usize = 56;
    const TEXT_LEN: usize = 76;

    /// A new random key.
    pub fn generate() -> Self {
        let mut raw = Zeroizing::new([0; Self::RAW_LEN]);
        fill_random(raw.as_mut_slice());
        let text = Zeroizing::new(STANDARD.encode(raw.as_slice()));
        Self { text, raw }
    }

    /// Reads exactly 76 characters of padded base64.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        if text.len() != Self::TEXT_LEN {
            return Err(Error::NotKeyString);
        }
        // The decoder asks for room in steps of three bytes, one more than the key has.
        let mut room = Zeroizing::new([0; Self::RAW_LEN + 1]);
        let len = STANDARD.decode_slice(text, room.as_mut_slice()).map_err(|_| Error::NotKeyString)?;
        let mut raw = Zeroizing::new([0; Self::RAW_LEN]);
        raw.copy_from_slice(room.get(..len).filter(|raw| raw.len() == Self::RAW_LEN).ok_or(Error::NotKeyString)?);
        let text = String::from_utf8(text.to_vec()).map_err(|e| {
            e.into_bytes().zeroize();
            Error::NotKeyString
        })?;
        Ok(Self { text: Zeroizing::new(text), raw })
    }

    /// The 76 characters.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Lower-case hex SHA-256 of the 76 characters (not of the bytes they stand for): what the server signs in X9.31.
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(self.text.as_bytes()))
    }

    pub(super) fn aes_key(&self) -> &[u8; 24] {
        self.raw.first_chunk().expect("a key has 56 bytes")
    }

    pub(super) fn hmac_key(&self) -> &[u8; 32] {
        self.raw.last_chunk().expect("a key has 56 bytes")
    }
}

impl PartialEq for KeyString {
    fn eq(&self, other: &Self) -> bool {
        same(self.raw.as_slice(), other.raw.as_slice())
    }
}

impl Eq for KeyString {}

impl fmt::Debug for KeyString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_keys_are_read_back_and_differ() {
        let (a, b) = (KeyString::generate(), KeyString::generate());
        assert_eq!(KeyString::parse(a.as_str().as_bytes()).unwrap(), a);
        assert_ne!(a, b);
    }

    #[test]
    fn anything_but_76_characters_of_base64_is_refused() {
        let good = KeyString::generate();
        let good = good.as_str();
        for bad in ["", &good[..75], &format!("{good}="), &format!("{good}\n"), &"!".repeat(76), &"A".repeat(76)] {
            assert_eq!(KeyString::parse(bad.as_bytes()).unwrap_err(), Error::NotKeyString, "{bad}");
        }
        assert_eq!(KeyString::parse(&[0xff; 76]).unwrap_err(), Error::NotKeyString);
    }

    #[test]
    fn debug_hides_the_key() {
        assert_eq!(format!("{:?}", KeyString::generate()), "***");
    }
}
