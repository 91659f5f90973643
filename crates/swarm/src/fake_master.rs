//! A master of few words, for tests: lets everybody in, publishes what it is told to, and remembers what it heard.
//!
//! It can be stopped and started again on the same ports. As with a real one, sessions outlive that, unless it is told to
//! forget them.

use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::key_named;
use saltern_testkit::wait;
use saltern_wire::crypto::{Crypticle, KeyString, PrivateKey, PublicKey, SigAlgo};
use saltern_wire::envelope::{self, Request, Sealed};
use saltern_wire::limits::Decode;
use saltern_wire::load::{Auth, Channel};
use saltern_wire::zmtp;
use saltern_wire::zmtp::listener::bind;
use saltern_wire::zmtp::peer::Peer;
use saltern_wire::zmtp::publisher::Publisher;
use saltern_wire::zmtp::replier::{Handler, Replier};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Longer than anything here takes; never waited for when things go well.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The master.
pub(crate) struct FakeMaster {
    pub(crate) ret_port: u16,
    desk: Arc<Desk>,
    open: Option<Open>,
    serial: AtomicI64,
}

/// Its ports while it is there.
struct Open {
    publisher: Publisher,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What answers requests.
struct Desk {
    key: PrivateKey,
    shared: KeyString,
    publish_port: u16,
    sessions: Mutex<HashMap<MinionId, Arc<Crypticle>>>,
    sign_ins: AtomicU64,
    returns: Mutex<Vec<Map>>,
    /// Tag and data
    events: Mutex<Vec<(String, Value)>>,
    /// How many returns are still to be heard and not answered
    unanswered: AtomicU64,
}

impl FakeMaster {
    pub(crate) async fn start() -> Self {
        let (requests, publications) = (listen(0), listen(0));
        let port = |listener: &tokio::net::TcpListener| listener.local_addr().unwrap().port();
        let desk = Arc::new(Desk {
            key: key_named("the master"),
            shared: KeyString::generate(),
            publish_port: port(&publications),
            sessions: Mutex::default(),
            sign_ins: AtomicU64::new(0),
            returns: Mutex::default(),
            events: Mutex::default(),
            unanswered: AtomicU64::new(0),
        });
        let ret_port = port(&requests);
        let open = Open::new(desk.clone(), requests, publications);
        Self { ret_port, desk, open: Some(open), serial: AtomicI64::new(1) }
    }

    /// Goes away; what it knows and what it has heard stays.
    pub(crate) async fn stop(&mut self) {
        let open = self.open.take().unwrap();
        open.stop.cancel();
        open.tasks.wait().await;
    }

    /// Knows no session any more: what is sealed with one is refused.
    pub(crate) fn forget_sessions(&self) {
        self.desk.sessions.lock().unwrap().clear();
    }

    /// How often a minion was let in.
    pub(crate) fn sign_ins(&self) -> u64 {
        self.desk.sign_ins.load(Relaxed)
    }

    /// Comes back where it was.
    pub(crate) async fn come_back(&mut self) {
        let (requests, publications) = (listen(self.ret_port), listen(self.desk.publish_port));
        self.open = Some(Open::new(self.desk.clone(), requests, publications));
    }

    /// Waits until so many minions listen.
    pub(crate) async fn subscribed(&self, count: usize) {
        let publisher = &self.open.as_ref().unwrap().publisher;
        wait::until("the subscriptions", LONG, || std::future::ready(publisher.subscribers() == count)).await;
    }

    /// Publishes a job for all, as the first attempt of action 7.
    pub(crate) fn publish(&self, jid: &str, fun: &str, arg: &[&str]) {
        self.publish_with(jid, fun, Value::list(arg.iter().copied()));
    }

    /// Publishes a job with arguments of any kind.
    pub(crate) fn publish_with(&self, jid: &str, fun: &str, arg: Value) {
        let origin = Value::map([("saltern", Value::map([("action", 7), ("attempt", 1)]))]);
        let load = Value::map([
            ("jid", Value::from(jid)),
            ("fun", fun.into()),
            ("arg", arg),
            ("tgt", "*".into()),
            ("tgt_type", "glob".into()),
            ("ret", "".into()),
            ("user", "root".into()),
            ("start_event", true.into()),
            ("metadata", origin),
            ("serial", self.serial.fetch_add(1, Relaxed).into()),
        ]);
        let shared = Crypticle::new(&self.desk.shared);
        let map = load.as_map().unwrap();
        let frame = envelope::publication(&shared, &self.desk.key, SigAlgo::Pkcs1v15Sha1, map).unwrap();
        self.open.as_ref().unwrap().publisher.publish(frame);
    }

    /// Hears the next returns, and cuts the connection instead of answering.
    pub(crate) fn leave_unanswered(&self, count: u64) {
        self.desk.unanswered.store(count, Relaxed);
    }

    /// The returns of a job, as often as they came.
    pub(crate) fn returns(&self, jid: &str) -> Vec<Map> {
        let all = self.desk.returns.lock().unwrap();
        all.iter().filter(|load| load.get("jid").and_then(Value::as_str) == Some(jid)).cloned().collect()
    }

    /// Waits for one return of a job, and gives its value.
    pub(crate) async fn returned(&self, jid: &str) -> Value {
        wait::until("a return", LONG, || std::future::ready(!self.returns(jid).is_empty())).await;
        self.returns(jid)[0].get("return").cloned().unwrap()
    }

    /// Asks about a job under an id of its own, and gives the answer.
    pub(crate) async fn ask(&self, jid: &str, fun: &str, about: &str) -> Value {
        self.publish(jid, fun, &[about]);
        self.returned(jid).await
    }

    /// How many events have come whose tag ends like this.
    pub(crate) fn events(&self, end: &str) -> usize {
        self.desk.events.lock().unwrap().iter().filter(|(tag, _)| tag.ends_with(end)).count()
    }

    /// The events of a job's progress on a minion, in the order in which they came: their numbers and what they say.
    pub(crate) fn progress(&self, jid: &str, minion: &str) -> Vec<(String, Value)> {
        let begin = format!("salt/job/{jid}/prog/{minion}/");
        let all = self.desk.events.lock().unwrap();
        let told = all.iter().filter_map(|(tag, data)| Some((tag.strip_prefix(&begin)?.to_owned(), data.clone())));
        told.collect()
    }
}

impl Open {
    fn new(desk: Arc<Desk>, requests: tokio::net::TcpListener, publications: tokio::net::TcpListener) -> Self {
        let options = zmtp::Options { drain: Duration::ZERO, ..zmtp::Options::default() };
        let (publisher, replier) = (Publisher::new(options.clone()), Replier::new(options, desk));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn({
            let (publisher, stop) = (publisher.clone(), stop.clone());
            async move { publisher.serve(publications, stop).await }
        });
        tasks.spawn({
            let stop = stop.clone();
            async move { replier.serve(requests, stop).await }
        });
        tasks.close();
        Self { publisher, stop, tasks }
    }
}

impl Desk {
    fn let_in(&self, load: &Map) -> Bytes {
        self.sign_ins.fetch_add(1, Relaxed);
        let auth = Auth::parse(load).unwrap();
        let minion = PublicKey::from_pem(&auth.public_pem).unwrap();
        let session = KeyString::generate();
        let signature = self.key.x931_sign(self.shared.digest().as_bytes()).unwrap();
        let reply =
            envelope::accepted_reply(&self.key, &auth, &minion, self.publish_port, &self.shared, &signature, &session);
        let id = MinionId::new(&auth.id).unwrap();
        self.sessions.lock().unwrap().insert(id, Arc::new(Crypticle::new(&session)));
        reply.unwrap()
    }

    fn hear(&self, sealed: &Sealed, peer: &Peer) -> Option<Bytes> {
        let session = self.sessions.lock().unwrap().get(sealed.id.as_ref()?).cloned();
        let Some(session) = session else { return Some(envelope::bad_load()) };
        let Ok(mut load) = envelope::open_request(&session, &sealed.load, &Decode::after_auth()) else {
            return Some(envelope::bad_load());
        };
        let channel = Channel::take(&mut load).unwrap();
        if let Some(tag) = load.get("tag").and_then(Value::as_str) {
            let data = load.get("data").cloned().unwrap_or_default();
            self.events.lock().unwrap().push((tag.to_owned(), data));
        }
        if load.get("cmd").and_then(Value::as_str) == Some("_return") {
            self.returns.lock().unwrap().push(load);
            let is_left = self.unanswered.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
            if is_left {
                peer.disconnect();
                return None;
            }
        }
        Some(envelope::seal_reply(&session, &channel.nonce, &true.into()))
    }
}

impl Handler for Desk {
    type Conn = ();

    fn opened(&self, _: &Peer) {}

    async fn request(&self, (): &mut (), peer: &Peer, payload: Bytes) -> Option<Bytes> {
        match envelope::parse(payload, envelope::VERSION).unwrap() {
            Request::Auth { load, .. } => Some(self.let_in(&load)),
            Request::Sealed(sealed) => self.hear(&sealed, peer),
            _ => None,
        }
    }

    fn is_trusted(&self, (): &()) -> bool {
        true
    }

    fn closed(&self, (): (), _: &Peer) {}
}

fn listen(port: u16) -> tokio::net::TcpListener {
    bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap()
}
