//! Schedules: what makes windows of calendars. List them, look at one, make, change, remove and assign one.

use super::Shared;
use super::calendars::{ChangeQuery, ListQuery, Whose, make};
use crate::app::WindowEdit;
use crate::error::ApiError;
use crate::extract::{Expected, Json, Nothing, Path, Query, Versioned, Who, page};
use crate::openapi::{Changed, Conflict, Missing, Tagged};
use crate::shape::{NewSchedule, Schedule, ScheduleContent, ScheduleList, Strategy, Subjects, WindowsChanged};
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, change, delete))
        .routes(routes!(assign))
        .routes(routes!(unassign))
}

/// List schedules
///
/// Those of one organisation, with whom they are assigned to and when they are open next.
#[utoipa::path(
    get, path = "/schedules", operation_id = "list_schedules", tag = "windows", params(ListQuery),
    responses((status = 200, description = "A page of schedules", body = ScheduleList), Missing)
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<ScheduleList>, ApiError> {
    let all = shared.app.schedules(&caller, query.org.as_deref()).await?;
    let (found, next) = page(all, |entry| &entry.schedule.name, query.after.as_deref(), query.order, query.limit);
    Ok(axum::Json(ScheduleList { schedules: found.into_iter().map(Schedule::from).collect(), next }))
}

/// Show a schedule
///
/// With whom it is assigned to, and the minions it holds for now.
#[utoipa::path(
    get, path = "/schedules/{name}", operation_id = "show_schedule", tag = "windows",
    params(("name" = String, Path, description = "Its name"), Whose),
    responses((status = 200, description = "The schedule", body = Schedule), Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Whose { org }): Query<Whose>,
) -> Result<Versioned<Schedule>, ApiError> {
    let entry = shared.app.schedule(&caller, org.as_deref(), &name).await?;
    let version = entry.schedule.version;
    Ok(Versioned(entry.into(), version))
}

/// Make a schedule
///
/// It holds for nobody until it is assigned.
#[utoipa::path(
    post, path = "/schedules", operation_id = "create_schedule", tag = "windows", request_body = NewSchedule,
    responses((status = 201, description = "It was made", body = WindowsChanged), Conflict, Missing)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(schedule): Json<NewSchedule>,
) -> Result<(StatusCode, Versioned<WindowsChanged>), ApiError> {
    let edit = WindowEdit::PutSchedule(schedule.read());
    Ok((StatusCode::CREATED, make(shared, caller, edit, None, Strategy::default()).await?))
}

/// Change a schedule
///
/// Work that waits and would be outside of its window then is dealt with by the strategy, in one go with the change.
#[utoipa::path(
    put, path = "/schedules/{name}", operation_id = "change_schedule", tag = "windows",
    params(("name" = String, Path, description = "Its name"), ChangeQuery), request_body = ScheduleContent,
    responses((status = 200, description = "What it has come to", body = WindowsChanged), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(ChangeQuery { org, strategy }): Query<ChangeQuery>,
    Expected(version): Expected,
    Json(content): Json<ScheduleContent>,
) -> Result<Versioned<WindowsChanged>, ApiError> {
    make(shared, caller, WindowEdit::PutSchedule(content.read(name, org)), Some(version), strategy).await
}

/// Remove a schedule
///
/// With its assignments: whoever has no other may be changed at any time.
#[utoipa::path(
    delete, path = "/schedules/{name}", operation_id = "delete_schedule", tag = "windows",
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
    make(shared, caller, WindowEdit::DeleteSchedule { org, name }, Some(version), strategy).await
}

/// Assign a schedule
///
/// To minions and to groups. What is assigned to a minion itself counts before what its groups bring. What is so already stays so.
#[utoipa::path(
    post, path = "/schedules/{name}/assignments", operation_id = "assign_schedule", tag = "windows",
    params(("name" = String, Path, description = "Its name"), ChangeQuery), request_body = Subjects,
    responses((status = 200, description = "What it has come to", body = WindowsChanged), Conflict, Missing)
)]
async fn assign(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(schedule): Path<String>,
    Query(ChangeQuery { org, strategy }): Query<ChangeQuery>,
    Json(to): Json<Subjects>,
) -> Result<axum::Json<WindowsChanged>, ApiError> {
    let edit = WindowEdit::Assign { org, schedule, to: to.read()? };
    Ok(axum::Json(make(shared, caller, edit, None, strategy).await?.0))
}

/// Take assignments of a schedule back
///
/// Work that waits for a window stays, and may start at once where no other schedule holds.
#[utoipa::path(
    post, path = "/schedules/{name}/assignments/remove", operation_id = "unassign_schedule", tag = "windows",
    params(("name" = String, Path, description = "Its name"), ChangeQuery), request_body = Subjects,
    responses((status = 200, description = "What it has come to", body = WindowsChanged), Conflict, Missing)
)]
async fn unassign(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(schedule): Path<String>,
    Query(ChangeQuery { org, strategy }): Query<ChangeQuery>,
    Json(from): Json<Subjects>,
) -> Result<axum::Json<WindowsChanged>, ApiError> {
    let edit = WindowEdit::Unassign { org, schedule, from: from.read()? };
    Ok(axum::Json(make(shared, caller, edit, None, strategy).await?.0))
}
