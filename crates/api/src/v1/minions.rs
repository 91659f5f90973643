//! Minions: list them, look at one and at its grains, set what can be set for one.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Limit, Nothing, Ordering, Path, Query, Who, page};
use crate::openapi::Missing;
use crate::shape::policy::tgt_type;
use crate::shape::{Grains, MinionChange, MinionDetail, MinionList, Time, read_minion};
use axum::extract::State;
use saltern_core::target::{Target, TargetType};
use saltern_core::value::Value;
use saltern_server::app::MinionEntry;
use saltern_server::{Error, Presence};
use serde::Deserialize;
use std::collections::HashSet;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show, change)).routes(routes!(grains))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only those of this target
    tgt: Option<String>,
    /// The target's type: Salt's `tgt_type`; nothing: `glob`
    #[param(schema_with = tgt_type)]
    tgt_type: Option<String>,
    /// What separates keys in a grain or pillar target, if not `:`
    delimiter: Option<String>,
    /// Only those
    #[param(inline)]
    presence: Option<There>,
    /// Only of this organisation
    org: Option<String>,
    /// Only of this group
    group: Option<String>,
    /// Only ids after this one, in the order that is asked for
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

/// Whether a minion is there.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum There {
    /// It is connected
    Present,
    /// It is not
    Absent,
    /// It was not heard of since the server started
    Unknown,
}

impl There {
    const fn is(self, presence: Presence) -> bool {
        matches!(
            (self, presence),
            (Self::Present, Presence::Present(_))
                | (Self::Absent, Presence::Absent(_))
                | (Self::Unknown, Presence::Unknown)
        )
    }
}

/// List minions
///
/// The accepted minions that you see, all or those of a target.
#[utoipa::path(
    get, path = "/minions", operation_id = "list_minions", tag = "minions", params(ListQuery),
    responses((status = 200, description = "A page of minions", body = MinionList), Missing)
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<MinionList>, ApiError> {
    if query.tgt.is_none() && (query.tgt_type.is_some() || query.delimiter.is_some()) {
        return Err(ApiError::invalid("tgt_type and delimiter say how to read tgt: give that, too"));
    }
    let kind = query.tgt_type.as_deref().unwrap_or(TargetType::default().as_str());
    let target = query.tgt.map(|tgt| Target::read(kind, &Value::from(tgt), query.delimiter.as_deref()));
    let target = target.transpose().map_err(|error| Error::Invalid(error.to_string()))?;
    let members: Option<HashSet<_>> = match &query.group {
        Some(group) => Some(shared.app.group(&caller, group).await?.minions.into_iter().collect()),
        None => None,
    };
    let wanted = |minion: &MinionEntry| {
        query.presence.is_none_or(|there| there.is(minion.presence))
            && query.org.as_ref().is_none_or(|org| *org == minion.org)
            && members.as_ref().is_none_or(|members| members.contains(&minion.id))
    };
    let mut all = shared.app.minions(&caller, target.as_ref()).await?;
    all.retain(wanted);
    all.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let (minions, next) = page(all, |minion| minion.id.as_str(), query.after.as_deref(), query.order, query.limit);
    Ok(axum::Json(MinionList { minions: minions.into_iter().map(Into::into).collect(), next }))
}

/// Show a minion
///
/// With its key's fingerprint and its grains.
#[utoipa::path(
    get, path = "/minions/{id}", operation_id = "show_minion", tag = "minions",
    params(("id" = String, Path, description = "Its id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")),
    responses((status = 200, description = "The minion", body = MinionDetail), Missing)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<MinionDetail>, ApiError> {
    Ok(axum::Json(shared.app.minion(&caller, read_minion(&id)?.as_str())?.into()))
}

/// Show a minion's grains
///
/// As it last sent them; `fields=grains.os` gives one of them.
#[utoipa::path(
    get, path = "/minions/{id}/grains", operation_id = "show_grains", tag = "minions",
    params(("id" = String, Path, description = "Its id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")),
    responses((status = 200, description = "The grains", body = Grains), Missing)
)]
async fn grains(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<Grains>, ApiError> {
    let detail = shared.app.minion(&caller, read_minion(&id)?.as_str())?;
    Ok(axum::Json(Grains { id, at: detail.grains_at.map(Time), grains: detail.grains }))
}

/// Change a minion
///
/// Whether jobs ask it to acknowledge, and the organisation it belongs to; what is left out stays as it is.
#[utoipa::path(
    patch, path = "/minions/{id}", operation_id = "change_minion", tag = "minions",
    params(("id" = String, Path, description = "Its id", pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,254}$")), request_body = MinionChange,
    responses((status = 200, description = "As it is now", body = MinionDetail), Missing)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(MinionChange { ack, org }): Json<MinionChange>,
) -> Result<axum::Json<MinionDetail>, ApiError> {
    let id = read_minion(&id)?;
    if ack.is_none() && org.is_none() {
        return Err(ApiError::invalid("nothing is to be changed: give ack or org"));
    }
    let detail = to_the_end(async move {
        if let Some(ack) = ack {
            shared.app.set_minion_ack(&caller, id.as_str(), ack).await?;
        }
        if let Some(org) = org {
            shared.app.set_minion_org(&caller, &id, &org).await?;
        }
        shared.app.minion(&caller, id.as_str())
    });
    Ok(axum::Json(detail.await?.into()))
}
