//! RSA keys as the protocol uses them.

use super::ffi::{Hash, Key};
use super::{EncAlgo, Error, SigAlgo, hex, pem, same, x931};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// What a minion signs in X9.31 to prove, in every request, that it holds its key.
const TOKEN: &[u8] = b"salt";

/// Shorter keys can be broken; longer ones let a stranger buy much of our time with one `_auth`.
const BITS: std::ops::RangeInclusive<u32> = 2048..=8192;

/// An RSA public key of an acceptable size. Clones share it.
#[derive(Clone)]
pub struct PublicKey {
    key: Key,
    modulus: Arc<[u8]>,
}

/// An RSA private key. Clones share it.
#[derive(Clone)]
pub struct PrivateKey {
    key: Key,
    public: PublicKey,
}

impl PublicKey {
    /// Reads `BEGIN PUBLIC KEY` or `BEGIN RSA PUBLIC KEY`.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let (label, der) = pem::read(text).ok_or(Error::NotPem)?;
        let key = match label {
            "PUBLIC KEY" => Key::public_from_spki(&der),
            "RSA PUBLIC KEY" => Key::public_from_pkcs1(&der),
            _ => return Err(Error::NotPem),
        };
        Self::checked(key.ok_or(Error::NotRsa)?)
    }

    fn checked(key: Key) -> Result<Self, Error> {
        let bits = key.bits();
        if !BITS.contains(&bits) {
            return Err(Error::KeySize { bits });
        }
        // Exponent 1 encrypts nothing, an even one has no inverse, a huge one costs as much as a private operation.
        key.exponent().filter(|e| *e >= 3 && *e < 1 << 33 && e % 2 == 1).ok_or(Error::NotRsa)?;
        let modulus = key.modulus().into();
        Ok(Self { key, modulus })
    }

    /// The clean form Salt transmits and compares: `BEGIN PUBLIC KEY`, no line end after the last line.
    pub fn to_pem(&self) -> String {
        let der = self.key.public_to_spki().expect("a key that was read can be written");
        pem::write("PUBLIC KEY", &der).to_string()
    }

    /// Bits in the modulus.
    pub fn bits(&self) -> u32 {
        self.key.bits()
    }

    /// Whether `signature` is this key's over `message`.
    pub fn verify(&self, algo: SigAlgo, message: &[u8], signature: &[u8]) -> bool {
        match algo {
            SigAlgo::Pkcs1v15Sha1 => self.key.verify(Hash::Sha1, &Sha1::digest(message), signature),
            SigAlgo::Pkcs1v15Sha224 => self.key.verify(Hash::Sha224, &Sha224::digest(message), signature),
        }
    }

    /// Encrypts a short secret for this key.
    pub fn encrypt(&self, algo: EncAlgo, secret: &[u8]) -> Result<Vec<u8>, Error> {
        let hash_len = match algo {
            EncAlgo::OaepSha1 => 20,
            EncAlgo::OaepSha224 => 28,
        };
        if secret.len() + 2 * hash_len + 2 > self.modulus.len() {
            return Err(Error::MessageTooLong);
        }
        self.key.encrypt(algo.hash(), secret).ok_or(Error::Library)
    }

    /// The message in an X9.31 signature of this key.
    pub fn x931_recover(&self, signature: &[u8]) -> Option<Vec<u8>> {
        let block = self.key.raw_public(signature)?;
        let block = match block.last()? & 0x0f {
            0x0c => block,
            _ => x931::complement(&self.modulus, &block),
        };
        x931::unpad(&block).map(<[u8]>::to_vec)
    }

    /// Whether `token` is the one that only the holder of the private key can make.
    pub fn is_token(&self, token: &[u8]) -> bool {
        self.x931_recover(token).is_some_and(|message| same(&message, TOKEN))
    }

    /// The fingerprint Salt shows: colon-separated SHA-256 of the PEM's body, each line with its line end.
    pub fn fingerprint(&self) -> String {
        let pem = self.to_pem();
        let mut hash = Sha256::new();
        for line in pem.lines().filter(|line| !line.starts_with("-----")) {
            hash.update(line);
            hash.update("\n");
        }
        hash.finalize().iter().map(|byte| hex(&[*byte])).collect::<Vec<_>>().join(":")
    }
}

impl PrivateKey {
    /// A new key; `bits` as in Salt's `keysize`.
    pub fn generate(bits: u32) -> Result<Self, Error> {
        if !BITS.contains(&bits) || !bits.is_multiple_of(128) {
            return Err(Error::KeySize { bits });
        }
        Self::checked(Key::generate(bits).ok_or(Error::Library)?)
    }

    /// Reads `BEGIN RSA PRIVATE KEY` (PKCS#1, what Salt stores) or `BEGIN PRIVATE KEY` (PKCS#8).
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let (label, der) = pem::read(text).ok_or(Error::NotPem)?;
        let key = match label {
            "RSA PRIVATE KEY" => Key::private_from_pkcs1(&der),
            "PRIVATE KEY" => Key::private_from_pkcs8(&der),
            _ => return Err(Error::NotPem),
        };
        Self::checked(key.ok_or(Error::NotRsa)?)
    }

    fn checked(key: Key) -> Result<Self, Error> {
        let bits = key.bits();
        // The X9.31 block fills whole bytes: with an odd number of bits it could exceed the modulus.
        if !bits.is_multiple_of(8) {
            return Err(Error::KeySize { bits });
        }
        let spki = key.public_to_spki().ok_or(Error::NotRsa)?;
        let public = PublicKey::checked(Key::public_from_spki(&spki).ok_or(Error::NotRsa)?)?;
        Ok(Self { key, public })
    }

    /// The key as `BEGIN RSA PRIVATE KEY`.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, Error> {
        Ok(pem::write("RSA PRIVATE KEY", &self.key.private_to_pkcs1().ok_or(Error::Library)?))
    }

    /// The public part.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs `message`.
    pub fn sign(&self, algo: SigAlgo, message: &[u8]) -> Result<Vec<u8>, Error> {
        match algo {
            SigAlgo::Pkcs1v15Sha1 => self.key.sign(Hash::Sha1, &Sha1::digest(message)),
            SigAlgo::Pkcs1v15Sha224 => self.key.sign(Hash::Sha224, &Sha224::digest(message)),
        }
        .ok_or(Error::Library)
    }

    /// Decrypts what was encrypted for this key; `None` for anything else, without telling what was wrong.
    pub fn decrypt(&self, algo: EncAlgo, ciphertext: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.key.decrypt(algo.hash(), ciphertext)
    }

    /// Signs by X9.31, message recoverable. The same message always has the same signature.
    pub fn x931_sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let modulus = &self.public.modulus;
        let block = x931::pad(message, modulus.len()).ok_or(Error::MessageTooLong)?;
        Ok(x931::smaller(modulus, self.key.raw_private(&block).ok_or(Error::Library)?))
    }

    /// The token that goes into every request of the minion with this key; it never changes.
    pub fn token(&self) -> Result<Vec<u8>, Error> {
        self.x931_sign(TOKEN)
    }
}

impl EncAlgo {
    const fn hash(self) -> Hash {
        match self {
            Self::OaepSha1 => Hash::Sha1,
            Self::OaepSha224 => Hash::Sha224,
        }
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.modulus == other.modulus && self.key.exponent() == other.key.exponent()
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINION: &str = include_str!("../../tests/vectors/test-only-minion.pem");
    const MINION_PUB: &str = include_str!("../../tests/vectors/test-only-minion.pub.pem");

    fn minion() -> PrivateKey {
        PrivateKey::from_pem(MINION).unwrap()
    }

    #[test]
    fn keys_may_be_used_by_many_threads() {
        fn shared<T: Send + Sync + 'static>() {}
        shared::<(PrivateKey, PublicKey)>();
        let key = minion();
        let signatures: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| key.clone().token().unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(signatures.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn pem_is_written_clean_and_read_back() {
        assert_eq!(minion().to_pem().unwrap().as_str(), MINION.trim());
        assert_eq!(minion().public().to_pem(), MINION_PUB.trim());
        assert_eq!(PublicKey::from_pem(&MINION_PUB.replace('\n', "\r\n")).unwrap(), *minion().public());
    }

    #[test]
    fn pkcs8_and_pkcs1_forms_are_read() {
        // PKCS#8 is a fixed prefix before the PKCS#1 key; SubjectPublicKeyInfo one before the PKCS#1 public key.
        let (_, pkcs1) = pem::read(MINION).unwrap();
        let mut pkcs8 =
            vec![0x30, 0x82, 0, 0, 2, 1, 0, 0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1, 5, 0, 4, 0x82];
        pkcs8.extend((pkcs1.len() as u16).to_be_bytes());
        pkcs8.extend_from_slice(&pkcs1);
        let len = (pkcs8.len() - 4) as u16;
        pkcs8[2..4].copy_from_slice(&len.to_be_bytes());
        let key = PrivateKey::from_pem(&pem::write("PRIVATE KEY", &pkcs8)).unwrap();
        assert_eq!(key.public(), minion().public());
        let (_, spki) = pem::read(MINION_PUB).unwrap();
        let key = PublicKey::from_pem(&pem::write("RSA PUBLIC KEY", &spki[24..])).unwrap();
        assert_eq!(key, *minion().public());
    }

    #[test]
    fn other_pem_is_refused() {
        assert_eq!(PublicKey::from_pem(MINION).unwrap_err(), Error::NotPem);
        assert_eq!(PrivateKey::from_pem(MINION_PUB).unwrap_err(), Error::NotPem);
        assert_eq!(PublicKey::from_pem(&pem::write("PUBLIC KEY", b"rubbish")).unwrap_err(), Error::NotRsa);
        let (_, spki) = pem::read(MINION_PUB).unwrap();
        let longer = [&spki[..], b"x"].concat();
        assert_eq!(PublicKey::from_pem(&pem::write("PUBLIC KEY", &longer)).unwrap_err(), Error::NotRsa);
    }

    /// A public key with this many bytes of modulus and this exponent, as PKCS#1 (lengths above 255 only).
    fn public_pem(modulus_len: usize, exponent: &[u8]) -> String {
        let mut inner = vec![2, 0x82];
        inner.extend((modulus_len as u16 + 1).to_be_bytes());
        inner.push(0);
        inner.extend(vec![0xff; modulus_len]);
        inner.extend([2, exponent.len() as u8]);
        inner.extend(exponent);
        let mut der = vec![0x30, 0x82];
        der.extend((inner.len() as u16).to_be_bytes());
        der.extend(inner);
        pem::write("RSA PUBLIC KEY", &der).to_string()
    }

    #[test]
    fn keys_of_unsafe_size_or_exponent_are_refused() {
        assert!(PublicKey::from_pem(&public_pem(256, &[1, 0, 1])).is_ok());
        assert!(PublicKey::from_pem(&public_pem(1024, &[3])).is_ok());
        assert_eq!(PublicKey::from_pem(&public_pem(255, &[1, 0, 1])).unwrap_err(), Error::KeySize { bits: 2040 });
        assert_eq!(PublicKey::from_pem(&public_pem(1025, &[1, 0, 1])).unwrap_err(), Error::KeySize { bits: 8200 });
        for exponent in [&[1][..], &[4], &[0], &[0x7f; 6], &[0x81]] {
            assert_eq!(PublicKey::from_pem(&public_pem(256, exponent)).unwrap_err(), Error::NotRsa, "{exponent:x?}");
        }
        assert_eq!(PrivateKey::generate(1024).unwrap_err(), Error::KeySize { bits: 1024 });
    }

    #[test]
    fn a_generated_key_does_everything() {
        let key = PrivateKey::generate(2048).unwrap();
        assert_eq!(PrivateKey::from_pem(&key.to_pem().unwrap()).unwrap().public(), key.public());
        for algo in [SigAlgo::Pkcs1v15Sha1, SigAlgo::Pkcs1v15Sha224] {
            let signature = key.sign(algo, b"message").unwrap();
            assert!(key.public().verify(algo, b"message", &signature));
            assert!(!key.public().verify(algo, b"massage", &signature));
            assert!(!minion().public().verify(algo, b"message", &signature));
        }
        for algo in [EncAlgo::OaepSha1, EncAlgo::OaepSha224] {
            let secret = key.public().encrypt(algo, b"secret").unwrap();
            assert_eq!(key.decrypt(algo, &secret).unwrap().as_slice(), b"secret");
            assert!(minion().decrypt(algo, &secret).is_none());
        }
        assert!(key.public().is_token(&key.token().unwrap()));
        assert!(!minion().public().is_token(&key.token().unwrap()));
    }

    #[test]
    fn x931_recovers_every_message_that_fits_and_refuses_longer_ones() {
        for len in [0, 1, 64, 253, 254] {
            let message = vec![0xa5; len];
            let signature = minion().x931_sign(&message).unwrap();
            assert_eq!(minion().public().x931_recover(&signature).unwrap(), message);
        }
        assert_eq!(minion().x931_sign(&[0; 255]).unwrap_err(), Error::MessageTooLong);
        assert_eq!(minion().public().x931_recover(b"short"), None);
        assert_eq!(minion().public().encrypt(EncAlgo::OaepSha1, &[0; 215]).unwrap_err(), Error::MessageTooLong);
    }

    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(format!("{:?}", minion()), "PrivateKey(***)");
    }
}
