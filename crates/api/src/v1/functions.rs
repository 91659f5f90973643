//! What minions say about their functions: search it, read it, ask anew.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Limit, Nothing, Path, Query, Who};
use crate::http::TimeLimit;
use crate::openapi::Missing;
use crate::shape::{FunctionDetail, FunctionList, FunctionRefresh, FunctionVerb, FunctionsRefreshed, read_function};
use axum::extract::State;
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How long minions may take to tell of all their functions.
const PATIENCE: Duration = Duration::from_secs(600);

/// The longest search, in bytes.
const LONGEST: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show, refresh))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only functions with all of these words in their name or documentation; the first four count
    #[serde(default)]
    #[param(max_length = 1000)]
    search: String,
    /// Only names after this one
    #[param(pattern = "^[A-Za-z0-9_.]{1,200}$")]
    after: Option<String>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// Search functions
///
/// In the order of names, each as the newest kind of minion describes it. What minions say is collected by
/// `POST /api/v1/functions/refresh`.
#[utoipa::path(
    get, path = "/functions", operation_id = "list_functions", tag = "functions", params(ListQuery),
    responses((status = 200, description = "A page of functions", body = FunctionList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<FunctionList>, ApiError> {
    if query.search.len() > LONGEST {
        return Err(ApiError::invalid(format!("a search has at most {LONGEST} bytes")));
    }
    let after = query.after.as_deref().map(read_function).transpose()?.unwrap_or_default();
    let found = shared.app.functions(&caller, &query.search, after, query.limit.0).await?;
    let next = query.limit.next(&found, |function| function.name.clone());
    Ok(axum::Json(FunctionList { functions: found.into_iter().map(Into::into).collect(), next }))
}

/// Show a function
///
/// What each kind of minion says about it.
#[utoipa::path(
    get, path = "/functions/{name}", operation_id = "show_function", tag = "functions",
    params(("name" = String, Path, description = "Its name", pattern = "^[A-Za-z0-9_.]{1,200}$")),
    responses((status = 200, description = "The function", body = FunctionDetail), Missing)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(name): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<FunctionDetail>, ApiError> {
    let said = shared.app.function(&caller, read_function(&name)?).await?;
    Ok(axum::Json(FunctionDetail { name, kinds: said.into_iter().map(Into::into).collect() }))
}

/// Ask minions about their functions
///
/// One present minion of each kind (version and operating system) among those of the target is asked, by an action of
/// yours, and what it says replaces what that kind said before. It answers when they have. The path says `refresh`.
#[utoipa::path(
    post, path = "/functions/{name}", operation_id = "refresh_functions", tag = "functions",
    params(("name" = inline(FunctionVerb), Path, description = "What is to be done")), request_body = FunctionRefresh,
    responses((status = 200, description = "What came of it", body = FunctionsRefreshed), Missing)
)]
async fn refresh(
    State(shared): State<Shared>,
    Who(caller): Who,
    time: TimeLimit,
    Path(verb): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<FunctionRefresh>,
) -> Result<axum::Json<FunctionsRefreshed>, ApiError> {
    let FunctionVerb::Refresh = FunctionVerb::read(&verb)?;
    let target = request.read()?;
    time.extend(PATIENCE);
    let refreshed = to_the_end(async move { shared.app.refresh_functions(&caller, &target).await }).await?;
    Ok(axum::Json(refreshed.into()))
}
