//! Keys: list them, decide about them.

use super::{Caller, Shared, to_the_end};
use crate::error::ApiError;
use crate::extract::{Json, Path};
use crate::shape::{Key, KeyDecision, KeyList, KeyResult};
use axum::Extension;
use axum::extract::State;
use saltern_server::Error;
use saltern_server::app::KeyVerb;

pub(super) async fn list(State(shared): State<Shared>) -> axum::Json<KeyList> {
    axum::Json(KeyList {
        master_fingerprint: shared.app.master_fingerprint(),
        keys: shared.app.keys().into_iter().map(|entry| Key::of(entry, false)).collect(),
    })
}

pub(super) async fn show(
    State(shared): State<Shared>,
    Path(id): Path<String>,
) -> Result<axum::Json<KeyList>, ApiError> {
    let of_this_id = shared.app.keys().into_iter().filter(|entry| entry.minion.as_str() == id);
    let keys: Vec<Key> = of_this_id.map(|entry| Key::of(entry, true)).collect();
    if keys.is_empty() {
        return Err(Error::NotFound(format!("there is no key of {id:?}")).into());
    }
    Ok(axum::Json(KeyList { master_fingerprint: shared.app.master_fingerprint(), keys }))
}

type Decided = Result<axum::Json<KeyResult>, ApiError>;

pub(super) async fn accept(shared: State<Shared>, caller: Extension<Caller>, decision: Json<KeyDecision>) -> Decided {
    decide(KeyVerb::Accept, shared, caller, decision).await
}

pub(super) async fn reject(shared: State<Shared>, caller: Extension<Caller>, decision: Json<KeyDecision>) -> Decided {
    decide(KeyVerb::Reject, shared, caller, decision).await
}

pub(super) async fn delete(shared: State<Shared>, caller: Extension<Caller>, decision: Json<KeyDecision>) -> Decided {
    decide(KeyVerb::Delete, shared, caller, decision).await
}

async fn decide(
    verb: KeyVerb,
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Json(decision): Json<KeyDecision>,
) -> Decided {
    let (which, also) = decision.read()?;
    let ids = to_the_end(async move { shared.app.decide_keys(&caller, verb, &which, &also).await }).await?;
    Ok(axum::Json(KeyResult { ids: ids.iter().map(ToString::to_string).collect() }))
}
