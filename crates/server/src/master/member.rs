//! One accepted minion while the server runs: its key, its session, what was seen of it.
//!
//! Every request looks its sender up here, so nothing in this file waits for anything: short locks, no database.

use super::replay::Window;
use super::ring::Ring;
use crate::body;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{AckMethod, Body, Minion};
use saltern_wire::crypto::{Crypticle, PublicKey, same};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// An accepted minion.
pub(crate) struct Member {
    pub(crate) id: MinionId,
    pub(crate) pem: String,
    key: OnceLock<Option<PublicKey>>,
    /// The one token its key can make, once it has been verified: comparing is much cheaper than verifying again.
    token: OnceLock<Vec<u8>>,
    session: Mutex<Option<Session>>,
    replay: Mutex<Window>,
    facts: Mutex<Facts>,
}

#[derive(Clone)]
struct Session {
    generation: u64,
    current: Arc<Crypticle>,
    previous: Option<Arc<Crypticle>>,
}

/// What was seen of a minion.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) first_seen: Timestamp,
    pub(crate) last_seen: Timestamp,
    pub(crate) started: Option<Timestamp>,
    pub(crate) address: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) ack_method: AckMethod,
    pub(crate) ack_setting: Option<bool>,
    /// Open connections that have shown a valid session
    pub(crate) connections: usize,
    /// Since when it is there, or not there; nothing when that is not known since the server started
    pub(crate) presence: Presence,
    /// Its grains, packed: decoded only when a target asks for them
    grains: Option<Arc<Body>>,
    pub(crate) grains_at: Option<Timestamp>,
    /// The few grains that the last target asked for: the same target comes again and again
    asked_grains: Option<(Arc<[String]>, Arc<Value>)>,
    /// The pillar it was last given, packed, if it is not large
    pub(crate) pillar: Option<Arc<Body>>,
    /// When its last sign-in was logged: a sign-in proves nothing yet, so it may not fill the log
    pub(crate) sign_in_logged: Option<Timestamp>,
    /// When it last signed in, since the server started
    pub(crate) signed_in: Option<Timestamp>,
    /// Which boot its machine was on when it last told, and when that was
    pub(crate) boot_id: Option<String>,
    pub(crate) boot_told: Option<Timestamp>,
    /// Whether it says that its machine has to be rebooted
    pub(crate) reboot_needed: Option<bool>,
    /// When it was last sent the executor for acknowledgements
    pub(crate) sync_asked: Option<Timestamp>,
    /// Whether it has confirmed the module that runs chains since its agent was started, and when it was last sent it
    pub(crate) chain_module: bool,
    pub(crate) chain_module_asked: Option<Timestamp>,
    /// Whether there is something to write to the store
    pub(crate) dirty: bool,
}

/// Whether a minion is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing was heard of it since the server started
    Unknown,
    /// It has an authenticated connection, since then
    Present(Timestamp),
    /// Its last authenticated connection closed then
    Absent(Timestamp),
}

impl Member {
    pub(crate) fn new(id: MinionId, pem: String, known: Option<&Minion>, now: Timestamp) -> Self {
        let facts = Facts {
            first_seen: known.map_or(now, |minion| minion.first_seen),
            last_seen: known.map_or(now, |minion| minion.last_seen),
            started: known.and_then(|minion| minion.started),
            address: known.and_then(|minion| minion.address.clone()),
            version: known.and_then(|minion| minion.version.clone()),
            ack_method: known.map(|minion| minion.ack_method).unwrap_or_default(),
            ack_setting: known.and_then(|minion| minion.ack_setting),
            connections: 0,
            presence: Presence::Unknown,
            grains: None,
            grains_at: None,
            asked_grains: None,
            pillar: None,
            sign_in_logged: None,
            signed_in: None,
            boot_id: known.and_then(|minion| minion.boot_id.clone()),
            boot_told: None,
            reboot_needed: known.and_then(|minion| minion.reboot_needed),
            sync_asked: None,
            chain_module: false,
            chain_module_asked: None,
            dirty: known.is_none(),
        };
        Self {
            id,
            pem,
            key: OnceLock::new(),
            token: OnceLock::new(),
            session: Mutex::default(),
            replay: Mutex::default(),
            facts: Mutex::new(facts),
        }
    }

    /// Its public key; none if what was accepted is not a usable key.
    pub(crate) fn key(&self) -> Option<&PublicKey> {
        self.key.get_or_init(|| PublicKey::from_pem(&self.pem).ok()).as_ref()
    }

    /// Its session in this generation of keys, and the one before.
    pub(crate) fn session(&self, ring: &Ring) -> (Arc<Crypticle>, Option<Arc<Crypticle>>) {
        let mut slot = lock(&self.session);
        let session = match &*slot {
            Some(session) if session.generation == ring.generation => session.clone(),
            _ => {
                let make = |key| Arc::new(Crypticle::new(&key));
                let fresh = Session {
                    generation: ring.generation,
                    current: make(ring.keys.session_key(&self.id, &self.pem)),
                    previous: ring.keys.previous_session_key(&self.id, &self.pem).map(make),
                };
                *slot = Some(fresh.clone());
                fresh
            }
        };
        (session.current, session.previous)
    }

    /// Whether this token was made with its private key. Costs an RSA operation the first time only.
    pub(crate) fn has_made(&self, token: &[u8]) -> bool {
        match self.token.get() {
            Some(known) => same(known, token),
            None => {
                let good = self.key().is_some_and(|key| key.is_token(token));
                if good {
                    let _ = self.token.set(token.to_vec());
                }
                good
            }
        }
    }

    pub(crate) fn replay(&self) -> MutexGuard<'_, Window> {
        lock(&self.replay)
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        lock(&self.facts)
    }

    /// Its grains, decoded.
    pub(crate) fn grains(&self) -> Option<Value> {
        let packed = self.facts().grains.clone()?;
        body::unpack(&packed).ok()
    }

    /// Those of its grains that a target asks for; all of them if it may ask for any.
    pub(crate) fn grains_asked(&self, keys: Option<&Arc<[String]>>) -> Option<Arc<Value>> {
        let Some(keys) = keys else { return self.grains().map(Arc::new) };
        if let Some((known, grains)) = &self.facts().asked_grains
            && known == keys
        {
            return Some(grains.clone());
        }
        let all = self.grains()?;
        let some = keys.iter().filter_map(|key| Some((key.as_str(), all.get(key)?.clone())));
        let some = Arc::new(Value::map(some));
        self.facts().asked_grains = Some((keys.clone(), some.clone()));
        Some(some)
    }

    /// The pillar it was last given, decoded.
    pub(crate) fn pillar(&self) -> Option<Value> {
        let packed = self.facts().pillar.clone()?;
        body::unpack(&packed).ok()
    }

    /// Notes authenticated traffic; tells whether it was not known to be there.
    pub(crate) fn seen(&self, now: Timestamp) -> bool {
        let mut facts = self.facts();
        // Once in a while is enough for "last seen", and spares the database.
        if now.since(facts.last_seen).as_secs() >= 10 {
            facts.dirty = true;
        }
        facts.last_seen = now;
        let is_back = !matches!(facts.presence, Presence::Present(_));
        if is_back {
            facts.presence = Presence::Present(now);
        }
        is_back
    }

    /// Notes one more authenticated connection; tells whether it is the first.
    pub(crate) fn connected(&self, address: String) -> bool {
        let mut facts = self.facts();
        facts.connections += 1;
        if facts.address.as_ref() != Some(&address) {
            facts.address = Some(address);
            facts.dirty = true;
        }
        facts.connections == 1
    }

    /// Notes one connection fewer; tells whether it was the last.
    pub(crate) fn disconnected(&self, now: Timestamp) -> bool {
        let mut facts = self.facts();
        facts.connections = facts.connections.saturating_sub(1);
        if facts.connections == 0 {
            facts.presence = Presence::Absent(now);
            facts.dirty = true;
        }
        facts.connections == 0
    }

    /// What the store keeps of it.
    pub(crate) fn row(&self) -> Minion {
        let facts = self.facts();
        Minion {
            id: self.id.clone(),
            first_seen: facts.first_seen,
            last_seen: facts.last_seen,
            started: facts.started,
            address: facts.address.clone(),
            version: facts.version.clone(),
            ack_method: facts.ack_method,
            ack_setting: facts.ack_setting,
            boot_id: facts.boot_id.clone(),
            reboot_needed: facts.reboot_needed,
        }
    }
}

impl Facts {
    /// The boot its machine is on. Nothing if it has signed in since it was told: it may have been rebooted.
    pub(crate) fn current_boot(&self) -> Option<&str> {
        let is_current = self.boot_told.is_some_and(|told| self.signed_in.is_none_or(|signed_in| told >= signed_in));
        self.boot_id.as_deref().filter(|_| is_current)
    }

    /// Whether these are its grains already.
    pub(crate) fn has_grains(&self, grains: &Arc<Body>) -> bool {
        self.grains.as_ref() == Some(grains)
    }

    /// Takes its grains.
    pub(crate) fn set_grains(&mut self, grains: Arc<Body>, at: Timestamp) {
        self.grains_at = Some(at);
        self.grains = Some(grains);
        self.asked_grains = None;
    }

    /// Forgets its grains: it sends them again when it asks for its pillar.
    pub(crate) fn forget_grains(&mut self) {
        (self.grains_at, self.grains, self.asked_grains) = (None, None, None);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
