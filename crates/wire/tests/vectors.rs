//! Recorded bytes of stock Salt: `vectors/` holds what unmodified programs wrote, and how they read it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that fails, fails loudly")]

use bytes::Bytes;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::{Crypticle, EncAlgo, KeyString, PrivateKey, PublicKey, SigAlgo};
use saltern_wire::envelope::{
    self, Accepted, AuthExpected, AuthReply, AuthRequest, Request, Sealed, Signatures, Subscription, VERSION,
};
use saltern_wire::limits::Decode;
use saltern_wire::load::{
    Auth, Channel, Fun, MinionEvent, Nonce, Publish, Return, ReturnJid, sign_message, verify_message,
};
use saltern_wire::msgpack;
use serde_json::Value as Json;

const LIMITS: Decode = Decode::after_auth();

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

fn crypto() -> Json {
    json(include_str!("vectors/crypto.json"))
}

fn wire() -> Json {
    json(include_str!("vectors/wire-3008.json"))
}

fn master() -> PrivateKey {
    PrivateKey::from_pem(include_str!("vectors/test-only-master.pem")).unwrap()
}

fn minion() -> PrivateKey {
    PrivateKey::from_pem(include_str!("vectors/test-only-minion.pem")).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn bytes(json: &Json) -> Bytes {
    hex(json.as_str().unwrap()).into()
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap()
}

fn key(json: &Json) -> KeyString {
    KeyString::parse(text(json).as_bytes()).unwrap()
}

fn read(bytes: Bytes) -> Value {
    msgpack::decode(bytes, &LIMITS).unwrap()
}

/// The vectors' JSON as the value it stands for: `hex:` marks bytes.
fn value(json: &Json) -> Value {
    match json {
        Json::String(text) => text.strip_prefix("hex:").map_or_else(|| text.into(), |digits| hex(digits).into()),
        Json::Array(items) => Value::list(items.iter().map(value)),
        Json::Object(entries) => Value::map(entries.iter().map(|(name, item)| (name, value(item)))),
        other => serde_json::from_value(other.clone()).unwrap(),
    }
}

#[test]
fn msgpack_is_read_in_both_dialects_and_written_in_salts() {
    let expected = |name: &str| match name {
        "short str" => "abc".into(),
        "str 32" => "x".repeat(32).into(),
        "str 300" => "y".repeat(300).into(),
        "bytes" => Value::from(&b"\xff\x00\x01"[..]),
        "none" => Value::Nil,
        "bool" => true.into(),
        "ints" => Value::list([0, 127, 128, 255, 256, 65_535, 65_536, 1i64 << 32, -1, -32, -33, -129]),
        "float" => 1.5.into(),
        "huge int" => "1180591620717411303424".into(),
        "datetime" => Value::Ext(78, Bytes::from_static(b"20200102T03:04:05.678900")),
        "date" => Value::Ext(78, Bytes::from_static(b"20200102T00:00:00.000000")),
        "set" => Value::list([1]),
        "map int key" => Value::map([(1, "a")]),
        "unicode" => "hé".into(),
        other => panic!("unknown vector {other}"),
    };
    for vector in json(include_str!("vectors/msgpack.json"))["vectors"].as_array().unwrap() {
        let name = text(&vector["name"]);
        let wanted = expected(name);
        assert_eq!(read(bytes(&vector["salt_wire"])), wanted, "{name}");
        assert_eq!(read(bytes(&vector["salt_ipc_bin"])), wanted, "{name}");
        assert_eq!(msgpack::encode(&wanted), bytes(&vector["salt_wire"]), "{name}");
        assert_eq!(msgpack::encode_modern(&wanted), bytes(&vector["salt_ipc_bin"]), "{name}");
    }
}

#[test]
fn crypticles_open() {
    let vectors = &crypto()["crypticle"];
    let crypticle = Crypticle::new(&key(&vectors["key_string"]));
    for form in ["without_nonce", "with_nonce"] {
        let plain = crypticle.open(&bytes(&vectors[format!("ciphertext_{form}")])).unwrap();
        assert_eq!(plain, bytes(&vectors[format!("plaintext_{form}")]));
    }
    assert_eq!(read(bytes(&vectors["msgpack"])), value(&vectors["object"]));
    assert_eq!(msgpack::encode(&value(&vectors["object"])), bytes(&vectors["msgpack"]));
}

#[test]
fn x931_is_not_pkcs1_and_always_the_same() {
    let token = &crypto()["x931"]["token"];
    assert_eq!(minion().token().unwrap(), bytes(&token["signature"]));
    assert_eq!(minion().public().x931_recover(&bytes(&token["signature"])).unwrap(), b"salt");
    assert!(!minion().public().verify(SigAlgo::Pkcs1v15Sha1, b"salt", &bytes(&token["signature"])));
}

#[test]
fn the_signature_of_the_shared_key_covers_its_text() {
    let vector = &crypto()["x931"]["aes_signature"];
    let shared = key(&vector["aes_key_string"]);
    assert_eq!(shared.digest(), text(&vector["message_ascii"]));
    assert_eq!(master().x931_sign(shared.digest().as_bytes()).unwrap(), bytes(&vector["signature"]));
}

#[test]
fn pkcs1_signatures_are_made_and_verified() {
    let vector = &crypto()["pkcs1v15"];
    let message = text(&vector["message_ascii"]).as_bytes();
    for algo in [SigAlgo::Pkcs1v15Sha1, SigAlgo::Pkcs1v15Sha224] {
        let signature = bytes(&vector[algo.as_str()]);
        assert_eq!(master().sign(algo, message).unwrap(), signature);
        assert!(master().public().verify(algo, message, &signature));
    }
}

#[test]
fn oaep_decrypts() {
    let vector = &crypto()["oaep"];
    for algo in [EncAlgo::OaepSha1, EncAlgo::OaepSha224] {
        let plain = minion().decrypt(algo, &bytes(&vector[algo.as_str()])).unwrap();
        assert_eq!(&plain[..], text(&vector["plaintext_ascii"]).as_bytes());
    }
    assert!(minion().decrypt(EncAlgo::OaepSha224, &bytes(&vector["OAEP-SHA1"])).is_none());
}

#[test]
fn signed_messages_verify() {
    let vector = &crypto()["minion_sign_messages"];
    let entries = vector["load_in_order"].as_array().unwrap();
    let mut load: Map = entries.iter().map(|entry| (value(&entry[0]), value(&entry[1]))).collect();
    assert_eq!(msgpack::encode_modern(&Value::Map(load.clone())), bytes(&vector["serialized"]));
    assert_eq!(sign_message(&minion(), SigAlgo::default(), &load).unwrap(), bytes(&vector["signature"]));
    load.push("sig", bytes(&vector["signature"]));
    assert_eq!(verify_message(minion().public(), SigAlgo::default(), &load), Some(true));
}

#[test]
fn the_fingerprint_is_salts() {
    let public = PublicKey::from_pem(include_str!("vectors/test-only-master.pub.pem")).unwrap();
    assert_eq!(public.fingerprint(), text(&crypto()["master_fingerprint"]["value"]));
}

fn auth(vector: &Json) -> Auth {
    match envelope::parse(bytes(&vector["request"]), VERSION).unwrap() {
        Request::Auth { version: 3, load } => Auth::parse(&load).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn accepted(vector: &Json, token: Option<&KeyString>, server: Option<&PublicKey>) -> Accepted {
    let auth = auth(vector);
    let expected = AuthExpected {
        key: &minion(),
        nonce: auth.nonce,
        enc_algo: auth.enc_algo,
        sig_algo: auth.sig_algo,
        token,
        server,
        fingerprint: Some(&master().public().fingerprint()),
    };
    match expected.check(bytes(&vector["reply"])).unwrap() {
        AuthReply::Accepted(accepted) => *accepted,
        AuthReply::Verdict { verdict, .. } => panic!("{verdict:?}"),
    }
}

#[test]
fn the_first_auth_is_read_and_its_answer_believed() {
    let vector = &wire()["auth_first"];
    let auth = auth(vector);
    assert_eq!((&*auth.id, auth.token.is_none()), ("vector-minion", true));
    assert_eq!(auth.public_pem, minion().public().to_pem());
    let accepted = accepted(vector, None, None);
    assert_eq!(accepted.shared, key(&vector["aes_key_string"]));
    assert_eq!(accepted.session, key(&vector["session_key_string"]));
    assert_eq!((accepted.publish_port, &accepted.server), (4505, master().public()));
}

#[test]
fn a_later_auth_proves_the_server_by_its_token() {
    let vector = &wire()["auth_with_token"];
    let token = key(&vector["token_clear"]);
    let sent = auth(vector).token.unwrap();
    assert_eq!(&master().decrypt(EncAlgo::OaepSha1, &sent).unwrap()[..], token.as_str().as_bytes());
    let accepted = accepted(vector, Some(&token), Some(master().public()));
    assert_eq!(accepted.shared, key(&vector["aes_key_string"]));
    // The session key is stable over repeated authentications.
    assert_eq!(accepted.session, key(&wire()["auth_first"]["session_key_string"]));
}

#[test]
fn our_auth_request_is_byte_for_byte_a_stock_minions() {
    let (vector, key) = (&wire()["auth_first"], minion());
    let request = AuthRequest {
        id: &MinionId::new("vector-minion").unwrap(),
        key: key.public(),
        nonce: auth(vector).nonce,
        enc_algo: EncAlgo::default(),
        sig_algo: SigAlgo::default(),
        token: None,
        autosign_grains: None,
        version: VERSION,
    };
    assert_eq!(request.encode().unwrap(), bytes(&vector["request"]));
}

fn session() -> Crypticle {
    Crypticle::new(&key(&wire()["auth_first"]["session_key_string"]))
}

/// Opens a captured request and checks all that a server checks.
fn opened(vector: &Json) -> (Sealed, Map, Channel) {
    let Request::Sealed(sealed) = envelope::parse(bytes(&vector["request"]), VERSION).unwrap() else {
        panic!("not sealed")
    };
    let mut load = envelope::open_request(&session(), &sealed.load, &LIMITS).unwrap();
    assert_eq!(Value::Map(load.clone()), value(&vector["request_load_decoded"]));
    let channel = Channel::take(&mut load).unwrap();
    assert_eq!(sealed.id.as_ref().map(MinionId::as_str), channel.id.as_deref());
    assert!(minion().public().is_token(channel.tok.as_ref().unwrap()));
    (sealed, load, channel)
}

#[test]
fn all_session_traffic_opens_from_both_ends() {
    let wire = wire();
    for name in ["minion_event_start", "return_test_ping", "file_hash", "serve_file_first", "serve_file_end"] {
        let (sealed, _, channel) = opened(&wire[name]);
        assert_eq!((sealed.enc_algo, sealed.sig_algo), Default::default(), "{name}");
        let reply = envelope::open_reply(&session(), &channel.nonce, bytes(&wire[name]["reply"]), &LIMITS).unwrap();
        assert_eq!(reply, value(&wire[name]["reply_decoded"]), "{name}");
        let ours = envelope::seal_reply(&session(), &channel.nonce, &reply);
        assert_eq!(ours.len(), bytes(&wire[name]["reply"]).len(), "{name}");
        assert_eq!(envelope::open_reply(&session(), &channel.nonce, ours, &LIMITS).unwrap(), reply, "{name}");
    }
}

#[test]
fn request_plaintext_has_no_nonce_prefix_and_reply_plaintext_has() {
    let vector = &wire()["return_test_ping"];
    let (sealed, _, channel) = opened(vector);
    let request = session().open(&sealed.load).unwrap();
    assert_eq!(request, bytes(&vector["request_plaintext"]));
    assert_eq!(request[8] & 0xf0, 0x80, "a map follows the marker");
    let reply = session().open(&read(bytes(&vector["reply"])).to_raw().unwrap()).unwrap();
    assert_eq!(reply, bytes(&vector["reply_plaintext"]));
    assert_eq!(&reply[8..40], channel.nonce.as_str().as_bytes());
}

#[test]
fn an_aes_reply_is_a_bare_string_and_not_a_map() {
    assert!(read(bytes(&wire()["return_test_ping"]["reply"])).as_bytes().is_some());
}

#[test]
fn the_captured_return_is_read() {
    let (_, load, _) = opened(&wire()["return_test_ping"]);
    let back = Return::parse(load).unwrap();
    assert_eq!(back.jid, ReturnJid::Job(Jid::parse("20261115200427443183").unwrap()));
    assert_eq!((&*back.id, &back.fun, back.fun_args().len()), ("vector-minion", &Fun::from("test.ping"), 0));
    assert_eq!((back.value(), back.retcode(), back.success()), (&true.into(), Some(&0.into()), Some(&true.into())));
    assert_eq!((back.user(), back.stamp()), (Some("root"), Some("2026-11-15T20:04:27.587131+00:00")));
    assert!(back.load().get("nonce").is_none() && back.load().get("tok").is_none() && back.load().get("ts").is_some());
}

#[test]
fn the_captured_start_event_is_read() {
    let (_, load, _) = opened(&wire()["minion_event_start"]);
    let event = MinionEvent::parse(load).unwrap();
    assert!(!event.is_batch && event.pretag.is_none());
    assert_eq!(event.events[0].tag, "salt/minion/vector-minion/start");
    assert!(event.events[0].data().as_str().unwrap().starts_with("Minion vector-minion started at"));
    assert_eq!(event.events[0].body.get("cmd").unwrap().as_str(), Some("_minion_event"));
}

#[test]
fn the_pillar_reply_has_its_own_key_and_no_nonce_prefix() {
    let vector = &wire()["pillar_reply"];
    let nonce = Nonce::parse(text(&vector["data_decoded"]["nonce"])).unwrap();
    let (enc, sig) = Default::default();
    let reply = bytes(&vector["reply"]);
    let server = master();
    let pillar = envelope::open_private_reply(&minion(), server.public(), enc, sig, &nonce, reply.clone(), &LIMITS);
    assert_eq!(pillar.unwrap(), value(&vector["data_decoded"]["pillar"]));

    let once = Crypticle::new(&key(&vector["dict_key_string"]));
    let plain = once.open(read(reply).get("pillar").unwrap().as_bytes().unwrap()).unwrap();
    let inner = read(plain.slice(8..));
    assert_eq!(inner.get("data").unwrap().as_bytes(), Some(&bytes(&vector["signed_data"])[..]));
    assert_eq!(inner.get("sig").unwrap().as_bytes(), Some(&bytes(&vector["signature"])[..]));
}

#[test]
fn the_publication_opens_with_the_shared_key() {
    let (wire, server) = (wire(), master());
    let vector = &wire["publish_test_ping"];
    // The capture holds two shared keys: the second authentication is of another start of the master.
    let shared = Crypticle::new(&key(&wire["auth_first"]["aes_key_string"]));
    let with =
        Subscription { shared: &shared, server: server.public(), signatures: Signatures::Required, last_serial: 0 };
    let opened = envelope::open_publication(bytes(&vector["frame"]), &with, &LIMITS).unwrap();
    assert_eq!(opened.serial, Some(1));
    let mut load = opened.load;
    let jid = Jid::parse("20261115200427443183").unwrap();
    let ours =
        Publish { user: Some("root".into()), ..Publish::new(jid, "test.ping".into(), vec![], "vector-minion", "glob") };
    assert_eq!(msgpack::encode(&Value::Map(load.clone())), msgpack::encode(&Value::Map(ours.into_map())));
    load.push("serial", 1);
    assert_eq!(Value::Map(load), value(&vector["load_decoded"]));
}
