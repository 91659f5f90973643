//! The state catalogue: list states, look at one and at what it has been, make, change, remove and assign one.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Expected, Json, Limit, Nothing, Ordering, Path, Query, Versioned, Who, page};
use crate::openapi::{Changed, Conflict, Missing, Tagged};
use crate::shape::{
    AssignedStateList, Assignee, AssigneeList, CatalogueState, NewState, StateContent, StateDetail, StateList,
    StateVersionDetail, StateVersionList, read_minion,
};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, change, delete))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(assignees))
        .routes(routes!(assign, unassign))
        .routes(routes!(assigned))
}

/// Whose states.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Whose {
    /// The organisation; nothing: your own
    org: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// The organisation; nothing: your own
    org: Option<String>,
    /// Only names after this one, in the order that is asked for
    after: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
    /// In which order of names
    #[serde(default)]
    #[param(inline)]
    order: Ordering,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VersionsQuery {
    /// The organisation; nothing: your own
    org: Option<String>,
    /// Only versions before this one
    before: Option<i64>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// List states
///
/// Those of one organisation.
#[utoipa::path(
    get, path = "/states", operation_id = "list_states", tag = "states", params(ListQuery),
    responses((status = 200, description = "A page of states", body = StateList), Missing)
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<StateList>, ApiError> {
    let all = shared.app.states(&caller, query.org.as_deref())?;
    let (found, next) = page(all, |state| &state.name, query.after.as_deref(), query.order, query.limit);
    Ok(axum::Json(StateList { states: found.iter().map(CatalogueState::from).collect(), next }))
}

/// Show a state
///
/// With its text.
#[utoipa::path(
    get, path = "/states/{name}", operation_id = "show_state", tag = "states",
    params(("name" = String, Path, description = "Its name"), Whose),
    responses((status = 200, description = "The state", body = StateDetail), Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Whose { org }): Query<Whose>,
) -> Result<Versioned<StateDetail>, ApiError> {
    Ok(versioned(shared.app.state(&caller, org.as_deref(), &name)?.into()))
}

/// Make a state
///
/// Minions of the organisation have it at once, as `catalogue.<name>`.
#[utoipa::path(
    post, path = "/states", operation_id = "create_state", tag = "states", request_body = NewState,
    responses((status = 201, description = "It was made", body = StateDetail), Conflict, Missing)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<NewState>,
) -> Result<(StatusCode, Versioned<StateDetail>), ApiError> {
    let made = to_the_end(async move { shared.app.put_state(&caller, request.into(), None).await }).await?;
    Ok((StatusCode::CREATED, versioned(made.into())))
}

/// Change a state
///
/// What it was is kept as a version. To go back to one, send its text again.
#[utoipa::path(
    put, path = "/states/{name}", operation_id = "change_state", tag = "states",
    params(("name" = String, Path, description = "Its name"), Whose), request_body = StateContent,
    responses((status = 200, description = "As it is now", body = StateDetail), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Whose { org }): Query<Whose>,
    Expected(version): Expected,
    Json(content): Json<StateContent>,
) -> Result<Versioned<StateDetail>, ApiError> {
    let draft = content.read(name, org);
    let changed = to_the_end(async move { shared.app.put_state(&caller, draft, Some(version)).await }).await?;
    Ok(versioned(changed.into()))
}

/// Remove a state
///
/// With its versions, and from whomever it was assigned to.
#[utoipa::path(
    delete, path = "/states/{name}", operation_id = "delete_state", tag = "states",
    params(("name" = String, Path, description = "Its name"), Whose),
    responses((status = 204, description = "It is gone"), Changed)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Whose { org }): Query<Whose>,
    Expected(version): Expected,
) -> Result<StatusCode, ApiError> {
    to_the_end(async move { shared.app.delete_state(&caller, org.as_deref(), &name, version).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the versions of a state
///
/// Newest first; the last five hundred are kept.
#[utoipa::path(
    get, path = "/states/{name}/versions", operation_id = "list_state_versions", tag = "states",
    params(("name" = String, Path, description = "Its name"), VersionsQuery),
    responses((status = 200, description = "A page of versions", body = StateVersionList), Missing)
)]
async fn versions(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(VersionsQuery { org, before, limit }): Query<VersionsQuery>,
) -> Result<axum::Json<StateVersionList>, ApiError> {
    let found = shared.app.state_versions(&caller, org.as_deref(), &name, before, limit.0).await?;
    let next = limit.next(&found, |last| last.version);
    Ok(axum::Json(StateVersionList { versions: found.into_iter().map(Into::into).collect(), next }))
}

/// Show a version of a state
///
/// With its text.
#[utoipa::path(
    get, path = "/states/{name}/versions/{version}", operation_id = "show_state_version", tag = "states",
    params(
        ("name" = String, Path, description = "Its name"),
        ("version" = i64, Path, description = "The number of the version"),
        Whose,
    ),
    responses((status = 200, description = "The version", body = StateVersionDetail), Missing)
)]
async fn version(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path((name, version)): Path<(String, i64)>,
    Query(Whose { org }): Query<Whose>,
) -> Result<axum::Json<StateVersionDetail>, ApiError> {
    let (version, content) = shared.app.state_version(&caller, org.as_deref(), &name, version).await?;
    Ok(axum::Json(StateVersionDetail { version: version.into(), content }))
}

/// List whom a state is assigned to
///
/// The organisation, groups, and the minions that you see.
#[utoipa::path(
    get, path = "/states/{name}/assignments", operation_id = "list_state_assignments", tag = "states",
    params(("name" = String, Path, description = "Its name"), Whose),
    responses((status = 200, description = "To whom", body = AssigneeList), Missing)
)]
async fn assignees(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Whose { org }): Query<Whose>,
) -> Result<axum::Json<AssigneeList>, ApiError> {
    Ok(axum::Json(shared.app.state(&caller, org.as_deref(), &name)?.into()))
}

/// Assign a state
///
/// To a minion, to a group or to the organisation: whatever belongs to it then applies it with `saltern.assigned`.
#[utoipa::path(
    put, path = "/states/{name}/assignments/{kind}/{subject}", operation_id = "assign_state", tag = "states",
    params(
        ("name" = String, Path, description = "Its name"),
        ("kind" = String, Path, description = "`minion`, `group` or `org`", pattern = "^(minion|group|org)$"),
        ("subject" = String, Path, description = "Which one: its id or name"),
        Whose,
    ),
    responses((status = 204, description = "It is assigned"), Conflict, Missing)
)]
async fn assign(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path((name, kind, subject)): Path<(String, String, String)>,
    Query(Whose { org }): Query<Whose>,
) -> Result<StatusCode, ApiError> {
    let to = Assignee::read(&kind, subject)?;
    to_the_end(async move { shared.app.assign_state(&caller, org.as_deref(), &name, to).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take an assignment back
///
/// Nothing is undone on the minions.
#[utoipa::path(
    delete, path = "/states/{name}/assignments/{kind}/{subject}", operation_id = "unassign_state", tag = "states",
    params(
        ("name" = String, Path, description = "Its name"),
        ("kind" = String, Path, description = "`minion`, `group` or `org`", pattern = "^(minion|group|org)$"),
        ("subject" = String, Path, description = "Which one: its id or name"),
        Whose,
    ),
    responses((status = 204, description = "It is not assigned any more"), Conflict, Missing)
)]
async fn unassign(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path((name, kind, subject)): Path<(String, String, String)>,
    Query(Whose { org }): Query<Whose>,
) -> Result<StatusCode, ApiError> {
    let from = Assignee::read(&kind, subject)?;
    to_the_end(async move { shared.app.unassign_state(&caller, org.as_deref(), &name, from).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the states assigned to a minion
///
/// In the order they are applied in: those of its organisation, of its groups, its own.
#[utoipa::path(
    get, path = "/minions/{id}/states", operation_id = "list_assigned_states", tag = "states",
    params(("id" = String, Path, description = "Its id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")),
    responses((status = 200, description = "The states", body = AssignedStateList), Missing)
)]
async fn assigned(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<AssignedStateList>, ApiError> {
    let found = shared.app.assigned_states(&caller, &read_minion(&id)?).await?;
    Ok(axum::Json(AssignedStateList { states: found.into_iter().map(Into::into).collect() }))
}

fn versioned(detail: StateDetail) -> Versioned<StateDetail> {
    let version = detail.state.version;
    Versioned(detail, version)
}
