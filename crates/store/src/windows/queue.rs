//! Work that waits and may have to keep to a maintenance window, and how its time is moved.

use crate::actions::Action;
use crate::db::{Effects, Locking, Operation, Row, Tx, locking, params};
use crate::runs::{self, COLUMNS, Run, columns};
use crate::transit::{self, Transition};
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, LaunchId, MinionId};
use saltern_core::run::{Input, WaitingFor};
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;
use std::time::Duration;

// Of a launch that has not begun on a minion, its first step there stands for all of it.
pub(crate) const WAITING: &str = concat!(
    "SELECT ",
    columns!(),
    ", r.action FROM runs r \
     WHERE r.ended IS NULL AND (r.minion, r.action) > (?1, ?2) AND r.minion <= ?3 AND r.state = 'queued' \
     AND r.deliveries = 0 AND (SELECT a.internal FROM actions a WHERE a.id = r.action) = 0 \
     AND coalesce((SELECT CASE WHEN a.step IS NULL THEN 1 WHEN m.state = 'waiting' AND m.chunk = 1 AND a.step = \
     (SELECT min(b.step) FROM actions b JOIN runs o ON o.action = b.id \
     WHERE b.launch = a.launch AND b.step IS NOT NULL AND o.minion = r.minion AND o.ended IS NULL) THEN 1 ELSE 0 END \
     FROM actions a LEFT JOIN launch_minions m ON m.launch = a.launch AND m.minion = r.minion \
     WHERE a.id = r.action), 0) = 1 ORDER BY r.minion, r.action LIMIT ?4"
);
/// How many runs are read at once.
const PAGE: usize = 1000;

const MOVABLE: Locking =
    locking!("SELECT 1 FROM runs WHERE action = ?1 AND minion = ?2 AND state = 'queued' AND deliveries = 0");
const PLACE: &str = "SELECT launch FROM actions WHERE id = ?1 AND launch IS NOT NULL AND step IS NOT NULL";
const RAISE: &str = "UPDATE actions SET deadline = ?2 WHERE id = ?1 AND ended IS NULL AND deadline < ?2";
const RAISE_LAUNCH: &str = "UPDATE launches SET deadline = ?2 WHERE id = ?1 AND ended IS NULL AND deadline < ?2";
const RAISE_STEPS: &str = "UPDATE actions SET deadline = ?2 \
    WHERE launch = ?1 AND step IS NOT NULL AND ended IS NULL AND deadline < ?2";

/// Runs that nothing was sent of, and when their windows open.
pub(super) struct Moves<'a> {
    pub(super) runs: &'a [(ActionId, MinionId, Timestamp)],
    /// How long after that they may still begin
    pub(super) grace: Duration,
    pub(super) at: Timestamp,
    pub(super) message: &'a str,
}

impl Moves<'_> {
    /// Has them wait for their windows, and their actions for them.
    pub(super) async fn apply(&self, tx: &Tx<'_>, effects: &mut Effects) -> Result<()> {
        let mut last: BTreeMap<ActionId, Timestamp> = BTreeMap::new();
        for (action, _, due) in self.runs {
            let due = due.plus(self.grace);
            last.entry(*action).and_modify(|last| *last = due.max(*last)).or_insert(due);
        }
        let mut steps = BTreeSet::new();
        for (action, deadline) in last {
            if raise(tx, action, deadline).await?.is_step {
                steps.insert(action);
            }
        }
        let mut transitions = Vec::with_capacity(self.runs.len());
        for (action, minion, due) in self.runs {
            if tx.query_locking(&MOVABLE, params![*action, minion]).await?.is_empty() {
                continue;
            }
            // Steps of launches are not due by themselves: their launch brings them when the window is open.
            let due = Some(*due).filter(|_| !steps.contains(action));
            transitions.push(Transition {
                action: *action,
                minion: minion.clone(),
                input: Input::Wait(WaitingFor::Window, due),
                at: self.at,
                message: Some(self.message.to_owned()),
                evidence: None,
            });
        }
        transit::happen_all(tx, effects, &transitions.iter().collect::<Vec<_>>()).await.map(drop)
    }
}

/// What raising a deadline did.
struct Raised {
    is_step: bool,
    is_news: bool,
}

/// Gives an action until then, at least; a step of a launch has the deadline of all of it.
async fn raise(tx: &Tx<'_>, action: ActionId, deadline: Timestamp) -> Result<Raised> {
    let launch = tx.query(PLACE, params![action]).await?.first().map(|row| row.int(0)).transpose()?;
    let Some(launch) = launch.map(LaunchId) else {
        let is_news = tx.execute(RAISE, params![action, deadline]).await? > 0;
        return Ok(Raised { is_step: false, is_news });
    };
    let is_news = tx.execute(RAISE_LAUNCH, params![launch, deadline]).await? > 0;
    tx.execute(RAISE_STEPS, params![launch, deadline]).await?;
    Ok(Raised { is_step: true, is_news })
}

struct Extend(ActionId, Timestamp);

impl Operation for Extend {
    type Output = bool;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<bool>> {
        Box::pin(async move { Ok(raise(tx, self.0, self.1).await?.is_news) })
    }
}

impl Store {
    /// Gives an open action until then; false if it has that already. Of a step, its whole launch.
    pub async fn extend_deadline(&self, action: ActionId, deadline: Timestamp) -> Result<bool> {
        self.write(Extend(action, deadline)).await
    }

    /// Queued runs of these minions that nothing was sent of, with their actions, in the order of minions and actions. Of a
    /// launch that has not begun on a minion, the first step there. Not the server's own housekeeping. Runs of one action
    /// share it: it may name thousands of minions.
    pub async fn restricted_queue(&self, minions: &[MinionId], limit: usize) -> Result<Vec<(Arc<Action>, Run)>> {
        let wanted: BTreeSet<&MinionId> = minions.iter().collect();
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(Vec::new()) };
        // Pages of all that waits between them, rather than one read for each minion: most have nothing that waits. Ids of
        // actions begin with 1.
        let mut after = (first.as_str().to_owned(), 0);
        let (mut found, mut actions) = (Vec::new(), BTreeMap::new());
        loop {
            let values = params![after.0.clone(), after.1, *last, PAGE];
            let page = self.query(WAITING, values).await?.into_iter().map(read).collect::<Result<Vec<_>>>()?;
            let is_last = page.len() < PAGE;
            if let Some((action, run)) = page.last() {
                after = (run.minion.as_str().to_owned(), action.0);
            }
            for (id, run) in page.into_iter().filter(|(_, run)| wanted.contains(&run.minion)) {
                let action = match actions.entry(id) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => unknown.insert(self.action(id).await?.map(Arc::new)),
                };
                found.extend(action.clone().map(|action| (action, run)));
                if found.len() >= limit {
                    return Ok(found);
                }
            }
            if is_last {
                return Ok(found);
            }
        }
    }
}

fn read(mut row: Row) -> Result<(ActionId, Run)> {
    Ok((ActionId(row.int(COLUMNS)?), runs::read(&mut row)?))
}
