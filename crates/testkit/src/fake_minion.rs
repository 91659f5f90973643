//! A minion of few words: the minion's end of the wire without a minion behind it.
//!
//! It signs in, subscribes, asks and answers exactly as a stock minion does, and fails the test when the server does not
//! keep to the protocol. What a stock minion would never send it can send too: [`Forgery`] changes one thing in a request
//! that is otherwise sound, and [`FakeMinion::raw_request`] sends any bytes.
//!
//! Unlike a stock minion it never repeats a request by itself: a test sees each answer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::target::{Facts, Nodegroups, Target};
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::{self, Crypticle, EncAlgo, KeyString, PrivateKey, PublicKey, SigAlgo};
use saltern_wire::envelope::{self, AuthExpected, AuthReply, AuthRequest, RequestHead, Subscription, Verdict};
use saltern_wire::limits::Decode;
use saltern_wire::load::Nonce;
use saltern_wire::msgpack;
use saltern_wire::zmtp::requester::Requester;
use saltern_wire::zmtp::subscriber::Subscriber;
use saltern_wire::zmtp::{self, Options};

/// How long an answer may take before the test has failed. Never waited for when things go well.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A minion's end of one request connection, and of one subscription.
#[derive(Debug)]
pub struct FakeMinion {
    /// Its id
    pub id: MinionId,
    /// Its key
    pub key: PrivateKey,
    /// The protocol version it speaks: 3, or 2 as before 3006.12 and 3007.4
    pub version: u32,
    /// How it wants secrets encrypted
    pub enc_algo: EncAlgo,
    /// How it wants answers signed
    pub sig_algo: SigAlgo,
    /// The grains it sends and is targeted by
    pub grains: Value,
    server: SocketAddr,
    requester: Requester,
    /// The server's key, once it was met
    server_key: Option<PublicKey>,
    access: Option<envelope::Accepted>,
    subscriber: Option<Subscriber>,
    last_serial: i64,
}

/// What the server said to a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignIn {
    /// The key is accepted, the keys are there
    Accepted,
    /// Somebody has to decide
    Pending,
    /// A stock minion would end now
    Rejected,
    /// Come back later
    Full,
}

/// A job that was published and means this minion.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its id
    pub jid: Jid,
    /// The whole load
    pub load: Map,
}

/// What is not as it should be in a request. The default is an honest one.
#[derive(Debug, Clone, Default)]
pub struct Forgery {
    /// Another id inside the seal
    pub inner_id: Option<String>,
    /// Another id beside it
    pub outer_id: Option<String>,
    /// Another token; an empty one leaves the field out
    pub token: Option<Vec<u8>>,
    /// A nonce that was used before
    pub nonce: Option<Nonce>,
    /// Seconds that its clock is behind; negative: ahead
    pub behind: i64,
    /// No time stamp at all
    pub without_ts: bool,
    /// Another session key
    pub session: Option<KeyString>,
    /// Another protocol version beside the seal
    pub version: Option<u32>,
}

/// The key that goes by this name in this process. Making one takes a good part of a second, so names are for keeps.
pub fn key_named(name: &str) -> PrivateKey {
    static KEYS: Mutex<Option<HashMap<String, PrivateKey>>> = Mutex::new(None);
    let known = |keys: &Option<HashMap<String, PrivateKey>>| keys.as_ref().and_then(|keys| keys.get(name).cloned());
    if let Some(key) = known(&KEYS.lock().unwrap_or_else(PoisonError::into_inner)) {
        return key;
    }
    // Made without the lock: tests that need different keys need not wait for each other.
    let made = PrivateKey::generate(2048).unwrap_or_else(|error| panic!("cannot make an RSA key: {error}"));
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    keys.get_or_insert_default().entry(name.to_owned()).or_insert(made).clone()
}

impl FakeMinion {
    /// Connects to a request port. The key is the one that goes by the id's name; see [`key_named`].
    pub async fn connect(server: SocketAddr, id: &str) -> Self {
        Self::connect_with(server, id, key_named(id)).await
    }

    /// Connects with a key of the test's choice.
    pub async fn connect_with(server: SocketAddr, id: &str, key: PrivateKey) -> Self {
        let id = MinionId::new(id).unwrap_or_else(|error| panic!("{id:?}: {error}"));
        let connected = Requester::connect(server, Options::default()).await;
        let requester = connected.unwrap_or_else(|error| panic!("{id} cannot connect: {error}"));
        Self {
            grains: Value::map([("id", Value::from(&id)), ("os", "Debian".into())]),
            id,
            key,
            version: envelope::VERSION,
            enc_algo: EncAlgo::default(),
            sig_algo: SigAlgo::default(),
            server,
            requester,
            server_key: None,
            access: None,
            subscriber: None,
            last_serial: 0,
        }
    }

    /// Loses the request connection and makes another, on which nothing is said yet: as after a loss of the network.
    pub async fn reconnect_silently(&mut self) {
        let connected = Requester::connect(self.server, Options::default()).await;
        self.requester = connected.unwrap_or_else(|error| panic!("{} cannot connect: {error}", self.id));
    }

    /// Connects and signs in; the key must be accepted.
    pub async fn accepted(server: SocketAddr, id: &str) -> Self {
        let mut minion = Self::connect(server, id).await;
        assert_eq!(minion.auth().await, SignIn::Accepted, "{id} is not accepted");
        minion
    }

    /// Signs in, and checks everything a stock minion checks in the answer.
    pub async fn auth(&mut self) -> SignIn {
        let told = self.try_auth().await;
        told.unwrap_or_else(|error| panic!("{} does not believe the server: {error}", self.id))
    }

    /// Signs in; an error is what a stock minion would complain about.
    pub async fn try_auth(&mut self) -> Result<SignIn, envelope::Error> {
        let (nonce, secret) = (Nonce::generate(), KeyString::generate());
        let token = self.server_key.as_ref().map(|server| (server, &secret));
        let request = AuthRequest {
            id: &self.id,
            key: self.key.public(),
            nonce,
            enc_algo: self.enc_algo,
            sig_algo: self.sig_algo,
            token,
            autosign_grains: None,
            version: self.version,
        };
        let reply = self.raw_request(request.encode()?).await;
        let expected = AuthExpected {
            key: &self.key,
            nonce,
            enc_algo: self.enc_algo,
            sig_algo: self.sig_algo,
            token: self.server_key.as_ref().map(|_| &secret),
            server: self.server_key.as_ref(),
            fingerprint: None,
        };
        Ok(match expected.check(reply)? {
            AuthReply::Accepted(access) => {
                if self.access.as_ref().is_none_or(|before| before.shared != access.shared) {
                    self.last_serial = 0;
                }
                self.server_key = Some(access.server.clone());
                self.access = Some(*access);
                SignIn::Accepted
            }
            AuthReply::Verdict { verdict: Verdict::Pending, .. } => SignIn::Pending,
            AuthReply::Verdict { verdict: Verdict::Rejected, .. } => SignIn::Rejected,
            AuthReply::Verdict { verdict: Verdict::Full, .. } => SignIn::Full,
        })
    }

    /// Signs in with these fields, and checks the answer with the server's key if it is given.
    pub async fn auth_with(&self, load: Map, server: Option<&PublicKey>) -> Result<AuthReply, envelope::Error> {
        let nonce = load.get("nonce").and_then(Value::as_str).and_then(Nonce::parse);
        let expected = AuthExpected {
            key: &self.key,
            nonce: nonce.unwrap_or_else(|| panic!("no nonce to compare the answer's with: {load:?}")),
            enc_algo: self.enc_algo,
            sig_algo: self.sig_algo,
            token: None,
            server,
            fingerprint: None,
        };
        expected.check(self.raw_request(clear(load, self.version)).await)
    }

    /// The fields of an honest `_auth`, for a test to change before it sends them with [`FakeMinion::auth_with`].
    pub fn auth_load(&self) -> Map {
        let mut load = Map::new();
        load.push("cmd", "_auth");
        load.push("id", &self.id);
        load.push("nonce", Nonce::generate());
        load.push("enc_algo", self.enc_algo.as_str());
        load.push("sig_algo", self.sig_algo.as_str());
        load.push("pub", self.key.public().to_pem());
        load
    }

    /// What an accepted minion works with.
    pub fn access(&self) -> &envelope::Accepted {
        self.access.as_ref().unwrap_or_else(|| panic!("{} is not signed in", self.id))
    }

    /// Subscribes to publications. From now on none is missed.
    pub async fn subscribe(&mut self) {
        let address = SocketAddr::new(self.server.ip(), self.access().publish_port);
        let connected = Subscriber::connect(address, Options::default()).await;
        self.subscriber = Some(connected.unwrap_or_else(|error| panic!("{} cannot subscribe: {error}", self.id)));
    }

    /// Asks, and opens the answer; the server must not refuse.
    pub async fn request(&self, cmd: &str, fields: impl Into<Fields>) -> Value {
        let answer = self.try_request(cmd, fields).await;
        answer.unwrap_or_else(|error| panic!("{cmd} of {} was refused: {error}", self.id))
    }

    /// Asks, and opens the answer. [`envelope::Error::BadLoad`] is how a server refuses.
    pub async fn try_request(&self, cmd: &str, fields: impl Into<Fields>) -> Result<Value, envelope::Error> {
        self.forged_request(cmd, fields, &Forgery::default()).await
    }

    /// Asks with something wrong in the request.
    pub async fn forged_request(
        &self,
        cmd: &str,
        fields: impl Into<Fields>,
        forgery: &Forgery,
    ) -> Result<Value, envelope::Error> {
        let nonce = forgery.nonce.unwrap_or_else(Nonce::generate);
        let forgery = Forgery { nonce: Some(nonce), ..forgery.clone() };
        let reply = self.raw_request(self.sealed(cmd, fields, &forgery)).await;
        self.open(cmd, &nonce, reply)
    }

    /// The bytes of a request.
    pub fn sealed(&self, cmd: &str, fields: impl Into<Fields>, forgery: &Forgery) -> Bytes {
        let mut load = fields.into().0;
        load.insert("cmd", cmd);
        let nonce = forgery.nonce.unwrap_or_else(Nonce::generate);
        if self.version < envelope::VERSION {
            return envelope::request_v2(&Crypticle::new(&self.access().shared), &nonce, load);
        }
        let session = Crypticle::new(forgery.session.as_ref().unwrap_or(&self.access().session));
        let now = Timestamp::from_secs(now().secs() - forgery.behind);
        let token = match &forgery.token {
            Some(token) => token.clone(),
            None => self.key.token().unwrap_or_else(|error| panic!("no token: {error}")),
        };
        let Forgery { inner_id, outer_id, without_ts, version, .. } = forgery;
        if inner_id.is_none() && outer_id.is_none() && version.is_none() && !without_ts && !token.is_empty() {
            let head = RequestHead {
                id: &self.id,
                nonce,
                now,
                token: &token,
                enc_algo: self.enc_algo,
                sig_algo: self.sig_algo,
                sign_with: None,
            };
            return envelope::request(&session, &head, load).unwrap_or_else(|error| panic!("cannot seal: {error}"));
        }
        load.insert("nonce", nonce);
        if !without_ts {
            load.insert("ts", now.secs());
        }
        if !token.is_empty() {
            load.insert("tok", token);
        }
        load.insert("id", inner_id.as_deref().unwrap_or(self.id.as_str()));
        let sealed = session.seal(&[b"pickle::", &msgpack::encode(&Value::Map(load))]);
        let envelope = Value::map([
            ("enc", Value::from("aes")),
            ("load", sealed.into()),
            ("version", version.unwrap_or(envelope::VERSION).into()),
            ("id", outer_id.as_deref().unwrap_or(self.id.as_str()).into()),
            ("enc_algo", self.enc_algo.as_str().into()),
            ("sig_algo", self.sig_algo.as_str().into()),
        ]);
        msgpack::encode(&envelope).into()
    }

    /// Sends any bytes as a request, and hands out the bytes of the answer.
    pub async fn raw_request(&self, bytes: impl Into<Bytes>) -> Bytes {
        let answered = self.try_raw_request(bytes, PATIENCE).await;
        answered.unwrap_or_else(|error| panic!("{} got no answer: {error}", self.id))
    }

    /// Sends any bytes, and waits for an answer so long and no longer.
    pub async fn try_raw_request(&self, bytes: impl Into<Bytes>, patience: Duration) -> Result<Bytes, zmtp::Error> {
        self.requester.request(bytes.into(), patience).await
    }

    fn open(&self, cmd: &str, nonce: &Nonce, reply: Bytes) -> Result<Value, envelope::Error> {
        let limits = Decode::after_auth();
        let access = self.access();
        if cmd == "_pillar" {
            let (enc, sig) = (self.enc_algo, self.sig_algo);
            return envelope::open_private_reply(&self.key, &access.server, enc, sig, nonce, reply, &limits);
        }
        let key = if self.version < envelope::VERSION { &access.shared } else { &access.session };
        envelope::open_reply(&Crypticle::new(key), nonce, reply, &limits)
    }

    /// Sends its grains and gets its pillar.
    pub async fn pillar(&self) -> Value {
        let mut fields = self.named();
        fields.push("grains", self.grains.clone());
        fields.push("saltenv", Value::Nil);
        fields.push("pillarenv", Value::Nil);
        fields.push("pillar_override", Map::new());
        fields.push("extra_minion_data", Map::new());
        fields.push("ver", "2");
        self.request("_pillar", fields).await
    }

    /// Sends an event.
    pub async fn event(&self, tag: &str, data: impl Into<Value>) {
        let mut fields = self.named();
        fields.push("tag", tag);
        fields.push("data", data);
        fields.push("pretag", Value::Nil);
        self.request("_minion_event", fields).await;
    }

    /// Comes up as a stock minion does: signs in, subscribes, asks for pillar, says twice that it has started.
    pub async fn start(server: SocketAddr, id: &str) -> Self {
        let mut minion = Self::accepted(server, id).await;
        minion.subscribe().await;
        minion.announce().await;
        minion
    }

    /// The last part of coming up: pillar and both start events.
    pub async fn announce(&self) {
        self.pillar().await;
        let text = format!("Minion {} started at Sun Nov 15 20:04:27 2026", self.id);
        self.event("minion_start", text.as_str()).await;
        self.event(&format!("salt/minion/{}/start", self.id), text).await;
    }

    /// The next job that means this minion.
    pub async fn next_job(&mut self) -> Job {
        loop {
            let load = self.next_publication().await;
            if self.is_meant(&load) {
                let jid = load.get("jid").and_then(Value::as_str).and_then(Jid::parse);
                let jid = jid.unwrap_or_else(|| panic!("a publication without a job id: {load:?}"));
                return Job { jid, load };
            }
        }
    }

    /// The next publication, for whomever it is. Signs in again when it cannot be opened, as a stock minion does.
    pub async fn next_publication(&mut self) -> Map {
        let frame = self.next_frame().await;
        let opened = match self.open_publication(frame.clone()) {
            Err(envelope::Error::Crypto(crypto::Error::NotAuthentic)) => {
                assert_eq!(self.auth().await, SignIn::Accepted, "{} is no longer accepted", self.id);
                self.open_publication(frame)
            }
            opened => opened,
        };
        let opened = opened.unwrap_or_else(|error| panic!("{} cannot open a publication: {error}", self.id));
        self.last_serial = opened.serial.unwrap_or(self.last_serial);
        opened.load
    }

    /// The next publication as it came.
    pub async fn next_frame(&mut self) -> Bytes {
        let Some(subscriber) = &mut self.subscriber else { panic!("{} is not subscribed", self.id) };
        match tokio::time::timeout(PATIENCE, subscriber.recv()).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(error)) => panic!("{} lost its subscription: {error}", self.id),
            Err(_) => panic!("{} has waited {PATIENCE:?} for a publication", self.id),
        }
    }

    /// Opens a publication with the keys it has.
    pub fn open_publication(&self, frame: Bytes) -> Result<envelope::Publication, envelope::Error> {
        let access = self.access();
        let with = Subscription {
            shared: &Crypticle::new(&access.shared),
            server: &access.server,
            signatures: envelope::Signatures::Required,
            last_serial: self.last_serial,
        };
        envelope::open_publication(frame, &with, &Decode::after_auth())
    }

    /// Returns a job's result, as a success.
    pub async fn return_for(&self, job: &Job, value: impl Into<Value>) {
        self.request("_return", self.return_fields(job, value)).await;
    }

    /// The fields of a successful return.
    pub fn return_fields(&self, job: &Job, value: impl Into<Value>) -> Map {
        let mut fields = self.named();
        fields.push("jid", job.jid);
        fields.push("fun", job.load.get("fun").cloned().unwrap_or_default());
        fields.push("fun_args", job.load.get("arg").cloned().unwrap_or_default());
        fields.push("return", value);
        fields.push("retcode", 0);
        fields.push("success", true);
        fields
    }

    /// A load with its id: version 2 has no other place for it, version 3 overwrites it with the same.
    fn named(&self) -> Map {
        let mut fields = Map::new();
        fields.push("id", &self.id);
        fields
    }

    fn is_meant(&self, load: &Map) -> bool {
        let tgt_type = load.get("tgt_type").and_then(Value::as_str).unwrap_or("glob");
        let target = load.get("tgt").and_then(|tgt| Target::read(tgt_type, tgt, None).ok());
        let matcher = target.and_then(|target| target.compile(&Nodegroups::default()).ok());
        matcher.is_some_and(|matcher| matcher.matches(&View { minion: self }))
    }
}

/// The bytes of a clear request.
pub fn clear(load: impl Into<Value>, version: u32) -> Bytes {
    let envelope = Value::map([("enc", Value::from("clear")), ("load", load.into()), ("version", version.into())]);
    msgpack::encode(&envelope).into()
}

/// Fields of a request: a map, or a few pairs.
#[derive(Debug, Clone, Default)]
pub struct Fields(Map);

impl From<Map> for Fields {
    fn from(map: Map) -> Self {
        Self(map)
    }
}

impl From<()> for Fields {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<V: Into<Value>, const N: usize> From<[(&str, V); N]> for Fields {
    fn from(pairs: [(&str, V); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (Value::from(name), value.into())).collect())
    }
}

struct View<'a> {
    minion: &'a FakeMinion,
}

impl Facts for View<'_> {
    fn id(&self) -> &str {
        self.minion.id.as_str()
    }

    fn grains(&self) -> Option<&Value> {
        Some(&self.minion.grains)
    }

    fn pillar(&self) -> Option<&Value> {
        None
    }
}

#[expect(clippy::disallowed_methods, reason = "a minion has a clock of its own")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
