//! The event log: from any number on, then live.

use super::Shared;
use crate::error::ApiError;
use crate::extract::Query;
use crate::shape::{Event, read_jid};
use crate::stream::{self, Source};
use axum::extract::State;
use axum::response::Response;
use saltern_core::event::MAX_TAG;
use saltern_server::Error;
use saltern_server::app::{EventQuery, EventStream};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FollowQuery {
    since: Option<i64>,
    tag: Option<String>,
    jid: Option<String>,
    /// Whether to wait for more when the end of the log is reached
    #[serde(default = "yes")]
    follow: bool,
}

const fn yes() -> bool {
    true
}

pub(super) async fn follow(
    State(shared): State<Shared>,
    Query(query): Query<FollowQuery>,
) -> Result<Response, ApiError> {
    if query.tag.as_ref().is_some_and(|tag| tag.len() > MAX_TAG) {
        return Err(ApiError::invalid(format!("the pattern is longer than any tag ({MAX_TAG} bytes)")));
    }
    let query = EventQuery {
        since: query.since,
        tag: query.tag,
        jid: query.jid.as_deref().map(read_jid).transpose()?,
        stored_only: !query.follow,
    };
    let events = shared.app.events(&query).await?;
    Ok(stream::lines(Lines(events), shared.stop))
}

struct Lines(EventStream);

impl Source for Lines {
    type Item = Event;

    async fn next(&mut self) -> Option<Result<Event, Error>> {
        self.0.next().await.map(|event| event.map(Into::into))
    }
}
