//! Whether a password is right, and how it is kept: argon2, a few at a time, the same work whether or not there is such a user.

use crate::Error;
use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Hashes that are computed at once: each takes 19 MiB and some milliseconds of a core.
const AT_ONCE: usize = 2;

/// Longest password that is looked at.
const LONGEST: usize = 1024;

/// Shortest password that may be set.
const SHORTEST: usize = 8;

/// Checks and makes password hashes.
pub(crate) struct Passwords {
    turns: Arc<Semaphore>,
    /// The hash of a password nobody has, compared with when there is no such user
    nobody: String,
}

impl Passwords {
    /// Gets ready.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut unknown = [0; 16];
        getrandom::fill(&mut unknown).map_err(|error| Error::Start(format!("no randomness: {error}")))?;
        let nobody = hash(&base16(&unknown)).map_err(Error::Start)?;
        Ok(Self { turns: Arc::new(Semaphore::new(AT_ONCE)), nobody })
    }

    /// Whether this is the password of this hash; without a hash the work is done all the same.
    pub(crate) async fn check(&self, password: &str, stored: Option<&str>) -> bool {
        if password.is_empty() || password.len() > LONGEST {
            return false;
        }
        let (password, known) = (password.to_owned(), stored.is_some());
        let stored = stored.unwrap_or(&self.nobody).to_owned();
        let matches = self.compute(move || {
            let Ok(stored) = PasswordHash::new(&stored) else { return false };
            Argon2::default().verify_password(password.as_bytes(), &stored).is_ok()
        });
        matches.await.unwrap_or(false) && known
    }

    /// How a new password is kept.
    pub(crate) async fn keep(&self, password: &str) -> Result<String, Error> {
        if password.len() < SHORTEST {
            return Err(Error::Invalid(format!("a password has at least {SHORTEST} characters")));
        }
        if password.len() > LONGEST {
            return Err(Error::Invalid(format!("a password has at most {LONGEST} bytes")));
        }
        let password = password.to_owned();
        let hashed = self.compute(move || hash(&password)).await;
        hashed.unwrap_or_else(|| Err("the server is stopping".into())).map_err(Error::Internal)
    }

    async fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let turn = self.turns.clone().acquire_owned().await.ok()?;
        tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        })
        .await
        .ok()
    }
}

fn hash(password: &str) -> Result<String, String> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| format!("no randomness: {error}"))?;
    let salt = SaltString::encode_b64(&salt).map_err(|error| error.to_string())?;
    let hashed = Argon2::default().hash_password(password.as_bytes(), &salt).map_err(|error| error.to_string())?;
    Ok(hashed.to_string())
}

fn base16(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_right_password_and_no_other_is_accepted() {
        let passwords = Passwords::new().unwrap();
        let kept = passwords.keep("correct horse").await.unwrap();
        assert!(kept.starts_with("$argon2id$") && !kept.contains("correct"));
        assert!(passwords.check("correct horse", Some(&kept)).await);
        for wrong in ["correct horsf", "", "correct horse "] {
            assert!(!passwords.check(wrong, Some(&kept)).await);
        }
        assert!(!passwords.check("correct horse", None).await);
        assert!(!passwords.check("correct horse", Some("not a hash")).await);
    }

    #[tokio::test]
    async fn passwords_that_are_no_use_are_refused() {
        let passwords = Passwords::new().unwrap();
        assert!(passwords.keep("short").await.is_err());
        assert!(passwords.keep(&"x".repeat(2000)).await.is_err());
    }
}
