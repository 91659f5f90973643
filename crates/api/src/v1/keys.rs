//! Keys: list them, decide about them.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Limit, Nothing, Ordering, Path, Query, Who, page};
use crate::openapi::{Conflict, Missing};
use crate::shape::{Key, KeyDecision, KeyList, KeyResult, read_minion};
use axum::extract::State;
use saltern_core::keys::KeyState;
use saltern_server::Error;
use saltern_server::app::KeyVerb;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(accept))
        .routes(routes!(reject))
        .routes(routes!(delete))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only in this state: `unaccepted`, `accepted`, `rejected` or `denied`
    #[param(pattern = "^(unaccepted|accepted|rejected|denied)$")]
    state: Option<String>,
    /// Only after this one, in the order that is asked for: an id and a state, as `next` has it, or an id
    after: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
    /// In which order of ids
    #[serde(default)]
    #[param(inline)]
    order: Ordering,
}

/// List keys
///
/// Those of the minions you see; all for who decides about keys.
#[utoipa::path(
    get, path = "/keys", operation_id = "list_keys", tag = "keys", params(ListQuery),
    responses((status = 200, description = "A page of keys", body = KeyList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<KeyList>, ApiError> {
    let read = |word: &str| {
        KeyState::parse(word).ok_or_else(|| ApiError::invalid(format!("{word:?} is not a state of a key")))
    };
    let state = query.state.as_deref().map(read).transpose()?;
    let known = shared.app.keys(&caller).into_iter().filter(|entry| state.is_none_or(|state| state == entry.state));
    // An id can have two keys, and both may not be on one page.
    let mut all: Vec<(String, Key)> =
        known.map(|entry| (format!("{} {}", entry.minion, entry.state.as_str()), Key::of(entry, false))).collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (keys, next) = page(all, |(name, _)| name, query.after.as_deref(), query.order, query.limit);
    let keys = keys.into_iter().map(|(_, key)| key).collect();
    Ok(axum::Json(KeyList { master_fingerprint: shared.app.master_fingerprint(), keys, next }))
}

/// Show the keys of a minion
///
/// With their PEM. An id can have an accepted key and one that was denied.
#[utoipa::path(
    get, path = "/keys/{id}", operation_id = "show_keys", tag = "keys",
    params(("id" = String, Path, description = "The minion's id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")),
    responses((status = 200, description = "Its keys", body = KeyList), Missing)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<KeyList>, ApiError> {
    let id = read_minion(&id)?;
    let of_this_id = shared.app.keys(&caller).into_iter().filter(|entry| entry.minion == id);
    let keys: Vec<Key> = of_this_id.map(|entry| Key::of(entry, true)).collect();
    if keys.is_empty() {
        return Err(Error::NotFound(format!("there is no key of {:?}", id.as_str())).into());
    }
    Ok(axum::Json(KeyList { master_fingerprint: shared.app.master_fingerprint(), keys, next: None }))
}

type Decided = Result<axum::Json<KeyResult>, ApiError>;

/// Accept keys
///
/// Lets minions in: those that wait, and with `include` also rejected or denied ones.
#[utoipa::path(
    post, path = "/keys/accept", operation_id = "accept_keys", tag = "keys", request_body = KeyDecision,
    responses((status = 200, description = "Whose keys were accepted", body = KeyResult), Conflict, Missing)
)]
async fn accept(shared: State<Shared>, caller: Who, query: Query<Nothing>, decision: Json<KeyDecision>) -> Decided {
    decide(KeyVerb::Accept, shared, caller, query, decision).await
}

/// Reject keys
///
/// Keeps minions out.
#[utoipa::path(
    post, path = "/keys/reject", operation_id = "reject_keys", tag = "keys", request_body = KeyDecision,
    responses((status = 200, description = "Whose keys were rejected", body = KeyResult), Conflict, Missing)
)]
async fn reject(shared: State<Shared>, caller: Who, query: Query<Nothing>, decision: Json<KeyDecision>) -> Decided {
    decide(KeyVerb::Reject, shared, caller, query, decision).await
}

/// Delete keys
///
/// Forgets them: a minion that still has one waits for a decision again.
#[utoipa::path(
    post, path = "/keys/delete", operation_id = "delete_keys", tag = "keys", request_body = KeyDecision,
    responses((status = 200, description = "Whose keys were deleted", body = KeyResult), Conflict, Missing)
)]
async fn delete(shared: State<Shared>, caller: Who, query: Query<Nothing>, decision: Json<KeyDecision>) -> Decided {
    decide(KeyVerb::Delete, shared, caller, query, decision).await
}

async fn decide(
    verb: KeyVerb,
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(decision): Json<KeyDecision>,
) -> Decided {
    let (which, also) = decision.read()?;
    let ids = to_the_end(async move { shared.app.decide_keys(&caller, verb, &which, &also).await }).await?;
    Ok(axum::Json(KeyResult { ids: ids.iter().map(ToString::to_string).collect() }))
}
