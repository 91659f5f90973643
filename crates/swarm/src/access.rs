//! What all light minions know of the master: its key, where it publishes, the key that opens publications.
//!
//! The first answer to a sign-in is checked in every respect. In the later ones only the session key is new, so only that
//! is decrypted: half of the private RSA operations of a sign-in on our side, which would else be more than the server's.

use crate::keys::Key;
use bytes::Bytes;
use bytestring::ByteString;
use saltern_core::ids::MinionId;
use saltern_core::value::Value;
use saltern_wire::crypto::{self, Crypticle, EncAlgo, KeyString, PublicKey, SigAlgo};
use saltern_wire::envelope::{self, AuthExpected, AuthReply, AuthRequest, Verdict};
use saltern_wire::limits::Decode;
use saltern_wire::load::Nonce;
use saltern_wire::msgpack;
use std::sync::Arc;

/// What default minions ask for.
pub(crate) const ENC: EncAlgo = EncAlgo::OaepSha1;
pub(crate) const SIG: SigAlgo = SigAlgo::Pkcs1v15Sha1;

/// What the swarm knows of the master.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) server: PublicKey,
    pub(crate) publish_port: u16,
    /// Opens publications
    pub(crate) shared: Crypticle,
    /// The master's signature of the shared key. It is made without chance: as long as it is the same, so is the key
    signature: Bytes,
    server_pem: ByteString,
}

/// A sign-in under way.
pub(crate) struct Asking<'a> {
    pub(crate) id: &'a MinionId,
    pub(crate) key: &'a Key,
    /// What is known of the master already
    pub(crate) known: Option<Arc<Access>>,
    nonce: Nonce,
    secret: KeyString,
}

/// What came of it.
pub(crate) enum Answer {
    /// The session's key, and what is known of the master now
    Accepted(Arc<Crypticle>, Arc<Access>),
    Refused(Verdict),
}

impl<'a> Asking<'a> {
    pub(crate) fn new(id: &'a MinionId, key: &'a Key, known: Option<Arc<Access>>) -> Self {
        Self { id, key, known, nonce: Nonce::generate(), secret: KeyString::generate() }
    }

    /// The request. Who knows the master sends a secret for it to return, as every minion does from its second start on.
    pub(crate) fn request(&self) -> Result<Bytes, crypto::Error> {
        let request = AuthRequest {
            id: self.id,
            key: self.key.private.public(),
            nonce: self.nonce,
            enc_algo: ENC,
            sig_algo: SIG,
            token: self.known.as_ref().map(|known| (&known.server, &self.secret)),
            autosign_grains: None,
            version: envelope::VERSION,
        };
        request.encode()
    }

    /// Checks the answer.
    pub(crate) fn answer(&self, reply: Bytes) -> Result<Answer, envelope::Error> {
        if let Some(known) = &self.known
            && let Some(session) = known.session_in(&reply, self.key, &self.nonce)
        {
            return Ok(Answer::Accepted(Arc::new(Crypticle::new(&session)), known.clone()));
        }
        let expected = AuthExpected {
            key: &self.key.private,
            nonce: self.nonce,
            enc_algo: ENC,
            sig_algo: SIG,
            token: self.known.as_ref().map(|_| &self.secret),
            server: self.known.as_ref().map(|known| &known.server),
            fingerprint: None,
        };
        match expected.check(reply.clone())? {
            AuthReply::Accepted(accepted) => {
                let (_, load) = signed_load(&reply).ok_or(envelope::Error::Field("load"))?;
                let access = Access {
                    signature: load.get("sig").and_then(Value::to_raw).unwrap_or_default(),
                    server_pem: load.get("pub_key").and_then(Value::as_str).unwrap_or_default().into(),
                    server: accepted.server,
                    publish_port: accepted.publish_port,
                    shared: Crypticle::new(&accepted.shared),
                };
                Ok(Answer::Accepted(Arc::new(Crypticle::new(&accepted.session)), Arc::new(access)))
            }
            AuthReply::Verdict { verdict, .. } => Ok(Answer::Refused(verdict)),
        }
    }
}

impl Access {
    /// The session key in an answer of the master we know, if nothing else in it is new.
    fn session_in(&self, reply: &Bytes, key: &Key, nonce: &Nonce) -> Option<KeyString> {
        let (outer, load) = signed_load(reply)?;
        let is_known = load.get("sig")?.as_bytes()? == &self.signature[..]
            && load.get("pub_key")?.as_str()? == &*self.server_pem
            && load.get("publish_port")?.as_i64()? == i64::from(self.publish_port)
            && load.get("nonce")?.as_str()? == nonce.as_str();
        let signed = outer.get("load")?.to_raw()?;
        if !is_known || !self.server.verify(SIG, &signed, outer.get("sig")?.as_bytes()?) {
            return None;
        }
        let session = key.private.decrypt(ENC, &load.get("session")?.to_raw()?)?;
        KeyString::parse(&session).ok()
    }
}

/// An answer, and the load that is signed in it.
fn signed_load(reply: &Bytes) -> Option<(Value, Value)> {
    let limits = Decode::before_auth();
    let outer = msgpack::decode(reply.clone(), &limits).ok()?;
    let load = msgpack::decode(outer.get("load")?.to_raw()?, &limits).ok()?;
    Some((outer, load))
}
