//! Publications: sealed with the shared key, signed by the server, numbered.

use super::{Error, decode_map, raw, seal_map, unseal};
use crate::crypto::{self, Crypticle, PrivateKey, PublicKey, SigAlgo};
use crate::limits::Decode;
use crate::load;
use crate::msgpack::Encoder;
use bytes::Bytes;
use saltern_core::value::{Map, Value};

/// One frame for every subscriber. `load` carries a `serial` that rises as long as the shared key is the same.
pub fn publication(shared: &Crypticle, signer: &PrivateKey, algo: SigAlgo, load: &Map) -> Result<Bytes, crypto::Error> {
    let sealed = seal_map(shared, load);
    let signature = signer.sign(algo, &sealed)?;
    let mut out = Vec::with_capacity(sealed.len() + signature.len() + 64);
    let mut encoder = Encoder::salt(&mut out);
    encoder.map(4);
    encoder.text("enc");
    encoder.text("aes");
    encoder.text("load");
    encoder.raw(&sealed);
    encoder.text("sig_algo");
    encoder.text(algo.as_str());
    encoder.text("sig");
    encoder.raw(&signature);
    Ok(out.into())
}

/// What a minion holds a publication against.
#[derive(Clone, Copy, Debug)]
pub struct Subscription<'a> {
    /// The shared key.
    pub shared: &'a Crypticle,
    /// The server's stored key.
    pub server: &'a PublicKey,
    /// What to make of unsigned publications.
    pub signatures: Signatures,
    /// The last serial seen under this shared key; 0 under a new one.
    pub last_serial: i64,
}

/// What a minion makes of unsigned publications. A wrong signature is refused in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signatures {
    /// They are refused.
    Required,
    /// They are taken, as default minions do: masters older than signing send them.
    IfPresent,
}

/// An opened publication.
#[derive(Clone, Debug)]
pub struct Publication {
    /// The publish load, without its serial; see [`load::Publish`].
    pub load: Map,
    /// To be remembered as the last one seen.
    pub serial: Option<i64>,
}

/// Checks and opens a publication. After [`crypto::Error::NotAuthentic`] a minion authenticates and tries it once more:
/// the shared key may have changed.
pub fn open_publication(frame: Bytes, with: &Subscription<'_>, limits: &Decode) -> Result<Publication, Error> {
    let envelope = decode_map(frame, limits)?;
    if envelope.get("enc").and_then(Value::as_str) != Some("aes") {
        return Err(Error::NotSealed);
    }
    let sealed = raw(&envelope, "load")?;
    match envelope.get("sig").filter(|sig| sig.is_truthy()) {
        Some(signature) => {
            let algo = load::sig_algo(&envelope).ok().flatten().ok_or(Error::Field("sig_algo"))?;
            let signature = signature.as_bytes().ok_or(Error::WrongSignature)?;
            if !with.server.verify(algo, &sealed, signature) {
                return Err(Error::WrongSignature);
            }
        }
        None if with.signatures == Signatures::Required => return Err(Error::NotSigned),
        None => {}
    }
    let mut load = decode_map(unseal(with.shared, &sealed)?, limits)?;
    let serial = match load.remove("serial") {
        None => None,
        Some(serial) => {
            let got = serial.as_i64().ok_or(Error::Field("serial"))?;
            if got <= with.last_serial {
                return Err(Error::StaleSerial { got, last: with.last_serial });
            }
            Some(got)
        }
    };
    Ok(Publication { load, serial })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::KeyString;
    use crate::msgpack;

    const LIMITS: Decode = Decode::after_auth();

    struct Pair {
        shared: Crypticle,
        server: PrivateKey,
    }

    impl Pair {
        fn new() -> Self {
            let server = PrivateKey::from_pem(include_str!("../../tests/vectors/test-only-master.pem")).unwrap();
            Self { shared: Crypticle::new(&KeyString::generate()), server }
        }

        fn publish(&self, serial: Option<i64>) -> Bytes {
            let mut load = Map::new();
            load.push("fun", "test.ping");
            if let Some(serial) = serial {
                load.push("serial", serial);
            }
            publication(&self.shared, &self.server, SigAlgo::Pkcs1v15Sha224, &load).unwrap()
        }

        fn open(&self, frame: Bytes, last_serial: i64, signatures: Signatures) -> Result<Publication, Error> {
            let with = Subscription { shared: &self.shared, server: self.server.public(), signatures, last_serial };
            open_publication(frame, &with, &LIMITS)
        }
    }

    fn changed(frame: &Bytes, field: &str, value: Option<Value>) -> Bytes {
        let Value::Map(mut map) = msgpack::decode(frame.clone(), &LIMITS).unwrap() else { panic!("not a map") };
        map.remove(field);
        if let Some(value) = value {
            map.push(field, value);
        }
        msgpack::encode(&Value::Map(map)).into()
    }

    #[test]
    fn a_publication_opens_and_its_serial_is_taken_out() {
        let pair = Pair::new();
        let opened = pair.open(pair.publish(Some(8)), 7, Signatures::Required).unwrap();
        assert_eq!(opened.serial, Some(8));
        assert_eq!(Value::Map(opened.load), Value::map([("fun", "test.ping")]));
        assert_eq!(pair.open(pair.publish(None), 7, Signatures::Required).unwrap().serial, None);
    }

    #[test]
    fn a_serial_that_does_not_rise_is_stale() {
        let pair = Pair::new();
        for got in [7, 6, 0, -1] {
            let opened = pair.open(pair.publish(Some(got)), 7, Signatures::Required);
            assert_eq!(opened.unwrap_err(), Error::StaleSerial { got, last: 7 });
        }
    }

    #[test]
    fn an_unsigned_publication_is_taken_only_where_allowed() {
        let pair = Pair::new();
        let unsigned = changed(&pair.publish(Some(1)), "sig", None);
        assert_eq!(pair.open(unsigned.clone(), 0, Signatures::Required).unwrap_err(), Error::NotSigned);
        assert!(pair.open(unsigned, 0, Signatures::IfPresent).is_ok());
    }

    #[test]
    fn a_wrong_signature_is_always_refused() {
        let pair = Pair::new();
        let frame = pair.publish(Some(1));
        for value in [Value::from(vec![1; 256]), 1.into(), "x".into()] {
            let forged = changed(&frame, "sig", Some(value));
            assert_eq!(pair.open(forged, 0, Signatures::IfPresent).unwrap_err(), Error::WrongSignature);
        }
        let other = changed(&frame, "sig_algo", Some("PKCS1v15-SHA1".into()));
        assert_eq!(pair.open(other, 0, Signatures::IfPresent).unwrap_err(), Error::WrongSignature);
        let unknown = changed(&frame, "sig_algo", Some("none".into()));
        assert_eq!(pair.open(unknown, 0, Signatures::IfPresent).unwrap_err(), Error::Field("sig_algo"));
    }

    #[test]
    fn what_is_not_sealed_with_the_shared_key_is_refused() {
        let pair = Pair::new();
        let clear = changed(&pair.publish(None), "enc", Some("clear".into()));
        assert_eq!(pair.open(clear, 0, Signatures::IfPresent).unwrap_err(), Error::NotSealed);
        let other = Pair::new().publish(None);
        let not_authentic = Error::Crypto(crypto::Error::NotAuthentic);
        assert_eq!(pair.open(other, 0, Signatures::IfPresent).unwrap_err(), not_authentic);
    }
}
