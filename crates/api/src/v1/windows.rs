//! Maintenance windows: what a change would touch, how a minion stands, maintenance by hand, and a feed for calendar programs.

use super::{Shared, to_the_end};
use crate::app::{ANY_VERSION, FeedFilter, WindowEdit};
use crate::error::ApiError;
use crate::extract::{Json, Limit, Nothing, Path, Query, Who};
use crate::openapi::{Conflict, Missing};
use crate::shape::{Maintenance, MaintenanceList, MinionWindows, Time, TouchedList, WindowChange, read_minion};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use saltern_server::Error;
use saltern_server::app::Caller;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(preview))
        .routes(routes!(maintenance))
        .routes(routes!(feed))
        .routes(routes!(of_minion))
        .routes(routes!(start_maintenance, end_maintenance))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WindowsQuery {
    /// Only windows that end after this time; nothing: now
    from: Option<Time>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FeedQuery {
    /// Only the windows of this schedule
    schedule: Option<String>,
    /// Only the windows of this minion
    minion: Option<String>,
    /// Without what recurs
    #[serde(default)]
    #[param(required = false, default = false)]
    windows_only: bool,
}

/// Preview a change of windows
///
/// Which waiting runs would be outside of their windows by it. Nothing is changed.
#[utoipa::path(
    post, path = "/windows/preview", operation_id = "preview_windows", tag = "windows", request_body = WindowChange,
    responses((status = 200, description = "What it would touch", body = TouchedList), Conflict, Missing)
)]
async fn preview(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(change): Json<WindowChange>,
) -> Result<axum::Json<TouchedList>, ApiError> {
    let edit = change.read()?;
    let expected = version_of(&shared, &caller, &edit).await?;
    let touched = shared.app.preview_change(&caller, edit, expected).await?;
    Ok(axum::Json(TouchedList { touched: touched.into_iter().map(Into::into).collect() }))
}

/// What a change is a change of: whatever is there, or nothing if it is made.
async fn version_of(shared: &Shared, caller: &Caller, edit: &WindowEdit) -> Result<Option<i64>, Error> {
    let known = match edit {
        WindowEdit::PutCalendar(draft) => shared.app.calendar(caller, draft.org.as_deref(), &draft.name).map(drop),
        WindowEdit::PutSchedule(draft) => {
            shared.app.schedule(caller, draft.org.as_deref(), &draft.name).await.map(drop)
        }
        WindowEdit::DeleteCalendar { org, name } => shared.app.calendar(caller, org.as_deref(), name).map(drop),
        WindowEdit::DeleteSchedule { org, name } => shared.app.schedule(caller, org.as_deref(), name).await.map(drop),
        WindowEdit::Assign { .. } | WindowEdit::Unassign { .. } => return Ok(None),
    };
    match (known, edit) {
        (Ok(()), _) => Ok(Some(ANY_VERSION)),
        (Err(Error::NotFound(_)), WindowEdit::PutCalendar(_) | WindowEdit::PutSchedule(_)) => Ok(None),
        (Err(error), _) => Err(error),
    }
}

/// List minions in maintenance
///
/// Those that somebody has put there by hand, as far as you see them.
#[utoipa::path(
    get, path = "/windows/maintenance", operation_id = "list_maintenance", tag = "windows",
    responses((status = 200, description = "The minions", body = MaintenanceList))
)]
async fn maintenance(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
) -> axum::Json<MaintenanceList> {
    let maintenance = shared.app.maintenance(&caller).into_iter().map(Into::into).collect();
    axum::Json(MaintenanceList { maintenance })
}

/// Subscribe to windows
///
/// The windows of the minions that you see, and when what you see recurs, for the next 90 days as a calendar.
#[utoipa::path(
    get, path = "/windows/feed.ics", operation_id = "feed_windows", tag = "windows", params(FeedQuery),
    responses((status = 200, description = "The calendar", body = String, content_type = "text/calendar"), Missing)
)]
async fn feed(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(FeedQuery { schedule, minion, windows_only }): Query<FeedQuery>,
) -> Result<Response, ApiError> {
    let minion = minion.map(|minion| read_minion(&minion)).transpose()?;
    let text = shared.app.feed(&caller, &FeedFilter { schedule, minion, windows_only }).await?;
    Ok(([(header::CONTENT_TYPE, "text/calendar; charset=utf-8")], text).into_response())
}

/// Show the windows of a minion
///
/// Whether it may be changed now, and its next windows and blackouts.
#[utoipa::path(
    get, path = "/minions/{id}/windows", operation_id = "show_windows", tag = "windows",
    params(("id" = String, Path, description = "Its id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$"), WindowsQuery),
    responses((status = 200, description = "How it stands", body = MinionWindows), Missing)
)]
async fn of_minion(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(WindowsQuery { from, limit }): Query<WindowsQuery>,
) -> Result<axum::Json<MinionWindows>, ApiError> {
    let from = from.map(|from| from.0);
    Ok(axum::Json(shared.app.windows_of(&caller, &read_minion(&id)?, from, limit.0).await?.into()))
}

/// Put a minion into maintenance
///
/// Whatever its schedules say, it may be changed, until then or until somebody ends it.
#[utoipa::path(
    put, path = "/minions/{id}/maintenance", operation_id = "start_maintenance", tag = "windows",
    params(("id" = String, Path, description = "Its id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")),
    request_body = Maintenance,
    responses((status = 204, description = "It is in maintenance"), Missing)
)]
async fn start_maintenance(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(Maintenance { why, until }): Json<Maintenance>,
) -> Result<StatusCode, ApiError> {
    let minion = read_minion(&id)?;
    let until = until.map(|until| until.0);
    to_the_end(async move { shared.app.start_maintenance(&caller, &[minion], &why, until).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End the maintenance of a minion
///
/// It is left to its schedules again. Where there is none to end, that is so already.
#[utoipa::path(
    delete, path = "/minions/{id}/maintenance", operation_id = "end_maintenance", tag = "windows",
    params(("id" = String, Path, description = "Its id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")),
    responses((status = 204, description = "It is not in maintenance"), Missing)
)]
async fn end_maintenance(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<StatusCode, ApiError> {
    let minion = read_minion(&id)?;
    to_the_end(async move { shared.app.end_maintenance(&caller, &[minion]).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
