//! The event log: from any number on, then live, as server-sent events, over a WebSocket, or one JSON value per line.

use super::Shared;
use crate::error::ApiError;
use crate::extract::{Query, Who};
use crate::follow::{self, Form};
use crate::shape::{Event, read_jid};
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use saltern_core::event::MAX_TAG;
use saltern_core::ids::ActionId;
use saltern_server::app::{EventEntry, EventQuery, EventStream};
use serde::Deserialize;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(follow)).routes(routes!(socket))
}

/// Which events are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FollowQuery {
    /// Only events after this number; `Last-Event-ID` says the same and wins
    since: Option<i64>,
    /// Only tags that match this shell pattern
    tag: Option<String>,
    /// Only of this job
    jid: Option<String>,
    /// Only of this action
    action: Option<i64>,
    /// Only of minions whose id matches this shell pattern
    minion: Option<String>,
    /// Whether to wait for more when the end of the log is reached
    #[serde(default = "yes")]
    follow: bool,
}

const fn yes() -> bool {
    true
}

/// How long a WebSocket may take nothing before it is cut off.
const STALLED: Duration = Duration::from_secs(30);

const SSE: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";

/// Follow the event log
///
/// From any number on, then live, as server-sent events: `id` is the event's number, `data` the event as JSON. `Last-Event-ID`
/// resumes without a gap or a double. With `Accept: application/x-ndjson` one JSON object per line.
#[utoipa::path(
    get, path = "/events", operation_id = "follow_events", tag = "events",
    params(FollowQuery, ("Last-Event-ID" = Option<i64>, Header, description = "Only events after this number")),
    responses((status = 200, description = "Events as they happen", content(
        (String = "text/event-stream"), (String = "application/x-ndjson"),
    )))
)]
async fn follow(
    State(shared): State<Shared>,
    Who(caller): Who,
    headers: HeaderMap,
    Query(query): Query<FollowQuery>,
) -> Result<Response, ApiError> {
    let wants_lines = headers.get(header::ACCEPT).is_some_and(|accept| accept.as_bytes() == LINES.as_bytes());
    let events = shared.app.events(&caller, &query.read(&headers)?).await?;
    let (content_type, body) = match wants_lines {
        true => (LINES, follow::body::<Lines>(events, shared.stop)),
        false => (SSE, follow::body::<Sse>(events, shared.stop)),
    };
    Ok(([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-cache")], body).into_response())
}

/// Follow the event log over a WebSocket
///
/// One message for each event. What the client says is ignored.
#[utoipa::path(
    get, path = "/events/ws", operation_id = "follow_events_ws", tag = "events", params(FollowQuery),
    responses((status = 101, description = "The connection becomes a WebSocket"))
)]
async fn socket(
    State(shared): State<Shared>,
    Who(caller): Who,
    headers: HeaderMap,
    Query(query): Query<FollowQuery>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    let events = shared.app.events(&caller, &query.read(&headers)?).await?;
    Ok(upgrade.max_message_size(MAX_WORDS).on_upgrade(move |socket| speak(socket, events, shared.stop)))
}

/// The largest message a client may send: nothing it says matters.
const MAX_WORDS: usize = 4096;

/// Sends events, one message each, until somebody ends it.
async fn speak(mut socket: WebSocket, events: EventStream, stop: CancellationToken) {
    let mut pieces = follow::pieces::<Frames>(events, stop.clone(), STALLED);
    loop {
        let piece = tokio::select! {
            piece = tokio::time::timeout(follow::HEARTBEAT, pieces.recv()) => piece,
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            () = stop.cancelled() => break,
        };
        let sent = match piece {
            Err(_) => socket.send(Message::Ping(Bytes::new())).await,
            Ok(None) => break,
            Ok(Some(piece)) => send_lines(&mut socket, &piece).await,
        };
        if sent.is_err() {
            return;
        }
    }
    let _ = socket.send(Message::Close(None)).await;
}

/// One message for each line of a piece.
async fn send_lines(socket: &mut WebSocket, piece: &Bytes) -> Result<(), axum::Error> {
    for line in piece.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let text = String::from_utf8_lossy(line).into_owned();
        match tokio::time::timeout(STALLED, socket.send(Message::Text(text.into()))).await {
            Ok(sent) => sent?,
            Err(slow) => return Err(axum::Error::new(slow)),
        }
    }
    Ok(())
}

impl FollowQuery {
    fn read(self, headers: &HeaderMap) -> Result<EventQuery, ApiError> {
        for pattern in [&self.tag, &self.minion].into_iter().flatten() {
            if pattern.len() > MAX_TAG {
                return Err(ApiError::invalid(format!("the pattern is longer than any tag ({MAX_TAG} bytes)")));
            }
        }
        let resumed = match headers.get("last-event-id") {
            None => None,
            Some(id) => {
                let number = id.to_str().ok().and_then(|id| id.trim().parse().ok());
                Some(number.ok_or_else(|| ApiError::invalid("Last-Event-ID is not the number of an event"))?)
            }
        };
        Ok(EventQuery {
            since: resumed.or(self.since),
            tag: self.tag,
            jid: self.jid.as_deref().map(read_jid).transpose()?,
            action: self.action.map(ActionId),
            minion: self.minion,
            stored_only: !self.follow,
        })
    }
}

/// Server-sent events: `id` is the event's number, `data` the event.
struct Sse;

/// One JSON value per line.
struct Lines;

/// The same without what only line readers understand.
struct Frames;

impl Form for Sse {
    const SLOT: usize = 0;
    const HEAD: &'static str = "retry: 1000\n\n";
    const BEAT: &'static str = ": nothing new\n\n";

    fn shape(event: &EventEntry) -> Bytes {
        let mut text = format!("id: {}\ndata: ", event.number).into_bytes();
        text.extend_from_slice(&json(event));
        text.extend_from_slice(b"\n\n");
        text.into()
    }

    fn gap(from: i64, to: i64) -> Bytes {
        format!("event: gap\ndata: {{\"from\":{from},\"to\":{to}}}\n\n").into()
    }

    fn farewell(why: &str) -> Bytes {
        format!("event: end\ndata: {}\n\n", serde_json::json!({ "reason": why })).into()
    }
}

impl Form for Lines {
    const SLOT: usize = 2;
    const HEAD: &'static str = "";
    const BEAT: &'static str = "\n";

    fn shape(event: &EventEntry) -> Bytes {
        let mut line = json(event);
        line.push(b'\n');
        line.into()
    }

    fn gap(_from: i64, _to: i64) -> Bytes {
        Bytes::from_static(b"\n")
    }

    fn farewell(why: &str) -> Bytes {
        let error = serde_json::json!({ "error": { "code": "busy", "message": why, "hint": "" } });
        format!("{error}\n").into()
    }
}

impl Form for Frames {
    const SLOT: usize = Lines::SLOT;
    const HEAD: &'static str = "";
    const BEAT: &'static str = "";

    fn shape(event: &EventEntry) -> Bytes {
        Lines::shape(event)
    }

    fn gap(from: i64, to: i64) -> Bytes {
        format!("{{\"gap\":{{\"from\":{from},\"to\":{to}}}}}\n").into()
    }

    fn farewell(why: &str) -> Bytes {
        format!("{}\n", serde_json::json!({ "end": { "reason": why } })).into()
    }
}

/// Our shapes are maps with text keys, which JSON can always carry.
fn json(event: &EventEntry) -> Vec<u8> {
    serde_json::to_vec(&Event::from(event.clone())).unwrap_or_default()
}
