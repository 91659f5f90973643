//! The RSA keys that light minions share, and their files.
//!
//! Making a key takes a good part of a second, so a thousand minions share one unless told otherwise, and several are kept.

use crate::Error;
use saltern_wire::crypto::PrivateKey;
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

const BITS: u32 = 2048;

/// A key, and the token that every request carries: the same for as long as the key is.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) private: PrivateKey,
    pub(crate) token: Vec<u8>,
}

impl Key {
    fn new(private: PrivateKey) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self { token: private.token()?, private }))
    }
}

/// Reads `count` keys from `dir`, and makes and keeps those that are not there. Takes long: not for an async task.
pub(crate) fn load_or_make(count: usize, dir: Option<&Path>) -> Result<Vec<Arc<Key>>, Error> {
    if let Some(dir) = dir {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|source| Error::KeyFile { path: dir.to_owned(), source })?;
    }
    (1..=count)
        .map(|number| match dir {
            Some(dir) => kept(&dir.join(format!("swarm-{number}.pem"))),
            None => Key::new(PrivateKey::generate(BITS)?),
        })
        .collect()
}

fn kept(path: &Path) -> Result<Arc<Key>, Error> {
    let failed = |source| Error::KeyFile { path: path.to_owned(), source };
    match std::fs::read_to_string(path) {
        Ok(pem) => Key::new(PrivateKey::from_pem(&pem)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = PrivateKey::generate(BITS)?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
            file.write_all(key.to_pem()?.as_bytes()).map_err(failed)?;
            Key::new(key)
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_keys_are_the_same_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("keys");
        let first = load_or_make(2, Some(&folder)).unwrap();
        let second = load_or_make(2, Some(&folder)).unwrap();
        assert_eq!(first[0].token, second[0].token);
        assert_ne!(first[0].token, first[1].token);
        assert_eq!(first[1].private.public().to_pem(), second[1].private.public().to_pem());
    }
}
