//! Jobs: ask for one, list them, look at one, follow one.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Limit, Nothing, Path, Query, Who};
use crate::openapi::Missing;
use crate::shape::{Accepted, JobDetail, JobList, JobStep, RunRequest, Time, read_jid};
use crate::stream::{self, Source};
use axum::extract::State;
use axum::response::Response;
use saltern_core::target::Glob;
use saltern_server::Error;
use saltern_server::app::{JobQuery, Watch};
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(run)).routes(routes!(list)).routes(routes!(show)).routes(routes!(watch))
}

/// Run a function
///
/// On every minion of the target, now or when it is due. When this answers, the job is on disk and will be carried out.
#[utoipa::path(
    post, path = "/run", operation_id = "run", tag = "jobs", request_body = RunRequest,
    responses((status = 200, description = "It was accepted", body = Accepted), Missing)
)]
async fn run(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<RunRequest>,
) -> Result<axum::Json<Accepted>, ApiError> {
    let request = request.read()?;
    let accepted = to_the_end(async move { shared.app.run(&caller, request).await }).await?;
    Ok(axum::Json(accepted.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only jobs before this one
    #[param(pattern = "^[0-9]{20}$")]
    before: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
    /// With the server's own housekeeping
    #[serde(default)]
    internal: bool,
    /// Only jobs that some minion has not finished
    #[serde(default)]
    active: bool,
    /// Only of functions that match one of these shell patterns, separated by commas
    #[param(max_length = 1000)]
    fun: Option<String>,
    /// Only for minions, or with a target, that match one of these shell patterns, separated by commas
    #[param(max_length = 1000)]
    target: Option<String>,
    /// Only asked for by this user
    user: Option<String>,
    /// Only made at this moment or later
    since: Option<Time>,
    /// Only made before this moment
    until: Option<Time>,
}

/// List jobs
///
/// Newest first; jobs of which you see no minion are left out, unless you asked for them.
#[utoipa::path(
    get, path = "/jobs", operation_id = "list_jobs", tag = "jobs", params(ListQuery),
    responses((status = 200, description = "A page of jobs", body = JobList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<JobList>, ApiError> {
    let limit = query.limit;
    let query = JobQuery {
        before: query.before.as_deref().map(read_jid).transpose()?,
        limit: limit.0,
        internal: query.internal,
        active: query.active,
        functions: patterns("fun", query.fun.as_deref())?,
        targets: patterns("target", query.target.as_deref())?,
        user: query.user,
        since: query.since.map(|since| since.0),
        until: query.until.map(|until| until.0),
    };
    let jobs = shared.app.jobs(&caller, &query).await?;
    let next = limit.next(&jobs, |job| job.jid.to_string());
    Ok(axum::Json(JobList { jobs: jobs.into_iter().map(Into::into).collect(), next }))
}

/// Shell patterns between commas.
fn patterns(name: &str, text: Option<&str>) -> Result<Vec<Glob>, ApiError> {
    const LONGEST: usize = 1_000;
    let Some(text) = text else { return Ok(Vec::new()) };
    if text.is_empty() || text.len() > LONGEST {
        return Err(ApiError::invalid(format!("{name} is 1 to {LONGEST} bytes of patterns")));
    }
    Ok(text.split(',').map(Glob::new).collect())
}

/// Show a job
///
/// With where each minion stands, and what came back.
#[utoipa::path(
    get, path = "/jobs/{jid}", operation_id = "show_job", tag = "jobs",
    params(("jid" = String, Path, description = "Its id", pattern = "^[0-9]{20}$")),
    responses((status = 200, description = "The job", body = JobDetail), Missing)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(jid): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<JobDetail>, ApiError> {
    Ok(axum::Json(shared.app.job(&caller, read_jid(&jid)?).await?.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WatchQuery {
    /// How many seconds a silent minion is waited for; nothing: as configured
    #[param(minimum = 0, maximum = 31_536_000)]
    timeout: Option<f64>,
}

/// Follow a job
///
/// One JSON object per line as it happens (`ack`, `return`, at last `done`), until nothing more is waited for; blank lines mean
/// that nothing has happened for a while.
#[utoipa::path(
    get, path = "/jobs/{jid}/watch", operation_id = "watch_job", tag = "jobs",
    params(("jid" = String, Path, description = "Its id", pattern = "^[0-9]{20}$"), WatchQuery),
    responses(
        (status = 200, description = "Its steps, one per line", content_type = "application/x-ndjson", body = String),
        Missing
    )
)]
async fn watch(
    State(shared): State<Shared>,
    Who(caller): Who,
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
    let watch = shared.app.watch(&caller, read_jid(&jid)?, shared.app.patience(silent)).await?;
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
