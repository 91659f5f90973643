//! Loads that are encoded once and sealed many times.
//!
//! Two thousand minions that return the same job send the same bytes but for nonce, time, token and id. What they have in
//! common is encoded when the job is opened; what is a minion's own, when it begins to live. The rest is sealing.

use crate::access::{ENC, SIG};
use bytes::Bytes;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_wire::crypto::Crypticle;
use saltern_wire::envelope;
use saltern_wire::load::Nonce;
use saltern_wire::msgpack;

/// Every plaintext begins with this.
const MARKER: &[u8] = b"pickle::";
/// The channel's own fields: nonce, ts, tok, id.
const CHANNEL_FIELDS: usize = 4;

/// The fields of a load, encoded, without those that the channel adds.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    count: usize,
    fields: Bytes,
}

impl Load {
    pub(crate) fn new(map: &Map) -> Self {
        let mut fields = Vec::new();
        map.iter().for_each(|(name, value)| put(&mut fields, name, value));
        Self { count: map.len(), fields: fields.into() }
    }
}

/// What every request of one minion has in common, encoded.
#[derive(Debug)]
pub(crate) struct Sender {
    /// `tok` and `id`, inside the seal
    inner: Vec<u8>,
    /// What follows the sealed load
    outer: Vec<u8>,
}

impl Sender {
    pub(crate) fn new(id: &MinionId, token: &[u8]) -> Self {
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        put(&mut inner, &"tok".into(), &token.into());
        put(&mut inner, &"id".into(), &id.into());
        put(&mut outer, &"version".into(), &envelope::VERSION.into());
        put(&mut outer, &"id".into(), &id.into());
        put(&mut outer, &"enc_algo".into(), &ENC.as_str().into());
        put(&mut outer, &"sig_algo".into(), &SIG.as_str().into());
        Self { inner, outer }
    }

    /// A request, as `envelope::request` would make it.
    pub(crate) fn request(&self, session: &Crypticle, load: &Load, nonce: &Nonce, now: Timestamp) -> Bytes {
        let mut head = Vec::with_capacity(64);
        head.extend_from_slice(MARKER);
        map_header(&mut head, load.count + CHANNEL_FIELDS);
        let mut channel = Vec::with_capacity(64);
        channel.extend_from_slice(b"\xa5nonce\xda\x00\x20");
        channel.extend_from_slice(nonce.as_str().as_bytes());
        channel.extend_from_slice(b"\xa2ts\xce");
        channel.extend_from_slice(&u32::try_from(now.secs()).unwrap_or(u32::MAX).to_be_bytes());
        let sealed = session.seal(&[&head, &load.fields, &channel, &self.inner]);
        let mut out = Vec::with_capacity(sealed.len() + self.outer.len() + 24);
        out.extend_from_slice(b"\x86\xa3enc\xa3aes\xa4load\xdb");
        out.extend_from_slice(&u32::try_from(sealed.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(&sealed);
        out.extend_from_slice(&self.outer);
        out.into()
    }
}

fn put(out: &mut Vec<u8>, name: &Value, value: &Value) {
    msgpack::encode_into(name, out);
    msgpack::encode_into(value, out);
}

fn map_header(out: &mut Vec<u8>, count: usize) {
    match u8::try_from(count) {
        Ok(count @ ..=15) => out.push(0x80 | count),
        _ => {
            out.push(0xdf);
            out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_wire::crypto::KeyString;
    use saltern_wire::envelope::Request;
    use saltern_wire::limits::Decode;
    use saltern_wire::load::Channel;

    #[test]
    fn a_server_reads_what_was_meant() {
        let (session, id) = (Crypticle::new(&KeyString::generate()), MinionId::new("web1").unwrap());
        let sender = Sender::new(&id, &[0xfe; 256]);
        for size in [0, 1, 11, 12, 40] {
            let map: Map = (0..size).map(|n| (Value::from(format!("field {n}")), Value::from("x".repeat(n)))).collect();
            let nonce = Nonce::generate();
            let request = sender.request(&session, &Load::new(&map), &nonce, Timestamp::from_secs(1_800_000_000));
            let Request::Sealed(sealed) = envelope::parse(request, envelope::VERSION).unwrap() else {
                panic!("not sealed")
            };
            assert_eq!((sealed.id.as_ref(), sealed.enc_algo, sealed.sig_algo), (Some(&id), ENC, SIG));
            let mut load = envelope::open_request(&session, &sealed.load, &Decode::after_auth()).unwrap();
            let channel = Channel::take(&mut load).unwrap();
            assert_eq!((channel.nonce, channel.ts, channel.id.as_deref()), (nonce, Some(1_800_000_000), Some("web1")));
            assert_eq!(channel.tok.unwrap()[..], [0xfe; 256]);
            assert!(map.iter().all(|(name, value)| load.get(name.as_str().unwrap()) == Some(value)), "{load:?}");
        }
    }
}
