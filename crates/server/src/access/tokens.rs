//! Tokens that people and programs show: 256 random bits in hexadecimal. Only their hash is kept.
//!
//! A token that was looked up is believed for a moment, so that a client's requests need no database each. What is taken
//! back here is gone at once; what is taken back on another server, within that moment.

use crate::Error;
use saltern_core::time::Timestamp;
use saltern_store::{Store, Token};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a token that was looked up is believed.
const BELIEVED: Duration = Duration::from_secs(2);

/// Most tokens that are remembered.
const MOST: usize = 10_000;

/// Tokens by their hashes, and when each was looked up.
type Known = HashMap<[u8; 32], (Instant, Arc<Token>)>;

/// The tokens that were shown lately.
#[derive(Default)]
pub(crate) struct Tokens {
    known: Mutex<Known>,
    /// When tokens were used, not written down yet
    used: Mutex<HashMap<String, Timestamp>>,
}

/// A new token: what is given to its owner, and what is kept.
pub(crate) fn new_token() -> Result<(String, [u8; 32]), Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
    let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let hash = hash(&secret);
    Ok((secret, hash))
}

/// What is kept of a token.
fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Whether this can be a token at all.
fn is_token(secret: &str) -> bool {
    secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Tokens {
    /// Whose token this is, if it is one that is valid now.
    pub(crate) async fn look_up(
        &self,
        store: &Store,
        secret: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<Token>>, Error> {
        if !is_token(secret) {
            return Ok(None);
        }
        let hash = hash(secret);
        let known = match self.remembered(&hash) {
            Some(token) => Some(token),
            None => store.token(&hash).await?.map(Arc::new).inspect(|token| self.remember(token)),
        };
        let valid = known.filter(|token| token.expires > now);
        if let Some(token) = &valid {
            self.lock_used().insert(token.id.clone(), now);
        }
        Ok(valid)
    }

    /// A token was taken back.
    pub(crate) fn forget(&self, is_gone: impl Fn(&Token) -> bool) {
        self.lock_known().retain(|_, (_, token)| !is_gone(token));
    }

    /// When tokens were used since this was last asked.
    pub(crate) fn take_used(&self) -> Vec<(String, Timestamp)> {
        self.lock_used().drain().collect()
    }

    fn remembered(&self, hash: &[u8; 32]) -> Option<Arc<Token>> {
        self.lock_known().get(hash).filter(|(at, _)| at.elapsed() < BELIEVED).map(|(_, token)| token.clone())
    }

    fn remember(&self, token: &Arc<Token>) {
        let mut known = self.lock_known();
        if known.len() >= MOST {
            known.retain(|_, (at, _)| at.elapsed() < BELIEVED);
        }
        if known.len() < MOST {
            known.insert(token.hash, (Instant::now(), token.clone()));
        }
    }

    fn lock_known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_used(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_hexadecimal_and_kept_as_a_hash() {
        let (secret, kept) = new_token().unwrap();
        assert!(is_token(&secret));
        assert_eq!(hash(&secret), kept);
        assert!(!kept.iter().map(|byte| format!("{byte:02x}")).collect::<String>().contains(&secret[..16]));
        assert_ne!(new_token().unwrap().0, secret);
    }

    #[test]
    fn what_is_no_token_is_not_looked_up() {
        for text in ["", "abc", &"g".repeat(64), &"a".repeat(65)] {
            assert!(!is_token(text), "{text}");
        }
    }
}
