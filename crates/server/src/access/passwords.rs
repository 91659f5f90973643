//! Whether a password is right, and how it is kept: argon2, a few at a time, the same work whether or not there is such a user.

use crate::Error;
use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Hashes that are computed at once: each takes 19 MiB and some milliseconds of a core.
const AT_ONCE: usize = 2;

/// Longest password that is looked at.
const LONGEST: usize = 1024;

/// Shortest password that may be set.
const SHORTEST: usize = 8;

/// Wrong passwords that somebody who is logged in may give for the old one within [`WINDOW`].
const GUESSES: usize = 5;

/// How long a wrong password counts.
const WINDOW: Duration = Duration::from_secs(60);

/// Checks and makes password hashes.
pub(crate) struct Passwords {
    turns: Arc<Semaphore>,
    /// When whose old password was asked for; only names of users are in it
    guesses: Mutex<HashMap<String, Vec<Instant>>>,
    /// The hash of a password nobody has, compared with when there is no such user
    nobody: String,
}

impl Passwords {
    /// Gets ready.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut unknown = [0; 16];
        getrandom::fill(&mut unknown).map_err(|error| Error::Start(format!("no randomness: {error}")))?;
        let nobody = hash(&base16(&unknown)).map_err(Error::Start)?;
        Ok(Self { turns: Arc::new(Semaphore::new(AT_ONCE)), guesses: Mutex::default(), nobody })
    }

    /// Counts a try of a user's old password, which counts until it proves to be right; refuses one too many.
    pub(crate) fn guess(&self, user: &str) -> Result<Guess<'_>, Error> {
        let mut all = self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, tries| {
            tries.retain(|at| at.elapsed() < WINDOW);
            !tries.is_empty()
        });
        let tries = all.entry(user.to_owned()).or_default();
        if tries.len() >= GUESSES {
            let seconds = WINDOW.as_secs();
            return Err(Error::Forbidden(format!("too many wrong passwords were given; wait {seconds} seconds")));
        }
        tries.push(Instant::now());
        Ok(Guess { passwords: self, user: user.to_owned() })
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

/// A try of a user's old password.
pub(crate) struct Guess<'a> {
    passwords: &'a Passwords,
    user: String,
}

impl Guess<'_> {
    /// It was his password: he has not guessed.
    pub(crate) fn was_right(self) {
        self.passwords.guesses.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.user);
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
    async fn an_old_password_is_not_guessed_for_long() {
        let passwords = Passwords::new().unwrap();
        for _ in 0..GUESSES {
            passwords.guess("ann").unwrap();
        }
        assert!(passwords.guess("ann").is_err());
        passwords.guess("bob").unwrap().was_right();
        assert!((0..GUESSES).all(|_| passwords.guess("bob").is_ok()));
    }

    #[tokio::test]
    async fn passwords_that_are_no_use_are_refused() {
        let passwords = Passwords::new().unwrap();
        assert!(passwords.keep("short").await.is_err());
        assert!(passwords.keep(&"x".repeat(2000)).await.is_err());
    }
}
