//! Maintenance modes: minions whose windows somebody has opened by hand, until he closes them or until then.

use super::changed;
use crate::audit::AuditEntry;
use crate::db::{Effects, Operation, Param, Row, Tx, params};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// A minion whose windows are open, whatever its schedules say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Which one
    pub minion: MinionId,
    /// Who opened them
    pub by: String,
    /// For what reason
    pub why: String,
    /// Since when
    pub since: Timestamp,
    /// Until when; nothing: until somebody closes them
    pub until: Option<Timestamp>,
}

pub(super) const ALL: &str = "SELECT minion, by, why, since, until FROM maintenance_modes ORDER BY minion";
pub(super) const CLEAR: &str = "DELETE FROM maintenance_modes WHERE minion = ?1";
const SET: &str = "INSERT INTO maintenance_modes (minion, by, why, since, until) VALUES (?1, ?2, ?3, ?4, ?5) \
    ON CONFLICT (minion) DO UPDATE SET by = excluded.by, why = excluded.why, since = excluded.since, until = excluded.until";

struct Change(&'static str, Vec<Param>, AuditEntry);

impl Operation for Change {
    type Output = bool;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Self(statement, values, audit) = self;
            if tx.execute(statement, values.clone()).await? == 0 {
                return Ok(false);
            }
            effects.audit([audit]);
            changed(tx).await?;
            Ok(true)
        })
    }
}

impl Store {
    /// Opens the windows of a minion, in place of what was said about that before.
    pub async fn set_mode(&self, mode: Mode, audit: AuditEntry) -> Result<()> {
        let Mode { minion, by, why, since, until } = mode;
        self.write(Change(SET, params![&minion, by, why, since, until], audit)).await.map(drop)
    }

    /// Leaves a minion to its schedules again; false if it was.
    pub async fn clear_mode(&self, minion: MinionId, audit: AuditEntry) -> Result<bool> {
        self.write(Change(CLEAR, params![&minion], audit)).await
    }
}

pub(super) fn read(mut row: Row) -> Result<Mode> {
    Ok(Mode {
        minion: row.minion(0)?,
        by: row.text(1)?,
        why: row.text(2)?,
        since: row.time(3)?,
        until: row.opt_time(4)?,
    })
}
