//! The fields the channel itself adds to every sealed load.

use super::{Error, Nonce, field};
use crate::crypto::{self, PrivateKey, PublicKey, SigAlgo};
use crate::msgpack::{Encoder, map_bound};
use bytes::Bytes;
use bytestring::ByteString;
use saltern_core::value::Map;

/// What a sealed load says about its sender and itself.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The sender by its own account: to be compared with the envelope's. Version 2 file requests have none.
    pub id: Option<ByteString>,
    /// To be repeated at the head of the answer.
    pub nonce: Nonce,
    /// The sender's clock in Unix seconds.
    pub ts: Option<i64>,
    /// What only the holder of the sender's private key can make; see [`PublicKey::is_token`].
    pub tok: Option<Bytes>,
}

impl Channel {
    /// Reads the fields and removes those that no event may show (`nonce`, `tok`).
    pub fn take(load: &mut Map) -> Result<Self, Error> {
        let channel = Self {
            id: field::text_if_present(load, "id")?,
            nonce: Nonce::of(load)?,
            ts: match field::present(load, "ts") {
                Some(ts) => Some(ts.as_i64().ok_or(Error::Wrong { field: "ts", wanted: "an integer" })?),
                None => None,
            },
            tok: field::raw_if_present(load, "tok")?,
        };
        strip_channel_fields(load);
        Ok(channel)
    }
}

/// Removes what never appears in an event: `nonce` and `tok`. `ts` and `sig` stay, as on a stock master's bus.
pub fn strip_channel_fields(load: &mut Map) {
    load.remove("nonce");
    load.remove("tok");
}

/// The signature that `minion_sign_messages` adds to a load: over its modern msgpack without `nonce`, `tok` and `sig`.
pub fn sign_message(key: &PrivateKey, algo: SigAlgo, load: &Map) -> Result<Vec<u8>, crypto::Error> {
    key.sign(algo, &signed_part(load))
}

/// Whether the load's own `sig` is the sender's. `None` if it has none.
pub fn verify_message(key: &PublicKey, algo: SigAlgo, load: &Map) -> Option<bool> {
    let signature = load.get("sig")?;
    Some(signature.as_bytes().is_some_and(|signature| key.verify(algo, &signed_part(load), signature)))
}

fn signed_part(load: &Map) -> Vec<u8> {
    let signed = || load.iter().filter(|(key, _)| !matches!(key.as_str(), Some("nonce" | "tok" | "sig")));
    let mut out = Vec::with_capacity(map_bound(load));
    let mut encoder = Encoder::modern(&mut out);
    encoder.map(signed().count());
    for (key, value) in signed() {
        encoder.value(key);
        encoder.value(value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::value::Value;

    #[test]
    fn nonce_and_token_are_taken_out_and_the_rest_stays() {
        let mut load = Map::new();
        load.push("cmd", "_return");
        load.push("nonce", "a".repeat(32));
        load.push("ts", 5);
        load.push("tok", &b"\xff"[..]);
        load.push("id", "web1");
        let channel = Channel::take(&mut load).unwrap();
        assert_eq!(channel.id.as_deref(), Some("web1"));
        assert_eq!((channel.ts, channel.tok.as_deref()), (Some(5), Some(&b"\xff"[..])));
        assert_eq!(load.iter().map(|(k, _)| k.as_str().unwrap()).collect::<Vec<_>>(), ["cmd", "ts", "id"]);
    }

    #[test]
    fn a_missing_nonce_is_an_error_and_a_missing_identity_is_not() {
        let mut load = Map::new();
        assert_eq!(Channel::take(&mut load).unwrap_err(), Error::Missing("nonce"));
        load.push("nonce", "a".repeat(32));
        assert_eq!(Channel::take(&mut load.clone()).unwrap().id, None);
        load.push("ts", "yesterday");
        assert_eq!(Channel::take(&mut load).unwrap_err(), Error::Wrong { field: "ts", wanted: "an integer" });
    }

    #[test]
    fn a_signed_load_verifies_in_its_order_and_no_other() {
        let key = PrivateKey::from_pem(include_str!("../../tests/vectors/test-only-minion.pem")).unwrap();
        let mut load = Map::new();
        load.push("a", "x".repeat(40));
        load.push("b", &b"\xff"[..]);
        let signature = sign_message(&key, SigAlgo::default(), &load).unwrap();
        assert_eq!(verify_message(key.public(), SigAlgo::default(), &load), None);
        load.push("nonce", "not signed");
        load.push("sig", signature.clone());
        assert_eq!(verify_message(key.public(), SigAlgo::default(), &load), Some(true));
        let a = load.remove("a").unwrap();
        load.push("a", a);
        assert_eq!(verify_message(key.public(), SigAlgo::default(), &load), Some(false));
        load.insert("sig", Value::Int(1));
        assert_eq!(verify_message(key.public(), SigAlgo::default(), &load), Some(false));
    }
}
