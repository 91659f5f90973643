//! The minion's end of 4506: sealed requests and what comes back.

use super::{Error, SHARED_KEY_VERSION, VERSION, decode_map, raw, seal_map, unseal};
use crate::crypto::{self, Crypticle, EncAlgo, KeyString, PrivateKey, PublicKey, SigAlgo, same};
use crate::limits::Decode;
use crate::load::{self, Nonce};
use crate::msgpack::{self, Encoder};
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};

/// What a minion says about itself in every sealed request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// Its id, inside the seal and outside.
    pub id: &'a MinionId,
    /// To be repeated by the reply. A resent request has a new one.
    pub nonce: Nonce,
    /// Its clock.
    pub now: Timestamp,
    /// [`PrivateKey::token`].
    pub token: &'a [u8],
    /// How the key of a private reply shall be encrypted.
    pub enc_algo: EncAlgo,
    /// How a private reply shall be signed.
    pub sig_algo: SigAlgo,
    /// The key to sign the load itself with (`minion_sign_messages`). Off by default: a stock master loses such returns.
    pub sign_with: Option<&'a PrivateKey>,
}

/// A request sealed with the session key. What `load` says about `nonce`, `ts`, `tok` and `id` is overwritten.
pub fn request(session: &Crypticle, head: &RequestHead<'_>, mut load: Map) -> Result<Bytes, crypto::Error> {
    load.insert("nonce", head.nonce);
    load.insert("ts", head.now.secs());
    load.insert("tok", head.token);
    load.insert("id", head.id);
    if let Some(key) = head.sign_with {
        // A signature left from an earlier try must not be part of what is signed now.
        load.remove("sig");
        let signature = load::sign_message(key, head.sig_algo, &load)?;
        load.push("sig", signature);
    }
    let sealed = seal_map(session, &load);
    let mut out = Vec::with_capacity(sealed.len() + 128 + head.id.as_str().len());
    let mut encoder = Encoder::salt(&mut out);
    encoder.map(6);
    encoder.text("enc");
    encoder.text("aes");
    encoder.text("load");
    encoder.raw(&sealed);
    encoder.text("version");
    encoder.int(VERSION.into());
    encoder.text("id");
    encoder.text(head.id.as_str());
    encoder.text("enc_algo");
    encoder.text(head.enc_algo.as_str());
    encoder.text("sig_algo");
    encoder.text(head.sig_algo.as_str());
    Ok(out.into())
}

/// A request as 3006.0–3006.11 and 3007.0–3007.3 make it: sealed with the shared key, without an id outside.
pub fn request_v2(shared: &Crypticle, nonce: &Nonce, mut load: Map) -> Bytes {
    load.insert("nonce", *nonce);
    let sealed = seal_map(shared, &load);
    let mut out = Vec::with_capacity(sealed.len() + 32);
    let mut encoder = Encoder::salt(&mut out);
    encoder.map(3);
    encoder.text("enc");
    encoder.text("aes");
    encoder.text("load");
    encoder.raw(&sealed);
    encoder.text("version");
    encoder.int(SHARED_KEY_VERSION.into());
    out.into()
}

/// Opens the answer to a sealed request, but for `_pillar`.
pub fn open_reply(crypticle: &Crypticle, nonce: &Nonce, reply: Bytes, limits: &Decode) -> Result<Value, Error> {
    let sealed = msgpack::decode(reply, limits)?.to_raw().filter(|raw| !raw.is_empty()).ok_or(Error::NotSealed)?;
    if sealed[..] == b"bad load"[..] {
        return Err(Error::BadLoad);
    }
    let plain = unseal(crypticle, &sealed)?;
    match plain.split_at_checked(Nonce::LEN) {
        Some((head, _)) if same(head, nonce.as_str().as_bytes()) => {
            Ok(msgpack::decode(plain.slice(Nonce::LEN..), limits)?)
        }
        _ => Err(Error::WrongNonce),
    }
}

/// Opens the answer to `_pillar`.
///
/// After [`Error::WrongSignature`] a minion authenticates and tries the same reply once more, after [`Error::BadLoad`] or
/// [`Error::Field`] of `key` it authenticates and resends.
pub fn open_private_reply(
    key: &PrivateKey,
    server: &PublicKey,
    enc_algo: EncAlgo,
    sig_algo: SigAlgo,
    nonce: &Nonce,
    reply: Bytes,
    limits: &Decode,
) -> Result<Value, Error> {
    let outer = match msgpack::decode(reply, limits)? {
        Value::Map(outer) => outer,
        Value::Text(text) if text == "bad load" => return Err(Error::BadLoad),
        _ => return Err(Error::NotAMap),
    };
    let outer_key = raw(&outer, "key")?;
    let once = key.decrypt(enc_algo, &outer_key).ok_or(Error::NotForUs("key"))?;
    let once = Crypticle::new(&KeyString::parse(&once)?);
    let signed = decode_map(unseal(&once, &raw(&outer, "pillar")?)?, limits)?;
    let data = raw(&signed, "data")?;
    if !server.verify(sig_algo, &data, &raw(&signed, "sig")?) {
        return Err(Error::WrongSignature);
    }
    let mut data = decode_map(data, limits)?;
    if !same(&raw(&data, "key")?, &outer_key) {
        return Err(Error::WrongInnerKey);
    }
    if data.get("nonce").and_then(Value::as_str) != Some(nonce.as_str()) {
        return Err(Error::WrongNonce);
    }
    data.remove("pillar").ok_or(Error::Field("pillar"))
}

#[cfg(test)]
mod tests {
    use super::super::{bad_load, open_request, parse, private_reply, seal_reply};
    use super::*;
    use crate::envelope::Request;

    const LIMITS: Decode = Decode::after_auth();

    fn minion() -> PrivateKey {
        PrivateKey::from_pem(include_str!("../../tests/vectors/test-only-minion.pem")).unwrap()
    }

    fn server() -> PrivateKey {
        PrivateKey::from_pem(include_str!("../../tests/vectors/test-only-master.pem")).unwrap()
    }

    fn crypticle() -> Crypticle {
        Crypticle::new(&KeyString::generate())
    }

    #[test]
    fn a_request_arrives_with_the_channel_fields_and_no_nonce_prefix() {
        let (key, session, id) = (minion(), crypticle(), MinionId::new("web1").unwrap());
        let token = key.token().unwrap();
        let head = RequestHead {
            id: &id,
            nonce: Nonce::generate(),
            now: Timestamp::from_secs(77),
            token: &token,
            enc_algo: EncAlgo::OaepSha224,
            sig_algo: SigAlgo::Pkcs1v15Sha224,
            sign_with: Some(&key),
        };
        let mut load = Map::new();
        load.push("id", "somebody-else");
        load.push("cmd", "_return");
        let Request::Sealed(sealed) = parse(request(&session, &head, load).unwrap(), VERSION).unwrap() else {
            panic!("not sealed")
        };
        assert_eq!(sealed.id.as_ref(), Some(&id));
        assert_eq!((sealed.enc_algo, sealed.sig_algo), (head.enc_algo, head.sig_algo));
        let mut load = open_request(&session, &sealed.load, &LIMITS).unwrap();
        assert_eq!(load::verify_message(key.public(), sealed.sig_algo, &load), Some(true));
        let channel = load::Channel::take(&mut load).unwrap();
        assert_eq!((channel.nonce, channel.ts, channel.id.as_deref()), (head.nonce, Some(77), Some("web1")));
        assert!(key.public().is_token(&channel.tok.unwrap()));
    }

    #[test]
    fn a_version_2_request_and_its_reply_use_the_shared_key() {
        let (shared, nonce) = (crypticle(), Nonce::generate());
        let mut load = Map::new();
        load.push("cmd", "_file_envs");
        let Request::Sealed(sealed) = parse(request_v2(&shared, &nonce, load), SHARED_KEY_VERSION).unwrap() else {
            panic!("not sealed")
        };
        assert_eq!((sealed.version, sealed.id), (2, None));
        let mut load = open_request(&shared, &sealed.load, &LIMITS).unwrap();
        let channel = load::Channel::take(&mut load).unwrap();
        assert_eq!((channel.id, channel.ts, channel.tok), (None, None, None));
        let reply = seal_reply(&shared, &channel.nonce, &Value::list(["base"]));
        assert_eq!(open_reply(&shared, &nonce, reply, &LIMITS).unwrap(), Value::list(["base"]));
    }

    #[test]
    fn a_reply_is_a_bare_string_of_any_length() {
        let (session, nonce) = (crypticle(), Nonce::generate());
        for len in [0, 10, 65_300, 65_536, 100_000] {
            let value = Value::from("x".repeat(len));
            let reply = seal_reply(&session, &nonce, &value);
            assert!(matches!(reply[0], 0xda | 0xdb));
            assert_eq!(open_reply(&session, &nonce, reply, &LIMITS).unwrap(), value);
        }
    }

    #[test]
    fn a_reply_to_another_request_is_refused() {
        let session = crypticle();
        let reply = seal_reply(&session, &Nonce::generate(), &Value::Nil);
        assert_eq!(open_reply(&session, &Nonce::generate(), reply, &LIMITS).unwrap_err(), Error::WrongNonce);
    }

    #[test]
    fn unsealed_replies_are_never_taken_for_results() {
        let (session, nonce) = (crypticle(), Nonce::generate());
        let open = |bytes: Bytes| open_reply(&session, &nonce, bytes, &LIMITS).unwrap_err();
        for unsealed in [&b"\xc0"[..], b"\xa0", b"\x80", b"\x90", b"\xc3", b"\x07"] {
            assert_eq!(open(unsealed.into()), Error::NotSealed, "{unsealed:x?}");
        }
        assert_eq!(open(bad_load()), Error::BadLoad);
        assert_eq!(open(Bytes::from_static(b"\xa5hello")), Error::Crypto(crypto::Error::NotAuthentic));
        assert_eq!(open(seal_reply(&crypticle(), &nonce, &Value::Nil)), Error::Crypto(crypto::Error::NotAuthentic));
    }

    #[test]
    fn a_plaintext_without_its_marker_is_refused() {
        let (session, nonce) = (crypticle(), Nonce::generate());
        let sealed = Value::Bytes(session.seal(&[nonce.as_str().as_bytes(), b"\xc0"]).into());
        let reply = msgpack::encode(&sealed).into();
        assert_eq!(open_reply(&session, &nonce, reply, &LIMITS).unwrap_err(), Error::NoMarker);
    }

    #[test]
    fn a_private_reply_passes_only_whole() {
        let (server, minion, nonce) = (server(), minion(), Nonce::generate());
        let pillar = Value::map([("who", "world")]);
        for (enc, sig) in [(EncAlgo::OaepSha1, SigAlgo::Pkcs1v15Sha1), (EncAlgo::OaepSha224, SigAlgo::Pkcs1v15Sha224)] {
            let reply = private_reply(&server, minion.public(), enc, sig, &nonce, &pillar).unwrap();
            let open = |key: &PrivateKey, signer: &PrivateKey, nonce: &Nonce, reply: Bytes| {
                open_private_reply(key, signer.public(), enc, sig, nonce, reply, &LIMITS)
            };
            assert_eq!(open(&minion, &server, &nonce, reply.clone()).unwrap(), pillar);
            let fails = |result: Result<Value, Error>| result.unwrap_err();
            assert_eq!(fails(open(&server, &server, &nonce, reply.clone())), Error::NotForUs("key"));
            assert_eq!(fails(open(&minion, &minion, &nonce, reply.clone())), Error::WrongSignature);
            assert_eq!(fails(open(&minion, &server, &Nonce::generate(), reply)), Error::WrongNonce);
            assert_eq!(fails(open(&minion, &server, &nonce, bad_load())), Error::BadLoad);
            assert_eq!(fails(open(&minion, &server, &nonce, Bytes::from_static(b"\x80"))), Error::Field("key"));
        }
    }

    #[test]
    fn a_pillar_moved_under_another_key_is_refused() {
        // Signed for one one-time key, then sealed again under another: the signature alone would pass.
        let (server, minion, nonce) = (server(), minion(), Nonce::generate());
        let encrypted = |key: &KeyString| minion.public().encrypt(EncAlgo::OaepSha1, key.as_str().as_bytes()).unwrap();
        let (signed_key, sealing_key) = (KeyString::generate(), KeyString::generate());
        let data = Value::map([
            ("key", encrypted(&signed_key).into()),
            ("pillar", Value::map([("a", 1)])),
            ("nonce", Value::from(nonce)),
        ]);
        let data = msgpack::encode(&data);
        let mut inner = Map::new();
        inner.push("sig", server.sign(SigAlgo::default(), &data).unwrap());
        inner.push("data", data);
        let sealed = seal_map(&Crypticle::new(&sealing_key), &inner);
        let reply = Value::map([("key", Value::from(encrypted(&sealing_key))), ("pillar", sealed.into())]);
        let reply = msgpack::encode(&reply).into();
        let opened = open_private_reply(
            &minion,
            server.public(),
            EncAlgo::default(),
            SigAlgo::default(),
            &nonce,
            reply,
            &LIMITS,
        );
        assert_eq!(opened.unwrap_err(), Error::WrongInnerKey);
    }
}
