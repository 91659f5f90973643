//! The way to the master: sign in, ask, listen; and again after whatever broke it.
//!
//! One [`Link`] is shared by everything in the minion. A request that finds its session gone signs in and is sent once more; a
//! request that gets no answer is sent again on a new connection with a new nonce. The master's key is pinned at the first
//! sign-in and never replaced by us.

use crate::files::replace_file;
use crate::{Config, Error, clock};
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::{self, Crypticle, EncAlgo, KeyString, PrivateKey, PublicKey, SigAlgo};
use saltern_wire::envelope::{
    self, AuthExpected, AuthReply, AuthRequest, Publication, RequestHead, Signatures, Subscription, Verdict,
};
use saltern_wire::limits::Decode;
use saltern_wire::load::Nonce;
use saltern_wire::zmtp::Options;
use saltern_wire::zmtp::requester::Requester;
use saltern_wire::zmtp::subscriber::Subscriber;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;

const ENC: EncAlgo = EncAlgo::OaepSha1;
const SIG: SigAlgo = SigAlgo::Pkcs1v15Sha1;

/// How long a sign-in may take.
const AUTH_TIMEOUT: Duration = Duration::from_secs(15);

/// The way to the master. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    id: MinionId,
    key: PrivateKey,
    token: Vec<u8>,
    pinned: PathBuf,
    masters: Vec<(String, u16)>,
    fingerprint: Option<String>,
    publish_port: Option<u16>,
    /// Which of the masters is ours now
    current: RwLock<usize>,
    session: RwLock<Option<Arc<Session>>>,
    /// One sign-in at a time; the others take what it brings
    signing_in: Mutex<()>,
    /// The long-lived connection of returns and events
    requester: Mutex<Option<Requester>>,
}

/// What a sign-in brings.
pub(crate) struct Session {
    server: PublicKey,
    publish_port: u16,
    shared: Crypticle,
    shared_key: KeyString,
    session: Crypticle,
}

impl Link {
    pub(crate) fn new(config: &Config, key: PrivateKey) -> Result<Self, Error> {
        Ok(Self(Arc::new(Inner {
            id: config.id.clone(),
            token: key.token()?,
            key,
            pinned: config.data_dir.join("pki/minion_master.pub"),
            masters: config.masters.clone(),
            fingerprint: config.master_finger.clone(),
            publish_port: config.publish_port,
            current: RwLock::new(0),
            session: RwLock::new(None),
            signing_in: Mutex::new(()),
            requester: Mutex::new(None),
        })))
    }

    /// Signs in, or takes the session that another task has just brought. `stale` is the one that did not work.
    pub(crate) async fn sign_in(&self, stale: Option<&Arc<Session>>) -> Result<Arc<Session>, Error> {
        let inner = &self.0;
        let _turn = inner.signing_in.lock().await;
        if let Some(session) = self.session()
            && stale.is_none_or(|stale| !Arc::ptr_eq(stale, &session))
        {
            return Ok(session);
        }
        let pinned = self.pinned_key()?;
        let (nonce, secret) = (Nonce::generate(), KeyString::generate());
        let request = AuthRequest {
            id: &inner.id,
            key: inner.key.public(),
            nonce,
            enc_algo: ENC,
            sig_algo: SIG,
            token: pinned.as_ref().map(|server| (server, &secret)),
            autosign_grains: None,
            version: envelope::VERSION,
        };
        let address = self.master_address();
        let requester = Requester::connect(&address, Options::default()).await.map_err(Error::Unreachable)?;
        let reply = requester.request(request.encode()?, AUTH_TIMEOUT).await.map_err(Error::Unreachable)?;
        let expected = AuthExpected {
            key: &inner.key,
            nonce,
            enc_algo: ENC,
            sig_algo: SIG,
            token: pinned.is_some().then_some(&secret),
            server: pinned.as_ref(),
            fingerprint: inner.fingerprint.as_deref(),
        };
        match expected.check(reply)? {
            AuthReply::Accepted(accepted) => {
                if pinned.is_none() {
                    replace_file(&inner.pinned, accepted.server.to_pem().as_bytes(), 0o644)?;
                }
                let session = Arc::new(Session {
                    publish_port: accepted.publish_port,
                    shared: Crypticle::new(&accepted.shared),
                    session: Crypticle::new(&accepted.session),
                    shared_key: accepted.shared,
                    server: accepted.server,
                });
                *inner.session.write().unwrap_or_else(PoisonError::into_inner) = Some(session.clone());
                Ok(session)
            }
            AuthReply::Verdict { verdict: Verdict::Pending, .. } => Err(Error::Pending),
            AuthReply::Verdict { verdict: Verdict::Rejected, .. } => Err(Error::Rejected),
            AuthReply::Verdict { verdict: Verdict::Full, .. } => Err(Error::Full),
        }
    }

    /// Turns to the next master of the list; the pinned key stays.
    pub(crate) fn next_master(&self) {
        let mut current = self.0.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = (*current + 1) % self.0.masters.len().max(1);
        *self.0.session.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// `host:port` of the request port.
    pub(crate) fn master_address(&self) -> String {
        let (host, port) = &self.0.masters[*self.0.current.read().unwrap_or_else(PoisonError::into_inner)];
        format!("{host}:{port}")
    }

    /// Subscribes to the master's publications.
    pub(crate) async fn subscribe(&self, session: &Session) -> Result<Subscriber, Error> {
        let (host, _) = &self.0.masters[*self.0.current.read().unwrap_or_else(PoisonError::into_inner)];
        let port = self.0.publish_port.unwrap_or(session.publish_port);
        Subscriber::connect(format!("{host}:{port}"), Options::default()).await.map_err(Error::Unreachable)
    }

    /// Opens a publication; a shared key that has changed costs a sign-in.
    pub(crate) async fn open(&self, frame: Bytes, serials: &mut Serials) -> Result<Publication, Error> {
        let session = match self.session() {
            Some(session) => session,
            None => self.sign_in(None).await?,
        };
        match serials.open(&session, frame.clone()) {
            Err(envelope::Error::Crypto(crypto::Error::NotAuthentic)) => {
                let session = self.sign_in(Some(&session)).await?;
                Ok(serials.open(&session, frame)?)
            }
            opened => Ok(opened?),
        }
    }

    /// Sends a load on the long-lived connection and waits for the master's answer; tried once more after a new sign-in.
    pub(crate) async fn request(&self, load: Map, timeout: Duration) -> Result<Value, Error> {
        let mut slot = self.0.requester.lock().await;
        let address = self.master_address();
        if slot.is_none() {
            *slot = Some(Requester::connect(&address, Options::default()).await.map_err(Error::Unreachable)?);
        }
        let Some(requester) = slot.as_ref() else { return Err(Error::Stopping) };
        let answer = self.exchange(requester, load, timeout).await;
        if matches!(answer, Err(Error::Unreachable(_))) {
            *slot = None;
        }
        answer
    }

    /// Sends a load on a connection of its own: files, pillar, the mine. Never waits behind a return.
    pub(crate) async fn request_apart(&self, load: Map, timeout: Duration) -> Result<Value, Error> {
        let requester =
            Requester::connect(self.master_address(), Options::default()).await.map_err(Error::Unreachable)?;
        self.exchange(&requester, load, timeout).await
    }

    /// Asks for pillar: its answer has a form of its own.
    pub(crate) async fn pillar(&self, load: Map, timeout: Duration) -> Result<Value, Error> {
        let requester =
            Requester::connect(self.master_address(), Options::default()).await.map_err(Error::Unreachable)?;
        let mut session = self.session_or_sign_in().await?;
        for is_last in [false, true] {
            let nonce = Nonce::generate();
            let reply = self.send(&requester, &session, nonce, load.clone(), timeout).await?;
            let inner = &self.0;
            match envelope::open_private_reply(
                &inner.key,
                &session.server,
                ENC,
                SIG,
                &nonce,
                reply,
                &Decode::after_auth(),
            ) {
                Ok(pillar) => return Ok(pillar),
                Err(error) if is_last => return Err(error.into()),
                Err(_) => session = self.sign_in(Some(&session)).await?,
            }
        }
        Err(Error::Stopping)
    }

    async fn exchange(&self, requester: &Requester, load: Map, timeout: Duration) -> Result<Value, Error> {
        let mut session = self.session_or_sign_in().await?;
        for is_last in [false, true] {
            let nonce = Nonce::generate();
            let reply = self.send(requester, &session, nonce, load.clone(), timeout).await?;
            match envelope::open_reply(&session.session, &nonce, reply, &Decode::after_auth()) {
                Ok(value) => return Ok(value),
                Err(envelope::Error::BadLoad | envelope::Error::Crypto(_)) if !is_last => {
                    session = self.sign_in(Some(&session)).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Stopping)
    }

    async fn send(
        &self,
        requester: &Requester,
        session: &Session,
        nonce: Nonce,
        load: Map,
        timeout: Duration,
    ) -> Result<Bytes, Error> {
        let head = RequestHead {
            id: &self.0.id,
            nonce,
            now: clock::now(),
            token: &self.0.token,
            enc_algo: ENC,
            sig_algo: SIG,
            sign_with: None,
        };
        let sealed = envelope::request(&session.session, &head, load)?;
        requester.request(sealed, timeout).await.map_err(Error::Unreachable)
    }

    async fn session_or_sign_in(&self) -> Result<Arc<Session>, Error> {
        match self.session() {
            Some(session) => Ok(session),
            None => self.sign_in(None).await,
        }
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.0.session.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn pinned_key(&self) -> Result<Option<PublicKey>, Error> {
        match std::fs::read_to_string(&self.0.pinned) {
            Ok(pem) => Ok(Some(PublicKey::from_pem(&pem)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file("read", &self.0.pinned, error)),
        }
    }
}

/// The serials seen under the shared key of now.
#[derive(Default)]
pub(crate) struct Serials {
    key: Option<KeyString>,
    last: i64,
}

impl Serials {
    fn open(&mut self, session: &Session, frame: Bytes) -> Result<Publication, envelope::Error> {
        if self.key.as_ref().is_none_or(|key| key.as_str() != session.shared_key.as_str()) {
            self.key = Some(session.shared_key.clone());
            self.last = 0;
        }
        let with = Subscription {
            shared: &session.shared,
            server: &session.server,
            signatures: Signatures::IfPresent,
            last_serial: self.last,
        };
        let publication = envelope::open_publication(frame, &with, &Decode::after_auth())?;
        if let Some(serial) = publication.serial {
            self.last = serial;
        }
        Ok(publication)
    }
}

/// Whether it is worth trying another master: this one is not there, or has no place for us.
pub(crate) fn is_elsewhere_better(error: &Error) -> bool {
    matches!(error, Error::Unreachable(_) | Error::Full)
}
