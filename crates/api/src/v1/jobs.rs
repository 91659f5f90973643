//! Jobs: ask for one, list them, look at one, follow one.

use super::{Caller, Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Path, Query};
use crate::shape::{Accepted, JobDetail, JobList, JobStep, RunRequest, read_jid};
use crate::stream::{self, Source};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use saltern_server::Error;
use saltern_server::app::{JobQuery, Watch};
use serde::Deserialize;
use std::time::Duration;

/// How many jobs a list has unless told.
const PAGE: usize = 50;

pub(super) async fn run(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Json(request): Json<RunRequest>,
) -> Result<axum::Json<Accepted>, ApiError> {
    let request = request.read()?;
    let accepted = to_the_end(async move { shared.app.run(&caller, request).await }).await?;
    Ok(axum::Json(accepted.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    before: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    internal: bool,
    #[serde(default)]
    active: bool,
}

pub(super) async fn list(
    State(shared): State<Shared>,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<JobList>, ApiError> {
    let query = JobQuery {
        before: query.before.as_deref().map(read_jid).transpose()?,
        limit: query.limit.unwrap_or(PAGE),
        internal: query.internal,
        active: query.active,
    };
    let jobs = shared.app.jobs(&query).await?;
    Ok(axum::Json(JobList { jobs: jobs.into_iter().map(Into::into).collect() }))
}

pub(super) async fn show(
    State(shared): State<Shared>,
    Path(jid): Path<String>,
) -> Result<axum::Json<JobDetail>, ApiError> {
    Ok(axum::Json(shared.app.job(read_jid(&jid)?).await?.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchQuery {
    timeout: Option<f64>,
}

pub(super) async fn watch(
    State(shared): State<Shared>,
    Path(jid): Path<String>,
    Query(query): Query<WatchQuery>,
) -> Result<Response, ApiError> {
    let silent = match query.timeout {
        None => shared.app.timeout(),
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|silent| !silent.is_zero() && *silent <= LONGEST)
            .ok_or_else(|| ApiError::invalid("timeout is a number of seconds above 0, at most a year"))?,
    };
    let watch = shared.app.watch(read_jid(&jid)?, silent).await?;
    Ok(stream::lines(Steps(watch), shared.stop))
}

/// The longest silence that can be asked for.
const LONGEST: Duration = Duration::from_secs(31_536_000);

struct Steps(Watch);

impl Source for Steps {
    type Item = JobStep;

    async fn next(&mut self) -> Option<Result<JobStep, Error>> {
        self.0.next().await.map(|progress| progress.map(Into::into))
    }
}
