//! What waits, counted; and housekeeping that is over.

use crate::db::params;
use crate::{Result, Store};
use saltern_core::ids::ActionId;
use saltern_core::run::WaitingFor;
use saltern_core::time::Timestamp;

const DEPTHS: &str =
    "SELECT coalesce(waiting_for, 'due'), count(*) FROM runs WHERE state = 'queued' GROUP BY 1 ORDER BY 1";
pub(crate) const HOUSEKEEPING: &str = "SELECT a.id FROM actions a WHERE a.internal = 1 AND a.ended IS NOT NULL \
    AND a.ended < ?1 AND (SELECT l.id FROM launches l WHERE l.id = a.launch AND l.ended IS NULL) IS NULL \
    ORDER BY a.ended, a.id LIMIT ?2";

impl Store {
    /// How many runs wait, by what they wait for.
    pub async fn queue_depths(&self) -> Result<Vec<(WaitingFor, i64)>> {
        let rows = self.query(DEPTHS, params![]).await?;
        let mut depths = Vec::with_capacity(rows.len());
        for mut row in rows {
            if let Some(what) = WaitingFor::parse(&row.text(0)?) {
                depths.push((what, row.int(1)?));
            }
        }
        Ok(depths)
    }

    /// The server's own actions that ended before then; not those of a launch that goes on.
    pub async fn finished_housekeeping(&self, before: Timestamp, limit: usize) -> Result<Vec<ActionId>> {
        let rows = self.query(HOUSEKEEPING, params![before, limit]).await?;
        rows.into_iter().map(|row| row.int(0).map(ActionId)).collect()
    }
}
