//! Keys: list them, decide about them.

use super::{App, Caller, KeyVerb};
use crate::Error;
use saltern_core::ids::MinionId;
use saltern_core::keys::KeyState;
use saltern_core::time::Timestamp;

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
    /// All that the verb can apply to
    All,
}

impl App {
    /// Every key, in the order of ids.
    pub fn keys(&self) -> Vec<KeyEntry> {
        self.master.keys.list()
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
        self.master.decide_keys(caller, verb, which, also).await
    }
}
