//! The server's own secrets: its RSA key, the shared AES key, and what session keys are made from. They outlive restarts.
//!
//! `pki/master.pem` and `master.pub` are named and shaped as salt-master's, so a site that moves here copies its key over
//! and no minion notices (a new key would be refused by the whole fleet). `pki/keys.json` holds the rest. Session keys are
//! not stored one by one: each is derived from one secret, the minion's id and its public key, so there is nothing to
//! lose, and a minion whose key is replaced cannot use the old session.
//!
//! Everything here is 0600 in a 0700 directory, replaced atomically, and never printed.

use crate::Error;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_wire::crypto::{KeyString, PrivateKey};
use serde_json::json;
use sha2::Sha512;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The server's long-lived key pair.
pub(crate) fn load_or_create_rsa(dir: &Path, bits: u32) -> Result<PrivateKey, Error> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| cannot("make", dir, &e))?;
    let path = dir.join("master.pem");
    match fs::read(&path) {
        Ok(pem) => {
            let pem = Zeroizing::new(pem);
            // A key that was copied here may have come with the wrong mode.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(|e| cannot("protect", &path, &e))?;
            let text = std::str::from_utf8(&pem).map_err(|_| unreadable_key(&path))?;
            PrivateKey::from_pem(text).map_err(|_| unreadable_key(&path))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let failed = |error| Error::Start(format!("cannot make an RSA key of {bits} bits: {error}"));
            let key = PrivateKey::generate(bits).map_err(failed)?;
            replace(&path, key.to_pem().map_err(failed)?.as_bytes())?;
            replace(&dir.join("master.pub"), format!("{}\n", key.public().to_pem()).as_bytes())?;
            Ok(key)
        }
        Err(error) => Err(cannot("read", &path, &error)),
    }
}

/// The keys that are renewed from time to time, with the generation before them.
pub(crate) struct Rotating {
    path: PathBuf,
    /// The AES key that publications are sealed with
    pub(crate) shared: KeyString,
    /// The shared key before it; version 2 requests under way may still use it
    pub(crate) previous_shared: Option<KeyString>,
    /// What session keys are derived from
    session: Zeroizing<[u8; 32]>,
    previous_session: Option<Zeroizing<[u8; 32]>>,
    /// When they were made
    pub(crate) made: Timestamp,
}

impl Rotating {
    /// Reads them, or makes the first ones.
    pub(crate) fn load_or_create(dir: &Path, now: Timestamp) -> Result<Self, Error> {
        let path = dir.join("keys.json");
        match fs::read(&path) {
            Ok(text) => Self::parse(&path, &Zeroizing::new(text)).ok_or_else(|| {
                Error::Start(format!(
                    "{} is damaged: restore it from a backup, or remove it (minions then sign in again)",
                    path.display()
                ))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let first = Self {
                    path,
                    shared: KeyString::generate(),
                    previous_shared: None,
                    session: random()?,
                    previous_session: None,
                    made: now,
                };
                first.save()?;
                Ok(first)
            }
            Err(error) => Err(cannot("read", &path, &error)),
        }
    }

    fn parse(path: &Path, text: &[u8]) -> Option<Self> {
        let json: serde_json::Value = serde_json::from_slice(text).ok()?;
        let secret = |name: &str| -> Option<Zeroizing<[u8; 32]>> {
            let bytes = Zeroizing::new(BASE64_STANDARD.decode(json.get(name)?.as_str()?).ok()?);
            Some(Zeroizing::new(bytes.as_slice().try_into().ok()?))
        };
        let key = |name: &str| KeyString::parse(json.get(name)?.as_str()?.as_bytes()).ok();
        Some(Self {
            path: path.to_owned(),
            shared: key("shared")?,
            previous_shared: key("previous_shared"),
            session: secret("session")?,
            previous_session: secret("previous_session"),
            made: Timestamp(json.get("made")?.as_i64()?),
        })
    }

    /// The next generation, saved before anybody uses it.
    pub(crate) fn rotate(&self, now: Timestamp, sessions_too: bool) -> Result<Self, Error> {
        let (session, previous_session) = if sessions_too {
            (random()?, Some(self.session.clone()))
        } else {
            (self.session.clone(), self.previous_session.clone())
        };
        let next = Self {
            path: self.path.clone(),
            shared: KeyString::generate(),
            // Without a change of sessions somebody was thrown out, and must not be served under the key it knows.
            previous_shared: sessions_too.then(|| self.shared.clone()),
            session,
            previous_session,
            made: if sessions_too { now } else { self.made },
        };
        next.save()?;
        Ok(next)
    }

    /// The session key of a minion with this public key.
    pub(crate) fn session_key(&self, minion: &MinionId, pem: &str) -> KeyString {
        derive(&self.session, minion, pem)
    }

    /// The session key of the generation before: valid until the next renewal, so that nothing under way is lost.
    pub(crate) fn previous_session_key(&self, minion: &MinionId, pem: &str) -> Option<KeyString> {
        self.previous_session.as_ref().map(|secret| derive(secret, minion, pem))
    }

    fn save(&self) -> Result<(), Error> {
        let text = |secret: &Zeroizing<[u8; 32]>| BASE64_STANDARD.encode(secret.as_slice());
        let json = Zeroizing::new(
            json!({
                "version": 1,
                "made": self.made.micros(),
                "shared": self.shared.as_str(),
                "previous_shared": self.previous_shared.as_ref().map(KeyString::as_str),
                "session": text(&self.session),
                "previous_session": self.previous_session.as_ref().map(text),
            })
            .to_string(),
        );
        replace(&self.path, json.as_bytes())
    }
}

fn derive(secret: &Zeroizing<[u8; 32]>, minion: &MinionId, pem: &str) -> KeyString {
    let mut mac = Hmac::<Sha512>::new_from_slice(secret.as_slice()).expect("HMAC takes keys of any length");
    mac.update(minion.as_str().as_bytes());
    mac.update(b"\0");
    mac.update(pem.as_bytes());
    let bytes = Zeroizing::new(<[u8; 64]>::from(mac.finalize().into_bytes()));
    let text = Zeroizing::new(BASE64_STANDARD.encode(&bytes[..56]));
    KeyString::parse(text.as_bytes()).expect("56 bytes are the size of a key")
}

fn random() -> Result<Zeroizing<[u8; 32]>, Error> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut_slice()).map_err(|error| Error::Start(format!("no randomness: {error}")))?;
    Ok(bytes)
}

/// Writes a file so that it is there whole or not at all, readable by its owner only.
fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    let fresh = path.with_extension("new");
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    })();
    written.map_err(|error| cannot("write", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::Start(format!("cannot {verb} {}: {error}", path.display()))
}

fn unreadable_key(path: &Path) -> Error {
    Error::Start(format!(
        "{} is not an RSA private key in PEM form: restore it from a backup (every minion knows the old key)",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_outlive_a_restart_and_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let first = Rotating::load_or_create(dir.path(), Timestamp(1)).unwrap();
        let again = Rotating::load_or_create(dir.path(), Timestamp(2)).unwrap();
        let minion = MinionId::new("a").unwrap();
        assert_eq!(first.shared.as_str(), again.shared.as_str());
        assert_eq!(first.session_key(&minion, "k").as_str(), again.session_key(&minion, "k").as_str());
        assert_eq!(again.made, Timestamp(1));
        let mode = fs::metadata(dir.path().join("keys.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn sessions_differ_by_minion_and_by_key() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Rotating::load_or_create(dir.path(), Timestamp(1)).unwrap();
        let (a, b) = (MinionId::new("a").unwrap(), MinionId::new("b").unwrap());
        assert_ne!(keys.session_key(&a, "k").as_str(), keys.session_key(&b, "k").as_str());
        assert_ne!(keys.session_key(&a, "k").as_str(), keys.session_key(&a, "other").as_str());
    }

    #[test]
    fn a_renewal_keeps_the_generation_before() {
        let dir = tempfile::tempdir().unwrap();
        let old = Rotating::load_or_create(dir.path(), Timestamp(1)).unwrap();
        let minion = MinionId::new("a").unwrap();
        let new = old.rotate(Timestamp(9), true).unwrap();
        assert_ne!(old.shared.as_str(), new.shared.as_str());
        let previous = new.previous_session_key(&minion, "k").unwrap();
        assert_eq!(previous.as_str(), old.session_key(&minion, "k").as_str());
        assert_eq!(new.previous_shared.as_ref().map(KeyString::as_str), Some(old.shared.as_str()));
        let kept = new.rotate(Timestamp(10), false).unwrap();
        assert!(kept.previous_shared.is_none());
        assert_eq!(kept.session_key(&minion, "k").as_str(), new.session_key(&minion, "k").as_str());
    }

    #[test]
    fn a_damaged_file_is_named_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("keys.json"), "{").unwrap();
        let error = Rotating::load_or_create(dir.path(), Timestamp(1)).err().unwrap().to_string();
        assert!(error.contains("keys.json is damaged"), "{error}");
        assert_eq!(fs::read(dir.path().join("keys.json")).unwrap(), b"{");
    }
}
