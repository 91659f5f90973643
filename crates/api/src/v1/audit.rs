//! The audit log: read it, check it.

use super::Shared;
use crate::error::ApiError;
use crate::extract::{Limit, Query, Who};
use crate::shape::{AuditCheck, AuditList};
use axum::extract::State;
use saltern_server::app::{AuditFilter, AuditQuery};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(verify))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Only by this user or program
    who: Option<String>,
    /// Only this, or whatever was done to such a noun: `key` is `key.accept`, too
    what: Option<String>,
    /// Only what was done to this
    subject: Option<String>,
    /// Only entries before this number
    before: Option<i64>,
    /// At most so many
    #[serde(default)]
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 50)]
    limit: Limit,
}

/// Read the audit log
///
/// Who changed what, newest first. For server admins.
#[utoipa::path(
    get, path = "/audit", operation_id = "list_audit", tag = "audit", params(ListQuery),
    responses((status = 200, description = "A page of entries", body = AuditList))
)]
async fn list(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<AuditList>, ApiError> {
    let ListQuery { who, what, subject, before, limit } = query;
    let query = AuditQuery { before, limit: limit.0, filter: AuditFilter { who, what, subject } };
    let entries = shared.app.audit(&caller, &query).await?;
    let next = limit.next(&entries, |(number, _)| *number);
    Ok(axum::Json(AuditList { entries: entries.into_iter().map(Into::into).collect(), next }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VerifyQuery {
    /// A head that was noted earlier, as `NUMBER:HASH`: it must still be so
    #[param(pattern = "^[1-9][0-9]{0,17}:[0-9a-f]{64}$")]
    expect: Option<String>,
}

/// Check the audit log
///
/// Follows the chain of hashes from the first entry to the last: whether anything was changed, taken out or put in. Whoever
/// could replace the log as a whole cannot replace what you have noted of it elsewhere: `expect`.
#[utoipa::path(
    get, path = "/audit/verify", operation_id = "verify_audit", tag = "audit", params(VerifyQuery),
    responses((status = 200, description = "What was found", body = AuditCheck))
)]
async fn verify(
    State(shared): State<Shared>,
    Who(caller): Who,
    Query(query): Query<VerifyQuery>,
) -> Result<axum::Json<AuditCheck>, ApiError> {
    let noted = query.expect.as_deref().map(read_noted).transpose()?;
    Ok(axum::Json(shared.app.verify_audit(&caller, noted).await?.into()))
}

/// A number and its hash.
fn read_noted(text: &str) -> Result<(i64, [u8; 32]), ApiError> {
    let read = || {
        let (number, hash) = text.split_once(':')?;
        let number = number.parse().ok().filter(|number| *number > 0)?;
        if hash.len() != 64 || !hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).ok()?;
        }
        Some((number, bytes))
    };
    read().ok_or_else(|| ApiError::invalid("expect is a number, a colon and a hash of 64 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_head_is_a_number_and_a_hash() {
        let hash = "0f".repeat(32);
        assert_eq!(read_noted(&format!("7:{hash}")).unwrap(), (7, [15; 32]));
        for bad in ["", "7", "7:", ":", &format!("0:{hash}"), &format!("7:{}", "ä".repeat(32)), &format!("x:{hash}")] {
            assert!(read_noted(bad).is_err(), "{bad}");
        }
    }
}
