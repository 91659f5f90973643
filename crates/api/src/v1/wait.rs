//! Waiting for a job: the answer comes when every run of it has ended, however late somebody asks.

use super::Shared;
use crate::error::ApiError;
use crate::extract::{Path, Query, Who};
use crate::openapi::Missing;
use crate::shape::{JobDetail, read_jid};
use axum::extract::State;
use saltern_core::ids::Jid;
use saltern_server::app::{self, App, Caller, EventQuery};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How long is waited unless told.
const USUAL: f64 = 60.0;

/// How long can be asked for: shorter than the proxies between.
const LONGEST: f64 = 600.0;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(wait))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WaitQuery {
    /// How many seconds at most; nothing: 60
    #[param(minimum = 0, maximum = 600)]
    timeout: Option<f64>,
}

/// A job, and whether it is over.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Waited {
    /// Whether every run has ended; if not, the time was over first: ask again
    done: bool,
    /// The job with its runs and returns
    #[serde(flatten)]
    job: JobDetail,
}

/// Wait for a job
///
/// Answers with the job when every run of it has ended, or when the time is over: `done` tells which. Whoever asks late misses
/// nothing.
#[utoipa::path(
    get, path = "/jobs/{jid}/wait", operation_id = "wait_for_job", tag = "jobs",
    params(("jid" = String, Path, description = "Its id", pattern = "^[0-9]{20}$"), WaitQuery),
    responses((status = 200, description = "The job, and whether it is over", body = Waited), Missing)
)]
async fn wait(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(jid): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Result<axum::Json<Waited>, ApiError> {
    let seconds = query.timeout.unwrap_or(USUAL);
    if !(0.0..=LONGEST).contains(&seconds) {
        return Err(ApiError::invalid(format!("timeout is a number of seconds from 0 to {LONGEST}")));
    }
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let (job, done) = tokio::select! {
        waited = until_done(&shared.app, &caller, read_jid(&jid)?, until) => waited?,
        () = shared.stop.cancelled() => return Err(saltern_server::Error::Stopping.into()),
    };
    Ok(axum::Json(Waited { done, job: job.into() }))
}

async fn until_done(app: &App, caller: &Caller, jid: Jid, until: Instant) -> Result<(app::JobDetail, bool), ApiError> {
    let job = app.job(caller, jid).await?;
    // Listen before looking again, so that nothing falls between: returns are told by job, all else by action.
    let mut returns = app.events(caller, &EventQuery { jid: Some(jid), ..EventQuery::default() }).await?;
    let mut others = app.events(caller, &EventQuery { action: Some(job.job.action), ..EventQuery::default() }).await?;
    loop {
        let job = app.job(caller, jid).await?;
        let done = job.runs.iter().all(|run| run.state.is_terminal());
        if done || Instant::now() >= until {
            return Ok((job, done));
        }
        let told = async {
            tokio::select! {
                told = returns.next_chunk() => told,
                told = others.next_chunk() => told,
            }
        };
        match tokio::time::timeout_at(until, told).await {
            Ok(Some(Ok(_))) | Err(_) => {}
            Ok(Some(Err(error))) => return Err(error.into()),
            Ok(None) => return Ok((job, false)),
        }
    }
}
