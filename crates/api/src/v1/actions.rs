//! Actions: ask for one, list them, look at one and at its runs, explain it, do something with it.

use super::{Caller, Shared, to_the_end};
use crate::app::{ActionFilter, ActionQuery};
use crate::error::ApiError;
use crate::extract::{Json, Path, Query};
use crate::shape::{
    ActionDetail, ActionList, ActionRequest, ActionTypeList, ActionVerb, Created, Explanation, Order, RunDetail,
    RunList, VerbRequest, VerbResult, read_action_id, read_minion,
};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use saltern_core::run::RunState;
use saltern_server::app::Door;
use serde::Deserialize;

/// How many actions a list has unless told.
const PAGE: usize = 50;
/// How many runs a list has unless told.
const RUNS_PAGE: usize = 1_000;

pub(super) async fn create(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Json(request): Json<ActionRequest>,
) -> Result<(StatusCode, axum::Json<Created>), ApiError> {
    let request = request.read()?;
    let accepted = to_the_end(async move { shared.app.submit(&caller, request, Door::Action).await }).await?;
    Ok((StatusCode::CREATED, axum::Json(accepted.into())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    before: Option<String>,
    limit: Option<usize>,
    state: Option<String>,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    internal: bool,
    user: Option<String>,
    minion: Option<String>,
}

pub(super) async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<ActionList>, ApiError> {
    let filter = match query.state.as_deref() {
        None => ActionFilter::All,
        Some("open") => ActionFilter::Open,
        Some("failed") => ActionFilter::Failed,
        Some("completed") => ActionFilter::Completed,
        Some(other) => return Err(ApiError::invalid(format!("state is open, failed or completed, not {other:?}"))),
    };
    let query = ActionQuery {
        before: query.before.as_deref().map(read_action_id).transpose()?,
        limit: query.limit.unwrap_or(PAGE),
        internal: query.internal,
        archived: query.archived,
        filter,
        initiator: query.user,
        minion: query.minion.as_deref().map(read_minion).transpose()?,
    };
    let actions = shared.app.actions(&caller, &query).await?;
    Ok(axum::Json(ActionList { actions: actions.into_iter().map(Into::into).collect() }))
}

pub(super) async fn show(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<axum::Json<ActionDetail>, ApiError> {
    let id = read_action_id(&id)?;
    let action = shared.app.action(&caller, id).await?;
    let jobs = shared.app.jobs_of(&caller, id).await?;
    Ok(axum::Json(ActionDetail::of(action, jobs.iter().map(ToString::to_string).collect())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsQuery {
    state: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn runs(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(query): Query<RunsQuery>,
) -> Result<axum::Json<RunList>, ApiError> {
    let state = query.state.as_deref().map(read_state).transpose()?;
    let after = query.after.unwrap_or_default();
    let limit = query.limit.unwrap_or(RUNS_PAGE);
    let runs = shared.app.runs(&caller, read_action_id(&id)?, state, &after, limit).await?;
    Ok(axum::Json(RunList { runs: runs.into_iter().map(Into::into).collect() }))
}

pub(super) async fn run(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((id, minion)): Path<(String, String)>,
) -> Result<axum::Json<RunDetail>, ApiError> {
    let (id, minion) = (read_action_id(&id)?, read_minion(&minion)?);
    let explanation = shared.app.explain(&caller, id, &minion).await?;
    let attempts = shared.app.attempts(&caller, id, &minion).await?;
    Ok(axum::Json(RunDetail::of(explanation.run, attempts)))
}

pub(super) async fn explain(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((id, minion)): Path<(String, String)>,
) -> Result<axum::Json<Explanation>, ApiError> {
    let explanation = shared.app.explain(&caller, read_action_id(&id)?, &read_minion(&minion)?).await?;
    Ok(axum::Json(explanation.into()))
}

pub(super) async fn act_on_one(
    shared: State<Shared>,
    caller: Extension<Caller>,
    Path((id, verb)): Path<(String, String)>,
    Json(request): Json<VerbRequest>,
) -> Result<axum::Json<VerbResult>, ApiError> {
    let verb = ActionVerb::read(&verb)?;
    act(shared, caller, request.read(verb, Some(read_action_id(&id)?))?).await
}

pub(super) async fn act_on_many(
    shared: State<Shared>,
    caller: Extension<Caller>,
    Path(verb): Path<String>,
    Json(request): Json<VerbRequest>,
) -> Result<axum::Json<VerbResult>, ApiError> {
    act(shared, caller, request.read(ActionVerb::read(&verb)?, None)?).await
}

async fn act(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    order: Order,
) -> Result<axum::Json<VerbResult>, ApiError> {
    let done = to_the_end(async move {
        let Order { ids, minions, verb } = order;
        shared.app.act(&caller, &ids, minions.as_deref(), &verb).await
    });
    Ok(axum::Json(VerbResult { actions: done.await?.into_iter().map(Into::into).collect() }))
}

pub(super) async fn types() -> axum::Json<ActionTypeList> {
    axum::Json(ActionTypeList::all())
}

fn read_state(word: &str) -> Result<RunState, ApiError> {
    let known = || RunState::ALL.map(RunState::as_str).join(", ");
    RunState::parse(word).ok_or_else(|| ApiError::invalid(format!("{word:?} is not a state: there are {}", known())))
}
