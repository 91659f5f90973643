//! Salt's sealed container: AES-192-CBC, then HMAC-SHA256 over IV and ciphertext.

use super::{Error, KeyString, fill_random};
use aes::Aes192;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit};
use bytes::Bytes;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;

const IV: usize = 16;
const BLOCK: usize = 16;
const MAC: usize = 32;

/// Seals and opens messages with one key. The key schedule and the HMAC's inner state are worked out once, so that a short
/// message costs its own blocks and little more.
pub struct Crypticle {
    cipher: Aes192,
    mac: Hmac<Sha256>,
}

impl Crypticle {
    /// A container for this key.
    pub fn new(key: &KeyString) -> Self {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key.hmac_key()).expect("HMAC takes keys of any length");
        Self { cipher: Aes192::new(key.aes_key().into()), mac }
    }

    /// Seals the concatenation of `parts`.
    pub fn seal(&self, parts: &[&[u8]]) -> Vec<u8> {
        let len = parts.iter().map(|part| part.len()).sum();
        self.seal_with(0, len, |out| parts.iter().for_each(|part| out.extend_from_slice(part)))
    }

    /// Opens a sealed message. The HMAC is checked first, in constant time; only then is anything decrypted.
    pub fn open(&self, sealed: &[u8]) -> Result<Bytes, Error> {
        let (authenticated, tag) = sealed.split_last_chunk::<MAC>().ok_or(Error::NotAuthentic)?;
        let (iv, ciphertext) = authenticated.split_first_chunk::<IV>().ok_or(Error::NotAuthentic)?;
        let mac = self.mac.clone().chain_update(authenticated);
        mac.verify(tag.into()).map_err(|_| Error::NotAuthentic)?;
        let cipher = cbc::Decryptor::inner_iv_init(&self.cipher, iv.into());
        let plain = cipher.decrypt_padded_vec::<Pkcs7>(ciphertext).map_err(|_| Error::NotAuthentic)?;
        Ok(plain.into())
    }

    /// Seals what `write` appends, behind `head` zero bytes that the caller fills in afterwards: the plaintext is encrypted
    /// where it was written and the finished message needs no second buffer. `hint` is the expected plaintext length.
    pub(crate) fn seal_with(&self, head: usize, hint: usize, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut iv = [0; IV];
        fill_random(&mut iv);
        self.seal_with_iv(iv, head, hint, write)
    }

    fn seal_with_iv(&self, iv: [u8; IV], head: usize, hint: usize, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(head + IV + hint + BLOCK + MAC);
        out.resize(head, 0);
        out.extend_from_slice(&iv);
        write(&mut out);
        let plain_len = out.len() - head - IV;
        out.resize(head + IV + (plain_len / BLOCK + 1) * BLOCK, 0);
        let cipher = cbc::Encryptor::inner_iv_init(&self.cipher, &iv.into());
        cipher.encrypt_padded::<Pkcs7>(&mut out[head + IV..], plain_len).expect("room for the padding was just made");
        let tag = self.mac.clone().chain_update(&out[head..]).finalize();
        out.extend_from_slice(&tag.into_bytes());
        out
    }
}

impl fmt::Debug for Crypticle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crypticle(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc=";

    fn crypticle() -> Crypticle {
        Crypticle::new(&KeyString::parse(KEY.as_bytes()).unwrap())
    }

    #[test]
    fn aes_is_192_bits_and_the_hmac_covers_the_iv() {
        let vectors: serde_json::Value = serde_json::from_str(include_str!("../../tests/vectors/crypto.json")).unwrap();
        let vector = |name: &str| vectors["crypticle"][name].as_str().unwrap().to_owned();
        let iv = std::array::from_fn(|i| 0xa0 + i as u8);
        for form in ["without_nonce", "with_nonce"] {
            let plain = vector(&format!("plaintext_{form}"));
            let plain: Vec<u8> =
                (0..plain.len()).step_by(2).map(|i| u8::from_str_radix(&plain[i..i + 2], 16).unwrap()).collect();
            let sealed = crypticle().seal_with_iv(iv, 0, 0, |out| out.extend_from_slice(&plain));
            assert_eq!(hex(&sealed), vector(&format!("ciphertext_{form}")));
            assert_eq!(crypticle().open(&sealed).unwrap(), plain);
        }
    }

    #[test]
    fn what_is_sealed_opens_whatever_its_length() {
        for len in 0..100 {
            let plain = vec![7; len];
            let sealed = crypticle().seal(&[&plain[..len / 2], &plain[len / 2..]]);
            assert_eq!(crypticle().open(&sealed).unwrap(), plain);
        }
    }

    #[test]
    fn one_changed_bit_anywhere_is_refused() {
        let sealed = crypticle().seal(&[b"pickle::\xc0"]);
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(crypticle().open(&changed).unwrap_err(), Error::NotAuthentic);
        }
    }

    #[test]
    fn short_and_misaligned_messages_are_refused_even_with_a_right_hmac() {
        for len in 0..48 {
            assert_eq!(crypticle().open(&vec![0; len]).unwrap_err(), Error::NotAuthentic);
        }
        for body in [IV, IV + 15, IV + 17] {
            let mut sealed = vec![0; body];
            let tag = crypticle().mac.chain_update(&sealed).finalize();
            sealed.extend_from_slice(&tag.into_bytes());
            assert_eq!(crypticle().open(&sealed).unwrap_err(), Error::NotAuthentic);
        }
    }

    #[test]
    fn another_key_does_not_open_it() {
        let sealed = Crypticle::new(&KeyString::generate()).seal(&[b"x"]);
        assert_eq!(crypticle().open(&sealed).unwrap_err(), Error::NotAuthentic);
    }
}
