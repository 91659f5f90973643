//! Calendars that maintenance windows are made of: list them, look at one, make, change, refresh and remove one.

use super::{Shared, to_the_end};
use crate::app::WindowEdit;
use crate::error::ApiError;
use crate::extract::{Expected, Json, Limit, Nothing, Ordering, Path, Query, Versioned, Who, page};
use crate::openapi::{Changed, Conflict, Missing, Tagged};
use crate::shape::{Calendar, CalendarContent, CalendarDetail, CalendarList, NewCalendar, Strategy, WindowsChanged};
use axum::extract::State;
use axum::http::StatusCode;
use saltern_server::app;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(show, change, delete)).routes(routes!(refresh))
}

/// Whose calendars or schedules.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Whose {
    /// The organisation; nothing: your own
    pub(super) org: Option<String>,
}

/// Whose, and what becomes of work that waits.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangeQuery {
    /// The organisation; nothing: your own
    pub(super) org: Option<String>,
    /// What becomes of work that waits, and would be outside of its window then
    #[serde(default)]
    #[param(inline, required = false)]
    pub(super) strategy: Strategy,
}

/// Which calendars or schedules.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// The organisation; nothing: your own
    pub(super) org: Option<String>,
    /// Only names after this one, in the order that is asked for
    pub(super) after: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    pub(super) limit: Limit,
    /// In which order of names
    #[serde(default)]
    #[param(inline)]
    pub(super) order: Ordering,
}

/// List calendars
///
/// Those of one organisation, without their texts.
#[utoipa::path(
    get, path = "/calendars", operation_id = "list_calendars", tag = "windows", params(ListQuery),
    responses((status = 200, description = "A page of calendars", body = CalendarList), Missing)
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<CalendarList>, ApiError> {
    let all = shared.app.calendars(&caller, query.org.as_deref())?;
    let (found, next) = page(all, |calendar| &calendar.name, query.after.as_deref(), query.order, query.limit);
    Ok(axum::Json(CalendarList { calendars: found.into_iter().map(Calendar::from).collect(), next }))
}

/// Show a calendar
///
/// With its text.
#[utoipa::path(
    get, path = "/calendars/{name}", operation_id = "show_calendar", tag = "windows",
    params(("name" = String, Path, description = "Its name"), Whose),
    responses((status = 200, description = "The calendar", body = CalendarDetail), Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Whose { org }): Query<Whose>,
) -> Result<Versioned<CalendarDetail>, ApiError> {
    let calendar = shared.app.calendar(&caller, org.as_deref(), &name)?;
    let version = calendar.version;
    Ok(Versioned(calendar.into(), version))
}

/// Make a calendar
///
/// Of its text, or of what a URL leads to, which is read now and, with `refresh`, again and again.
#[utoipa::path(
    post, path = "/calendars", operation_id = "create_calendar", tag = "windows", request_body = NewCalendar,
    responses((status = 201, description = "It was made", body = WindowsChanged), Conflict, Missing)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(calendar): Json<NewCalendar>,
) -> Result<(StatusCode, Versioned<WindowsChanged>), ApiError> {
    let edit = WindowEdit::PutCalendar(calendar.read());
    Ok((StatusCode::CREATED, make(shared, caller, edit, None, Strategy::default()).await?))
}

/// Change a calendar
///
/// Work that waits and would be outside of its window then is dealt with by the strategy, in one go with the change.
#[utoipa::path(
    put, path = "/calendars/{name}", operation_id = "change_calendar", tag = "windows",
    params(("name" = String, Path, description = "Its name"), ChangeQuery), request_body = CalendarContent,
    responses((status = 200, description = "What it has come to", body = WindowsChanged), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(ChangeQuery { org, strategy }): Query<ChangeQuery>,
    Expected(version): Expected,
    Json(content): Json<CalendarContent>,
) -> Result<Versioned<WindowsChanged>, ApiError> {
    make(shared, caller, WindowEdit::PutCalendar(content.read(name, org)), Some(version), strategy).await
}

/// Remove a calendar
///
/// Schedules that are made of it stay, and are closed.
#[utoipa::path(
    delete, path = "/calendars/{name}", operation_id = "delete_calendar", tag = "windows",
    params(("name" = String, Path, description = "Its name"), ChangeQuery),
    responses((status = 200, description = "What it has come to", body = WindowsChanged), Changed)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(ChangeQuery { org, strategy }): Query<ChangeQuery>,
    Expected(version): Expected,
) -> Result<Versioned<WindowsChanged>, ApiError> {
    make(shared, caller, WindowEdit::DeleteCalendar { org, name }, Some(version), strategy).await
}

/// Refresh a calendar
///
/// Reads it anew from its URL, now. Where that fails, what was known holds.
#[utoipa::path(
    post, path = "/calendars/{name}/refresh", operation_id = "refresh_calendar", tag = "windows",
    params(("name" = String, Path, description = "Its name"), ChangeQuery),
    responses((status = 200, description = "What it has come to", body = WindowsChanged), Conflict, Missing)
)]
async fn refresh(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(ChangeQuery { org, strategy }): Query<ChangeQuery>,
) -> Result<axum::Json<WindowsChanged>, ApiError> {
    let refreshed =
        to_the_end(async move { shared.app.refresh_calendar(&caller, org.as_deref(), &name, strategy.into()).await });
    Ok(axum::Json(refreshed.await?.into()))
}

/// Makes a change of windows.
pub(super) async fn make(
    shared: Shared,
    caller: app::Caller,
    edit: WindowEdit,
    expected: Option<i64>,
    strategy: Strategy,
) -> Result<Versioned<WindowsChanged>, ApiError> {
    let made = to_the_end(async move { shared.app.change_windows(&caller, edit, expected, strategy.into()).await });
    let changed = WindowsChanged::from(made.await?);
    let version = changed.version;
    Ok(Versioned(changed, version))
}
