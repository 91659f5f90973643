//! One light minion's way to the master: signing in, asking, and asking again, with a stock minion's patience.
//!
//! As with a stock minion, one request follows the other: while one waits for its answer, the next one waits too.

use crate::access::{Answer, Asking};
use crate::chance::{Chance, Purpose};
use crate::clock;
use crate::keys::Key;
use crate::load::{Load, Sender};
use crate::swarm::Shared;
use crate::wire::{self, Connection};
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::Crypticle;
use saltern_wire::envelope::{self, Verdict};
use saltern_wire::limits::Decode;
use saltern_wire::load::Nonce;
use saltern_wire::msgpack;
use saltern_wire::zmtp::{self, Waiting};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a stock minion sends a return or an event before it gives up (`return_retry_tries`).
pub(crate) const TRIES: u32 = 3;
/// How long each time: from the first to the sum of both (`return_retry_timer`, `return_retry_timer_max`).
const LEAST_WAIT: Duration = Duration::from_secs(5);
const MORE_WAIT: Duration = Duration::from_secs(5);
/// How long between attempts to connect, at most: doubled from the first to the last. A stock minion waits longer; a master
/// that was killed and started again should have its crowd back while somebody looks.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const LAST_PAUSE: Duration = Duration::from_secs(1);

/// The master has said that it does not want this minion: a stock minion's process ends.
#[derive(Debug)]
pub(crate) struct Rejected;

/// It was tried as often as a minion tries; the reasons are counted.
#[derive(Debug)]
pub(crate) struct GaveUp;

/// What came of sending a load once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Confirmed,
    /// The master may have it or not; the reason is counted
    Unconfirmed,
}

/// Why a request to be let in has no answer.
enum Unanswered {
    /// There is nobody: no reason to lose patience with the master when it is back
    MasterGone,
    Other,
}

/// The way to the master.
pub(crate) struct Link {
    pub(crate) id: MinionId,
    pub(crate) chance: Chance,
    swarm: Arc<Shared>,
    key: Arc<Key>,
    sender: Sender,
    session: Option<Arc<Crypticle>>,
    connection: Option<Connection>,
}

impl Link {
    pub(crate) fn new(swarm: Arc<Shared>, index: usize) -> Self {
        let (id, key) = (swarm.ids[index].clone(), swarm.keys[index % swarm.keys.len()].clone());
        Self {
            sender: Sender::new(&id, &key.token),
            chance: Chance::new(swarm.options.seed, index, Purpose::Timing),
            id,
            swarm,
            key,
            session: None,
            connection: None,
        }
    }

    /// Signs in, however long it takes.
    pub(crate) async fn sign_in(&mut self) -> Result<Arc<Crypticle>, Rejected> {
        let patience = self.swarm.options.patience;
        let mut tries = 0;
        loop {
            let answer = self.try_to_sign_in(patience.per_try).await;
            // Whatever it was: the master is there, or has had its chance to be.
            self.swarm.first_contact.cancel();
            match answer {
                Ok(Answer::Accepted(session, access)) => {
                    self.swarm.tally.sign_ins.add();
                    self.swarm.set_access(access);
                    self.session = Some(session.clone());
                    return Ok(session);
                }
                Ok(Answer::Refused(Verdict::Rejected)) => {
                    self.swarm.tally.rejected.add();
                    return Err(Rejected);
                }
                Ok(Answer::Refused(Verdict::Pending | Verdict::Full)) => {
                    self.swarm.tally.told_to_wait.add();
                    tries = patience.tries;
                }
                Err(Unanswered::MasterGone) => self.rest(FIRST_PAUSE).await,
                Err(Unanswered::Other) => tries += 1,
            }
            if tries >= patience.tries {
                tokio::time::sleep(patience.pause).await;
                tries = 0;
            }
        }
    }

    async fn try_to_sign_in(&mut self, patience: Duration) -> Result<Answer, Unanswered> {
        let (id, key, swarm) = (self.id.clone(), self.key.clone(), self.swarm.clone());
        let asking = Asking::new(&id, &key, swarm.access());
        let request = asking.request().map_err(|_| Unanswered::Other)?;
        swarm.tally.asks_to_sign_in();
        match self.exchange(request, patience).await {
            Ok(reply) => asking.answer(reply).map_err(|_| {
                swarm.tally.error("sign_in_answer_refused");
                Unanswered::Other
            }),
            Err(error) => {
                swarm.tally.error(match wire::kind(&error) {
                    "no_answer" => "sign_in_without_answer",
                    other => other,
                });
                let is_gone = matches!(error, zmtp::Error::Connect { .. } | zmtp::Error::Closed);
                Err(if is_gone { Unanswered::MasterGone } else { Unanswered::Other })
            }
        }
    }

    /// Subscribes where the master publishes.
    pub(crate) async fn subscribe(&self) -> Result<Connection, GaveUp> {
        let access = self.swarm.access().ok_or(GaveUp)?;
        let address = format!("{}:{}", self.swarm.options.master, access.publish_port);
        wire::subscribe(&address, &self.swarm.wire).await.map_err(|error| {
            self.swarm.tally.error(wire::kind(&error));
            GaveUp
        })
    }

    /// Sends a load and waits until the master has confirmed it; as often, and as long, as a stock minion.
    pub(crate) async fn send(&mut self, load: &Load) -> Result<(), GaveUp> {
        self.ask(load, open_confirmation).await
    }

    /// Sends a load once, and waits for the confirmation as long as a stock minion.
    pub(crate) async fn send_once(&mut self, load: &Load) -> Result<Sent, Rejected> {
        self.ask_once(load, &open_confirmation).await
    }

    /// Sends the grains and fetches the pillar. What is in it is nobody's here, and to open it costs an RSA operation.
    pub(crate) async fn fetch_pillar(&mut self, grains: Map) -> Result<(), GaveUp> {
        let mut load = Map::with_capacity(8);
        load.push("cmd", "_pillar");
        load.push("grains", grains);
        load.push("saltenv", Value::Nil);
        load.push("pillarenv", Value::Nil);
        load.push("pillar_override", Map::new());
        load.push("extra_minion_data", Map::new());
        load.push("ver", "2");
        self.ask(&Load::new(&load), |_, _, reply| match msgpack::decode(reply, &Decode::after_auth())? {
            Value::Map(map) if map.get("pillar").is_some() => Ok(()),
            _ => Err(envelope::Error::BadLoad),
        })
        .await
    }

    /// Tells the master of an event.
    pub(crate) async fn fire(&mut self, tag: String, data: Value) -> Result<(), GaveUp> {
        self.send(&event_load(tag, data)).await
    }

    /// Tells the master of an event, but not again if it does not hear it.
    pub(crate) async fn fire_once(&mut self, tag: String, data: Value) -> Result<Sent, Rejected> {
        self.send_once(&event_load(tag, data)).await
    }

    async fn ask(
        &mut self,
        load: &Load,
        open: impl Fn(&Crypticle, &Nonce, Bytes) -> Result<(), envelope::Error>,
    ) -> Result<(), GaveUp> {
        for _ in 0..TRIES {
            if let Sent::Confirmed = self.ask_once(load, &open).await.map_err(|Rejected| GaveUp)? {
                return Ok(());
            }
        }
        Err(GaveUp)
    }

    async fn ask_once(
        &mut self,
        load: &Load,
        open: &impl Fn(&Crypticle, &Nonce, Bytes) -> Result<(), envelope::Error>,
    ) -> Result<Sent, Rejected> {
        let mut session = match &self.session {
            Some(session) => session.clone(),
            None => self.sign_in().await?,
        };
        // A master that no longer knows the session refuses it: the second time is with a new one.
        for _ in 0..2 {
            let nonce = Nonce::generate();
            let request = self.sender.request(&session, load, &nonce, clock::now());
            let wait = LEAST_WAIT + MORE_WAIT.mul_f64(self.chance.fraction());
            match self.exchange(request, wait).await {
                Ok(reply) => match open(&session, &nonce, reply) {
                    Ok(()) => return Ok(Sent::Confirmed),
                    Err(envelope::Error::BadLoad | envelope::Error::Crypto(_)) => {
                        self.swarm.tally.error("session_refused");
                        session = self.sign_in().await?;
                        continue;
                    }
                    Err(_) => self.swarm.tally.error("answer_refused"),
                },
                Err(error) => self.swarm.tally.error(wire::kind(&error)),
            }
            break;
        }
        Ok(Sent::Unconfirmed)
    }

    async fn exchange(&mut self, request: Bytes, patience: Duration) -> Result<Bytes, zmtp::Error> {
        let deadline = Instant::now() + patience;
        // Taken out: unless a reply comes, the connection ends with this exchange.
        let taken = self.connection.take();
        let exchange = async {
            let mut connection = match taken {
                Some(connection) => connection,
                None => self.connect(deadline).await?,
            };
            let reply = wire::exchange(&mut connection, request).await?;
            Ok((connection, reply))
        };
        let exchanged = tokio::time::timeout_at(deadline, exchange).await;
        let (connection, reply) = exchanged.unwrap_or(Err(zmtp::Error::TimedOut(Waiting::Reply)))?;
        self.connection = Some(connection);
        Ok(reply)
    }

    async fn connect(&mut self, deadline: Instant) -> Result<Connection, zmtp::Error> {
        let address = format!("{}:{}", self.swarm.options.master, self.swarm.options.ret_port);
        let mut pause = FIRST_PAUSE;
        loop {
            match wire::connect(&address, &self.swarm.wire).await {
                Err(_) if Instant::now() + pause < deadline => self.rest(pause).await,
                connected => return connected,
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Waits, but not as long as all others.
    pub(crate) async fn rest(&mut self, most: Duration) {
        tokio::time::sleep(self.chance.jitter(most)).await;
    }

    /// Answers the master's heartbeats between requests; ends when the connection is lost. May be dropped at any time.
    pub(crate) async fn stay_connected(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.idle().await;
            self.connection = None;
        } else {
            std::future::pending().await
        }
    }

    /// Drops the connection and forgets the session, as a minion that starts again.
    pub(crate) fn start_again(&mut self) {
        self.hang_up();
        self.session = None;
    }

    /// Drops the connection; the next request opens another, in the same session.
    pub(crate) fn hang_up(&mut self) {
        self.connection = None;
    }
}

fn event_load(tag: String, data: Value) -> Load {
    let mut load = Map::with_capacity(4);
    load.push("cmd", "_minion_event");
    load.push("tag", tag);
    load.push("data", data);
    load.push("pretag", Value::Nil);
    Load::new(&load)
}

fn open_confirmation(session: &Crypticle, nonce: &Nonce, reply: Bytes) -> Result<(), envelope::Error> {
    envelope::open_reply(session, nonce, reply, &Decode::after_auth()).map(drop)
}
