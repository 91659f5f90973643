//! Launches: list them, look at one, at its minions and at the plan of each, explain it, cancel it, and say yes to a step.

use super::{Shared, to_the_end};
use crate::app::{LaunchQuery, LaunchVerb};
use crate::error::ApiError;
use crate::extract::{Json, Limit, Nothing, Path, Query, Who};
use crate::openapi::{Conflict, Missing};
use crate::shape::{
    Approve, Explanation, Launch, LaunchDetail, LaunchDone, LaunchList, LaunchMinionList, Plan, read_launch_id,
    read_minion,
};
use axum::extract::State;
use saltern_core::ids::ChainId;
use saltern_server::app::Caller;
use saltern_server::clock;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(minions))
        .routes(routes!(plan))
        .routes(routes!(explain))
        .routes(routes!(cancel))
        .routes(routes!(stop))
        .routes(routes!(approve))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only launches before this one
    #[param(value_type = Option<i64>, minimum = 1)]
    before: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
    /// Only those that have not ended
    #[serde(default)]
    open: bool,
    /// Only of this chain: its number, also if it is gone, or its name
    chain: Option<String>,
}

/// List launches
///
/// Newest first, with the counts of the minions you see; launches of which you see no minion are left out, but for your own.
#[utoipa::path(
    get, path = "/launches", operation_id = "list_launches", tag = "launches", params(ListQuery),
    responses((status = 200, description = "A page of launches", body = LaunchList), Conflict, Missing)
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<LaunchList>, ApiError> {
    let chain = match query.chain {
        Some(which) => Some(chain_id(&shared, &caller, &which).await?),
        None => None,
    };
    let limit = query.limit;
    let before = query.before.as_deref().map(read_launch_id).transpose()?;
    let found = shared.app.launches(&caller, &LaunchQuery { before, limit: limit.0, open: query.open, chain }).await?;
    let next = limit.next(&found, |launch| launch.id.0);
    let now = clock::now();
    Ok(axum::Json(LaunchList { launches: found.into_iter().map(|launch| Launch::of(launch, now)).collect(), next }))
}

/// A number is taken as it is: a chain that is gone has launches all the same.
async fn chain_id(shared: &Shared, caller: &Caller, which: &str) -> Result<ChainId, ApiError> {
    match which.parse() {
        Ok(number) => Ok(ChainId(number)),
        Err(_) => Ok(shared.app.chain(caller, which).await?.id),
    }
}

/// Show a launch
///
/// With its steps: each is an action, with a run on each of its minions.
#[utoipa::path(
    get, path = "/launches/{id}", operation_id = "show_launch", tag = "launches",
    params(("id" = i64, Path, description = "Its number", minimum = 1)),
    responses((status = 200, description = "The launch", body = LaunchDetail), Missing)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<LaunchDetail>, ApiError> {
    let view = shared.app.launch_of(&caller, read_launch_id(&id)?).await?;
    Ok(axum::Json(LaunchDetail::of(view, clock::now())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MinionsQuery {
    /// Only minions after this one
    after: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// List the minions of a launch
///
/// Where each stands, in the order of ids, as far as you see them.
#[utoipa::path(
    get, path = "/launches/{id}/minions", operation_id = "list_launch_minions", tag = "launches",
    params(("id" = i64, Path, description = "The launch's number", minimum = 1), MinionsQuery),
    responses((status = 200, description = "A page of minions", body = LaunchMinionList), Missing)
)]
async fn minions(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(query): Query<MinionsQuery>,
) -> Result<axum::Json<LaunchMinionList>, ApiError> {
    let after = query.after.unwrap_or_default();
    let found = shared.app.launch_minions(&caller, read_launch_id(&id)?, &after, query.limit.0).await?;
    let next = query.limit.next(&found, |row| row.minion.to_string());
    Ok(axum::Json(LaunchMinionList { minions: found.into_iter().map(Into::into).collect(), next }))
}

/// Show a minion's plan
///
/// What the launch comes to on this minion: its steps as calls, in the parts that it does by itself, and the same as states.
#[utoipa::path(
    get, path = "/launches/{id}/minions/{minion}/plan", operation_id = "show_plan", tag = "launches",
    params(
        ("id" = i64, Path, description = "The launch's number", minimum = 1),
        ("minion" = String, Path, description = "The minion's id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$"),
    ),
    responses((status = 200, description = "The plan", body = Plan), Missing)
)]
async fn plan(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path((id, minion)): Path<(String, String)>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<Plan>, ApiError> {
    let (plan, sls) = shared.app.launch_plan(&caller, read_launch_id(&id)?, &read_minion(&minion)?).await?;
    Ok(axum::Json(Plan::of(plan, sls)))
}

/// Explain a launch on a minion
///
/// Why it stands where it stands there: about its first step that has not ended.
#[utoipa::path(
    get, path = "/launches/{id}/minions/{minion}/explain", operation_id = "explain_launch", tag = "launches",
    params(
        ("id" = i64, Path, description = "The launch's number", minimum = 1),
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
    let explanation = shared.app.explain_launch(&caller, read_launch_id(&id)?, &read_minion(&minion)?).await?;
    Ok(axum::Json(explanation.into()))
}

/// Cancel a launch
///
/// Nothing more of it begins; what runs is finished.
#[utoipa::path(
    post, path = "/launches/{id}/cancel", operation_id = "cancel_launch", tag = "launches",
    params(("id" = i64, Path, description = "Its number", minimum = 1)),
    responses((status = 200, description = "What was done", body = LaunchDone), Conflict, Missing)
)]
async fn cancel(
    shared: State<Shared>,
    caller: Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<LaunchDone>, ApiError> {
    act(shared, caller, &id, LaunchVerb::Cancel).await
}

/// Stop a launch
///
/// Nothing more of it begins, and what runs is killed on its minion.
#[utoipa::path(
    post, path = "/launches/{id}/stop", operation_id = "stop_launch", tag = "launches",
    params(("id" = i64, Path, description = "Its number", minimum = 1)),
    responses((status = 200, description = "What was done", body = LaunchDone), Conflict, Missing)
)]
async fn stop(
    shared: State<Shared>,
    caller: Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<LaunchDone>, ApiError> {
    act(shared, caller, &id, LaunchVerb::Stop).await
}

/// Say yes to a step
///
/// A step with a question begins on no minion before somebody who may operate all minions of the launch has said yes.
#[utoipa::path(
    post, path = "/launches/{id}/approve", operation_id = "approve_step", tag = "launches",
    params(("id" = i64, Path, description = "The launch's number", minimum = 1)), request_body = Approve,
    responses((status = 200, description = "What was done", body = LaunchDone), Conflict, Missing)
)]
async fn approve(
    shared: State<Shared>,
    caller: Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(Approve { step }): Json<Approve>,
) -> Result<axum::Json<LaunchDone>, ApiError> {
    act(shared, caller, &id, LaunchVerb::Approve { step }).await
}

async fn act(
    State(shared): State<Shared>,
    Who(caller): Who,
    id: &str,
    verb: LaunchVerb,
) -> Result<axum::Json<LaunchDone>, ApiError> {
    let id = read_launch_id(id)?;
    let done = to_the_end(async move { shared.app.act_on_launch(&caller, id, verb).await }).await?;
    Ok(axum::Json(done.into()))
}
