//! `GET /ws`: events over a WebSocket, as they are or summed up per job.
//!
//! Nothing is sent before the client has said that it is ready; every text it sends is confirmed. The connection ends with
//! the token it was opened with.

use super::Salt;
use super::accept::to_json;
use super::error::Failure;
use super::events::dialect;
use super::session::{Signed, Source};
use super::summary::Summary;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use saltern_server::app::{EventQuery, EventStream, Session};
use std::time::Duration;
use tokio::sync::mpsc;

/// What the client says before events are sent.
const READY: &str = "websocket client ready";

/// The answer to every text.
const RECEIVED: &str = "server received message";

/// The largest message a client may send.
const LARGEST: usize = 64 << 10;

/// Frames that wait for a slow client; then the log is read on from where he is.
const QUEUE: usize = 64;

/// How often a silent connection is tried.
const SILENCE: Duration = Duration::from_secs(30);

/// How long is waited to say goodbye.
const FAREWELL: Duration = Duration::from_secs(1);

/// A request that asks for a WebSocket, or not.
type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// `GET /ws`
pub(super) async fn open(
    State(salt): State<Salt>,
    RawQuery(query): RawQuery,
    Signed(session): Signed,
    upgrade: Upgrade,
) -> Result<Response, Failure> {
    accept(salt, query, session, upgrade)
}

/// `GET /ws/<token>`
pub(super) async fn open_by_path(
    State(salt): State<Salt>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
    source: Source,
    upgrade: Upgrade,
) -> Result<Response, Failure> {
    let session = salt.app.caller_of_token(&token, &source.origin()).await.map_err(|_| Failure::no_session())?;
    accept(salt, query, session, upgrade)
}

fn accept(salt: Salt, query: Option<String>, session: Session, upgrade: Upgrade) -> Result<Response, Failure> {
    let upgrade = upgrade.map_err(|_| Failure::invalid("this URL is for WebSockets: send an upgrade"))?;
    let is_summed =
        query.is_some_and(|query| query.split('&').any(|pair| pair.split('=').next() == Some("format_events")));
    let upgrade = upgrade.max_message_size(LARGEST).max_frame_size(LARGEST);
    Ok(upgrade.on_upgrade(move |mut socket| async move {
        let stop = salt.stop.clone();
        tokio::select! {
            () = converse(&salt, &mut socket, &session, is_summed) => {}
            () = salt.app.session_ended(&session) => {}
            () = stop.cancelled() => {}
        }
        // Said by whoever ends it, answered by the other; a client that takes nothing any more is not waited for.
        let _ = tokio::time::timeout(FAREWELL, socket.send(Message::Close(None))).await;
    }))
}

async fn converse(salt: &Salt, socket: &mut WebSocket, session: &Session, is_summed: bool) {
    let mut frames: Option<mpsc::Receiver<String>> = None;
    loop {
        let next_frame = async {
            match &mut frames {
                Some(frames) => frames.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    if text.as_str() == READY && frames.is_none() {
                        match salt.app.events(&session.caller, &EventQuery::default()).await {
                            Ok(events) => frames = Some(pump(salt, events, is_summed)),
                            Err(error) => {
                                tracing::warn!(%error, "a WebSocket was ended");
                                return;
                            }
                        }
                    }
                    if socket.send(Message::Text(RECEIVED.into())).await.is_err() {
                        return;
                    }
                }
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                // Reading on sends the answer to it.
                Some(Ok(Message::Close(_))) => {
                    let _ = tokio::time::timeout(FAREWELL, socket.recv()).await;
                    return;
                }
                Some(Err(_)) | None => return,
            },
            frame = next_frame => {
                let Some(frame) = frame else { return };
                if socket.send(Message::Text(frame.into())).await.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(SILENCE) => {
                if socket.send(Message::Ping(bytes::Bytes::new())).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Reads events in a task of its own, so that nothing interrupts it half way.
fn pump(salt: &Salt, mut events: EventStream, is_summed: bool) -> mpsc::Receiver<String> {
    let (queue, frames) = mpsc::channel(QUEUE);
    let stop = salt.stop.clone();
    tokio::spawn(async move {
        let mut summary = Summary::default();
        let read = async {
            while let Some(Ok(entry)) = events.next().await {
                let told = if is_summed {
                    summary.heed(&dialect(&entry)).into_iter().map(|change| json(&change)).collect()
                } else {
                    vec![format!("data: {}\n\n", json(&dialect(&entry)))]
                };
                for frame in told {
                    if queue.send(frame).await.is_err() {
                        return;
                    }
                }
            }
        };
        tokio::select! {
            () = read => {}
            () = queue.closed() => {}
            () = stop.cancelled() => {}
        }
    });
    frames
}

fn json(value: &saltern_core::value::Value) -> String {
    String::from_utf8(to_json(value)).unwrap_or_default()
}
