//! Sessions: log in, log out.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Nothing, Query, Who};
use crate::openapi::Missing;
use crate::session::{Credentials, NotIn, Source, log_in};
use crate::shape::{LogIn, LoggedIn, Problem};
use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use saltern_server::Error;
use saltern_server::app::Session;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(delete))
}

/// Log in
///
/// The token is in the answer, in its header `X-Auth-Token`, and in a cookie. Every refusal takes the same time and says the
/// same.
#[utoipa::path(
    post, path = "/sessions", operation_id = "log_in", tag = "sessions", request_body = LogIn, security(()),
    responses(
        (status = 201, description = "You are logged in", body = LoggedIn),
        (status = 401, description = "The name or the password is wrong",
         content_type = "application/problem+json", body = Problem),
        (status = 404, description = "There is no log-in here: on the control socket none is needed",
         content_type = "application/problem+json", body = Problem),
        (status = 429, description = "Too many log-ins were tried",
         content_type = "application/problem+json", body = Problem),
    )
)]
async fn create(
    State(shared): State<Shared>,
    from: Source,
    old: Option<Extension<Session>>,
    Query(Nothing {}): Query<Nothing>,
    Json(LogIn { user, password, auth }): Json<LogIn>,
) -> Result<impl IntoResponse, ApiError> {
    let missing = || Error::NotFound("there is no log-in here: on the control socket none is needed".into());
    let gate = shared.gate.ok_or_else(missing)?;
    let shown = Credentials { user, password, auth };
    let signed_in =
        log_in(&shared.app, &gate, from, &shown, None, old.as_deref()).await.map_err(|refused| match refused {
            NotIn::Denied => Error::Unauthenticated("the user name or the password is wrong".into()).into(),
            NotIn::TooMany(retry_after) => ApiError::too_many("too many log-ins were tried", retry_after),
            NotIn::Failed(error) => error.into(),
        })?;
    let headers = [
        (header::SET_COOKIE, from.cookie(&signed_in)),
        (header::HeaderName::from_static("x-auth-token"), signed_in.token.clone()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((StatusCode::CREATED, headers, axum::Json(LoggedIn::from(signed_in))))
}

/// Log out
///
/// The token that is shown with this request is not valid any more.
#[utoipa::path(
    delete, path = "/sessions/current", operation_id = "log_out", tag = "sessions",
    responses((status = 204, description = "You are logged out"), Missing)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(_caller): Who,
    from: Source,
    session: Option<Extension<Session>>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<impl IntoResponse, ApiError> {
    let missing = || Error::NotFound("there is no session: on the control socket none is needed".into());
    let Extension(session) = session.ok_or_else(missing)?;
    to_the_end(async move { shared.app.sign_out(&session).await }).await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, from.no_cookie())]))
}
