//! Organisations: list them, look at one, make, change and remove one.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Expected, Json, Limit, Nothing, Ordering, Path, Query, Versioned, Who, page};
use crate::openapi::{Changed, Conflict, Tagged};
use crate::shape::{NewOrganisation, Organisation, OrganisationContent, OrganisationList};
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

/// List organisations
///
/// Those you may know of: your own, or all for a server admin.
#[utoipa::path(
    get, path = "/organisations", operation_id = "list_organisations", tag = "organisations", params(ListQuery),
    responses((status = 200, description = "A page of organisations", body = OrganisationList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<OrganisationList>, ApiError> {
    let all = shared.app.organisations(&caller);
    let (found, next) = page(all, |org| &org.name, query.after.as_deref(), query.order, query.limit);
    Ok(axum::Json(OrganisationList { organisations: found.into_iter().map(Into::into).collect(), next }))
}

/// Show an organisation
///
/// With its version, for changes.
#[utoipa::path(
    get, path = "/organisations/{name}", operation_id = "show_organisation", tag = "organisations",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, description = "The organisation", body = Organisation), Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Versioned<Organisation>, ApiError> {
    Ok(versioned(shared.app.organisation(&caller, &name)?.into()))
}

/// Make an organisation
///
/// For server admins.
#[utoipa::path(
    post, path = "/organisations", operation_id = "create_organisation", tag = "organisations",
    request_body = NewOrganisation,
    responses((status = 201, description = "It was made", body = Organisation), Conflict)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(NewOrganisation { name, description }): Json<NewOrganisation>,
) -> Result<(StatusCode, Versioned<Organisation>), ApiError> {
    let made = to_the_end(async move { shared.app.put_organisation(&caller, &name, &description, None).await }).await?;
    Ok((StatusCode::CREATED, versioned(made.into())))
}

/// Change an organisation
///
/// For its own admins and for server admins.
#[utoipa::path(
    put, path = "/organisations/{name}", operation_id = "change_organisation", tag = "organisations",
    params(("name" = String, Path, description = "Its name")), request_body = OrganisationContent,
    responses((status = 200, description = "As it is now", body = Organisation), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
    Json(OrganisationContent { description }): Json<OrganisationContent>,
) -> Result<Versioned<Organisation>, ApiError> {
    let work = async move { shared.app.put_organisation(&caller, &name, &description, Some(version)).await };
    Ok(versioned(to_the_end(work).await?.into()))
}

/// Remove an organisation
///
/// Only one that no users, groups or minions belong to.
#[utoipa::path(
    delete, path = "/organisations/{name}", operation_id = "delete_organisation", tag = "organisations",
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
    to_the_end(async move { shared.app.delete_organisation(&caller, &name, Some(version)).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn versioned(org: Organisation) -> Versioned<Organisation> {
    let version = org.version;
    Versioned(org, version)
}
