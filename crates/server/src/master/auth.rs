//! Sign-in: who is let in, and what each is told.
//!
//! The decision is pure (`core::keys`); a new decision is stored before it is told. The RSA work runs in a small pool, so a
//! storm of sign-ins cannot take the rest of the server's time.

use super::keys::key_entry;
use super::{Master, Member, entry};
use crate::app::KeyEntry;
use crate::tasks::Kind;
use crate::{Error, clock};
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::keys::{self, Act, Answer, GrainRules, IdPatterns, KeyState, Policy};
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::PublicKey;
use saltern_wire::envelope::{self, Verdict};
use saltern_wire::load::{self, Auth};
use saltern_wire::zmtp::Peer;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Least time between two logged sign-ins of one minion.
const BETWEEN_LOGGED_SIGN_INS: Duration = Duration::from_secs(60);

/// Least time between two foreign keys that are recorded for one id. Anybody can claim an id with ever new keys, and each
/// record is a write.
const BETWEEN_DENIED: Duration = Duration::from_secs(60);

impl Master {
    /// Answers `_auth`. Nothing comes back when the asker has given up meanwhile, or the database is out of reach.
    pub(super) async fn authenticate(self: &Arc<Self>, peer: &Peer, load: &Map) -> Option<Bytes> {
        let auth = match Auth::parse(load) {
            Ok(auth) => auth,
            Err(load::Error::BadEncAlgo) => return Some(envelope::bad_enc_algo()),
            Err(load::Error::BadSigAlgo) => return Some(envelope::bad_sig_algo()),
            Err(_) => return Some(envelope::bad_load()),
        };
        let Ok(id) = MinionId::new(&auth.id) else {
            tracing::debug!(?peer, "a sign-in with an impossible id was refused");
            return self.tell(auth, Verdict::Rejected, peer).await;
        };
        match self.judge(&id, &auth).await {
            Ok((Answer::Accepted, Some(member))) => {
                self.log_sign_in(&member);
                self.let_in(auth, member, peer).await
            }
            Ok((Answer::Pending | Answer::Accepted, _)) => self.tell(auth, Verdict::Pending, peer).await,
            Ok((Answer::Refused, _)) => self.tell(auth, Verdict::Rejected, peer).await,
            Ok((Answer::Full, _)) => self.tell(auth, Verdict::Full, peer).await,
            Err(error) => {
                tracing::error!(minion = %id, %error, "a sign-in could not be decided and was left unanswered");
                None
            }
        }
    }

    /// Decides, and records the decision if it is a new one.
    async fn judge(&self, id: &MinionId, auth: &Auth) -> Result<(Answer, Option<Arc<Member>>), Error> {
        // The usual case, a known minion with its own key, needs neither lock nor database.
        if let Some(member) = self.member(id.as_str())
            && keys::same_key(&member.pem, &auth.public_pem)
            && !self.config.open_mode
            && self.config.max_minions == 0
        {
            return Ok((Answer::Accepted, Some(member)));
        }
        // One key has one form here, whatever blanks a stranger puts into it.
        let key = PublicKey::from_pem(&auth.public_pem);
        let (presented, usable) = key.map_or_else(|_| (auth.public_pem.to_string(), false), |key| (key.to_pem(), true));
        let _turn = self.keys.deciding.lock().await;
        let policy = self.key_policy();
        let current = self.keys.current(id);
        let grains = auth.autosign_grains.clone().map(Value::Map);
        let decision = keys::decide(&keys::Request {
            id,
            presented: &presented,
            usable,
            known: current.as_ref().map(|(state, pem)| (*state, pem.as_str())),
            grains: grains.as_ref(),
            invited: false,
            connected: self.member(id.as_str()).is_some_and(|member| member.facts().connections > 0),
            connected_count: if policy.max_minions == 0 { 0 } else { self.connected_count() },
            policy: &policy,
        });
        let now = clock::now();
        if let Some(record) = decision.store {
            if record.state == KeyState::Unaccepted && self.keys.pending() >= self.config.max_pending_keys {
                tracing::warn!(minion = %id, "too many keys wait for a decision; this one was told to come back");
                return Ok((Answer::Full, None));
            }
            let is_noted = |known: &KeyEntry| known.pem == record.pem || now.since(known.since) < BETWEEN_DENIED;
            if record.state == KeyState::Denied && self.keys.denied(id).as_ref().is_some_and(is_noted) {
                return Ok((decision.answer, None));
            }
            let mut events = Vec::new();
            if self.config.auth_events && decision.act != Act::Accept {
                events.push(auth_event(id, decision.act, &presented));
            }
            if decision.act == Act::Denied {
                tracing::warn!(minion = %id, "another key than the accepted one claims this id");
            }
            self.commit_keys(vec![key_entry(id, record.state, record.pem, now)], Vec::new(), None, &[], events).await?;
        }
        Ok((decision.answer, self.member(id.as_str())))
    }

    /// Logs an accepted sign-in, at most once a minute per minion. Not waited for: it tells nobody anything they act on.
    fn log_sign_in(self: &Arc<Self>, member: &Arc<Member>) {
        let now = clock::now();
        let is_due = {
            let mut facts = member.facts();
            facts.signed_in = Some(now);
            let is_due = facts.sign_in_logged.is_none_or(|last| now.since(last) >= BETWEEN_LOGGED_SIGN_INS);
            if is_due {
                facts.sign_in_logged = Some(now);
            }
            is_due
        };
        if is_due && self.config.auth_events {
            let (master, event) = (self.clone(), auth_event(&member.id, Act::Accept, &member.pem));
            self.tasks.spawn(Kind::Errand, "log a sign-in", async move {
                if let Err(error) = master.store.log_events(vec![event]).await {
                    tracing::error!(%error, "cannot log a sign-in");
                }
            });
        }
    }

    async fn let_in(self: &Arc<Self>, auth: Auth, member: Arc<Member>, peer: &Peer) -> Option<Bytes> {
        let (master, ring, peer) = (self.clone(), self.ring(), peer.clone());
        let reply = self.pool.run(peer.addr().ip(), clock::now(), move || {
            if peer.has_left() {
                return None;
            }
            let session = ring.keys.session_key(&member.id, &member.pem);
            let port = master.config.publish_port;
            let key = member.key()?;
            envelope::accepted_reply(&master.rsa, &auth, key, port, ring.shared_key(), &ring.shared_signature, &session)
                .ok()
        });
        reply.await.flatten()
    }

    async fn tell(self: &Arc<Self>, auth: Auth, verdict: Verdict, peer: &Peer) -> Option<Bytes> {
        let (master, peer) = (self.clone(), peer.clone());
        let reply = self.pool.run(peer.addr().ip(), clock::now(), move || {
            if peer.has_left() {
                return None;
            }
            envelope::verdict_reply(&master.rsa, auth.sig_algo, &auth.nonce, verdict).ok()
        });
        reply.await.flatten()
    }

    fn connected_count(&self) -> usize {
        self.members().iter().filter(|member| member.facts().connections > 0).count()
    }

    /// The policy with its lists as they are now: an operator edits them while the server runs.
    fn key_policy(&self) -> Policy {
        let config = &self.config;
        let patterns = |path: Option<&Path>| IdPatterns::parse(&path.map(read_list).unwrap_or_default());
        Policy {
            auto_accept: config.auto_accept,
            open_mode: config.open_mode,
            autosign: patterns(config.autosign_file.as_deref()),
            autoreject: patterns(config.autoreject_file.as_deref()),
            autosign_grains: config.autosign_grains_dir.as_deref().map(read_grain_rules).unwrap_or_default(),
            max_minions: config.max_minions,
            denied_waits: config.denied_waits,
        }
    }
}

fn auth_event(id: &MinionId, act: Act, pem: &str) -> saltern_store::NewEvent {
    let body =
        [("result", Value::from(act.result())), ("act", act.as_str().into()), ("id", id.into()), ("pub", pem.into())];
    entry(clock::now(), "salt/auth".into(), Value::map(body), Some(id), None)
}

/// A list that cannot be read lets nobody in and keeps nobody out, and says so.
fn read_list(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), %error, "a key list cannot be read");
        String::new()
    })
}

fn read_grain_rules(dir: &Path) -> GrainRules {
    let mut rules = GrainRules::default();
    match std::fs::read_dir(dir) {
        Ok(entries) => {
            for entry in entries.flatten().filter(|entry| entry.path().is_file()) {
                if let Some(grain) = entry.file_name().to_str() {
                    rules.add(grain, &read_list(&entry.path()));
                }
            }
        }
        Err(error) => tracing::warn!(path = %dir.display(), %error, "a directory of grain rules cannot be read"),
    }
    rules
}
