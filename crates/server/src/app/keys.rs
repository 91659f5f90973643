//! Keys: list them, decide about them.

use super::{App, Caller, KeyVerb};
use crate::Error;
use saltern_core::access::{Invocation, Wish};
use saltern_core::ids::MinionId;
use saltern_core::keys::KeyState;
use saltern_core::time::Timestamp;
use saltern_wire::crypto::PrivateKey;
use zeroize::Zeroizing;

/// One key in a list. An id can have two: its accepted one and a denied one.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    /// Whose
    pub minion: MinionId,
    /// What was decided
    pub state: KeyState,
    /// Its fingerprint
    pub fingerprint: String,
    /// The public key, PEM
    pub pem: String,
    /// Since when
    pub since: Timestamp,
}

/// Which keys a decision is about.
#[derive(Clone, Debug)]
pub enum KeyMatch {
    /// Ids that match a shell pattern
    Glob(String),
    /// Exactly these ids
    Ids(Vec<String>),
    /// Exactly these ids with keys in these states
    Keys(Vec<(MinionId, KeyState)>),
    /// All that the verb can apply to
    All,
}

/// A new pair of keys.
pub struct KeyPair {
    /// The private key, PEM
    pub private: Zeroizing<String>,
    /// The public key, PEM
    pub public: String,
}

impl App {
    /// The keys he may know of, in the order of ids: those of minions he sees; for who decides about keys, all.
    pub fn keys(&self, caller: &Caller) -> Vec<KeyEntry> {
        let decides = caller.rights.may(&Wish::DecideKey(None)).is_ok() || caller.rights.sees_keys();
        let knows = |key: &KeyEntry| decides || (key.state == KeyState::Accepted && caller.sight().sees(&key.minion));
        self.master.keys.list().into_iter().filter(knows).collect()
    }

    /// Makes a pair of keys for a minion to come; with `id` its public key is accepted at once.
    pub async fn make_keys(
        &self,
        caller: &Caller,
        id: Option<&MinionId>,
        bits: Option<u32>,
        force: bool,
    ) -> Result<KeyPair, Error> {
        let fun = if id.is_some() { "key.gen_accept" } else { "key.gen" };
        self.may(caller, &Wish::Wheel(Invocation::bare(fun)))?;
        let bits = bits.unwrap_or(2048);
        if !(2048..=8192).contains(&bits) {
            return Err(Error::Invalid("a key has 2048 to 8192 bits".into()));
        }
        let made = tokio::task::spawn_blocking(move || PrivateKey::generate(bits)).await;
        let key = made.map_err(|error| Error::Internal(error.to_string()))?;
        let key = key.map_err(|error| Error::Internal(error.to_string()))?;
        let private = key.to_pem().map_err(|error| Error::Internal(error.to_string()))?;
        let pair = KeyPair { private, public: key.public().to_pem() };
        if let Some(id) = id {
            self.master.accept_made_key(caller, id, &pair.public, force).await?;
            self.master.directory.members_changed();
        }
        Ok(pair)
    }

    /// The server's own fingerprint, for `master_finger` on minions.
    pub fn master_fingerprint(&self) -> String {
        self.master.rsa.public().fingerprint()
    }

    /// Decides about keys; returns the ids it applied to. `also` lists states beyond the verb's usual ones.
    pub async fn decide_keys(
        &self,
        caller: &Caller,
        verb: KeyVerb,
        which: &KeyMatch,
        also: &[KeyState],
    ) -> Result<Vec<MinionId>, Error> {
        let decided = self.decide_his_keys(caller, verb, which, also).await;
        self.master.directory.members_changed();
        decided
    }

    async fn decide_his_keys(
        &self,
        caller: &Caller,
        verb: KeyVerb,
        which: &KeyMatch,
        also: &[KeyState],
    ) -> Result<Vec<MinionId>, Error> {
        if caller.rights.may(&Wish::DecideKey(None)).is_err() {
            // Who looks after an organisation decides about the keys of its minions, and learns of no others.
            let known = self.keys(caller);
            let meant: Vec<&KeyEntry> = known.iter().filter(|key| which.means(key)).collect();
            if meant.is_empty() {
                self.may(caller, &Wish::DecideKey(None))?;
            }
            for key in &meant {
                self.may(caller, &Wish::DecideKey(Some(&key.minion)))?;
            }
            let exactly = meant.iter().map(|key| (key.minion.clone(), key.state)).collect();
            return self.master.decide_keys(caller, verb, &KeyMatch::Keys(exactly), also).await;
        }
        self.master.decide_keys(caller, verb, which, also).await
    }
}
