//! System groups: list them, look at one, make, change and remove one.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Expected, Json, Limit, Nothing, Ordering, Path, Query, Versioned, Who, page};
use crate::openapi::{Changed, Conflict, Missing, Tagged};
use crate::shape::{Group, GroupContent, GroupDetail, GroupList, NewGroup};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(show, change, delete))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only of this organisation
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

/// List groups
///
/// Those of your organisation, or all for a server admin.
#[utoipa::path(
    get, path = "/groups", operation_id = "list_groups", tag = "groups", params(ListQuery),
    responses((status = 200, description = "A page of groups", body = GroupList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<GroupList>, ApiError> {
    let mut all = shared.app.groups(&caller).await?;
    all.retain(|entry| query.org.as_ref().is_none_or(|org| *org == entry.group.org));
    let (found, next) = page(all, |entry| &entry.group.name, query.after.as_deref(), query.order, query.limit);
    Ok(axum::Json(GroupList { groups: found.iter().map(Group::from).collect(), next }))
}

/// Show a group
///
/// With the minions it means now, as far as you see them.
#[utoipa::path(
    get, path = "/groups/{name}", operation_id = "show_group", tag = "groups",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, description = "The group", body = GroupDetail), Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Versioned<GroupDetail>, ApiError> {
    Ok(versioned(shared.app.group(&caller, &name).await?.into()))
}

/// Make a group
///
/// Of minions that are named, of those that match a target, or both.
#[utoipa::path(
    post, path = "/groups", operation_id = "create_group", tag = "groups", request_body = NewGroup,
    responses((status = 201, description = "It was made", body = GroupDetail), Conflict, Missing)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<NewGroup>,
) -> Result<(StatusCode, Versioned<GroupDetail>), ApiError> {
    let group = request.read()?;
    let made = to_the_end(async move { shared.app.put_group(&caller, group, None).await }).await?;
    Ok((StatusCode::CREATED, versioned(made.into())))
}

/// Change a group
///
/// All of it is replaced; only its name and its organisation stay.
#[utoipa::path(
    put, path = "/groups/{name}", operation_id = "change_group", tag = "groups",
    params(("name" = String, Path, description = "Its name")), request_body = GroupContent,
    responses((status = 200, description = "As it is now", body = GroupDetail), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
    Json(content): Json<GroupContent>,
) -> Result<Versioned<GroupDetail>, ApiError> {
    let group = content.read(name, String::new())?;
    let changed = to_the_end(async move { shared.app.put_group(&caller, group, Some(version)).await }).await?;
    Ok(versioned(changed.into()))
}

/// Remove a group
///
/// The roles that were given on it go with it; its minions stay.
#[utoipa::path(
    delete, path = "/groups/{name}", operation_id = "delete_group", tag = "groups",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 204, description = "It is gone"), Changed)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
) -> Result<StatusCode, ApiError> {
    to_the_end(async move { shared.app.delete_group(&caller, &name, version).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn versioned(detail: GroupDetail) -> Versioned<GroupDetail> {
    let version = detail.group.version;
    Versioned(detail, version)
}
