//! The key book: what was decided about every key, and the decisions of operators.
//!
//! A mirror of the store, so that a sign-in needs no database to be judged. A decision is written to the store first and to
//! the book after; decisions are made one at a time.

use super::{Master, Member, entry};
use crate::app::{Caller, KeyEntry, KeyMatch};
use crate::{Error, clock};
use saltern_core::ids::MinionId;
use saltern_core::keys::KeyState;
use saltern_core::target::Glob;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{Key, KeySlot};
use saltern_wire::crypto::PublicKey;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// What an operator can decide about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyVerb {
    /// Let it in
    Accept,
    /// Keep it out
    Reject,
    /// Forget it: the minion may present itself again
    Delete,
}

/// Every key there is.
pub(crate) struct KeyBook {
    keys: RwLock<BTreeMap<(MinionId, KeySlot), KeyEntry>>,
    /// Held while a decision is on its way to the store
    pub(super) deciding: tokio::sync::Mutex<()>,
}

impl KeyBook {
    pub(crate) fn new(keys: Vec<Key>) -> Self {
        let entry = |key: Key| {
            let state = KeyState::parse(&key.state)?;
            let Key { minion, slot, pem, fingerprint, since, .. } = key;
            Some(((minion.clone(), slot), KeyEntry { minion, state, fingerprint, pem, since }))
        };
        Self {
            keys: RwLock::new(keys.into_iter().filter_map(entry).collect()),
            deciding: tokio::sync::Mutex::default(),
        }
    }

    /// Every key, in the order of ids.
    pub(crate) fn list(&self) -> Vec<KeyEntry> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The ids that are accepted, with their keys.
    pub(crate) fn accepted(&self) -> Vec<(MinionId, String)> {
        let accepted = |key: KeyEntry| (key.state == KeyState::Accepted).then_some((key.minion, key.pem));
        self.list().into_iter().filter_map(accepted).collect()
    }

    /// The current key of an id.
    pub(super) fn current(&self, id: &MinionId) -> Option<(KeyState, String)> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(&(id.clone(), KeySlot::Current)).map(|key| (key.state, key.pem.clone()))
    }

    /// The foreign key that claims this id, if one does.
    pub(super) fn denied(&self, id: &MinionId) -> Option<KeyEntry> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(&(id.clone(), KeySlot::Denied)).cloned()
    }

    /// Keys that wait for a decision.
    pub(super) fn pending(&self) -> usize {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.values().filter(|key| key.state == KeyState::Unaccepted).count()
    }

    /// Takes what the store says now; gives the ids that are accepted, with their keys.
    fn replace(&self, keys: Vec<Key>) -> Vec<(MinionId, String)> {
        let fresh = Self::new(keys);
        let fresh = std::mem::take(&mut *fresh.keys.write().unwrap_or_else(PoisonError::into_inner));
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        self.accepted()
    }

    fn apply(&self, put: &[KeyEntry], remove: &[(MinionId, KeySlot)]) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        for place in remove {
            keys.remove(place);
        }
        for key in put {
            keys.insert((key.minion.clone(), slot(key.state)), key.clone());
        }
    }
}

impl Master {
    /// Another server has decided about keys: who is accepted there is accepted here, who is not is not.
    pub(crate) async fn read_keys_again(&self) -> Result<(), Error> {
        let _turn = self.keys.deciding.lock().await;
        let (keys, known) = (self.store.keys().await?, self.store.minions().await?);
        let known: BTreeMap<_, _> = known.into_iter().map(|minion| (minion.id.clone(), minion)).collect();
        let accepted: BTreeMap<MinionId, String> = self.keys.replace(keys).into_iter().collect();
        let now = clock::now();
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        members.retain(|id, member| accepted.get(id).is_some_and(|pem| *pem == member.pem));
        for (id, pem) in accepted {
            let known = known.get(&id);
            members.entry(id.clone()).or_insert_with(|| Arc::new(Member::new(id, pem, known, now)));
        }
        Ok(())
    }

    /// Carries out an operator's decision; returns the ids it applied to.
    pub(crate) async fn decide_keys(
        &self,
        caller: &Caller,
        verb: KeyVerb,
        which: &KeyMatch,
        also: &[KeyState],
    ) -> Result<Vec<MinionId>, Error> {
        let _turn = self.keys.deciding.lock().await;
        let meant: Vec<KeyEntry> =
            self.keys.list().into_iter().filter(|key| which.means(key) && verb.applies(key.state, also)).collect();
        if meant.is_empty() {
            return match which {
                KeyMatch::All => Ok(Vec::new()),
                _ => Err(Error::NotFound(format!("no key matches that can be {}", verb.done()))),
            };
        }
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        let now = clock::now();
        for key in &meant {
            remove.push((key.minion.clone(), slot(key.state)));
            if let Some(state) = verb.state() {
                put.push(KeyEntry { state, since: now, ..key.clone() });
            }
        }
        let mut ids: Vec<MinionId> = meant.into_iter().map(|key| key.minion).collect();
        ids.dedup();
        // Whoever is thrown out still knows the shared key.
        let expels = ids.iter().any(|id| self.is_expelled(id, &put, &remove));
        let mut events = Vec::new();
        if expels {
            events.push(entry(now, "key".into(), Value::map([("rotate_aes_key", true)]), None, None));
        }
        self.commit_keys(put, remove, Some((caller, verb)), &ids, events).await?;
        if expels {
            self.rotate(false)?;
        }
        Ok(ids)
    }

    /// Accepts a key that was made here for a minion to come.
    pub(crate) async fn accept_made_key(
        &self,
        caller: &Caller,
        id: &MinionId,
        pem: &str,
        force: bool,
    ) -> Result<(), Error> {
        let _turn = self.keys.deciding.lock().await;
        let known = self.keys.current(id);
        if known.is_some() && !force {
            return Err(Error::Conflict(format!("there is a key of {id} already")));
        }
        let put = vec![key_entry(id, KeyState::Accepted, pem, clock::now())];
        let expels = self.is_expelled(id, &put, &[]);
        self.commit_keys(put, Vec::new(), Some((caller, KeyVerb::Accept)), std::slice::from_ref(id), Vec::new())
            .await?;
        if expels {
            self.rotate(false)?;
        }
        Ok(())
    }

    /// Whether a key that is in now would no longer be: also by another one taking its place.
    fn is_expelled(&self, id: &MinionId, put: &[KeyEntry], remove: &[(MinionId, KeySlot)]) -> bool {
        let Some((KeyState::Accepted, pem)) = self.keys.current(id) else { return false };
        match put.iter().find(|key| key.minion == *id && slot(key.state) == KeySlot::Current) {
            Some(next) => next.state != KeyState::Accepted || next.pem != pem,
            None => remove.contains(&(id.clone(), KeySlot::Current)),
        }
    }

    /// Writes keys to the store, then to the book, then lets members in or out accordingly.
    pub(super) async fn commit_keys(
        &self,
        put: Vec<KeyEntry>,
        remove: Vec<(MinionId, KeySlot)>,
        decision: Option<(&Caller, KeyVerb)>,
        ids: &[MinionId],
        mut events: Vec<saltern_store::NewEvent>,
    ) -> Result<(), Error> {
        let now = clock::now();
        let mut audit = Vec::new();
        if let Some((caller, verb)) = decision {
            for id in ids {
                events.push(key_event(now, verb, id, &put));
                audit.push(caller.audit(&format!("key.{}", verb.word()), id.as_str(), serde_json::json!({})));
            }
        }
        let row = |key: &KeyEntry| Key {
            minion: key.minion.clone(),
            slot: slot(key.state),
            state: key.state.as_str().into(),
            pem: key.pem.clone(),
            fingerprint: key.fingerprint.clone(),
            since: key.since,
        };
        // Removals of places that are written anew would take the new key away.
        let gone =
            remove.iter().filter(|place| !put.iter().any(|key| (&key.minion, slot(key.state)) == (&place.0, place.1)));
        self.store.change_keys(put.iter().map(row).collect(), gone.cloned().collect(), events, audit).await?;
        self.keys.apply(&put, &remove);
        for id in put.iter().map(|key| &key.minion).chain(remove.iter().map(|(id, _)| id)) {
            self.admit_or_expel(id, now);
        }
        self.record_minions().await;
        Ok(())
    }

    /// Brings the members in line with the book for one id.
    fn admit_or_expel(&self, id: &MinionId, now: Timestamp) {
        let current = self.keys.current(id);
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        match current {
            Some((KeyState::Accepted, pem)) => {
                let known = members.get(id).map(|member| (member.pem == pem, member.row()));
                if !matches!(known, Some((true, _))) {
                    let known = known.map(|(_, row)| row);
                    members.insert(id.clone(), Arc::new(Member::new(id.clone(), pem, known.as_ref(), now)));
                }
            }
            _ => drop(members.remove(id)),
        }
    }
}

/// A key as it is kept, with its fingerprint.
pub(super) fn key_entry(minion: &MinionId, state: KeyState, pem: &str, now: Timestamp) -> KeyEntry {
    let fingerprint = PublicKey::from_pem(pem).map_or_else(|_| "unusable".into(), |key| key.fingerprint());
    KeyEntry { minion: minion.clone(), state, fingerprint, pem: pem.to_owned(), since: now }
}

pub(super) const fn slot(state: KeyState) -> KeySlot {
    match state {
        KeyState::Unaccepted | KeyState::Accepted | KeyState::Rejected => KeySlot::Current,
        KeyState::Denied => KeySlot::Denied,
    }
}

fn key_event(now: Timestamp, verb: KeyVerb, id: &MinionId, put: &[KeyEntry]) -> saltern_store::NewEvent {
    let mut body = vec![("result", Value::from(true)), ("act", verb.word().into()), ("id", id.into())];
    if let Some(key) = put.iter().find(|key| key.minion == *id) {
        body.push(("pub", key.pem.as_str().into()));
    }
    entry(now, "salt/key".into(), Value::map(body), Some(id), None)
}

impl KeyVerb {
    /// Whether it applies to keys in this state: the usual ones, and those named besides.
    fn applies(self, state: KeyState, also: &[KeyState]) -> bool {
        let usual = match self {
            Self::Accept | Self::Reject => state == KeyState::Unaccepted,
            Self::Delete => true,
        };
        usual || also.contains(&state)
    }

    const fn state(self) -> Option<KeyState> {
        match self {
            Self::Accept => Some(KeyState::Accepted),
            Self::Reject => Some(KeyState::Rejected),
            Self::Delete => None,
        }
    }

    /// The verb.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Delete => "delete",
        }
    }

    /// What was done.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Accept => "accepted",
            Self::Reject => "rejected",
            Self::Delete => "deleted",
        }
    }
}

impl KeyMatch {
    /// Whether this key is meant.
    pub(crate) fn means(&self, key: &KeyEntry) -> bool {
        let id = key.minion.as_str();
        match self {
            Self::All => true,
            Self::Glob(pattern) => Glob::new(pattern).matches(id),
            Self::Ids(ids) => ids.iter().any(|wanted| wanted == id),
            Self::Keys(keys) => keys.iter().any(|(minion, state)| minion.as_str() == id && *state == key.state),
        }
    }
}
