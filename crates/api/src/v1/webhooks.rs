//! Webhooks: list them, make, change and remove one, try one, and send again what did not arrive.

use super::{Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Expected, Json, Limit, Nothing, Path, Query, Versioned, Who};
use crate::openapi::{Changed, Conflict, Missing, Tagged};
use crate::shape::{
    CreatedWebhook, DeadDeliveryList, NewWebhook, Redelivery, Replay, Webhook, WebhookChange, WebhookList, WebhookTest,
};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, change, delete))
        .routes(routes!(dead_deliveries))
        .routes(routes!(redeliver))
        .routes(routes!(replay))
        .routes(routes!(test))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only after this number
    after: Option<i64>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// List webhooks
///
/// Your own, or all for a server admin, oldest first.
#[utoipa::path(
    get, path = "/webhooks", operation_id = "list_webhooks", tag = "webhooks", params(ListQuery),
    responses((status = 200, description = "A page of webhooks", body = WebhookList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<WebhookList>, ApiError> {
    let mut found = shared.app.webhooks(&caller).await?;
    found.sort_by_key(|webhook| webhook.id);
    found.retain(|webhook| query.after.is_none_or(|after| webhook.id > after));
    found.truncate(query.limit.0);
    let next = query.limit.next(&found, |webhook| webhook.id);
    Ok(axum::Json(WebhookList { webhooks: found.into_iter().map(Into::into).collect(), next }))
}

/// Show a webhook
///
/// Without its secret, and with how far it has got.
#[utoipa::path(
    get, path = "/webhooks/{id}", operation_id = "show_webhook", tag = "webhooks",
    params(("id" = i64, Path, description = "Its number", minimum = 1)),
    responses((status = 200, description = "The webhook", body = Webhook), Tagged)
)]
async fn show(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<Versioned<Webhook>, ApiError> {
    let webhook = Webhook::from(shared.app.webhook(&caller, read_id(&id)?).await?);
    Ok(versioned(webhook))
}

/// Make a webhook
///
/// It begins with the next event. Its secret is told now and never again.
#[utoipa::path(
    post, path = "/webhooks", operation_id = "create_webhook", tag = "webhooks", request_body = NewWebhook,
    responses((status = 201, description = "It was made", body = CreatedWebhook), Conflict)
)]
async fn create(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<NewWebhook>,
) -> Result<(StatusCode, Versioned<CreatedWebhook>), ApiError> {
    let wanted = request.read()?;
    let (entry, secret) = to_the_end(async move { shared.app.create_webhook(&caller, wanted).await }).await?;
    let version = entry.version;
    let made = CreatedWebhook { secret: secret.reveal().to_owned(), webhook: entry.into() };
    Ok((StatusCode::CREATED, Versioned(made, version)))
}

/// Change a webhook
///
/// What is left out stays as it is. What failed before is tried again at once.
#[utoipa::path(
    patch, path = "/webhooks/{id}", operation_id = "change_webhook", tag = "webhooks",
    params(("id" = i64, Path, description = "Its number", minimum = 1)), request_body = WebhookChange,
    responses((status = 200, description = "As it is now", body = Webhook), Changed)
)]
async fn change(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
    Json(change): Json<WebhookChange>,
) -> Result<Versioned<Webhook>, ApiError> {
    let (id, change) = (read_id(&id)?, change.read()?);
    let work = async move { shared.app.change_webhook(&caller, id, change, version).await };
    Ok(versioned(to_the_end(work).await?.into()))
}

/// Remove a webhook
///
/// With its dead deliveries.
#[utoipa::path(
    delete, path = "/webhooks/{id}", operation_id = "delete_webhook", tag = "webhooks",
    params(("id" = i64, Path, description = "Its number", minimum = 1)),
    responses((status = 204, description = "It is gone"), Changed)
)]
async fn delete(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Expected(version): Expected,
) -> Result<StatusCode, ApiError> {
    let id = read_id(&id)?;
    to_the_end(async move { shared.app.delete_webhook(&caller, id, version).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List dead deliveries
///
/// Events that could not be delivered, in their order.
#[utoipa::path(
    get, path = "/webhooks/{id}/dead-deliveries", operation_id = "list_dead_deliveries", tag = "webhooks",
    params(("id" = i64, Path, description = "The webhook's number", minimum = 1), ListQuery),
    responses((status = 200, description = "A page of deliveries", body = DeadDeliveryList), Missing)
)]
async fn dead_deliveries(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<DeadDeliveryList>, ApiError> {
    let after = query.after.unwrap_or(0);
    let found = shared.app.dead_deliveries(&caller, read_id(&id)?, after, query.limit.0).await?;
    let next = query.limit.next(&found, |dead| dead.number);
    Ok(axum::Json(DeadDeliveryList { dead_deliveries: found.into_iter().map(Into::into).collect(), next }))
}

/// Send dead deliveries again
///
/// It is begun, and goes on after this has answered. Those that arrive are gone from the list.
#[utoipa::path(
    post, path = "/webhooks/{id}/redeliver", operation_id = "redeliver", tag = "webhooks",
    params(("id" = i64, Path, description = "The webhook's number", minimum = 1)), request_body = Redelivery,
    responses((status = 202, description = "They are being sent"), Conflict, Missing)
)]
async fn redeliver(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(request): Json<Redelivery>,
) -> Result<StatusCode, ApiError> {
    let (id, which) = (read_id(&id)?, request.read()?);
    to_the_end(async move { shared.app.redeliver(&caller, id, which).await }).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Go on from an event
///
/// Whether the webhook has had it or not.
#[utoipa::path(
    post, path = "/webhooks/{id}/replay", operation_id = "replay_webhook", tag = "webhooks",
    params(("id" = i64, Path, description = "The webhook's number", minimum = 1)), request_body = Replay,
    responses((status = 200, description = "As it is now", body = Webhook), Missing)
)]
async fn replay(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
    Json(Replay { from }): Json<Replay>,
) -> Result<Versioned<Webhook>, ApiError> {
    let id = read_id(&id)?;
    Ok(versioned(to_the_end(async move { shared.app.replay(&caller, id, from).await }).await?.into()))
}

/// Try a webhook
///
/// Sends an event that never happened, now and once, and tells what the receiver answered.
#[utoipa::path(
    post, path = "/webhooks/{id}/test", operation_id = "test_webhook", tag = "webhooks",
    params(("id" = i64, Path, description = "The webhook's number", minimum = 1)),
    responses((status = 200, description = "What came of it", body = WebhookTest), Missing)
)]
async fn test(
    State(shared): State<Shared>,
    Who(caller): Who,
    Path(id): Path<String>,
    Query(Nothing {}): Query<Nothing>,
) -> Result<axum::Json<WebhookTest>, ApiError> {
    let id = read_id(&id)?;
    Ok(axum::Json(to_the_end(async move { shared.app.test_webhook(&caller, id).await }).await?.into()))
}

fn versioned(webhook: Webhook) -> Versioned<Webhook> {
    let version = webhook.version;
    Versioned(webhook, version)
}

fn read_id(text: &str) -> Result<i64, ApiError> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| ApiError::invalid(format!("{text:?} is not the number of a webhook")))
}
