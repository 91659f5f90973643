//! One password for everybody: for a proxy that has checked people itself and says who they are.

use super::{Error, Secret};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The secret, as its digest: comparing digests tells nothing of the secret's length.
pub(super) struct SharedSecret([u8; 32]);

impl SharedSecret {
    pub(super) fn new(secret: Secret) -> Result<Self, Error> {
        if secret.reveal().is_empty() {
            return Err(Error::setting(
                "sharedsecret",
                "must be set, since external_auth has `sharedsecret`; without it everybody would be let in",
            ));
        }
        Ok(Self(digest(secret.reveal())))
    }

    pub(super) fn check(&self, password: &str) -> bool {
        self.0.ct_eq(&digest(password)).into()
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_itself_is_taken() {
        let secret = SharedSecret::new(Secret::from("s3cret")).unwrap();
        assert!(secret.check("s3cret"));
        for wrong in ["", "s3cre", "s3cret ", "S3CRET"] {
            assert!(!secret.check(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn an_empty_secret_is_refused_at_start() {
        let error = SharedSecret::new(Secret::default()).err().unwrap();
        assert!(error.to_string().starts_with("sharedsecret: must be set"), "{error}");
    }
}
