//! What the engine looks for in launches that go on: what has lost its carrier, what takes long, what a step waits for.

use super::minions::{LaunchMinion, select};
use crate::db::params;
use crate::runs::{self, Run, columns};
use crate::{Result, Store};
use saltern_core::ids::{ActionId, LaunchId, MinionId};
use saltern_core::run::{Reason, WaitingFor};
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;

// A carrier that has ended without anything having come of it, or a claim whose carrier was never made.
pub(crate) const STRANDED: &str = select!(
    "WHERE m.launch = ?1 AND m.state IN ('sent', 'asking') AND m.since < ?2 AND \
     coalesce((SELECT CASE WHEN r.ended IS NULL THEN 0 ELSE 1 END FROM runs r \
     WHERE r.action = m.carrier AND r.minion = m.minion), 1) = 1 ORDER BY m.minion LIMIT ?3"
);
pub(crate) const BEGUN_BEFORE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM runs r WHERE r.action = ?1 AND r.ended IS NULL AND r.state = 'picked_up' AND r.picked_up < ?2 \
     ORDER BY r.minion LIMIT ?3"
);
pub(crate) const ENDED_BY: &str = "SELECT count(*) FROM runs WHERE action = ?1 AND reason = ?2";
pub(crate) const WAITING: &str = "SELECT minion, waiting_for FROM runs \
    WHERE action = ?1 AND state = 'queued' AND minion >= ?2 AND minion <= ?3 ORDER BY minion";

impl Store {
    /// Minions of a launch that stand since before `before` at a chunk, or a question, that nothing is under way for.
    pub async fn stranded_minions(
        &self,
        launch: LaunchId,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<LaunchMinion>> {
        self.list_launch_minions(STRANDED, params![launch, before, limit]).await
    }

    /// Runs of an action that were begun before `before` and have not ended, by minion.
    pub async fn runs_begun_before(&self, action: ActionId, before: Timestamp, limit: usize) -> Result<Vec<Run>> {
        let rows = self.query(BEGUN_BEFORE, params![action, before, limit]).await?;
        rows.into_iter().map(|mut row| runs::read(&mut row)).collect()
    }

    /// How many runs of an action ended for this reason.
    pub async fn runs_ended_by(&self, action: ActionId, reason: Reason) -> Result<usize> {
        let rows = self.query(ENDED_BY, params![action, reason.as_str()]).await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// What those of these minions' runs that are queued wait for.
    pub async fn waiting_runs(
        &self,
        action: ActionId,
        minions: &[MinionId],
    ) -> Result<Vec<(MinionId, Option<WaitingFor>)>> {
        let wanted: BTreeSet<&MinionId> = minions.iter().collect();
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(Vec::new()) };
        let rows = self.query(WAITING, params![action, *first, *last]).await?;
        let read = rows.into_iter().map(|mut row| {
            let what = row.opt_text(1)?.as_deref().and_then(WaitingFor::parse);
            Ok((row.minion(0)?, what))
        });
        read.filter(|one| one.as_ref().map_or(true, |(minion, _)| wanted.contains(minion))).collect()
    }

    /// Where a minion stands with the launch that minions know by this key.
    pub async fn launch_of_key(&self, key: saltern_core::ids::Jid, minion: &MinionId) -> Result<Option<LaunchMinion>> {
        match self.launch_with_key(key).await? {
            Some(launch) => self.launch_minion(launch.id, minion).await,
            None => Ok(None),
        }
    }
}
