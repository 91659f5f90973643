//! The server's end of 4506: reading requests, writing answers.

use super::{Error, MARKER, Verdict, decode_map, seal_map, unseal};
use crate::crypto::{self, Crypticle, EncAlgo, KeyString, PrivateKey, PublicKey, SigAlgo};
use crate::limits::Decode;
use crate::load::{self, Auth, Nonce};
use crate::msgpack::{self, Encoder};
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};

/// What a minion may send.
#[derive(Clone, Debug)]
pub enum Request {
    /// A clear `_auth`, see [`load::Auth`].
    Auth {
        /// The protocol version the minion speaks.
        version: u32,
        /// The unproved load.
        load: Map,
    },
    /// A clear `ping`: to be answered with [`plain_reply`] of the same load.
    Ping(Value),
    /// Any other clear command: to be answered with an empty map.
    UnknownClear,
    /// A sealed load.
    Sealed(Sealed),
}

/// A sealed request, not yet opened.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The protocol version.
    pub version: u32,
    /// Whose session key opens it; `None` in version 2, where the shared key does.
    pub id: Option<MinionId>,
    /// The ciphertext.
    pub load: Bytes,
    /// How the key of a private reply is to be encrypted.
    pub enc_algo: EncAlgo,
    /// How a private reply is to be signed.
    pub sig_algo: SigAlgo,
}

/// Why a request was not even looked into. The answer to all of them is [`bad_load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not one msgpack value within its limits.
    #[error("request is not msgpack within limits")]
    Malformed(#[source] msgpack::Error),
    /// Not a map.
    #[error("request is not a map")]
    NotAMap,
    /// `enc` is neither `clear` nor `aes`.
    #[error("request is neither clear nor sealed")]
    UnknownEnc,
    /// An older protocol than allowed. A version that is missing or no number counts as 0.
    #[error("request has version {got}, at least {minimum} is wanted")]
    OldVersion {
        /// The request's.
        got: u32,
        /// The oldest allowed.
        minimum: u32,
    },
    /// A clear request longer than any genuine one.
    #[error("clear request is too long")]
    ClearTooLong,
    /// `load` is missing, or not a map (clear) or bytes (sealed).
    #[error("request has no usable load")]
    BadLoad,
    /// `id` is missing or could not be a minion's.
    #[error("request has no usable id")]
    BadId,
    /// `enc_algo` is not one of the fixed list.
    #[error("request has an unknown enc_algo")]
    UnknownEncAlgo,
    /// `sig_algo` is not one of the fixed list.
    #[error("request has an unknown sig_algo")]
    UnknownSigAlgo,
}

/// Reads a request's envelope. `minimum_version` is [`VERSION`](super::VERSION) unless the operator allows older minions.
pub fn parse(raw: Bytes, minimum_version: u32) -> Result<Request, Refused> {
    let len = raw.len();
    let Value::Map(mut envelope) = msgpack::decode(raw, &Decode::envelope()).map_err(Refused::Malformed)? else {
        return Err(Refused::NotAMap);
    };
    let version = envelope.get("version").and_then(Value::as_i64).and_then(|v| u32::try_from(v).ok()).unwrap_or(0);
    if version < minimum_version {
        return Err(Refused::OldVersion { got: version, minimum: minimum_version });
    }
    let load = envelope.remove("load").ok_or(Refused::BadLoad)?;
    match envelope.get("enc").and_then(Value::as_str) {
        Some("clear") if len > Decode::before_auth().max_bytes => Err(Refused::ClearTooLong),
        Some("clear") => clear(version, load),
        Some("aes") => sealed(version, &envelope, &load).map(Request::Sealed),
        _ => Err(Refused::UnknownEnc),
    }
}

fn clear(version: u32, load: Value) -> Result<Request, Refused> {
    let Value::Map(map) = load else { return Err(Refused::BadLoad) };
    Ok(match map.get("cmd").and_then(Value::as_str) {
        Some("_auth") => Request::Auth { version, load: map },
        Some("ping") => Request::Ping(Value::Map(map)),
        _ => Request::UnknownClear,
    })
}

fn sealed(version: u32, envelope: &Map, load: &Value) -> Result<Sealed, Refused> {
    // A version 2 request is sealed with the key everybody has: an id beside it would prove nothing.
    let id = match version {
        0..=super::SHARED_KEY_VERSION => None,
        _ => {
            let id = envelope.get("id").and_then(Value::as_str).ok_or(Refused::BadId)?;
            Some(MinionId::new(id).map_err(|_| Refused::BadId)?)
        }
    };
    Ok(Sealed {
        version,
        id,
        load: load.to_raw().ok_or(Refused::BadLoad)?,
        enc_algo: load::enc_algo(envelope).ok().flatten().ok_or(Refused::UnknownEncAlgo)?,
        sig_algo: load::sig_algo(envelope).ok().flatten().ok_or(Refused::UnknownSigAlgo)?,
    })
}

/// Opens a sealed request with the session key (version 3) or the shared key (version 2).
pub fn open_request(crypticle: &Crypticle, sealed: &Bytes, limits: &Decode) -> Result<Map, Error> {
    decode_map(unseal(crypticle, sealed)?, limits)
}

/// The answer to a sealed request, but for `_pillar`.
pub fn seal_reply(crypticle: &Crypticle, nonce: &Nonce, value: &Value) -> Bytes {
    // The reply is one msgpack string: its header goes into the room left before the sealed bytes.
    const HEAD: usize = 5;
    let hint = MARKER.len() + Nonce::LEN + msgpack::bound(value);
    let mut out = crypticle.seal_with(HEAD, hint, |out| {
        out.extend_from_slice(MARKER);
        out.extend_from_slice(nonce.as_str().as_bytes());
        msgpack::encode_into(value, out);
    });
    let len = u32::try_from(out.len() - HEAD).expect("every border refuses values far below 4 GiB");
    let start = match u16::try_from(len) {
        Ok(short) => {
            out[2] = 0xda;
            out[3..HEAD].copy_from_slice(&short.to_be_bytes());
            2
        }
        Err(_) => {
            out[0] = 0xdb;
            out[1..HEAD].copy_from_slice(&len.to_be_bytes());
            0
        }
    };
    Bytes::from(out).slice(start..)
}

/// The answer to `_pillar`: sealed with a key of its own, which is encrypted for the minion, and signed by the server.
pub fn private_reply(
    signer: &PrivateKey,
    minion: &PublicKey,
    enc_algo: EncAlgo,
    sig_algo: SigAlgo,
    nonce: &Nonce,
    pillar: &Value,
) -> Result<Bytes, crypto::Error> {
    let once = KeyString::generate();
    let key = minion.encrypt(enc_algo, once.as_str().as_bytes())?;
    let mut data = Vec::with_capacity(key.len() + msgpack::bound(pillar) + 96);
    let mut encoder = Encoder::salt(&mut data);
    encoder.map(3);
    encoder.text("key");
    encoder.raw(&key);
    encoder.text("pillar");
    encoder.value(pillar);
    encoder.text("nonce");
    encoder.text(nonce.as_str());
    let mut signed = Map::with_capacity(2);
    signed.push("sig", Value::Bytes(signer.sign(sig_algo, &data)?.into()));
    signed.push("data", Value::Bytes(data.into()));
    let sealed = seal_map(&Crypticle::new(&once), &signed);
    let mut out = Vec::with_capacity(sealed.len() + key.len() + 32);
    let mut encoder = Encoder::salt(&mut out);
    encoder.map(2);
    encoder.text("key");
    encoder.raw(&key);
    encoder.text("pillar");
    encoder.raw(&sealed);
    Ok(out.into())
}

/// A clear, signed answer: what `_auth` gets. `load` must be a non-empty map, or the minion takes its bytes for text.
pub fn signed_reply(signer: &PrivateKey, sig_algo: SigAlgo, load: &Map) -> Result<Bytes, crypto::Error> {
    let mut bytes = Vec::with_capacity(msgpack::map_bound(load));
    msgpack::encode_map(load, &mut bytes);
    let signature = signer.sign(sig_algo, &bytes)?;
    let mut out = Vec::with_capacity(bytes.len() + signature.len() + 32);
    let mut encoder = Encoder::salt(&mut out);
    encoder.map(3);
    encoder.text("enc");
    encoder.text("clear");
    encoder.text("load");
    encoder.raw(&bytes);
    encoder.text("sig");
    encoder.raw(&signature);
    Ok(out.into())
}

/// The answer to an `_auth` whose key is accepted.
///
/// `shared_signature` is `signer.x931_sign(shared.digest())`, the same for every minion until the shared key changes. A
/// token that cannot be decrypted is left out: the minion then refuses us, as it should.
pub fn accepted_reply(
    signer: &PrivateKey,
    auth: &Auth,
    minion: &PublicKey,
    publish_port: u16,
    shared: &KeyString,
    shared_signature: &[u8],
    session: &KeyString,
) -> Result<Bytes, crypto::Error> {
    let encrypt = |secret: &[u8]| Ok(Value::Bytes(minion.encrypt(auth.enc_algo, secret)?.into()));
    let mut load = Map::with_capacity(8);
    load.push("enc", "pub");
    load.push("pub_key", signer.public().to_pem());
    load.push("publish_port", publish_port);
    if let Some(token) = auth.token.as_deref().and_then(|token| signer.decrypt(auth.enc_algo, token)) {
        // A stranger may send any length it likes; ours must still fit its own key.
        if let Ok(token) = encrypt(&token) {
            load.push("token", token);
        }
    }
    load.push("aes", encrypt(shared.as_str().as_bytes())?);
    load.push("session", encrypt(session.as_str().as_bytes())?);
    load.push("sig", shared_signature);
    load.push("nonce", auth.nonce);
    signed_reply(signer, auth.sig_algo, &load)
}

/// The answer to an `_auth` whose key is not accepted.
pub fn verdict_reply(
    signer: &PrivateKey,
    sig_algo: SigAlgo,
    nonce: &Nonce,
    verdict: Verdict,
) -> Result<Bytes, crypto::Error> {
    let mut load = Map::with_capacity(2);
    match verdict {
        Verdict::Pending => load.push("ret", true),
        Verdict::Rejected => load.push("ret", false),
        Verdict::Full => load.push("ret", "full"),
    }
    load.push("nonce", *nonce);
    signed_reply(signer, sig_algo, &load)
}

/// An unsealed, unsigned value: the answer to clear commands other than `_auth`.
pub fn plain_reply(value: &Value) -> Bytes {
    msgpack::encode(value).into()
}

/// The one answer to everything that cannot be read or authenticated. It sends the minion back to `_auth`, so it is not for
/// overload.
pub fn bad_load() -> Bytes {
    Bytes::from_static(b"\xa8bad load")
}

/// The answer to an `_auth` with an unknown `enc_algo`.
pub fn bad_enc_algo() -> Bytes {
    Bytes::from_static(b"\x82\xa3enc\xa5clear\xa4load\x81\xa3ret\xacbad enc algo")
}

/// The answer to an `_auth` with an unknown `sig_algo`.
pub fn bad_sig_algo() -> Bytes {
    Bytes::from_static(b"\x82\xa3enc\xa5clear\xa4load\x81\xa3ret\xacbad sig algo")
}

#[cfg(test)]
mod tests {
    use super::super::VERSION;
    use super::*;

    fn envelope(fields: &[(&str, Value)]) -> Bytes {
        msgpack::encode(&Value::map(fields.iter().cloned())).into()
    }

    fn aes(changed: &str, value: Option<Value>) -> Bytes {
        let mut fields = vec![
            ("enc", "aes".into()),
            ("load", Value::Bytes(vec![0xff; 64].into())),
            ("version", 3.into()),
            ("id", "web1".into()),
            ("enc_algo", "OAEP-SHA1".into()),
            ("sig_algo", "PKCS1v15-SHA1".into()),
        ];
        fields.retain(|(name, _)| *name != changed);
        fields.extend(value.map(|value| (changed, value)));
        envelope(&fields)
    }

    #[test]
    fn a_sealed_request_is_taken_apart_without_a_copy() {
        let raw = aes("", None);
        let Request::Sealed(sealed) = parse(raw.clone(), VERSION).unwrap() else { panic!("not sealed") };
        assert_eq!((sealed.version, sealed.id.as_ref().map(MinionId::as_str)), (3, Some("web1")));
        assert!(raw.as_ptr_range().contains(&sealed.load.as_ptr()));
    }

    #[test]
    fn refusals_say_why() {
        for (field, value, refused) in [
            ("enc", None, Refused::UnknownEnc),
            ("enc", Some("pub".into()), Refused::UnknownEnc),
            ("load", None, Refused::BadLoad),
            ("load", Some(1.into()), Refused::BadLoad),
            ("version", None, Refused::OldVersion { got: 0, minimum: 3 }),
            ("version", Some("3".into()), Refused::OldVersion { got: 0, minimum: 3 }),
            ("version", Some((-3).into()), Refused::OldVersion { got: 0, minimum: 3 }),
            ("version", Some(2.into()), Refused::OldVersion { got: 2, minimum: 3 }),
            ("id", None, Refused::BadId),
            ("id", Some("../x".into()), Refused::BadId),
            ("id", Some(5.into()), Refused::BadId),
            ("enc_algo", Some("x".into()), Refused::UnknownEncAlgo),
            ("sig_algo", Some(1.into()), Refused::UnknownSigAlgo),
        ] {
            assert_eq!(parse(aes(field, value), VERSION).unwrap_err(), refused);
        }
        assert_eq!(parse(Bytes::from_static(b"\x90"), VERSION).unwrap_err(), Refused::NotAMap);
        let cut = Refused::Malformed(msgpack::Error::Truncated);
        assert_eq!(parse(Bytes::from_static(b"\x81"), VERSION).unwrap_err(), cut);
    }

    #[test]
    fn version_2_has_no_id_even_if_it_claims_one() {
        let raw = aes("version", Some(2.into()));
        let Request::Sealed(sealed) = parse(raw, 2).unwrap() else { panic!("not sealed") };
        assert_eq!((sealed.version, sealed.id), (2, None));
    }

    #[test]
    fn only_auth_and_ping_are_known_in_clear() {
        let clear = |cmd: &str| {
            let load = Value::map([("cmd", cmd)]);
            parse(envelope(&[("enc", "clear".into()), ("load", load), ("version", 3.into())]), VERSION).unwrap()
        };
        assert!(matches!(clear("_auth"), Request::Auth { version: 3, .. }));
        assert!(matches!(clear("ping"), Request::Ping(_)));
        for admin in ["publish", "runner", "wheel", "mk_token", "get_token", "__init__", ""] {
            assert!(matches!(clear(admin), Request::UnknownClear), "{admin}");
        }
    }

    #[test]
    fn before_authentication_long_requests_are_refused() {
        let load = Value::map([("cmd", "x".repeat(70_000))]);
        let raw = envelope(&[("enc", "clear".into()), ("load", load), ("version", 3.into())]);
        assert_eq!(parse(raw, VERSION).unwrap_err(), Refused::ClearTooLong);
        assert!(parse(aes("load", Some(Value::Bytes(vec![0xff; 70_000].into()))), VERSION).is_ok());
    }

    #[test]
    fn fixed_answers_are_msgpack() {
        let read = |bytes| msgpack::decode(bytes, &Decode::before_auth()).unwrap();
        assert_eq!(read(bad_load()).as_str(), Some("bad load"));
        assert_eq!(read(bad_enc_algo()).get("load").unwrap().get("ret").unwrap().as_str(), Some("bad enc algo"));
        assert_eq!(read(bad_sig_algo()).get("load").unwrap().get("ret").unwrap().as_str(), Some("bad sig algo"));
    }
}
