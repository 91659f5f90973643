//! Actions: ask for one, list them, look at one and at its runs, explain it, do something with it.

use super::{Shared, to_the_end};
use crate::app::{ActionFilter, ActionQuery};
use crate::error::ApiError;
use crate::extract::{Json, Limit, Nothing, Path, Query, Who};
use crate::openapi::{Conflict, Missing};
use crate::shape::{
    ActionDetail, ActionList, ActionRequest, ActionTypeList, ActionVerb, Created, Explanation, Order, RunDetail,
    RunList, VerbRequest, VerbResult, read_action_id, read_minion,
};
use axum::extract::State;
use axum::http::StatusCode;
use saltern_core::run::RunState;
use saltern_server::app::Door;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        // One segment names an action to look at, or a verb for many.
        .routes(routes!(show, act_on_many))
        .routes(routes!(act_on_one))
        .routes(routes!(runs))
        .routes(routes!(run))
        .routes(routes!(explain))
        .routes(routes!(types))
}

/// Ask for an action
///
/// When this answers, the action is on disk and will be carried out.
#[utoipa::path(
    post, path = "/actions", operation_id = "create_action", tag = "actions", request_body = ActionRequest,
    responses((status = 201, description = "It was accepted", body = Created), Missing)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<ActionRequest>,
) -> Result<(StatusCode, axum::Json<Created>), ApiError> {
    let request = request.read()?;
    let accepted = to_the_end(async move { shared.app.submit(&caller, request, Door::Action).await }).await?;
    Ok((StatusCode::CREATED, axum::Json(accepted.into())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only actions before this one
    #[param(value_type = Option<i64>, minimum = 1)]
    before: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
    /// Only these
    #[param(inline)]
    state: Option<Which>,
    /// The archived ones instead of the others
    #[serde(default)]
    archived: bool,
    /// With the server's own housekeeping
    #[serde(default)]
    internal: bool,
    /// Only asked for by this user
    user: Option<String>,
    /// Only with a run on this minion
    #[param(pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")]
    minion: Option<String>,
}

/// Which actions are wanted.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Which {
    /// Some run has not ended
    Open,
    /// Some run has failed
    Failed,
    /// All runs have ended well
    Completed,
}

/// List actions
///
/// Newest first, with the runs of the minions you see; actions of which you see no minion are left out.
#[utoipa::path(
    get, path = "/actions", operation_id = "list_actions", tag = "actions", params(ListQuery),
    responses((status = 200, description = "A page of actions", body = ActionList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<ActionList>, ApiError> {
    let limit = query.limit;
    let query = ActionQuery {
        before: query.before.as_deref().map(read_action_id).transpose()?,
        limit: limit.0,
        internal: query.internal,
        archived: query.archived,
        filter: match query.state {
            None => ActionFilter::All,
            Some(Which::Open) => ActionFilter::Open,
            Some(Which::Failed) => ActionFilter::Failed,
            Some(Which::Completed) => ActionFilter::Completed,
        },
        initiator: query.user,
        minion: query.minion.as_deref().map(read_minion).transpose()?,
    };
    let actions = shared.app.actions(&caller, &query).await?;
    let next = limit.next(&actions, |action| action.id.0);
    Ok(axum::Json(ActionList { actions: actions.into_iter().map(Into::into).collect(), next }))
}

/// Show an action
///
/// With its parameters, its rules, what was decided when it was accepted, and its jobs.
#[utoipa::path(
    get, path = "/actions/{id}", operation_id = "show_action", tag = "actions",
    params(("id" = i64, Path, description = "Its id", minimum = 1)),
    responses((status = 200, description = "The action", body = ActionDetail), Missing)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<ActionDetail>, ApiError> {
    let id = read_action_id(&id)?;
    let action = shared.app.action(&caller, id).await?;
    let jobs = shared.app.jobs_of(&caller, id).await?;
    Ok(axum::Json(ActionDetail::of(action, jobs.iter().map(ToString::to_string).collect())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsQuery {
    /// Only in this state: `queued`, `sent`, `picked_up`, `completed`, `failed` or `cancelled`
    #[param(pattern = "^(queued|sent|picked_up|completed|failed|cancelled)$")]
    state: Option<String>,
    /// Only minions after this one
    after: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// List the runs of an action
///
/// Where each minion stands, in the order of minions.
#[utoipa::path(
    get, path = "/actions/{id}/runs", operation_id = "list_runs", tag = "runs",
    params(("id" = i64, Path, description = "The action's id", minimum = 1), RunsQuery),
    responses((status = 200, description = "A page of runs", body = RunList), Missing)
)]
async fn runs(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(query): Query<RunsQuery>,
) -> Result<axum::Json<RunList>, ApiError> {
    let state = query.state.as_deref().map(read_state).transpose()?;
    let after = query.after.unwrap_or_default();
    let runs = shared.app.runs(&caller, read_action_id(&id)?, state, &after, query.limit.0).await?;
    let next = query.limit.next(&runs, |run| run.minion.to_string());
    Ok(axum::Json(RunList { runs: runs.into_iter().map(Into::into).collect(), next }))
}

/// Show a run
///
/// One action on one minion, with what was tried before.
#[utoipa::path(
    get, path = "/actions/{id}/runs/{minion}", operation_id = "show_run", tag = "runs",
    params(
        ("id" = i64, Path, description = "The action's id", minimum = 1),
        ("minion" = String, Path, description = "The minion's id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$"),
    ),
    responses((status = 200, description = "The run", body = RunDetail), Missing)
)]
async fn run(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path((id, minion)): Path<(String, String)>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<RunDetail>, ApiError> {
    let (id, minion) = (read_action_id(&id)?, read_minion(&minion)?);
    let explanation = shared.app.explain(&caller, id, &minion).await?;
    let attempts = shared.app.attempts(&caller, id, &minion).await?;
    Ok(axum::Json(RunDetail::of(explanation.run, attempts)))
}

/// Explain a run
///
/// Why it stands where it stands, what has happened, and what happens next.
#[utoipa::path(
    get, path = "/actions/{id}/runs/{minion}/explain", operation_id = "explain_run", tag = "runs",
    params(
        ("id" = i64, Path, description = "The action's id", minimum = 1),
        ("minion" = String, Path, description = "The minion's id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$"),
    ),
    responses((status = 200, description = "Why", body = Explanation), Missing)
)]
async fn explain(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path((id, minion)): Path<(String, String)>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<Explanation>, ApiError> {
    let explanation = shared.app.explain(&caller, read_action_id(&id)?, &read_minion(&minion)?).await?;
    Ok(axum::Json(explanation.into()))
}

/// Do something with an action
///
/// `cancel`, `stop`, `retry`, `fail`, `pause`, `resume`, `reschedule`, `archive`, `unarchive` or `delete` it. What became of
/// each run is told.
#[utoipa::path(
    post, path = "/actions/{id}/{verb}", operation_id = "act_on_action", tag = "actions",
    params(
        ("id" = i64, Path, description = "The action's id", minimum = 1),
        ("verb" = inline(ActionVerb), Path, description = "What is to be done"),
    ),
    request_body = VerbRequest,
    responses((status = 200, description = "What was done", body = VerbResult), Conflict, Missing)
)]
async fn act_on_one(
    shared: State<Shared>,
    caller: Who,
    Path((id, verb)): Path<(String, String)>,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<VerbRequest>,
) -> Result<axum::Json<VerbResult>, ApiError> {
    let verb = ActionVerb::read(&verb)?;
    act(shared, caller, request.read(verb, Some(read_action_id(&id)?))?).await
}

/// Do something with several actions
///
/// The path names the verb, the body the actions. Nothing is done to any of them if one is not there.
#[utoipa::path(
    post, path = "/actions/{id}", operation_id = "act_on_actions", tag = "actions",
    params(("id" = inline(ActionVerb), Path, description = "What is to be done")),
    request_body = VerbRequest,
    responses((status = 200, description = "What was done", body = VerbResult), Conflict, Missing)
)]
async fn act_on_many(
    shared: State<Shared>,
    caller: Who,
    Path(verb): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<VerbRequest>,
) -> Result<axum::Json<VerbResult>, ApiError> {
    act(shared, caller, request.read(ActionVerb::read(&verb)?, None)?).await
}

async fn act(State(shared): State<Shared>, Who(caller): Who, order: Order) -> Result<axum::Json<VerbResult>, ApiError> {
    let done = to_the_end(async move {
        let Order { ids, minions, verb } = order;
        shared.app.act(&caller, &ids, minions.as_deref(), &verb).await
    });
    Ok(axum::Json(VerbResult { actions: done.await?.into_iter().map(Into::into).collect() }))
}

/// List action types
///
/// With what each can be told.
#[utoipa::path(
    get, path = "/action-types", operation_id = "list_action_types", tag = "actions",
    responses((status = 200, description = "The types there are", body = ActionTypeList))
)]
async fn types(Who(_caller): Who, Query(Nothing {}): Query<Nothing>) -> axum::Json<ActionTypeList> {
    axum::Json(ActionTypeList::all())
}

fn read_state(word: &str) -> Result<RunState, ApiError> {
    let known = || RunState::ALL.map(RunState::as_str).join(", ");
    RunState::parse(word).ok_or_else(|| ApiError::invalid(format!("{word:?} is not a state: there are {}", known())))
}
