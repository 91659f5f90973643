//! `_auth` from both ends: every check of the answer, each failing alone.

use super::{AuthExpected, AuthReply, AuthRequest};
use crate::crypto::{EncAlgo, Error as CryptoError, KeyString, PrivateKey, PublicKey, SigAlgo};
use crate::envelope::{
    Error, Request, VERSION, Verdict, accepted_reply, bad_enc_algo, bad_load, parse, signed_reply, verdict_reply,
};
use crate::limits::Decode;
use crate::load::{Auth, Nonce};
use crate::msgpack;
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};

const ENC: EncAlgo = EncAlgo::OaepSha1;
const SIG: SigAlgo = SigAlgo::Pkcs1v15Sha1;

struct Scene {
    server: PrivateKey,
    minion: PrivateKey,
    nonce: Nonce,
    token: KeyString,
    shared: KeyString,
    session: KeyString,
}

impl Scene {
    fn new() -> Self {
        Self {
            server: PrivateKey::from_pem(include_str!("../../tests/vectors/test-only-master.pem")).unwrap(),
            minion: PrivateKey::from_pem(include_str!("../../tests/vectors/test-only-minion.pem")).unwrap(),
            nonce: Nonce::generate(),
            token: KeyString::generate(),
            shared: KeyString::generate(),
            session: KeyString::generate(),
        }
    }

    /// What the server makes of a request with a token.
    fn auth(&self) -> Auth {
        let request = AuthRequest {
            id: &MinionId::new("web1").unwrap(),
            key: self.minion.public(),
            nonce: self.nonce,
            enc_algo: ENC,
            sig_algo: SIG,
            token: Some((self.server.public(), &self.token)),
            autosign_grains: None,
            version: VERSION,
        };
        match parse(request.encode().unwrap(), VERSION).unwrap() {
            Request::Auth { load, .. } => Auth::parse(&load).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn reply(&self) -> Bytes {
        let signature = self.server.x931_sign(self.shared.digest().as_bytes()).unwrap();
        let auth = self.auth();
        let minion = PublicKey::from_pem(&auth.public_pem).unwrap();
        accepted_reply(&self.server, &auth, &minion, 4505, &self.shared, &signature, &self.session).unwrap()
    }

    /// The positive reply with one field changed, signed again by the real server.
    fn changed(&self, field: &str, value: Option<Value>) -> Bytes {
        let outer = msgpack::decode(self.reply(), &Decode::before_auth()).unwrap();
        let load = outer.get("load").unwrap().to_raw().unwrap();
        let Value::Map(mut load) = msgpack::decode(load, &Decode::before_auth()).unwrap() else { panic!("not a map") };
        load.remove(field);
        if let Some(value) = value {
            load.push(field, value);
        }
        signed_reply(&self.server, SIG, &load).unwrap()
    }

    fn expected(&self) -> AuthExpected<'_> {
        AuthExpected {
            key: &self.minion,
            nonce: self.nonce,
            enc_algo: ENC,
            sig_algo: SIG,
            token: Some(&self.token),
            server: Some(self.server.public()),
            fingerprint: None,
        }
    }

    fn for_minion(&self, secret: &str) -> Option<Value> {
        Some(self.minion.public().encrypt(ENC, secret.as_bytes()).unwrap().into())
    }

    fn refuses(&self, reply: Bytes, error: Error) {
        assert_eq!(self.expected().check(reply).unwrap_err(), error);
    }
}

#[test]
fn an_accepted_minion_gets_both_keys_and_the_port() {
    let scene = Scene::new();
    for expected in [scene.expected(), AuthExpected { token: None, server: None, ..scene.expected() }] {
        let AuthReply::Accepted(accepted) = expected.check(scene.reply()).unwrap() else { panic!("not accepted") };
        assert_eq!((accepted.shared, accepted.session), (scene.shared.clone(), scene.session.clone()));
        assert_eq!((accepted.publish_port, &accepted.server), (4505, scene.server.public()));
    }
}

#[test]
fn a_changed_server_key_is_refused_first() {
    let scene = Scene::new();
    let other = PrivateKey::generate(2048).unwrap();
    // Nothing else in it is right either.
    let mut load = Map::new();
    load.push("pub_key", other.public().to_pem());
    let reply = signed_reply(&other, SIG, &load).unwrap();
    scene.refuses(reply, Error::ServerKeyChanged);
    scene.refuses(scene.changed("pub_key", Some("nonsense".into())), Error::Crypto(CryptoError::NotPem));
    scene.refuses(scene.changed("pub_sig", Some("x".into())), Error::UnexpectedPubSig);
}

#[test]
fn the_shared_key_must_be_encrypted_for_us_and_signed_by_the_server() {
    let scene = Scene::new();
    scene.refuses(scene.changed("aes", None), Error::Field("aes"));
    scene.refuses(scene.changed("aes", Some(vec![1; 256].into())), Error::NotForUs("aes"));
    scene.refuses(scene.changed("aes", scene.for_minion("short")), Error::Crypto(CryptoError::NotKeyString));
    scene.refuses(scene.changed("aes", scene.for_minion(KeyString::generate().as_str())), Error::SharedKeySignature);
    scene.refuses(scene.changed("sig", None), Error::Field("sig"));
    let forged = scene.minion.x931_sign(scene.shared.digest().as_bytes()).unwrap();
    scene.refuses(scene.changed("sig", Some(forged.into())), Error::SharedKeySignature);
}

#[test]
fn the_inner_signature_covers_the_text_of_the_key_and_not_its_bytes() {
    use base64::Engine;
    use sha2::Digest;
    let scene = Scene::new();
    let raw = base64::engine::general_purpose::STANDARD.decode(scene.shared.as_str()).unwrap();
    let digest = crate::crypto::hex(&sha2::Sha256::digest(&raw));
    let wrong = scene.server.x931_sign(digest.as_bytes()).unwrap();
    scene.refuses(scene.changed("sig", Some(wrong.into())), Error::SharedKeySignature);
}

#[test]
fn the_token_must_come_back() {
    let scene = Scene::new();
    scene.refuses(scene.changed("token", None), Error::WrongToken);
    scene.refuses(scene.changed("token", scene.for_minion(KeyString::generate().as_str())), Error::WrongToken);
}

#[test]
fn a_token_that_is_not_for_us_is_left_out() {
    let scene = Scene::new();
    let auth = Auth { token: Some(vec![1; 256].into()), ..scene.auth() };
    let signature = scene.server.x931_sign(scene.shared.digest().as_bytes()).unwrap();
    let reply =
        accepted_reply(&scene.server, &auth, scene.minion.public(), 4505, &scene.shared, &signature, &scene.session);
    scene.refuses(reply.unwrap(), Error::WrongToken);
}

#[test]
fn the_session_key_must_be_there() {
    let scene = Scene::new();
    scene.refuses(scene.changed("session", None), Error::Field("session"));
    scene.refuses(scene.changed("session", Some(vec![1; 256].into())), Error::NotForUs("session"));
    scene.refuses(scene.changed("publish_port", Some(70_000.into())), Error::Field("publish_port"));
}

#[test]
fn the_outer_signature_must_be_the_servers() {
    let scene = Scene::new();
    let Value::Map(mut outer) = msgpack::decode(scene.reply(), &Decode::before_auth()).unwrap() else {
        panic!("not a map")
    };
    outer.insert("sig", vec![1; 256]);
    scene.refuses(msgpack::encode(&Value::Map(outer.clone())).into(), Error::WrongSignature);
    outer.remove("sig");
    scene.refuses(msgpack::encode(&Value::Map(outer)).into(), Error::NotSigned);
}

#[test]
fn an_answer_to_another_request_is_refused() {
    let scene = Scene::new();
    scene.refuses(scene.changed("nonce", Some(Nonce::generate().into())), Error::WrongNonce);
    scene.refuses(scene.changed("nonce", None), Error::WrongNonce);
}

#[test]
fn verdicts_are_told_apart_and_say_whether_they_are_proved() {
    let scene = Scene::new();
    for wanted in [Verdict::Pending, Verdict::Rejected, Verdict::Full] {
        let reply = verdict_reply(&scene.server, SIG, &scene.nonce, wanted).unwrap();
        for (server, proved) in [(Some(scene.server.public()), true), (None, false)] {
            let expected = AuthExpected { server, ..scene.expected() };
            let AuthReply::Verdict { verdict, is_verified } = expected.check(reply.clone()).unwrap() else {
                panic!("accepted")
            };
            assert_eq!((verdict, is_verified), (wanted, proved));
        }
        let forged = verdict_reply(&scene.minion, SIG, &scene.nonce, wanted).unwrap();
        scene.refuses(forged, Error::WrongSignature);
        let replayed = verdict_reply(&scene.server, SIG, &Nonce::generate(), wanted).unwrap();
        scene.refuses(replayed, Error::WrongNonce);
    }
}

#[test]
fn a_configured_fingerprint_must_match() {
    let scene = Scene::new();
    let right = scene.server.public().fingerprint();
    let wrong = scene.minion.public().fingerprint();
    for right in [right.to_uppercase(), right] {
        assert!(
            AuthExpected { server: None, fingerprint: Some(&right), ..scene.expected() }.check(scene.reply()).is_ok()
        );
    }
    let expected = AuthExpected { server: None, fingerprint: Some(&wrong), ..scene.expected() };
    assert_eq!(expected.check(scene.reply()).unwrap_err(), Error::WrongFingerprint);
}

#[test]
fn unsigned_answers_are_never_believed() {
    let scene = Scene::new();
    scene.refuses(bad_load(), Error::BadLoad);
    scene.refuses(bad_enc_algo(), Error::AlgorithmRefused);
    scene.refuses(Bytes::from_static(b"\x82\xa3enc\xa5clear\xa4load\x81\xa3ret\xc2"), Error::NotSigned);
    scene.refuses(Bytes::from_static(b"\x81\xa3enc\xa5clear"), Error::Field("load"));
    scene.refuses(Bytes::from_static(b"\xc0"), Error::NotAMap);
}

#[test]
fn autosign_grains_and_older_versions_arrive() {
    let scene = Scene::new();
    let grains = Value::map([("role", "web")]);
    let request = AuthRequest {
        id: &MinionId::new("web1").unwrap(),
        key: scene.minion.public(),
        nonce: scene.nonce,
        enc_algo: ENC,
        sig_algo: SIG,
        token: None,
        autosign_grains: grains.as_map(),
        version: 2,
    };
    let Request::Auth { version, load } = parse(request.encode().unwrap(), 2).unwrap() else { panic!("not auth") };
    assert_eq!(version, 2);
    assert_eq!(Auth::parse(&load).unwrap().autosign_grains.unwrap().get("role").unwrap().as_str(), Some("web"));
}
