//! Minions: list them, look at one, set what can be set for one.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Path, Query};
use crate::shape::{MinionChange, MinionDetail, MinionList};
use axum::extract::{Extension, State};
use saltern_core::target::{Target, TargetType};
use saltern_core::value::Value;
use saltern_server::Error;
use saltern_server::app::Caller;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    tgt: Option<String>,
    tgt_type: Option<String>,
    delimiter: Option<String>,
}

pub(super) async fn list(
    State(shared): State<Shared>,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<MinionList>, ApiError> {
    let kind = query.tgt_type.as_deref().unwrap_or(TargetType::default().as_str());
    let target = query.tgt.map(|tgt| Target::read(kind, &Value::from(tgt), query.delimiter.as_deref()));
    let target = target.transpose().map_err(|error| Error::Invalid(error.to_string()))?;
    let minions = shared.app.minions(target.as_ref()).await?;
    Ok(axum::Json(MinionList { minions: minions.into_iter().map(Into::into).collect() }))
}

pub(super) async fn show(
    State(shared): State<Shared>,
    Path(id): Path<String>,
) -> Result<axum::Json<MinionDetail>, ApiError> {
    Ok(axum::Json(shared.app.minion(&id)?.into()))
}

pub(super) async fn change(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(change): Json<MinionChange>,
) -> Result<axum::Json<MinionDetail>, ApiError> {
    let detail = to_the_end(async move {
        shared.app.set_minion_ack(&caller, &id, change.ack).await?;
        shared.app.minion(&id)
    });
    Ok(axum::Json(detail.await?.into()))
}
