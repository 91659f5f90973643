//! What recurs: list it, look at one and its times, make, change and remove one, run it at once, leave out a time.

use super::{Shared, to_the_end};
use crate::app;
use crate::error::ApiError;
use crate::extract::{Expected, Json, Limit, Nothing, Path, Query, Versioned, Who};
use crate::openapi::{Changed, Conflict, Missing, Tagged};
use crate::shape::{
    EntityKind, FireList, PlannedFireList, Recurring, RecurringDone, RecurringDraft, RecurringEntity, RecurringList,
    RecurringVerb, Time, read_minion, read_recurring_id,
};
use axum::extract::State;
use axum::http::StatusCode;
use saltern_core::ids::RecurringId;
use saltern_core::time::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(preview_draft))
        .routes(routes!(show, change, delete))
        .routes(routes!(preview))
        .routes(routes!(fires))
        .routes(routes!(act))
        .routes(routes!(hitting))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only what recurs on a thing of this kind; with `subject`
    #[param(inline)]
    kind: Option<EntityKind>,
    /// Only what recurs on this one; with `kind`
    subject: Option<String>,
    /// Only after this number
    after: Option<i64>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PreviewQuery {
    /// So many times
    #[serde(default = "five")]
    #[param(minimum = 1, maximum = 100, default = 5, required = false)]
    count: usize,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FiresQuery {
    /// Only times before this one
    before: Option<Time>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

const fn five() -> usize {
    5
}

/// List what recurs
///
/// Your own, and all that recurs on what you may have things recur on: minions, groups, organisations. Oldest first.
#[utoipa::path(
    get, path = "/recurring", operation_id = "list_recurring", tag = "recurring", params(ListQuery),
    responses((status = 200, description = "A page of definitions", body = RecurringList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<RecurringList>, ApiError> {
    let entity = match (query.kind, query.subject) {
        (Some(kind), Some(subject)) => Some(RecurringEntity { kind, subject }.into()),
        (None, None) => None,
        _ => return Err(ApiError::invalid("kind and subject go together: give both, or none")),
    };
    let filter = app::RecurringFilter { after: query.after.map(RecurringId), limit: query.limit.0, entity };
    let found = shared.app.recurrings(&caller, &filter).await?;
    let next = query.limit.next(&found, |view| view.recurring.id.0);
    Ok(axum::Json(RecurringList { recurring: found.into_iter().map(Into::into).collect(), next }))
}

/// Show what recurs
///
/// With when it is next, what became of the last time, and its expression in words.
#[utoipa::path(
    get, path = "/recurring/{id}", operation_id = "show_recurring", tag = "recurring",
    params(("id" = i64, Path, description = "Its number")),
    responses((status = 200, description = "The definition", body = Recurring), Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Versioned<Recurring>, ApiError> {
    Ok(versioned(shared.app.recurring(&caller, read_recurring_id(&id)?).await?))
}

/// Let something recur
///
/// It is done as your work, with the rights that you have each time. Everything that would refuse it if it were done now does.
#[utoipa::path(
    post, path = "/recurring", operation_id = "create_recurring", tag = "recurring", request_body = RecurringDraft,
    responses((status = 201, description = "It was made", body = Recurring), Conflict, Missing)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(draft): Json<RecurringDraft>,
) -> Result<(StatusCode, Versioned<Recurring>), ApiError> {
    let draft = draft.read()?;
    let made = to_the_end(async move { shared.app.create_recurring(&caller, draft).await }).await?;
    Ok((StatusCode::CREATED, versioned(made)))
}

/// Change what recurs
///
/// All of it is replaced. It is done as your work from then on. What `H` stands for in its expression stays, and times that have
/// come already are done as they were planned.
#[utoipa::path(
    put, path = "/recurring/{id}", operation_id = "change_recurring", tag = "recurring",
    params(("id" = i64, Path, description = "Its number")), request_body = RecurringDraft,
    responses((status = 200, description = "As it is now", body = Recurring), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
    Json(draft): Json<RecurringDraft>,
) -> Result<Versioned<Recurring>, ApiError> {
    let (id, draft) = (read_recurring_id(&id)?, draft.read()?);
    let changed = to_the_end(async move { shared.app.put_recurring(&caller, id, draft, version).await }).await?;
    Ok(versioned(changed))
}

/// Remove what recurs
///
/// Actions and launches that it has made stay, and go on.
#[utoipa::path(
    delete, path = "/recurring/{id}", operation_id = "delete_recurring", tag = "recurring",
    params(("id" = i64, Path, description = "Its number")),
    responses((status = 204, description = "It is gone"), Changed)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
) -> Result<StatusCode, ApiError> {
    let id = read_recurring_id(&id)?;
    to_the_end(async move { shared.app.delete_recurring(&caller, id, version).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Do something with what recurs
///
/// `run` does it at once, as your own work; `skip-next` leaves out the next time and no other; `deactivate` stops it, and `activate`
/// lets it go on with its next regular time; `take-over` makes it your work. What is so already stays so.
#[utoipa::path(
    post, path = "/recurring/{id}/{verb}", operation_id = "act_on_recurring", tag = "recurring",
    params(
        ("id" = i64, Path, description = "Its number"),
        ("verb" = inline(RecurringVerb), Path, description = "What is to be done"),
    ),
    responses((status = 200, description = "What came of it", body = RecurringDone), Conflict, Missing)
)]
async fn act(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path((id, verb)): Path<(String, String)>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<RecurringDone>, ApiError> {
    let (id, verb) = (read_recurring_id(&id)?, RecurringVerb::read(&verb)?);
    let done = to_the_end(async move { shared.app.act_on_recurring(&caller, id, verb).await }).await?;
    Ok(axum::Json(done.into()))
}

/// Preview what recurs
///
/// The next times, and whom each would hit as things are now.
#[utoipa::path(
    get, path = "/recurring/{id}/preview", operation_id = "preview_recurring", tag = "recurring",
    params(("id" = i64, Path, description = "Its number"), PreviewQuery),
    responses((status = 200, description = "The times", body = PlannedFireList), Missing)
)]
async fn preview(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(PreviewQuery { count }): Query<PreviewQuery>,
) -> Result<axum::Json<PlannedFireList>, ApiError> {
    let fires = shared.app.preview_recurring(&caller, read_recurring_id(&id)?, counted(count)?).await?;
    Ok(axum::Json(PlannedFireList { fires: fires.into_iter().map(Into::into).collect() }))
}

/// Preview what is to recur
///
/// The same for a definition that there is not yet. Whatever would refuse it does; nothing is stored.
#[utoipa::path(
    post, path = "/recurring/preview", operation_id = "preview_recurring_draft", tag = "recurring",
    params(PreviewQuery), request_body = RecurringDraft,
    responses((status = 200, description = "The times", body = PlannedFireList), Conflict, Missing)
)]
async fn preview_draft(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(PreviewQuery { count }): Query<PreviewQuery>,
    Json(draft): Json<RecurringDraft>,
) -> Result<axum::Json<PlannedFireList>, ApiError> {
    let fires = shared.app.preview_recurring_draft(&caller, draft.read()?, counted(count)?).await?;
    Ok(axum::Json(PlannedFireList { fires: fires.into_iter().map(Into::into).collect() }))
}

/// List the times of what recurs
///
/// Those that have come, newest first. Each is there exactly once: fired, skipped, missed or refused, and why.
#[utoipa::path(
    get, path = "/recurring/{id}/fires", operation_id = "list_fires", tag = "recurring",
    params(("id" = i64, Path, description = "Its number"), FiresQuery),
    responses((status = 200, description = "A page of times", body = FireList), Missing)
)]
async fn fires(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(FiresQuery { before, limit }): Query<FiresQuery>,
) -> Result<axum::Json<FireList>, ApiError> {
    let before: Option<Timestamp> = before.map(|before| before.0);
    let found = shared.app.fires(&caller, read_recurring_id(&id)?, before, limit.0).await?;
    let next = limit.next(&found, |last| Time(last.fire.planned));
    Ok(axum::Json(FireList { fires: found.into_iter().map(Into::into).collect(), next }))
}

/// List what recurs on a minion
///
/// Its own, that of its groups, of its organisation, and of targets that mean it.
#[utoipa::path(
    get, path = "/minions/{id}/recurring", operation_id = "list_recurring_of_minion", tag = "recurring",
    params(("id" = String, Path, description = "Its id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")),
    responses((status = 200, description = "The definitions", body = RecurringList), Missing)
)]
async fn hitting(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<RecurringList>, ApiError> {
    let found = shared.app.recurrings_hitting(&caller, &read_minion(&id)?).await?;
    Ok(axum::Json(RecurringList { recurring: found.into_iter().map(Into::into).collect(), next: None }))
}

/// So many times, if so many are told.
fn counted(count: usize) -> Result<usize, ApiError> {
    if (1..=100).contains(&count) { Ok(count) } else { Err(ApiError::invalid("count is 1 to 100")) }
}

fn versioned(view: app::RecurringView) -> Versioned<Recurring> {
    let version = view.recurring.version;
    Versioned(view.into(), version)
}
