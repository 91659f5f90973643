//! The master that minions know: keys, sessions, requests, publications.
//!
//! A request's way: `requests` opens and checks it, one of the files below answers it, `requests` seals the answer. What
//! changes something is answered after its commit, never before.
//!
//! Invariant: before a request has shown a valid session, token, nonce and time, nothing is looked up for it but its key.

pub(crate) mod acks;
mod auth;
mod catalogue;
mod chain_module;
mod events;
mod files;
mod jobs;
mod journal;
mod keys;
mod member;
mod mine;
mod opts;
mod peer;
mod pillar;
mod presence;
mod publish;
mod replay;
mod requests;
mod returns;
mod ring;
mod targets;

pub(crate) use acks::EXECUTOR_FILE;
pub(crate) use catalogue::{Catalogue, Shelf};
pub(crate) use chain_module::CHAIN_MODULE_FILE;
pub(crate) use events::entry;
pub(crate) use jobs::Known;
pub(crate) use keys::KeyBook;
pub use keys::KeyVerb;
pub use member::Presence;
pub(crate) use member::{Facts, Member};
pub(crate) use publish::{PublishQueue, run as run_publisher};
pub(crate) use requests::{AUTH_PATIENCE, Requests};

use crate::access::{Directory, Passwords, Tokens};
use crate::config::Config;
use crate::engine::{Engine, Windows};
use crate::pool::Pool;
use crate::secrets::Rotating;
use crate::tasks::Tasks;
use crate::{Error, clock};
use files::Files;
use jobs::JobCache;
use journal::Journal;
use pillar::Pillars;
use ring::Ring;
use saltern_core::ids::{JidSource, MinionId};
use saltern_render::fileserver::FileRoots;
use saltern_store::Store;
use saltern_wire::crypto::PrivateKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// The master. One per server, shared by all its tasks.
pub(crate) struct Master {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) rsa: PrivateKey,
    pub(crate) tasks: Tasks,
    ring: RwLock<Arc<Ring>>,
    pub(crate) keys: KeyBook,
    members: RwLock<HashMap<MinionId, Arc<Member>>>,
    jobs: JobCache,
    jids: Mutex<JidSource>,
    pub(crate) files: Arc<Files>,
    /// The states that are kept here
    pub(crate) catalogue: Catalogue,
    pillars: Arc<Pillars>,
    /// RSA work of sign-ins
    pub(crate) pool: Pool,
    /// Pillar compilations under way; more wait
    renders: Semaphore,
    /// What was admitted, for the next start
    journal: Journal,
    publisher: publish::Publisher,
    /// People, groups and organisations
    pub(crate) directory: Directory,
    /// Tokens that were shown lately
    pub(crate) tokens: Tokens,
    pub(crate) passwords: Passwords,
    /// What is to be done, and what is being done
    pub(crate) engine: Engine,
    /// When minions may be changed
    pub(crate) windows: Windows,
    /// Minions that are to get the executor for acknowledgements
    syncs: acks::Syncs,
    /// Something was learned of a minion that should not be forgotten in a crash
    learned: Notify,
}

/// What a master is made of.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) rsa: PrivateKey,
    pub(crate) keys: Rotating,
    pub(crate) tasks: Tasks,
    pub(crate) book: KeyBook,
    pub(crate) members: HashMap<MinionId, Arc<Member>>,
    pub(crate) files: FileRoots,
    pub(crate) catalogue: Catalogue,
    pub(crate) pool: Pool,
    pub(crate) jids: JidSource,
    pub(crate) renders: usize,
    pub(crate) directory: Directory,
    pub(crate) passwords: Passwords,
}

impl Master {
    /// Puts it together; the queue is for [`run_publisher`].
    pub(crate) fn new(parts: Parts) -> Result<(Arc<Self>, PublishQueue), Error> {
        let Parts {
            config,
            store,
            rsa,
            keys,
            tasks,
            book,
            members,
            files,
            catalogue,
            pool,
            jids,
            renders,
            directory,
            passwords,
        } = parts;
        let (publisher, queue) = publish::Publisher::new();
        let pillars = Arc::new(Pillars::new(&config)?);
        let (journal, admitted) =
            Journal::open(&config.data_dir.join("nonces"), config.ttl_secs(), clock::now().secs())?;
        for note in admitted {
            if let Some(member) = members.get(&note.minion) {
                member.replay().remember(note.nonce, note.ts);
            }
        }
        let (engine, windows) = (Engine::new(&config, clock::now()), Windows::new(&config));
        let master = Self {
            engine,
            windows,
            directory,
            tokens: Tokens::default(),
            passwords,
            ring: RwLock::new(Arc::new(Ring::new(0, keys, &rsa)?)),
            keys: book,
            members: RwLock::new(members),
            jobs: JobCache::default(),
            jids: Mutex::new(jids),
            files: Arc::new(Files::new(files)),
            catalogue,
            pillars,
            renders: Semaphore::new(renders.max(1)),
            config,
            store,
            rsa,
            tasks,
            pool,
            journal,
            publisher,
            syncs: acks::Syncs::default(),
            learned: Notify::new(),
        };
        Ok((Arc::new(master), queue))
    }

    /// The keys in force.
    pub(crate) fn ring(&self) -> Arc<Ring> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The accepted minion of this id.
    pub(crate) fn member(&self, id: &str) -> Option<Arc<Member>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Every accepted minion, in no order.
    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Renews the shared key, and the sessions too when they have had their time.
    pub(crate) fn rotate(&self, sessions_too: bool) -> Result<(), Error> {
        let mut slot = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        let keys = slot.keys.rotate(clock::now(), sessions_too)?;
        *slot = Arc::new(Ring::new(slot.generation + 1, keys, &self.rsa)?);
        tracing::info!(sessions_too, "keys renewed");
        Ok(())
    }

    /// Renews the keys when they are older than `publish_session`. Runs until the server stops.
    pub(crate) async fn keep_keys_fresh(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        loop {
            let age = clock::now().since(self.ring().keys.made);
            let left = self.config.publish_session.saturating_sub(age).max(Duration::from_secs(1));
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(left) => {}
            }
            if clock::now().since(self.ring().keys.made) >= self.config.publish_session
                && let Err(error) = self.rotate(true)
            {
                tracing::error!(%error, "cannot renew the keys");
            }
        }
    }

    /// Writes what was seen of minions to the store from time to time, many at once. Runs until the server stops.
    pub(crate) async fn keep_minions_recorded(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        loop {
            let stopping = tokio::select! {
                () = stop.cancelled() => true,
                () = tokio::time::sleep(Duration::from_secs(15)) => false,
                // Not alone: minions that come up together are written together.
                () = self.learned.notified() => {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    false
                }
            };
            self.record_minions().await;
            if stopping {
                return;
            }
        }
    }

    pub(crate) async fn record_minions(&self) {
        let changed = |member: &Arc<Member>| std::mem::take(&mut member.facts().dirty);
        let changed: Vec<_> = self.members().into_iter().filter(changed).collect();
        if changed.is_empty() {
            return;
        }
        if let Err(error) = self.store.record_minions(changed.iter().map(|member| member.row()).collect()).await {
            tracing::error!(%error, "cannot record what was seen of minions");
            changed.iter().for_each(|member| member.facts().dirty = true);
        }
    }
}
