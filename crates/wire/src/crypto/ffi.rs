//! RSA from aws-lc, behind a type that cannot be misused.
//!
//! The safe bindings of that library offer neither SHA-1 or SHA-224 signatures nor the raw operation X9.31 needs, and the
//! pure Rust implementation leaks timing on exactly what a peer controls here (the token in `_auth`).
//!
//! How the `unsafe` below stays sound: a [`Key`] always owns one reference to a valid `EVP_PKEY` that holds an RSA key;
//! every pointer handed to C comes from a live slice with its own length, and every output buffer has the length the
//! callee is told.
#![expect(unsafe_code, reason = "RSA with SHA-1, OAEP-SHA224 and raw blocks exists only in the C interface")]

use aws_lc_sys as lc;
use std::ffi::c_int;
use std::ptr::{self, NonNull};
use zeroize::Zeroizing;

/// Hash functions the protocol pairs with RSA.
#[derive(Clone, Copy)]
pub(super) enum Hash {
    Sha1,
    Sha224,
}

impl Hash {
    const fn nid(self) -> c_int {
        match self {
            Self::Sha1 => lc::NID_sha1,
            Self::Sha224 => lc::NID_sha224,
        }
    }

    fn md(self) -> *const lc::EVP_MD {
        // SAFETY: both return pointers to static data.
        unsafe {
            match self {
                Self::Sha1 => lc::EVP_sha1(),
                Self::Sha224 => lc::EVP_sha224(),
            }
        }
    }
}

/// One RSA key, public or private.
pub(super) struct Key(NonNull<lc::EVP_PKEY>);

// SAFETY: the library allows an RSA key to be used from several threads at once as long as none of them mutates it (its
// caches and reference count are locked inside), and lets any thread free it. After construction nothing here mutates one.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        // SAFETY: the pointer is valid; the new reference is the clone's.
        unsafe { lc::EVP_PKEY_up_ref(self.0.as_ptr()) };
        Self(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: gives back the one reference this value owns.
        unsafe { lc::EVP_PKEY_free(self.0.as_ptr()) }
    }
}

impl Key {
    /// A new private key with public exponent 65537.
    pub(super) fn generate(bits: u32) -> Option<Self> {
        let bits = c_int::try_from(bits).ok()?;
        // SAFETY: `exponent` and `rsa` are checked for null and freed on every path; `adopt` takes `rsa` over.
        unsafe {
            let rsa = NonNull::new(lc::RSA_new())?;
            let exponent = lc::BN_new();
            let made = !exponent.is_null()
                && lc::BN_set_word(exponent, 65_537) == 1
                && lc::RSA_generate_key_ex(rsa.as_ptr(), bits, exponent, ptr::null_mut()) == 1;
            lc::BN_free(exponent);
            if !made {
                lc::RSA_free(rsa.as_ptr());
                return failed();
            }
            Self::adopt(rsa.as_ptr())
        }
    }

    /// A private key from the DER of PKCS#1.
    pub(super) fn private_from_pkcs1(der: &[u8]) -> Option<Self> {
        // SAFETY: reads within `der`; `adopt` takes the result over.
        unsafe { Self::adopt(lc::RSA_private_key_from_bytes(der.as_ptr(), der.len())) }
    }

    /// A private key from the DER of PKCS#8.
    pub(super) fn private_from_pkcs8(der: &[u8]) -> Option<Self> {
        Self::parse(der, lc::EVP_parse_private_key)
    }

    /// A public key from the DER of PKCS#1.
    pub(super) fn public_from_pkcs1(der: &[u8]) -> Option<Self> {
        // SAFETY: reads within `der`; `adopt` takes the result over.
        unsafe { Self::adopt(lc::RSA_public_key_from_bytes(der.as_ptr(), der.len())) }
    }

    /// A public key from the DER of SubjectPublicKeyInfo.
    pub(super) fn public_from_spki(der: &[u8]) -> Option<Self> {
        Self::parse(der, lc::EVP_parse_public_key)
    }

    /// The private key as DER of PKCS#1.
    pub(super) fn private_to_pkcs1(&self) -> Option<Zeroizing<Vec<u8>>> {
        let (mut out, mut len) = (ptr::null_mut(), 0);
        // SAFETY: on success `out` is an allocation of `len` bytes that `owned` copies and frees.
        unsafe {
            match lc::RSA_private_key_to_bytes(&mut out, &mut len, self.rsa()) {
                1 => Some(owned(out, len)),
                _ => failed(),
            }
        }
    }

    /// The public part as DER of SubjectPublicKeyInfo.
    pub(super) fn public_to_spki(&self) -> Option<Vec<u8>> {
        let (mut out, mut len) = (ptr::null_mut(), 0);
        // SAFETY: the builder is initialised before use and cleaned up on failure; on success `out` is an allocation of
        // `len` bytes that `owned` copies and frees.
        unsafe {
            let mut builder = std::mem::zeroed::<lc::CBB>();
            if lc::CBB_init(&mut builder, 512) != 1 {
                return failed();
            }
            if lc::EVP_marshal_public_key(&mut builder, self.0.as_ptr()) != 1
                || lc::CBB_finish(&mut builder, &mut out, &mut len) != 1
            {
                lc::CBB_cleanup(&mut builder);
                return failed();
            }
            Some(owned(out, len).to_vec())
        }
    }

    /// Bits in the modulus.
    pub(super) fn bits(&self) -> u32 {
        // SAFETY: the key is valid.
        unsafe { lc::RSA_bits(self.rsa()) }
    }

    /// Bytes in the modulus, and so in every block and signature.
    pub(super) fn size(&self) -> usize {
        // SAFETY: the key is valid.
        unsafe { lc::RSA_size(self.rsa()) as usize }
    }

    /// The modulus, big-endian, [`size`](Self::size) bytes.
    pub(super) fn modulus(&self) -> Vec<u8> {
        let mut out = vec![0; self.size()];
        // SAFETY: every RSA key has a modulus, and it fits the bytes the library says it has.
        unsafe { lc::BN_bn2bin_padded(out.as_mut_ptr(), out.len(), lc::RSA_get0_n(self.rsa())) };
        out
    }

    /// The public exponent, if it has at most 64 bits.
    pub(super) fn exponent(&self) -> Option<u64> {
        let mut out = 0;
        // SAFETY: a null exponent is looked for; `out` is a valid place.
        unsafe {
            let exponent = lc::RSA_get0_e(self.rsa());
            (!exponent.is_null() && lc::BN_get_u64(exponent, &mut out) == 1).then_some(out)
        }
    }

    /// Signs a digest, PKCS#1 v1.5.
    pub(super) fn sign(&self, hash: Hash, digest: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; self.size()];
        let mut len = 0;
        // SAFETY: a signature has at most `size` bytes.
        let ok =
            unsafe { lc::RSA_sign(hash.nid(), digest.as_ptr(), digest.len(), out.as_mut_ptr(), &mut len, self.rsa()) };
        finish(ok, out, len as usize)
    }

    /// Whether `signature` is this key's over `digest`, PKCS#1 v1.5.
    pub(super) fn verify(&self, hash: Hash, digest: &[u8], signature: &[u8]) -> bool {
        // SAFETY: reads within the slices.
        let ok = unsafe {
            lc::RSA_verify(hash.nid(), digest.as_ptr(), digest.len(), signature.as_ptr(), signature.len(), self.rsa())
        };
        finish(ok, Vec::new(), 0).is_some()
    }

    /// Encrypts with OAEP.
    pub(super) fn encrypt(&self, hash: Hash, message: &[u8]) -> Option<Vec<u8>> {
        self.oaep(hash, message, lc::EVP_PKEY_encrypt_init, lc::EVP_PKEY_encrypt)
    }

    /// Decrypts OAEP.
    pub(super) fn decrypt(&self, hash: Hash, ciphertext: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.oaep(hash, ciphertext, lc::EVP_PKEY_decrypt_init, lc::EVP_PKEY_decrypt).map(Zeroizing::new)
    }

    /// The private operation on a block of exactly [`size`](Self::size) bytes.
    pub(super) fn raw_private(&self, block: &[u8]) -> Option<Vec<u8>> {
        self.raw(block, lc::RSA_sign_raw)
    }

    /// The public operation on a block of exactly [`size`](Self::size) bytes.
    pub(super) fn raw_public(&self, block: &[u8]) -> Option<Vec<u8>> {
        self.raw(block, lc::RSA_verify_raw)
    }

    fn raw(&self, block: &[u8], operation: Raw) -> Option<Vec<u8>> {
        let mut out = vec![0; self.size()];
        let mut len = 0;
        // SAFETY: `operation` is one of the two raw RSA functions; it writes at most the length it is told.
        let ok = unsafe {
            operation(
                self.rsa(),
                &mut len,
                out.as_mut_ptr(),
                out.len(),
                block.as_ptr(),
                block.len(),
                lc::RSA_NO_PADDING,
            )
        };
        finish(ok, out, len)
    }

    fn oaep(&self, hash: Hash, input: &[u8], init: Init, operation: Crypt) -> Option<Vec<u8>> {
        let mut out = vec![0; self.size()];
        let mut len = out.len();
        // SAFETY: the context is checked for null and freed on every path; `init` and `operation` are one matching pair;
        // the result has at most `size` bytes and the callee is told that `out` has so many.
        let ok = unsafe {
            let context = lc::EVP_PKEY_CTX_new(self.0.as_ptr(), ptr::null_mut());
            let ready = !context.is_null()
                && init(context) == 1
                && lc::EVP_PKEY_CTX_set_rsa_padding(context, lc::RSA_PKCS1_OAEP_PADDING) == 1
                && lc::EVP_PKEY_CTX_set_rsa_oaep_md(context, hash.md()) == 1
                && lc::EVP_PKEY_CTX_set_rsa_mgf1_md(context, hash.md()) == 1;
            let ok = ready && operation(context, out.as_mut_ptr(), &mut len, input.as_ptr(), input.len()) == 1;
            lc::EVP_PKEY_CTX_free(context);
            ok
        };
        finish(ok.into(), out, len)
    }

    fn parse(der: &[u8], parser: Parser) -> Option<Self> {
        // SAFETY: the reader stays within `der`; the result is checked for null and owned at once, so that every early
        // return frees it.
        unsafe {
            let mut reader = std::mem::zeroed::<lc::CBS>();
            lc::CBS_init(&mut reader, der.as_ptr(), der.len());
            let Some(key) = NonNull::new(parser(&mut reader)).map(Self) else { return failed() };
            let is_rsa = lc::EVP_PKEY_id(key.0.as_ptr()) == lc::EVP_PKEY_RSA;
            (is_rsa && lc::CBS_len(&reader) == 0).then_some(key)
        }
    }

    /// Takes over `rsa`, which may be null.
    ///
    /// # Safety
    /// `rsa` is null or a valid key whose one reference is handed over.
    unsafe fn adopt(rsa: *mut lc::RSA) -> Option<Self> {
        if rsa.is_null() {
            return failed();
        }
        // SAFETY: `set1` takes its own reference; ours is given back in either case.
        unsafe {
            let key = NonNull::new(lc::EVP_PKEY_new()).map(Self);
            let set = key.as_ref().is_some_and(|key| lc::EVP_PKEY_set1_RSA(key.0.as_ptr(), rsa) == 1);
            lc::RSA_free(rsa);
            if set { key } else { failed() }
        }
    }

    fn rsa(&self) -> *mut lc::RSA {
        // SAFETY: the key holds an RSA key (invariant), whose pointer lives as long as the key.
        unsafe { lc::EVP_PKEY_get0_RSA(self.0.as_ptr()) }
    }
}

type Parser = unsafe extern "C" fn(*mut lc::CBS) -> *mut lc::EVP_PKEY;
type Init = unsafe extern "C" fn(*mut lc::EVP_PKEY_CTX) -> c_int;
type Crypt = unsafe extern "C" fn(*mut lc::EVP_PKEY_CTX, *mut u8, *mut usize, *const u8, usize) -> c_int;
type Raw = unsafe extern "C" fn(*mut lc::RSA, *mut usize, *mut u8, usize, *const u8, usize, c_int) -> c_int;

fn finish(ok: c_int, mut out: Vec<u8>, len: usize) -> Option<Vec<u8>> {
    if ok != 1 {
        return failed();
    }
    out.truncate(len);
    Some(out)
}

/// Nothing, with the thread's error queue emptied: what failed is the peer's input, and nobody reads that queue.
fn failed<T>() -> Option<T> {
    // SAFETY: touches thread-local state only.
    unsafe { lc::ERR_clear_error() };
    None
}

/// Copies an allocation of the library and frees it (which also wipes it).
///
/// # Safety
/// `bytes` is an allocation of the library of at least `len` initialised bytes, handed over.
unsafe fn owned(bytes: *mut u8, len: usize) -> Zeroizing<Vec<u8>> {
    // SAFETY: the caller's promise.
    unsafe {
        let copy = Zeroizing::new(std::slice::from_raw_parts(bytes, len).to_vec());
        lc::OPENSSL_free(bytes.cast());
        copy
    }
}
