//! Chains: list them, look at one, make, change, copy and remove one, add a step, launch it, and clear what minions keep.
//!
//! A chain is named by its number, or by its name: one's own first, then what others share.

use super::{Shared, to_the_end};
use crate::app::{ChainDraft as Draft, draft_of};
use crate::error::ApiError;
use crate::extract::{Expected, Json, Limit, Nothing, Path, Query, Versioned, Who};
use crate::openapi::{Changed, Conflict, Missing, Tagged};
use crate::shape::{
    Chain, ChainClear, ChainCopy, ChainDetail, ChainDraft, ChainList, ChainState, ChainVerb, ChainsCleared, Launch,
    LaunchPreview, LaunchRequest, NewStep, StateDetail,
};
use axum::extract::State;
use axum::http::StatusCode;
use saltern_core::ids::ChainId;
use saltern_server::{Error, app, clock};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        // One segment names a chain, or a verb for what minions keep of whichever chain.
        .routes(routes!(show, change, delete, clear))
        .routes(routes!(add_step))
        .routes(routes!(copy))
        .routes(routes!(save_as_state))
        .routes(routes!(launch))
        .routes(routes!(preview))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only after this number
    after: Option<i64>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// List chains
///
/// Your own and those that others of your organisation share, oldest first, without their steps. Admins see all of their
/// organisation, server admins all there are.
#[utoipa::path(
    get, path = "/chains", operation_id = "list_chains", tag = "chains", params(ListQuery),
    responses((status = 200, description = "A page of chains", body = ChainList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<ChainList>, ApiError> {
    let found = shared.app.chains(&caller, ChainId(query.after.unwrap_or(0)), query.limit.0).await?;
    let next = query.limit.next(&found, |chain| chain.id.0);
    let chains = found.into_iter().map(Chain::try_from).collect::<Result<_, _>>()?;
    Ok(axum::Json(ChainList { chains, next }))
}

/// Show a chain
///
/// With its steps.
#[utoipa::path(
    get, path = "/chains/{chain}", operation_id = "show_chain", tag = "chains",
    params(("chain" = String, Path, description = "Its number or its name")),
    responses((status = 200, description = "The chain", body = ChainDetail), Conflict, Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(which): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Versioned<ChainDetail>, ApiError> {
    versioned(shared.app.chain(&caller, &which).await?)
}

/// Make a chain
///
/// It is yours. Nothing is done until it is launched.
#[utoipa::path(
    post, path = "/chains", operation_id = "create_chain", tag = "chains", request_body = ChainDraft,
    responses((status = 201, description = "It was made", body = ChainDetail), Conflict)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(draft): Json<ChainDraft>,
) -> Result<(StatusCode, Versioned<ChainDetail>), ApiError> {
    let draft = draft.read();
    let made = to_the_end(async move { shared.app.create_chain(&caller, draft).await }).await?;
    Ok((StatusCode::CREATED, versioned(made)?))
}

/// Change a chain
///
/// All of it is replaced, its name too; only its owner and its organisation stay. Launches that were made from it stay as they
/// are.
#[utoipa::path(
    put, path = "/chains/{chain}", operation_id = "change_chain", tag = "chains",
    params(("chain" = String, Path, description = "Its number or its name")), request_body = ChainDraft,
    responses((status = 200, description = "As it is now", body = ChainDetail), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(which): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
    Json(draft): Json<ChainDraft>,
) -> Result<Versioned<ChainDetail>, ApiError> {
    let draft = draft.read();
    let changed = to_the_end(async move {
        let id = shared.app.chain(&caller, &which).await?.id;
        shared.app.put_chain(&caller, id, draft, version).await
    });
    versioned(changed.await?)
}

/// Remove a chain
///
/// Launches that were made from it stay, and go on.
#[utoipa::path(
    delete, path = "/chains/{chain}", operation_id = "delete_chain", tag = "chains",
    params(("chain" = String, Path, description = "Its number or its name")),
    responses((status = 204, description = "It is gone"), Changed)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(which): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
) -> Result<StatusCode, ApiError> {
    let gone = to_the_end(async move {
        let id = shared.app.chain(&caller, &which).await?.id;
        shared.app.delete_chain(&caller, id, version).await
    });
    gone.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Clear the chains of minions
///
/// The path says `clear`. Minions forget chains that are over; with `force` also one that has not ended, if nothing of it runs.
#[utoipa::path(
    post, path = "/chains/{chain}", operation_id = "clear_chains", tag = "chains",
    params(("chain" = inline(ChainVerb), Path, description = "What is to be done")), request_body = ChainClear,
    responses((status = 200, description = "What was done", body = ChainsCleared), Missing)
)]
async fn clear(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(verb): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<ChainClear>,
) -> Result<axum::Json<ChainsCleared>, ApiError> {
    let ChainVerb::Clear = ChainVerb::read(&verb)?;
    let (minions, force) = request.read()?;
    let cleared = to_the_end(async move { shared.app.clear_chain(&caller, &minions, force).await }).await?;
    Ok(axum::Json(cleared.into()))
}

/// Add a step to a chain
///
/// At the end, or before the one that has that number. Several who add at the same time are all heard: no `If-Match` is needed.
#[utoipa::path(
    post, path = "/chains/{chain}/steps", operation_id = "add_step", tag = "chains",
    params(("chain" = String, Path, description = "Its number or its name")), request_body = NewStep,
    responses((status = 200, description = "As it is now", body = ChainDetail), Conflict, Missing)
)]
async fn add_step(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(which): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(NewStep { step, position }): Json<NewStep>,
) -> Result<Versioned<ChainDetail>, ApiError> {
    let changed = to_the_end(async move {
        let id = shared.app.chain(&caller, &which).await?.id;
        shared.app.add_step(&caller, id, step, position).await
    });
    versioned(changed.await?)
}

/// Copy a chain
///
/// The copy is yours, under another name, and is not shared.
#[utoipa::path(
    post, path = "/chains/{chain}/copy", operation_id = "copy_chain", tag = "chains",
    params(("chain" = String, Path, description = "Its number or its name")), request_body = ChainCopy,
    responses((status = 201, description = "The copy", body = ChainDetail), Conflict, Missing)
)]
async fn copy(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(which): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(ChainCopy { name }): Json<ChainCopy>,
) -> Result<(StatusCode, Versioned<ChainDetail>), ApiError> {
    let made = to_the_end(async move {
        let draft = draft_of(&shared.app.chain(&caller, &which).await?)?;
        shared.app.create_chain(&caller, Draft { name, shared: false, ..draft }).await
    });
    Ok((StatusCode::CREATED, versioned(made.await?)?))
}

/// Save a chain as a state
///
/// A state of the catalogue that does what the chain does, in its order. A chain that waits for a restart, for other minions or
/// for a yes cannot be one.
#[utoipa::path(
    post, path = "/chains/{chain}/state", operation_id = "save_chain_as_state", tag = "chains",
    params(("chain" = String, Path, description = "Its number or its name")), request_body = ChainState,
    responses((status = 201, description = "The state", body = StateDetail), Conflict, Missing)
)]
async fn save_as_state(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(which): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(ChainState { name }): Json<ChainState>,
) -> Result<(StatusCode, Versioned<StateDetail>), ApiError> {
    let saved = to_the_end(async move {
        let id = shared.app.chain(&caller, &which).await?.id;
        shared.app.save_chain_as_state(&caller, id, name, None).await
    });
    let saved = saved.await?;
    let version = saved.state.version;
    Ok((StatusCode::CREATED, Versioned(saved.into(), version)))
}

/// Launch a chain
///
/// When this answers, the launch is on disk and will be carried out. Its steps are the chain's as they are now.
#[utoipa::path(
    post, path = "/chains/{chain}/launch", operation_id = "launch_chain", tag = "chains",
    params(("chain" = String, Path, description = "Its number or its name")), request_body = LaunchRequest,
    responses((status = 201, description = "It was accepted", body = Launch), Conflict, Missing)
)]
async fn launch(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(which): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<LaunchRequest>,
) -> Result<(StatusCode, axum::Json<Launch>), ApiError> {
    let request = request.read()?;
    let launched = to_the_end(async move {
        let id = shared.app.chain(&caller, &which).await?.id;
        shared.app.launch(&caller, id, request).await
    });
    Ok((StatusCode::CREATED, axum::Json(Launch::of(launched.await?, clock::now()))))
}

/// Preview a launch
///
/// Whom each step would be for, or why it would be refused. Nothing is stored.
#[utoipa::path(
    post, path = "/chains/{chain}/preview", operation_id = "preview_launch", tag = "chains",
    params(("chain" = String, Path, description = "Its number or its name")), request_body = LaunchRequest,
    responses((status = 200, description = "Whom it would be for", body = LaunchPreview), Conflict, Missing)
)]
async fn preview(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(which): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<LaunchRequest>,
) -> Result<axum::Json<LaunchPreview>, ApiError> {
    let request = request.read()?;
    let id = shared.app.chain(&caller, &which).await?.id;
    Ok(axum::Json(shared.app.preview_launch(&caller, id, request).await?.into()))
}

fn versioned(chain: app::Chain) -> Result<Versioned<ChainDetail>, ApiError> {
    let version = chain.version;
    let detail = ChainDetail::try_from(chain).map_err(|error: Error| ApiError::from(error))?;
    Ok(Versioned(detail, version))
}
