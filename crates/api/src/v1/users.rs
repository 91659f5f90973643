//! Users: list them, look at one and at oneself, make, change and remove one.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Expected, Json, Limit, Nothing, Ordering, Path, Query, Versioned, Who, page};
use crate::openapi::{Changed, Conflict, Missing, Tagged};
use crate::shape::{Me, NewUser, PasswordChange, User, UserChange, UserList};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use saltern_server::app::Session;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(me))
        .routes(routes!(change_password))
        .routes(routes!(show, change, delete))
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

/// List users
///
/// Yourself, and those of the organisations you look after.
#[utoipa::path(
    get, path = "/users", operation_id = "list_users", tag = "users", params(ListQuery),
    responses((status = 200, description = "A page of users", body = UserList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<UserList>, ApiError> {
    let mut all = shared.app.users(&caller);
    all.retain(|user| query.org.as_ref().is_none_or(|org| *org == user.org));
    let (found, next) = page(all, |user| &user.name, query.after.as_deref(), query.order, query.limit);
    Ok(axum::Json(UserList { users: found.into_iter().map(Into::into).collect(), next }))
}

/// Show a user
///
/// Without the password, and with the version for changes.
#[utoipa::path(
    get, path = "/users/{name}", operation_id = "show_user", tag = "users",
    params(("name" = String, Path, description = "The name")),
    responses((status = 200, description = "The user", body = User), Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Versioned<User>, ApiError> {
    Ok(versioned(shared.app.user(&caller, &name)?.into()))
}

/// Show yourself
///
/// Who you are to the server, and what the token in use is good for.
#[utoipa::path(
    get, path = "/users/me", operation_id = "show_me", tag = "users",
    responses((status = 200, description = "You", body = Me))
)]
async fn me(
    State(shared): State<Shared>,
    Who(caller): Who,
    session: Option<Extension<Session>>,
    Query(Nothing {}): Query<Nothing>,
) -> axum::Json<Me> {
    let user = shared.app.user(&caller, &caller.who).ok();
    axum::Json(Me::of(&caller.rights, user, session.as_deref()))
}

/// Change your password
///
/// Your other sessions end; tokens stay.
#[utoipa::path(
    put, path = "/users/me/password", operation_id = "change_password", tag = "users",
    request_body = PasswordChange,
    responses((status = 204, description = "It was changed"), Conflict, Missing,
        (status = 412, description = "Somebody else has changed it at the same time",
         content_type = "application/problem+json", body = crate::shape::Problem))
)]
async fn change_password(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(PasswordChange { old, new }): Json<PasswordChange>,
) -> Result<StatusCode, ApiError> {
    to_the_end(async move { shared.app.change_password(&caller, &old, &new).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Make a user
///
/// Nobody gives more than he has: an organisation's admin gives roles in it, and only in it.
#[utoipa::path(
    post, path = "/users", operation_id = "create_user", tag = "users", request_body = NewUser,
    responses((status = 201, description = "The user was made", body = User), Conflict, Missing)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<NewUser>,
) -> Result<(StatusCode, Versioned<User>), ApiError> {
    let (name, change) = request.read();
    let made = to_the_end(async move { shared.app.create_user(&caller, &name, change).await }).await?;
    Ok((StatusCode::CREATED, versioned(made.into())))
}

/// Change a user
///
/// What is left out stays as it is. With another password, other roles, or once disabled, the user's sessions end.
#[utoipa::path(
    patch, path = "/users/{name}", operation_id = "change_user", tag = "users",
    params(("name" = String, Path, description = "The name")), request_body = UserChange,
    responses((status = 200, description = "As the user is now", body = User), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
    Json(change): Json<UserChange>,
) -> Result<Versioned<User>, ApiError> {
    let work = async move { shared.app.change_user(&caller, &name, change.read(), version).await };
    Ok(versioned(to_the_end(work).await?.into()))
}

/// Remove a user
///
/// With all tokens and sessions.
#[utoipa::path(
    delete, path = "/users/{name}", operation_id = "delete_user", tag = "users",
    params(("name" = String, Path, description = "The name")),
    responses((status = 204, description = "The user is gone"), Changed)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
) -> Result<StatusCode, ApiError> {
    to_the_end(async move { shared.app.delete_user(&caller, &name, version).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn versioned(user: User) -> Versioned<User> {
    let version = user.version;
    Versioned(user, version)
}
