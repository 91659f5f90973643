//! Hostile bytes at every border but ZMTP's: nothing may panic, hang, or pass as authentic.
//!
//! Under `cargo test` each target is a short random run; under a fuzzing engine (`cargo bolero test <target>`) it goes on
//! for ever. An input is either taken as it is or as a list of changes to a genuine message, so that the inner layers are
//! reached too.
#![expect(clippy::unwrap_used, reason = "a test that fails, fails loudly")]

use bytes::Bytes;
use saltern_core::value::Value;
use saltern_wire::crypto::{Crypticle, EncAlgo, KeyString, PrivateKey, PublicKey, SigAlgo};
use saltern_wire::envelope::{self, AuthExpected, AuthReply, Request, Signatures, Subscription};
use saltern_wire::limits::Decode;
use saltern_wire::load::{Auth, Channel, MinionEvent, Nonce, Publish, Return};
use saltern_wire::msgpack;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::time::Duration;

const LIMITS: Decode = Decode::after_auth();
const KEY: &[u8] = b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc=";
const MINION_PEM: &str = include_str!("vectors/test-only-minion.pem");
const MINION_PUB: &str = include_str!("vectors/test-only-minion.pub.pem");
const MASTER_PEM: &str = include_str!("vectors/test-only-master.pem");
const WIRE: &str = include_str!("vectors/wire-3008.json");

/// Runs a target for a second at most, or for as long as an engine likes.
macro_rules! fuzz {
    ($test:expr) => {
        bolero::check!().with_test_time(Duration::from_secs(1)).with_max_len(2048).for_each(guarded($test))
    };
}

/// Keys and ciphers hold nothing that a panic could leave half done.
fn guarded(test: impl Fn(&[u8])) -> impl Fn(&[u8]) + UnwindSafe + RefUnwindSafe {
    let test = AssertUnwindSafe(test);
    move |input| {
        let test = &test;
        test.0(input);
    }
}

/// `input` itself, or `genuine` with bytes replaced, removed or doubled where `input` says.
fn hostile(input: &[u8], genuine: &[u8]) -> Bytes {
    let Some((mode, changes)) = input.split_first() else { return Bytes::new() };
    if mode % 4 == 0 {
        return Bytes::copy_from_slice(changes);
    }
    let mut bytes = genuine.to_vec();
    for change in changes.chunks_exact(4).take(usize::from(mode / 4) % 8 + 1) {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % bytes.len().max(1);
        match change[2] % 8 {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.insert(at.min(bytes.len()), change[3]),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = change[3];
                }
            }
        }
    }
    bytes.into()
}

fn captured(exchange: &str, part: &str) -> Bytes {
    let wire: serde_json::Value = serde_json::from_str(WIRE).unwrap();
    let hex = wire[exchange][part].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn captured_text(exchange: &str, part: &str) -> String {
    let wire: serde_json::Value = serde_json::from_str(WIRE).unwrap();
    wire[exchange][part].as_str().unwrap().to_owned()
}

#[test]
fn msgpack_decode() {
    let genuine = captured("auth_with_token", "request");
    fuzz!(|input| {
        for limits in [Decode::before_auth(), LIMITS] {
            if let Ok(value) = msgpack::decode(hostile(input, &genuine), &limits) {
                let again = msgpack::encode(&value);
                let value = msgpack::decode(again.clone().into(), &LIMITS).unwrap();
                assert_eq!(msgpack::encode(&value), again, "the form written is stable");
            }
        }
    });
}

#[test]
fn request_envelope() {
    let genuine = captured("return_test_ping", "request");
    let session = KeyString::parse(captured_text("auth_first", "session_key_string").as_bytes()).unwrap();
    let session = Crypticle::new(&session);
    let Request::Sealed(original) = envelope::parse(genuine.clone(), 3).unwrap() else { panic!("not sealed") };
    fuzz!(|input| {
        for minimum in [0, 3] {
            if let Ok(Request::Sealed(sealed)) = envelope::parse(hostile(input, &genuine), minimum) {
                assert_eq!(sealed.id.is_some(), sealed.version >= 3);
                let opened = envelope::open_request(&session, &sealed.load, &LIMITS);
                assert!(opened.is_err() || sealed.load == original.load);
            }
        }
    });
}

#[test]
fn auth_load() {
    let genuine = captured("auth_with_token", "request");
    fuzz!(|input| {
        if let Ok(Request::Auth { load, .. }) = envelope::parse(hostile(input, &genuine), 0)
            && let Ok(auth) = Auth::parse(&load)
        {
            let _ = PublicKey::from_pem(&auth.public_pem);
        }
    });
}

#[test]
fn opened_loads() {
    let crypticle = Crypticle::new(&KeyString::parse(KEY).unwrap());
    let genuine = captured("return_test_ping", "request_plaintext");
    fuzz!(|input| {
        let sealed = Bytes::from(crypticle.seal(&[&hostile(input, &genuine)]));
        if let Ok(mut load) = envelope::open_request(&crypticle, &sealed, &LIMITS) {
            let _ = Channel::take(&mut load);
            let _ = (Return::parse(load.clone()), MinionEvent::parse(load.clone()), Publish::parse(load));
        }
    });
}

#[test]
fn public_key_pem() {
    let other = PrivateKey::from_pem(MASTER_PEM).unwrap().token().unwrap();
    fuzz!(|input| {
        let text = hostile(input, MINION_PUB.as_bytes());
        if let Ok(key) = PublicKey::from_pem(&String::from_utf8_lossy(&text)) {
            assert!((2048..=8192).contains(&key.bits()));
            assert_eq!(PublicKey::from_pem(&key.to_pem()).unwrap(), key);
            assert!(!key.is_token(&other));
            assert!(!key.verify(SigAlgo::default(), b"", &other));
            key.encrypt(EncAlgo::default(), &[7; 76]).unwrap();
        }
    });
}

#[test]
fn private_key_pem() {
    fuzz!(|input| {
        if let Ok(key) = PrivateKey::from_pem(&String::from_utf8_lossy(&hostile(input, MINION_PEM.as_bytes()))) {
            assert!(key.token().is_err() || key.public().is_token(&key.token().unwrap()));
        }
    });
}

#[test]
fn crypticle_open() {
    let crypticle = Crypticle::new(&KeyString::parse(KEY).unwrap());
    let genuine = crypticle.seal(&[b"pickle::", &[0xc0; 100]]);
    fuzz!(|input| {
        let sealed = hostile(input, &genuine);
        assert!(crypticle.open(&sealed).is_err() || sealed == genuine);
    });
}

#[test]
fn token_decrypt() {
    let key = PrivateKey::from_pem(MASTER_PEM).unwrap();
    let genuine = key.public().encrypt(EncAlgo::OaepSha1, KEY).unwrap();
    fuzz!(|input| {
        let token = hostile(input, &genuine);
        assert!(key.decrypt(EncAlgo::OaepSha1, &token).is_none() || token == genuine);
        assert!(key.decrypt(EncAlgo::OaepSha224, &token).is_none());
        let _ = key.public().x931_recover(&token);
    });
}

#[test]
fn auth_reply() {
    let (minion, server) = (PrivateKey::from_pem(MINION_PEM).unwrap(), PrivateKey::from_pem(MASTER_PEM).unwrap());
    let genuine = captured("auth_with_token", "reply");
    let token = KeyString::parse(captured_text("auth_with_token", "token_clear").as_bytes()).unwrap();
    let Request::Auth { load, .. } = envelope::parse(captured("auth_with_token", "request"), 3).unwrap() else {
        panic!("not auth")
    };
    let nonce = Auth::parse(&load).unwrap().nonce;
    let (enc_algo, sig_algo) = Default::default();
    let known = AuthExpected {
        key: &minion,
        nonce,
        enc_algo,
        sig_algo,
        token: Some(&token),
        server: Some(server.public()),
        fingerprint: None,
    };
    assert!(matches!(known.check(genuine.clone()), Ok(AuthReply::Accepted(_))));
    let signed = |reply: &Bytes| msgpack::decode(reply.clone(), &LIMITS).unwrap().get("load").unwrap().to_raw();
    fuzz!(|input| {
        let reply = hostile(input, &genuine);
        if known.check(reply.clone()).is_ok() {
            assert_eq!(signed(&reply), signed(&genuine), "only what the server signed is believed");
        }
        let _ = AuthExpected { server: None, token: None, ..known }.check(reply);
    });
}

#[test]
fn sealed_and_private_replies() {
    let (minion, server) = (PrivateKey::from_pem(MINION_PEM).unwrap(), PrivateKey::from_pem(MASTER_PEM).unwrap());
    let crypticle = Crypticle::new(&KeyString::parse(KEY).unwrap());
    let (pillar, nonce) = (captured("pillar_reply", "reply"), Nonce::generate());
    let plain = [b"pickle::", nonce.as_str().as_bytes(), b"\x81\xa1a\x92\x01\xa1b"].concat();
    let (enc, sig) = Default::default();
    fuzz!(|input| {
        let sealed = Value::Bytes(crypticle.seal(&[&hostile(input, &plain)]).into());
        let _ = envelope::open_reply(&crypticle, &nonce, msgpack::encode(&sealed).into(), &LIMITS);
        assert!(envelope::open_reply(&crypticle, &nonce, hostile(input, &plain), &LIMITS).is_err());
        let reply = hostile(input, &pillar);
        let opened = envelope::open_private_reply(&minion, server.public(), enc, sig, &nonce, reply, &LIMITS);
        assert!(opened.is_err(), "the nonce is another one");
    });
}

#[test]
fn publication() {
    let server = PrivateKey::from_pem(MASTER_PEM).unwrap();
    let shared = KeyString::parse(captured_text("auth_first", "aes_key_string").as_bytes()).unwrap();
    let shared = Crypticle::new(&shared);
    let frame = captured("publish_test_ping", "frame");
    let plain = captured("publish_test_ping", "load_plaintext");
    let with = |signatures| Subscription { shared: &shared, server: server.public(), signatures, last_serial: 0 };
    let sealed = |frame: &Bytes| msgpack::decode(frame.clone(), &LIMITS).unwrap().get("load").unwrap().to_raw();
    assert!(envelope::open_publication(frame.clone(), &with(Signatures::Required), &LIMITS).is_ok());
    fuzz!(|input| {
        let changed = hostile(input, &frame);
        if envelope::open_publication(changed.clone(), &with(Signatures::Required), &LIMITS).is_ok() {
            assert_eq!(sealed(&changed), sealed(&frame), "only what the server signed is believed");
        }
        let load = Value::Bytes(shared.seal(&[&hostile(input, &plain)]).into());
        let unsigned = msgpack::encode(&Value::map([("enc", "aes".into()), ("load", load)]));
        if let Ok(opened) = envelope::open_publication(unsigned.into(), &with(Signatures::IfPresent), &LIMITS) {
            let _ = Publish::parse(opened.load);
        }
    });
}
