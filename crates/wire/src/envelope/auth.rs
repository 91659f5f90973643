//! The minion's side of `_auth`: asking, and believing the answer.

use super::{Error, Verdict, decode_map, raw};
use crate::crypto::{self, EncAlgo, KeyString, PrivateKey, PublicKey, SigAlgo, same};
use crate::limits::Decode;
use crate::load::Nonce;
use crate::msgpack;
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};

/// What a minion asks to be let in with.
#[derive(Clone, Copy, Debug)]
pub struct AuthRequest<'a> {
    /// Its id.
    pub id: &'a MinionId,
    /// Its public key.
    pub key: &'a PublicKey,
    /// To be repeated by the answer.
    pub nonce: Nonce,
    /// How secrets in the answer shall be encrypted.
    pub enc_algo: EncAlgo,
    /// How the answer shall be signed.
    pub sig_algo: SigAlgo,
    /// The server's key and a fresh secret to be returned, once the key is known.
    pub token: Option<(&'a PublicKey, &'a KeyString)>,
    /// Grains offered for automatic acceptance.
    pub autosign_grains: Option<&'a Map>,
    /// [`VERSION`](super::VERSION), or an older one to play an older minion.
    pub version: u32,
}

impl AuthRequest<'_> {
    /// The request.
    pub fn encode(&self) -> Result<Bytes, crypto::Error> {
        let mut load = Map::with_capacity(8);
        load.push("cmd", "_auth");
        load.push("id", self.id);
        load.push("nonce", self.nonce);
        load.push("enc_algo", self.enc_algo.as_str());
        load.push("sig_algo", self.sig_algo.as_str());
        if let Some((server, secret)) = self.token {
            load.push("token", server.encrypt(self.enc_algo, secret.as_str().as_bytes())?);
        }
        load.push("pub", self.key.to_pem());
        if let Some(grains) = self.autosign_grains {
            load.push("autosign_grains", grains.clone());
        }
        let mut envelope = Map::with_capacity(3);
        envelope.push("enc", "clear");
        envelope.push("load", load);
        envelope.push("version", self.version);
        let mut out = Vec::with_capacity(msgpack::map_bound(&envelope));
        msgpack::encode_map(&envelope, &mut out);
        Ok(out.into())
    }
}

/// What a minion holds the answer to its `_auth` against.
#[derive(Clone, Copy, Debug)]
pub struct AuthExpected<'a> {
    /// The minion's own key.
    pub key: &'a PrivateKey,
    /// The request's.
    pub nonce: Nonce,
    /// The request's.
    pub enc_algo: EncAlgo,
    /// The request's.
    pub sig_algo: SigAlgo,
    /// The secret that was sent for the server to return.
    pub token: Option<&'a KeyString>,
    /// The server's key, if it was met before.
    pub server: Option<&'a PublicKey>,
    /// The fingerprint the operator configured (`master_finger`).
    pub fingerprint: Option<&'a str>,
}

/// The server's answer to `_auth`.
#[derive(Clone, Debug)]
pub enum AuthReply {
    /// The key is accepted and every check passed.
    Accepted(Box<Accepted>),
    /// The key is not accepted.
    Verdict {
        /// What the server says.
        verdict: Verdict,
        /// Whether its signature was checked. At first contact it cannot be, and anybody could have said it.
        is_verified: bool,
    },
}

/// What an accepted minion works with.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The server's key: to be stored at first contact.
    pub server: PublicKey,
    /// Where publications come from.
    pub publish_port: u16,
    /// Opens publications.
    pub shared: KeyString,
    /// Seals requests and opens replies.
    pub session: KeyString,
}

impl AuthExpected<'_> {
    /// Checks an answer in the order stock minions do; the first check that fails is the error.
    pub fn check(&self, reply: Bytes) -> Result<AuthReply, Error> {
        let limits = Decode::before_auth();
        let outer = match msgpack::decode(reply, &limits)? {
            Value::Map(outer) => outer,
            Value::Text(text) if text == "bad load" => return Err(Error::BadLoad),
            _ => return Err(Error::NotAMap),
        };
        let signed = match outer.get("load") {
            Some(Value::Map(load)) => return Err(unsigned(load)),
            _ => raw(&outer, "load")?,
        };
        let load = decode_map(signed.clone(), &limits)?;

        let offered = self.server_key(&load)?;
        let accepted = match &offered {
            Some(server) => Some(self.secrets(&load, server)?),
            None => None,
        };
        let server = offered.as_ref().or(self.server);
        if let Some(server) = server {
            let signature = outer.get("sig").and_then(Value::as_bytes).ok_or(Error::NotSigned)?;
            if !server.verify(self.sig_algo, &signed, signature) {
                return Err(Error::WrongSignature);
            }
        }
        if load.get("nonce").and_then(Value::as_str) != Some(self.nonce.as_str()) {
            return Err(Error::WrongNonce);
        }
        if let Some(verdict) = verdict(&load)? {
            return Ok(AuthReply::Verdict { verdict, is_verified: server.is_some() });
        }
        let accepted = accepted.ok_or(Error::Field("pub_key"))?;
        match self.fingerprint {
            Some(wanted) if !wanted.eq_ignore_ascii_case(&accepted.server.fingerprint()) => {
                Err(Error::WrongFingerprint)
            }
            _ => Ok(AuthReply::Accepted(Box::new(accepted))),
        }
    }

    /// The key in the answer, which must be the stored one if there is one.
    fn server_key(&self, load: &Map) -> Result<Option<PublicKey>, Error> {
        let Some(offered) = load.get("pub_key") else { return Ok(None) };
        let offered = PublicKey::from_pem(offered.as_str().ok_or(Error::Field("pub_key"))?)?;
        if self.server.is_some_and(|stored| *stored != offered) {
            return Err(Error::ServerKeyChanged);
        }
        if load.get("pub_sig").is_some() {
            return Err(Error::UnexpectedPubSig);
        }
        Ok(Some(offered))
    }

    fn secrets(&self, load: &Map, server: &PublicKey) -> Result<Accepted, Error> {
        let shared = KeyString::parse(&self.decrypt(load, "aes")?)?;
        let digest = server.x931_recover(&raw(load, "sig")?).ok_or(Error::SharedKeySignature)?;
        if !same(&digest, shared.digest().as_bytes()) {
            return Err(Error::SharedKeySignature);
        }
        if let Some(token) = self.token {
            let returned = self.decrypt(load, "token").map_err(|_| Error::WrongToken)?;
            if !same(&returned, token.as_str().as_bytes()) {
                return Err(Error::WrongToken);
            }
        }
        let session = KeyString::parse(&self.decrypt(load, "session")?)?;
        let port = load.get("publish_port").and_then(Value::as_i64).and_then(|port| u16::try_from(port).ok());
        let publish_port = port.ok_or(Error::Field("publish_port"))?;
        Ok(Accepted { server: server.clone(), publish_port, shared, session })
    }

    fn decrypt(&self, load: &Map, field: &'static str) -> Result<zeroize::Zeroizing<Vec<u8>>, Error> {
        self.key.decrypt(self.enc_algo, &raw(load, field)?).ok_or(Error::NotForUs(field))
    }
}

/// What a load that is a map and no signed bytes means: the two refusals Salt sends that way, or a forgery.
fn unsigned(load: &Map) -> Error {
    match load.get("ret").and_then(Value::as_str) {
        Some("bad enc algo" | "bad sig algo") => Error::AlgorithmRefused,
        _ => Error::NotSigned,
    }
}

fn verdict(load: &Map) -> Result<Option<Verdict>, Error> {
    Ok(match load.get("ret") {
        None => None,
        Some(Value::Bool(true)) => Some(Verdict::Pending),
        Some(Value::Bool(false)) => Some(Verdict::Rejected),
        Some(Value::Text(text)) if text == "full" => Some(Verdict::Full),
        Some(_) => return Err(Error::Field("ret")),
    })
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
