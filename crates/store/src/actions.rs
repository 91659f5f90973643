//! What somebody asked for, once.

use crate::Result;
use crate::counters::{self, Counter};
use crate::db::{Tx, params};
use saltern_core::ids::ActionId;
use saltern_core::time::Timestamp;

/// An action to be stored.
#[derive(Clone, Debug)]
pub struct NewAction {
    /// Its type, e.g. `function`
    pub kind: String,
    /// The function
    pub fun: String,
    /// Its arguments, as JSON text
    pub arg: String,
    /// The target expression, as JSON text
    pub target: String,
    /// The target's type
    pub target_type: String,
    /// Who asked
    pub initiator: String,
    /// When it was asked for
    pub created: Timestamp,
    /// When it is due
    pub due: Timestamp,
    /// When whatever is still open ends
    pub deadline: Timestamp,
    /// Whether it is housekeeping of the server itself
    pub internal: bool,
}

const INSERT: &str = "INSERT INTO actions (id, kind, fun, arg, target, target_type, initiator, created, due, deadline, internal) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

pub(crate) async fn insert(tx: &Tx<'_>, action: &NewAction) -> Result<ActionId> {
    let id = counters::take(tx, Counter::Action, 1).await?;
    let NewAction { kind, fun, arg, target, target_type, initiator, created, due, deadline, internal } = action;
    let values = params![id, kind, fun, arg, target, target_type, initiator, *created, *due, *deadline, *internal];
    tx.execute(INSERT, values).await?;
    Ok(ActionId(id))
}
