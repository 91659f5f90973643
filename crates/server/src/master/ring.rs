//! The keys in force now: one immutable generation, swapped as a whole when they are renewed.

use crate::Error;
use crate::secrets::Rotating;
use saltern_wire::crypto::{Crypticle, KeyString, PrivateKey};

/// One generation of keys, with what can be worked out of them once.
pub(crate) struct Ring {
    pub(crate) generation: u64,
    pub(crate) keys: Rotating,
    /// Seals publications
    pub(crate) shared: Crypticle,
    /// Opens version 2 requests that were sealed before the last renewal
    pub(crate) previous_shared: Option<Crypticle>,
    /// The X9.31 signature of the shared key's digest: the same for every minion, so made once
    pub(crate) shared_signature: Vec<u8>,
}

impl Ring {
    pub(crate) fn new(generation: u64, keys: Rotating, rsa: &PrivateKey) -> Result<Self, Error> {
        let digest = keys.shared.digest();
        let shared_signature = rsa
            .x931_sign(digest.as_bytes())
            .map_err(|error| Error::Internal(format!("cannot sign the shared key: {error}")))?;
        Ok(Self {
            generation,
            shared: Crypticle::new(&keys.shared),
            previous_shared: keys.previous_shared.as_ref().map(Crypticle::new),
            shared_signature,
            keys,
        })
    }

    pub(crate) fn shared_key(&self) -> &KeyString {
        &self.keys.shared
    }
}
