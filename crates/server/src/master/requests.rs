//! The request port: opens and checks what minions send, hands it to the right file, seals the answer.
//!
//! Commands are a closed list; nothing is looked up by name. Everything that cannot be read or authenticated gets the same
//! answer, `bad load`, which sends an honest minion back to sign in. What fails on our side gets no answer: the minion
//! repeats the request, where `bad load` would make it throw the data away (wire reference, section 15.1).

use super::journal::Note;
use super::replay::Refused;
use super::{Master, Member};
use crate::{Error, clock};
use bytes::Bytes;
use saltern_core::ids::Jid;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::{Crypticle, EncAlgo, SigAlgo};
use saltern_wire::envelope::{self, Request, Sealed};
use saltern_wire::limits::Decode;
use saltern_wire::load::{Channel, Nonce};
use saltern_wire::zmtp::Peer;
use saltern_wire::zmtp::replier::Handler;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The handler of the request port.
pub(crate) struct Requests(pub(crate) Arc<Master>);

/// What is known of one connection.
#[derive(Default)]
pub(crate) struct Conn {
    /// The minion that has proved itself on it
    member: Option<Arc<Member>>,
}

/// An answer before it is sealed.
enum Answer {
    Value(Value),
    /// Pillar: a key of its own, signed
    Private(Value),
}

/// A request that is who it says it is.
struct Genuine {
    /// None only for version 2 requests, which do not all name their sender
    member: Option<Arc<Member>>,
    /// Whether the sender has shown that he is who he says he is; some version 2 requests only say it
    is_proven: bool,
    crypticle: Arc<Crypticle>,
    nonce: Nonce,
    load: Map,
    enc_algo: EncAlgo,
    sig_algo: SigAlgo,
    /// To be written down before anything is done
    note: Option<Note>,
}

impl Handler for Requests {
    type Conn = Conn;

    fn opened(&self, _peer: &Peer) -> Conn {
        Conn::default()
    }

    async fn request(&self, conn: &mut Conn, peer: &Peer, payload: Bytes) -> Option<Bytes> {
        let master = &self.0;
        let minimum = u32::try_from(master.config.minimum_auth_version).unwrap_or(envelope::VERSION);
        match envelope::parse(payload, minimum) {
            Ok(Request::Auth { load, .. }) => master.authenticate(peer, &load).await,
            Ok(Request::Ping(load)) => Some(envelope::plain_reply(&load)),
            Ok(Request::UnknownClear) => Some(envelope::plain_reply(&Value::Map(Map::new()))),
            Ok(Request::Sealed(sealed)) => {
                let Some(genuine) = master.open(&sealed) else { return Some(envelope::bad_load()) };
                if let Some(member) = &genuine.member {
                    conn.bind(member, peer);
                }
                master.answer(genuine, peer.addr().ip()).await
            }
            Err(reason) => {
                tracing::debug!(?peer, %reason, "a request was refused");
                Some(envelope::bad_load())
            }
        }
    }

    fn is_trusted(&self, conn: &Conn) -> bool {
        conn.member.is_some()
    }

    fn closed(&self, conn: Conn, _peer: &Peer) {
        if let Some(member) = conn.member {
            member.disconnected(clock::now());
        }
    }
}

impl Conn {
    /// Ties the connection to the minion that has proved itself on it.
    fn bind(&mut self, member: &Arc<Member>, peer: &Peer) {
        if self.member.as_ref().is_some_and(|bound| Arc::ptr_eq(bound, member)) {
            return;
        }
        member.connected(peer.addr().ip().to_string());
        if let Some(before) = self.member.replace(member.clone()) {
            before.disconnected(clock::now());
        }
    }
}

impl Master {
    /// Opens a sealed request and makes every check; `None` if any fails, without saying which.
    fn open(&self, sealed: &Sealed) -> Option<Genuine> {
        match &sealed.id {
            Some(id) => {
                let member = self.member(id.as_str())?;
                let (current, previous) = member.session(&self.ring());
                let limits = Decode::after_auth();
                let (crypticle, mut load) = match envelope::open_request(&current, &sealed.load, &limits) {
                    Ok(load) => (current, load),
                    Err(_) => {
                        let previous = previous?;
                        let load = envelope::open_request(&previous, &sealed.load, &limits).ok()?;
                        (previous, load)
                    }
                };
                let channel = Channel::take(&mut load).ok()?;
                // Envelope id = inner id = owner of the session = owner of the token.
                let is_whole = channel.id.as_deref() == Some(id.as_str())
                    && channel.tok.is_some_and(|token| member.has_made(&token));
                if !is_whole {
                    tracing::warn!(minion = %id, "a request with a foreign id or token was refused");
                    return None;
                }
                let note = self.admit(&member, &channel.nonce, channel.ts, &load)?;
                Some(genuine(Some(member), true, crypticle, channel.nonce, load, sealed, note))
            }
            None => self.open_shared(sealed),
        }
    }

    /// A version 2 request: sealed with the key that every minion has. Only where the operator allows it.
    fn open_shared(&self, sealed: &Sealed) -> Option<Genuine> {
        let ring = self.ring();
        let limits = Decode::after_auth();
        let open = |crypticle: &Crypticle| envelope::open_request(crypticle, &sealed.load, &limits).ok();
        let (mut load, crypticle) = match open(&ring.shared) {
            Some(load) => (load, Crypticle::new(&ring.keys.shared)),
            None => (open(ring.previous_shared.as_ref()?)?, Crypticle::new(ring.keys.previous_shared.as_ref()?)),
        };
        let channel = Channel::take(&mut load).ok()?;
        let member = match &channel.id {
            Some(id) => Some(self.member(id)?),
            None => None,
        };
        let (mut note, is_proven) = (None, member.is_some() && channel.tok.is_some());
        if let Some(member) = &member {
            if channel.tok.is_some_and(|token| !member.has_made(&token)) {
                return None;
            }
            let now = clock::now();
            member.replay().admit_undated(channel.nonce.as_str(), now.secs()).ok()?;
            self.note_seen(member, now);
            note = does_more_when_repeated(&load).then(|| Note::new(member, &channel.nonce, now.secs()));
        }
        Some(genuine(member, is_proven, Arc::new(crypticle), channel.nonce, load, sealed, note))
    }

    /// Nonce and time stamp: each request once, and not long after it was made. Gives what is to be written down of it.
    fn admit(&self, member: &Arc<Member>, nonce: &Nonce, ts: Option<i64>, load: &Map) -> Option<Option<Note>> {
        let now = clock::now();
        let admitted = member.replay().admit(nonce.as_str(), ts, now.secs(), self.config.ttl_secs());
        match admitted {
            Ok(()) => {
                self.note_seen(member, now);
                Some(does_more_when_repeated(load).then(|| Note::new(member, nonce, ts.unwrap_or(now.secs()))))
            }
            Err(Refused::Replayed) => {
                tracing::warn!(minion = %member.id, "a replayed request was refused");
                None
            }
            Err(Refused::TooOld | Refused::TooNew) => {
                let behind = ts.map(|ts| now.secs().saturating_sub(ts));
                tracing::warn!(minion = %member.id, behind, "a request was refused by its own time stamp; set that machine's clock, or request_server_ttl");
                None
            }
        }
    }

    fn note_seen(&self, member: &Member, now: Timestamp) {
        if member.seen(now) {
            self.engine.is_back(&member.id);
        }
    }

    async fn answer(self: &Arc<Self>, genuine: Genuine, address: IpAddr) -> Option<Bytes> {
        let Genuine { member, is_proven, crypticle, nonce, load, enc_algo, sig_algo, note } = genuine;
        if let Some(note) = note {
            self.journal.write(note).await;
        }
        match self.dispatch(member.as_ref(), is_proven, load).await {
            Ok(Answer::Value(value)) => Some(envelope::seal_reply(&crypticle, &nonce, &value)),
            Ok(Answer::Private(value)) => {
                let master = self.clone();
                let sealed = self.pool.run(address, clock::now(), move || {
                    let key = member.as_ref()?.key()?;
                    envelope::private_reply(&master.rsa, key, enc_algo, sig_algo, &nonce, &value).ok()
                });
                sealed.await.flatten()
            }
            Err(error) => {
                tracing::error!(%error, "a request could not be served and was left unanswered");
                None
            }
        }
    }

    /// The closed list of what minions may ask.
    async fn dispatch(
        self: &Arc<Self>,
        member: Option<&Arc<Member>>,
        is_proven: bool,
        load: Map,
    ) -> Result<Answer, Error> {
        let cmd = load.get("cmd").and_then(Value::as_str).unwrap_or_default().to_owned();
        // Version 2 minions ask for files without a name, or with one that may not be theirs: they get what is for everyone.
        let value = match (cmd.as_str(), member) {
            (
                "_file_list"
                | "_dir_list"
                | "_file_list_emptydirs"
                | "_symlink_list"
                | "_file_envs"
                | "_file_hash"
                | "_file_find"
                | "_serve_file"
                | "_file_hash_and_stat",
                _,
            ) => self.serve_files(member.filter(|_| is_proven), &cmd, load).await?,
            ("_master_opts", _) => self.master_opts(&load),
            ("_return", Some(member)) => self.take_return(member, load).await?,
            ("_minion_event", Some(member)) => self.take_events(member, load).await?,
            ("_pillar", Some(member)) => return Ok(Answer::Private(self.serve_pillar(member, load).await?)),
            ("_register_resources", Some(_)) => true.into(),
            ("_master_tops", Some(_)) => Value::Map(Map::new()),
            ("_mine", Some(member)) => self.put_mine(member, &load).await?,
            ("_mine_get", Some(member)) => self.get_mine(member, &load).await?,
            ("_mine_delete", Some(member)) => self.delete_mine(member, &load).await?,
            ("_mine_flush", Some(member)) => self.flush_mine(member).await?,
            ("minion_pub", Some(member)) => self.peer_publish(member, &load).await?,
            ("minion_publish", Some(member)) => self.peer_publish_and_wait(member, &load).await?,
            ("pub_ret", Some(member)) => self.peer_returns(member, &load).await?,
            // Off by policy: uploads and self-revocation. A minion takes `false` for "not allowed".
            ("_file_recv" | "revoke_auth", Some(_)) => false.into(),
            // There are no runners for minions to call.
            ("minion_runner", Some(_)) => Value::Map(Map::new()),
            _ => {
                tracing::debug!(cmd, "an unknown command");
                Value::Map(Map::new())
            }
        };
        Ok(Answer::Value(value))
    }
}

fn genuine(
    member: Option<Arc<Member>>,
    is_proven: bool,
    crypticle: Arc<Crypticle>,
    nonce: Nonce,
    load: Map,
    sealed: &Sealed,
    note: Option<Note>,
) -> Genuine {
    Genuine { member, is_proven, crypticle, nonce, load, enc_algo: sealed.enc_algo, sig_algo: sealed.sig_algo, note }
}

/// Whether a request does something that doing it again would add to: those are remembered over a restart.
fn does_more_when_repeated(load: &Map) -> bool {
    let text = |field: &str| load.get(field).and_then(Value::as_str).unwrap_or_default();
    match text("cmd") {
        "_minion_event" | "_pillar" | "_mine" | "_mine_delete" | "_mine_flush" | "minion_pub" | "minion_publish" => {
            true
        }
        // A second return of the same job by the same minion is absorbed.
        "_return" => Jid::parse(text("jid")).is_none(),
        _ => false,
    }
}

/// How long a minion waits for an answer to `_auth`; after that it asks again and this answer is worth nothing.
pub(crate) const AUTH_PATIENCE: Duration = Duration::from_secs(5);
