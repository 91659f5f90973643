//! One request to a webhook's receiver: the event as JSON, and the headers that say what it is and prove whom it is from.

use super::address::Address;
use crate::Error;
use crate::app::EventEntry;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::Webhook;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The tag of the event that a test sends.
const TEST_TAG: &str = "saltern/webhook/test";

const SENDER: &str = concat!("saltern/", env!("CARGO_PKG_VERSION"));

/// What is sent, as often as it takes.
pub(crate) struct Message {
    number: i64,
    /// The same for every try, so that a receiver can tell a double
    delivery: String,
    body: Bytes,
}

#[derive(Serialize)]
struct Shape<'a> {
    number: i64,
    at: String,
    tag: &'a str,
    minion: Option<&'a str>,
    jid: Option<&'a str>,
    data: &'a Value,
}

impl Message {
    /// An event for a webhook.
    pub(crate) fn new(webhook: &Webhook, event: &EventEntry) -> Result<Self, Error> {
        Ok(Self { number: event.number, delivery: delivery(webhook, event.number), body: body(event)? })
    }

    /// An event that never happened, to see whether somebody takes it.
    pub(crate) fn sample(webhook: &Webhook, now: Timestamp) -> Result<Self, Error> {
        let event = EventEntry {
            number: 0,
            at: now,
            tag: TEST_TAG.into(),
            minion: None,
            jid: None,
            data: Value::map([("webhook", Value::from(webhook.name.as_str())), ("id", webhook.id.into())]),
        };
        // Every test is something new.
        Ok(Self { number: 0, delivery: hash(webhook, &[0, now.micros()]), body: body(&event)? })
    }

    /// The request that carries it now.
    pub(super) fn request(
        &self,
        webhook: &Webhook,
        address: &Address,
        now: Timestamp,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let timestamp = now.secs().to_string();
        let signature = sign(&webhook.secret, &timestamp, &self.body);
        Request::post(address.path.as_str())
            .header(HOST, address.authority.as_str())
            .header(USER_AGENT, SENDER)
            .header(CONTENT_TYPE, "application/json")
            .header("saltern-event", self.number)
            .header("saltern-delivery", self.delivery.as_str())
            .header("saltern-timestamp", timestamp)
            .header("saltern-signature", format!("v1={signature}"))
            .body(Full::new(self.body.clone()))
            .map_err(|_| Error::Internal("a request to a webhook cannot be put together".into()))
    }
}

fn body(event: &EventEntry) -> Result<Bytes, Error> {
    let shape = Shape {
        number: event.number,
        at: event.at.stamp(),
        tag: &event.tag,
        minion: event.minion.as_ref().map(|minion| minion.as_str()),
        jid: event.jid.as_ref().map(|jid| jid.as_str()),
        data: &event.data,
    };
    let json = serde_json::to_vec(&shape);
    json.map(Bytes::from).map_err(|_| Error::Internal(format!("event {} cannot be written as JSON", event.number)))
}

/// HMAC-SHA256 of the time, a dot and the body, in hexadecimal.
fn sign(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    hex(&mac.finalize().into_bytes())
}

/// The name of a delivery: known again after a restart without being kept. The time at which a webhook was made tells it
/// from one of the same number on another server.
fn delivery(webhook: &Webhook, number: i64) -> String {
    hash(webhook, &[number])
}

fn hash(webhook: &Webhook, numbers: &[i64]) -> String {
    let mut hash = Sha256::new();
    for number in [webhook.id, webhook.created.micros()].iter().chain(numbers) {
        hash.update(number.to_be_bytes());
    }
    hex(&hash.finalize()[..16])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use saltern_core::ids::{Jid, MinionId};

    pub(crate) fn webhook(url: &str) -> Webhook {
        Webhook {
            id: 3,
            name: "chat".into(),
            url: url.into(),
            secret: "It's a Secret to Everybody".into(),
            tag: "*".into(),
            jid: None,
            action: None,
            minion: None,
            owner: "ann".into(),
            active: true,
            cursor: 0,
            failures: 0,
            next_try: None,
            last_error: None,
            created: Timestamp::from_secs(1_794_772_591),
            version: 1,
        }
    }

    fn event(number: i64) -> EventEntry {
        EventEntry {
            number,
            at: Timestamp(1_794_772_591_867_751),
            tag: "salt/job/20261115200427443183/ret/web1".into(),
            minion: Some(MinionId::new("web1").unwrap()),
            jid: Jid::parse("20261115200427443183"),
            data: Value::map([("return", true)]),
        }
    }

    #[test]
    fn a_message_is_the_event_with_everything_the_log_knows_of_it() {
        let message = Message::new(&webhook("http://a/"), &event(7)).unwrap();
        assert_eq!(
            std::str::from_utf8(&message.body).unwrap(),
            r#"{"number":7,"at":"2026-11-15T19:56:31.867751+00:00","tag":"salt/job/20261115200427443183/ret/web1","minion":"web1","jid":"20261115200427443183","data":{"return":true}}"#
        );
    }

    #[test]
    fn a_signature_is_the_hmac_of_time_and_body() {
        // printf '1794772591.Hello, World!' | openssl dgst -sha256 -hmac "It's a Secret to Everybody"
        assert_eq!(
            sign("It's a Secret to Everybody", "1794772591", b"Hello, World!"),
            "ae89b60d7b97acf5c529a98277ca9c171c8f58773c646f8f8ae69d42408e87eb"
        );
    }

    #[test]
    fn a_delivery_keeps_its_name_and_shares_it_with_no_other() {
        let (one, other) = (webhook("http://a/"), Webhook { id: 4, ..webhook("http://a/") });
        let name = |webhook: &Webhook, number| Message::new(webhook, &event(number)).unwrap().delivery;
        assert_eq!(name(&one, 7), name(&Webhook { secret: "new".into(), version: 9, ..one.clone() }, 7));
        assert_eq!(name(&one, 7).len(), 32);
        assert_ne!(name(&one, 7), name(&one, 8));
        assert_ne!(name(&one, 7), name(&other, 7));
        let test = |second| Message::sample(&one, Timestamp::from_secs(second)).unwrap().delivery;
        assert_ne!(test(1), test(2));
    }

    #[test]
    fn a_request_has_the_headers_that_receivers_look_at() {
        let hook = webhook("https://example.org:8443/in?key=1");
        let address = Address::parse(&hook.url).unwrap();
        let message = Message::new(&hook, &event(7)).unwrap();
        let request = message.request(&hook, &address, Timestamp::from_secs(1_794_772_600)).unwrap();
        let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
        assert_eq!((request.method().as_str(), request.uri().to_string()), ("POST", "/in?key=1".into()));
        assert_eq!(header("host"), "example.org:8443");
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(header("saltern-event"), "7");
        assert_eq!(header("saltern-delivery"), message.delivery);
        assert_eq!(header("saltern-timestamp"), "1794772600");
        assert_eq!(header("saltern-signature"), format!("v1={}", sign(&hook.secret, "1794772600", &message.body)));
        assert!(header("user-agent").starts_with("saltern/"));
    }
}
