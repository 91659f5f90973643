//! One light minion's way to the master: signing in, asking, and asking again, with a stock minion's patience.

use crate::access::{Access, Answer, Asking, ENC, SIG};
use crate::chance::Chance;
use crate::clock;
use crate::keys::Key;
use crate::swarm::Shared;
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::Crypticle;
use saltern_wire::envelope::{self, RequestHead, Verdict};
use saltern_wire::limits::Decode;
use saltern_wire::load::Nonce;
use saltern_wire::msgpack;
use saltern_wire::zmtp::requester::Requester;
use saltern_wire::zmtp::subscriber::Subscriber;
use saltern_wire::zmtp::{self, Waiting};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often a return or an event is sent before it is given up (`return_retry_tries`).
const TRIES: u32 = 3;
/// How long each time: from the first to the sum of both (`return_retry_timer`, `return_retry_timer_max`).
const LEAST_WAIT: Duration = Duration::from_secs(5);
const MORE_WAIT: Duration = Duration::from_secs(5);
/// How long between attempts to connect: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// The master has said that it does not want this minion: a stock minion's process ends.
#[derive(Debug)]
pub(crate) struct Rejected;

/// It was tried as often as a minion tries; the reasons are counted.
#[derive(Debug)]
pub(crate) struct GaveUp;

/// The way to the master.
pub(crate) struct Link {
    swarm: Arc<Shared>,
    id: MinionId,
    key: Arc<Key>,
    state: Mutex<State>,
    /// One sign-in at a time; who waits takes what it brings
    signing_in: tokio::sync::Mutex<()>,
}

struct State {
    session: Option<Arc<Crypticle>>,
    requester: Option<Requester>,
    chance: Chance,
}

impl Link {
    pub(crate) fn new(swarm: Arc<Shared>, index: usize) -> Self {
        let state = State { session: None, requester: None, chance: Chance::new(swarm.options.seed, index) };
        Self {
            id: swarm.ids[index].clone(),
            key: swarm.keys[index % swarm.keys.len()].clone(),
            swarm,
            state: Mutex::new(state),
            signing_in: tokio::sync::Mutex::default(),
        }
    }

    /// Signs in, however long it takes. `stale` is the session that did not work: whoever comes second takes the new one.
    pub(crate) async fn sign_in(&self, stale: Option<&Arc<Crypticle>>) -> Result<Arc<Crypticle>, Rejected> {
        let _turn = self.signing_in.lock().await;
        if let Some(session) = self.session()
            && stale.is_none_or(|stale| !Arc::ptr_eq(stale, &session))
        {
            return Ok(session);
        }
        let patience = self.swarm.options.patience;
        loop {
            for _ in 0..patience.tries {
                let answer = self.try_to_sign_in(patience.per_try).await;
                // Whatever it was: the master is there, or has had its chance to be.
                self.swarm.first_contact.cancel();
                match answer {
                    Some(Answer::Accepted(session, access)) => {
                        self.swarm.tally.sign_ins.add();
                        self.lock().session = Some(session.clone());
                        self.swarm.set_access(access);
                        return Ok(session);
                    }
                    Some(Answer::Refused(Verdict::Rejected)) => {
                        self.swarm.tally.rejected.add();
                        return Err(Rejected);
                    }
                    Some(Answer::Refused(Verdict::Pending | Verdict::Full)) => {
                        self.swarm.tally.told_to_wait.add();
                        break;
                    }
                    None => {}
                }
            }
            tokio::time::sleep(patience.pause).await;
        }
    }

    async fn try_to_sign_in(&self, patience: Duration) -> Option<Answer> {
        let tally = &self.swarm.tally;
        let asking = Asking::new(&self.id, &self.key, self.swarm.access());
        let request = asking.request().ok()?;
        tally.asks_to_sign_in();
        match self.exchange(request, patience).await {
            Ok(reply) => match asking.answer(reply) {
                Ok(answer) => Some(answer),
                Err(_) => {
                    tally.error("sign_in_answer_refused");
                    None
                }
            },
            Err(error) => {
                tally.error(match kind(&error) {
                    "no_answer" => "sign_in_without_answer",
                    other => other,
                });
                None
            }
        }
    }

    /// Subscribes where the master publishes.
    pub(crate) async fn subscribe(&self) -> Result<Subscriber, GaveUp> {
        let access = self.swarm.access().ok_or(GaveUp)?;
        let address = format!("{}:{}", self.swarm.options.master, access.publish_port);
        Subscriber::connect(address, self.swarm.wire.clone()).await.map_err(|error| {
            self.swarm.tally.error(kind(&error));
            GaveUp
        })
    }

    /// Sends a load and waits until the master has confirmed it; as often, and as long, as a stock minion.
    pub(crate) async fn send(&self, load: Map) -> Result<(), GaveUp> {
        self.ask(load, |session, nonce, reply| {
            envelope::open_reply(session, nonce, reply, &Decode::after_auth()).map(drop)
        })
        .await
    }

    /// Sends the grains and fetches the pillar. What is in it is nobody's here, and to open it costs an RSA operation.
    pub(crate) async fn fetch_pillar(&self, grains: Map) -> Result<(), GaveUp> {
        let mut load = Map::with_capacity(12);
        load.push("cmd", "_pillar");
        load.push("id", &self.id);
        load.push("grains", grains);
        load.push("saltenv", Value::Nil);
        load.push("pillarenv", Value::Nil);
        load.push("pillar_override", Map::new());
        load.push("extra_minion_data", Map::new());
        load.push("ver", "2");
        self.ask(load, |_, _, reply| match msgpack::decode(reply, &Decode::after_auth())? {
            Value::Map(map) if map.get("pillar").is_some() => Ok(()),
            _ => Err(envelope::Error::BadLoad),
        })
        .await
    }

    /// Tells the master of an event.
    pub(crate) async fn fire(&self, tag: String, data: Value) -> Result<(), GaveUp> {
        let mut load = Map::with_capacity(9);
        load.push("cmd", "_minion_event");
        load.push("id", &self.id);
        load.push("tag", tag);
        load.push("data", data);
        load.push("pretag", Value::Nil);
        self.send(load).await
    }

    async fn ask(
        &self,
        load: Map,
        open: impl Fn(&Crypticle, &Nonce, Bytes) -> Result<(), envelope::Error>,
    ) -> Result<(), GaveUp> {
        let tally = &self.swarm.tally;
        let mut session = match self.session() {
            Some(session) => session,
            None => self.sign_in(None).await.map_err(|Rejected| GaveUp)?,
        };
        for _ in 0..TRIES {
            let nonce = Nonce::generate();
            let request = self.sealed(&session, nonce, load.clone())?;
            let wait = LEAST_WAIT + MORE_WAIT.mul_f64(self.chance(Chance::fraction));
            match self.exchange(request, wait).await {
                Ok(reply) => match open(&session, &nonce, reply) {
                    Ok(()) => return Ok(()),
                    Err(envelope::Error::BadLoad | envelope::Error::Crypto(_)) => {
                        tally.error("session_refused");
                        session = self.sign_in(Some(&session)).await.map_err(|Rejected| GaveUp)?;
                    }
                    Err(_) => tally.error("answer_refused"),
                },
                Err(error) => tally.error(kind(&error)),
            }
        }
        Err(GaveUp)
    }

    fn sealed(&self, session: &Crypticle, nonce: Nonce, load: Map) -> Result<Bytes, GaveUp> {
        let head = RequestHead {
            id: &self.id,
            nonce,
            now: clock::now(),
            token: &self.key.token,
            enc_algo: ENC,
            sig_algo: SIG,
            sign_with: None,
        };
        envelope::request(session, &head, load).map_err(|_| GaveUp)
    }

    async fn exchange(&self, request: Bytes, patience: Duration) -> Result<Bytes, zmtp::Error> {
        let deadline = Instant::now() + patience;
        let requester = self.requester(deadline).await?;
        requester.request(request, deadline.saturating_duration_since(Instant::now())).await
    }

    /// The connection for requests; opened until `deadline` where there is none.
    async fn requester(&self, deadline: Instant) -> Result<Requester, zmtp::Error> {
        if let Some(requester) = self.lock().requester.clone() {
            return Ok(requester);
        }
        let address = format!("{}:{}", self.swarm.options.master, self.swarm.options.ret_port);
        let mut pause = FIRST_PAUSE;
        loop {
            match Requester::connect(&address, self.swarm.wire.clone()).await {
                Ok(requester) => {
                    self.lock().requester = Some(requester.clone());
                    return Ok(requester);
                }
                Err(error) if Instant::now() + pause >= deadline => return Err(error),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Drops session and connection, as a minion does that has lost the master.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        state.session = None;
        state.requester = None;
    }

    pub(crate) fn session(&self) -> Option<Arc<Crypticle>> {
        self.lock().session.clone()
    }

    /// What is known of the master now.
    pub(crate) fn access(&self) -> Option<Arc<Access>> {
        self.swarm.access()
    }

    /// Draws from this minion's chance.
    pub(crate) fn chance<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.lock().chance)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name under which a transport's failure is counted.
pub(crate) fn kind(error: &zmtp::Error) -> &'static str {
    match error {
        zmtp::Error::Closed => "connection_lost",
        zmtp::Error::Connect { .. } => "connection_refused",
        zmtp::Error::TimedOut(Waiting::Reply) => "no_answer",
        zmtp::Error::TimedOut(_) => "transport_too_slow",
        _ => "transport_failed",
    }
}
