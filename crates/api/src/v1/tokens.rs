//! Tokens: list them, make one, take one back.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Limit, Nothing, Path, Query, Who};
use crate::openapi::Missing;
use crate::shape::{CreatedToken, NewToken, Token, TokenList, read_token_id};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(delete))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only of this user; nothing: your own, or everybody's for a server admin
    user: Option<String>,
    /// Only ids after this one
    #[param(pattern = "^[0-9a-fA-F]{1,64}$")]
    after: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// List tokens
///
/// Tokens and open log-ins, in the order of ids, without the secrets.
#[utoipa::path(
    get, path = "/tokens", operation_id = "list_tokens", tag = "tokens", params(ListQuery),
    responses((status = 200, description = "A page of tokens", body = TokenList), Missing)
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<TokenList>, ApiError> {
    let after = query.after.as_deref().map(read_token_id).transpose()?.unwrap_or_default();
    let found = shared.app.tokens(&caller, query.user.as_deref(), after, query.limit.0).await?;
    let next = query.limit.next(&found, |token| token.id.clone());
    Ok(axum::Json(TokenList { tokens: found.into_iter().map(Into::into).collect(), next }))
}

/// Make a token
///
/// The secret is told now and never again, so there is no `Idempotency-Key`: make another token and take this one back.
#[utoipa::path(
    post, path = "/tokens", operation_id = "create_token", tag = "tokens", request_body = NewToken,
    responses((status = 201, description = "It was made", body = CreatedToken), Missing)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<NewToken>,
) -> Result<impl IntoResponse, ApiError> {
    let wanted = request.read()?;
    let (secret, entry) = to_the_end(async move { shared.app.create_token(&caller, wanted).await }).await?;
    let made = CreatedToken { secret, entry: Token::from(entry) };
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], axum::Json(made)))
}

/// Take a token back
///
/// Or end a log-in: your own, or that of a user you look after.
#[utoipa::path(
    delete, path = "/tokens/{id}", operation_id = "delete_token", tag = "tokens",
    params(("id" = String, Path, description = "Its public name", pattern = "^[0-9a-fA-F]{1,64}$")),
    responses((status = 204, description = "It is gone"), Missing)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<StatusCode, ApiError> {
    read_token_id(&id)?;
    to_the_end(async move { shared.app.delete_token(&caller, &id).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
