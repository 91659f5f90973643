//! `_auth`: a minion asks to be let in.

use super::{Error, Nonce, field};
use crate::crypto::{EncAlgo, SigAlgo};
use bytes::Bytes;
use bytestring::ByteString;
use saltern_core::value::Map;

/// The load of an `_auth` request, unproved in every field.
#[derive(Clone, Debug)]
pub struct Auth {
    /// The id as sent; whether it is one is for the caller to check, since a bad id has a signed answer.
    pub id: ByteString,
    /// To be repeated in the answer.
    pub nonce: Nonce,
    /// The minion's public key as sent, not yet read: a bad one has a signed answer too.
    pub public_pem: ByteString,
    /// A secret encrypted for us, to be sent back encrypted for the minion; absent at first contact.
    pub token: Option<Bytes>,
    /// How secrets in the answer are to be encrypted.
    pub enc_algo: EncAlgo,
    /// How the answer is to be signed.
    pub sig_algo: SigAlgo,
    /// Grains the minion offers for automatic acceptance.
    pub autosign_grains: Option<Map>,
}

impl Auth {
    /// Reads the load of a clear `_auth` request.
    pub fn parse(load: &Map) -> Result<Self, Error> {
        Ok(Self {
            enc_algo: enc_algo(load)?.ok_or(Error::BadEncAlgo)?,
            sig_algo: sig_algo(load)?.ok_or(Error::BadSigAlgo)?,
            id: field::text(load, "id")?,
            nonce: Nonce::of(load)?,
            public_pem: field::text(load, "pub")?,
            token: field::raw_if_present(load, "token")?,
            autosign_grains: field::map_if_present(load, "autosign_grains")?,
        })
    }
}

/// The encryption a map asks for: the default if it says nothing, `None` inside if nobody knows it.
pub(crate) fn enc_algo(map: &Map) -> Result<Option<EncAlgo>, Error> {
    Ok(field::text_if_present(map, "enc_algo")?.map_or(Some(EncAlgo::default()), |name| EncAlgo::parse(&name)))
}

/// The signature a map asks for: the default if it says nothing, `None` inside if nobody knows it.
pub(crate) fn sig_algo(map: &Map) -> Result<Option<SigAlgo>, Error> {
    Ok(field::text_if_present(map, "sig_algo")?.map_or(Some(SigAlgo::default()), |name| SigAlgo::parse(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::value::Value;

    fn load() -> Map {
        let nonce = "0".repeat(32);
        Value::map([("cmd", "_auth"), ("id", "web1"), ("nonce", &nonce), ("pub", "PEM")]).as_map().unwrap().clone()
    }

    #[test]
    fn the_oldest_form_without_algorithms_means_the_defaults() {
        let auth = Auth::parse(&load()).unwrap();
        assert_eq!((auth.enc_algo, auth.sig_algo), (EncAlgo::OaepSha1, SigAlgo::Pkcs1v15Sha1));
        assert_eq!((auth.token, auth.autosign_grains.is_none()), (None, true));
    }

    #[test]
    fn errors_name_the_field() {
        for (name, value, error) in [
            ("id", Value::Nil, Error::Missing("id")),
            ("id", Value::from(1), Error::Wrong { field: "id", wanted: "text" }),
            ("nonce", Value::from("x"), Error::Wrong { field: "nonce", wanted: "32 hexadecimal digits" }),
            ("pub", Value::from(&b"\xff"[..]), Error::Wrong { field: "pub", wanted: "text" }),
            ("token", Value::from(true), Error::Wrong { field: "token", wanted: "bytes" }),
            ("autosign_grains", Value::from("x"), Error::Wrong { field: "autosign_grains", wanted: "a map" }),
            ("enc_algo", Value::from("ROT13"), Error::BadEncAlgo),
            ("sig_algo", Value::from("ROT13"), Error::BadSigAlgo),
        ] {
            let mut load = load();
            load.insert(name, value);
            assert_eq!(Auth::parse(&load).unwrap_err(), error);
        }
    }
}
