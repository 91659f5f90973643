//! `GET /events`: the event log as server-sent events, in the framing that scripts read with grep and awk.
//!
//! `retry: 400` once, then per event a `tag:` line, a `data:` line and a blank line; a comment where there was nothing to say
//! for a while, because proxies cut silent connections. Each reader sees what he may see, and the stream ends when his token
//! does. What an event looks like is made once for all readers.

use super::Salt;
use super::accept::to_json;
use super::error::Failure;
use super::session::Signed;
use super::stamp;
use crate::follow::{self, Form};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use saltern_core::event::{self, JobTag, JobTagKind};
use saltern_core::value::Value;
use saltern_server::app::{Caller, EventEntry, EventQuery};

/// `GET /events`
pub(super) async fn follow(
    State(salt): State<Salt>,
    RawQuery(query): RawQuery,
    session: Option<Signed>,
) -> Result<Response, Failure> {
    // Told first: whoever shows his token in the wrong place should learn where it belongs.
    if query.is_some_and(|query| !query.is_empty()) {
        return Err(Failure::invalid(
            "The /events endpoint takes no query parameters; in particular, tokens must not be passed via the query \
             string -- they end up in access logs and the Referer header. Use the 'X-Auth-Token' header (for non-browser \
             clients) or the session cookie set by /login (for browser EventSource clients) instead.",
        ));
    }
    let Signed(session) = session.ok_or_else(Failure::no_session)?;
    stream::<Frames>(&salt, &session.caller, None).await
}

/// An endless answer in this form, of tags that match `tag` if it is given.
pub(super) async fn stream<F: Form>(salt: &Salt, caller: &Caller, tag: Option<String>) -> Result<Response, Failure> {
    let events = salt.app.events(caller, &EventQuery { tag, ..EventQuery::default() }).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream;charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONNECTION, HeaderValue::from_static("keep-alive")),
    ];
    Ok((headers, follow::body::<F>(events, salt.stop.clone())).into_response())
}

/// The framing of rest_cherrypy.
struct Frames;

impl Form for Frames {
    const SLOT: usize = 1;
    const HEAD: &'static str = "retry: 400\n";
    const BEAT: &'static str = ": keepalive\n\n";

    fn shape(event: &EventEntry) -> Bytes {
        let mut out = Vec::with_capacity(512);
        for event in [short_notice(event).as_ref(), Some(event)].into_iter().flatten() {
            out.extend_from_slice(b"tag: ");
            // A tag is one line here, whatever a minion called its event.
            out.extend(event.tag.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }));
            out.extend_from_slice(b"\ndata: ");
            out.extend_from_slice(&to_json(&dialect(event)));
            out.extend_from_slice(b"\n\n");
        }
        out.into()
    }

    fn gap(from: i64, to: i64) -> Bytes {
        comment(&format!("events {from} to {to} are not in the log any more"))
    }

    fn farewell(why: &str) -> Bytes {
        comment(why)
    }
}

/// Words that every client of an event stream passes over.
pub(super) fn comment(words: &str) -> Bytes {
    format!(": {}\n\n", words.replace(['\n', '\r'], " ")).into()
}

/// What Salt 3006 and 3007 say just before they tell of a new job: its minions, under the bare job id.
pub(super) fn short_notice(event: &EventEntry) -> Option<EventEntry> {
    let JobTag { jid, kind: JobTagKind::New } = JobTag::parse(&event.tag)? else { return None };
    let minions = event.data.get("minions")?.clone();
    let stamp = event.data.get("_stamp").cloned().unwrap_or_default();
    let data = Value::map([("minions", minions), ("_stamp", stamp)]);
    Some(EventEntry { tag: jid.to_string(), data, ..event.clone() })
}

/// An event as `{"data": …, "tag": …}` in the words of Salt 3006 and 3007.
pub(super) fn dialect(entry: &EventEntry) -> Value {
    let mut data = entry.data.clone();
    stamp::restamp(&mut data);
    if let Value::Map(map) = &mut data {
        if map.get("_stamp").is_none() {
            map.insert("_stamp", stamp::stamp(entry.at));
        }
        if entry.tag == event::tag::KEY
            && let Some(act) = map.get("act").and_then(Value::as_str).and_then(old_act)
        {
            map.insert("act", act);
        }
    }
    Value::map([("data", data), ("tag", entry.tag.as_str().into())])
}

/// SaltGUI knows decisions by the words they had before 3008.
fn old_act(act: &str) -> Option<&'static str> {
    match act {
        "accepted" => Some("accept"),
        "rejected" => Some("reject"),
        "deleted" => Some("delete"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    fn entry(tag: &str, data: &str) -> EventEntry {
        EventEntry {
            number: 1,
            at: Timestamp(1_794_772_591_000_000),
            tag: tag.into(),
            minion: None,
            jid: None,
            data: serde_json::from_str(data).unwrap(),
        }
    }

    fn text(entry: &EventEntry) -> String {
        String::from_utf8(Frames::shape(entry).to_vec()).unwrap()
    }

    #[test]
    fn a_new_job_is_announced_under_its_bare_id_first() {
        let new =
            r#"{"jid": "20261115191346414803", "minions": ["web1"], "_stamp": "2026-11-15T19:13:46.415374+00:00"}"#;
        let told = text(&entry("salt/job/20261115191346414803/new", new));
        let tags: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("tag: ")).collect();
        assert_eq!(tags, ["20261115191346414803", "salt/job/20261115191346414803/new"]);
        assert!(told.contains(
            r#"{"data": {"minions": ["web1"], "_stamp": "2026-11-15T19:13:46.415374"}, "tag": "20261115191346414803"}"#
        ));
    }

    #[test]
    fn an_event_is_a_tag_line_a_data_line_and_a_blank_line() {
        let event = entry("salt/job/1/new", r#"{"jid": "1", "_stamp": "2026-11-15T19:03:01.104433+00:00"}"#);
        assert_eq!(
            text(&event),
            "tag: salt/job/1/new\ndata: {\"data\": {\"jid\": \"1\", \"_stamp\": \"2026-11-15T19:03:01.104433\"}, \
             \"tag\": \"salt/job/1/new\"}\n\n"
        );
    }

    #[test]
    fn every_event_has_a_stamp() {
        assert!(text(&entry("x", r#"{"a": 1}"#)).contains(r#""_stamp": "2026-11-15T19:56:31.000000""#));
    }

    #[test]
    fn decisions_about_keys_have_the_words_saltgui_knows() {
        for (ours, theirs) in [("accepted", "accept"), ("rejected", "reject"), ("delete", "delete"), ("pend", "pend")] {
            let event = entry("salt/key", &format!(r#"{{"act": "{ours}"}}"#));
            assert_eq!(dialect(&event).get("data").unwrap().get("act"), Some(&theirs.into()));
        }
        let other = entry("custom", r#"{"act": "accepted"}"#);
        assert_eq!(dialect(&other).get("data").unwrap().get("act"), Some(&"accepted".into()));
    }

    #[test]
    fn no_tag_can_break_the_framing() {
        let event = entry("a\ndata: {}\n\ntag: b", r#"{"x": "line\nline"}"#);
        let text = text(&event);
        assert_eq!(text.matches('\n').count(), 3, "{text:?}");
    }
}
