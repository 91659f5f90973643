//! What people do to whole launches: cancel them, and let steps begin that wait for their word.

use super::{Approval, LaunchCounts, count_ended, read_approvals, write_approvals};
use crate::audit::AuditEntry;
use crate::db::{Effects, Locking, Operation, Tx, locking, params};
use crate::verbs::Verb;
use crate::{Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, LaunchId, MinionId};
use saltern_core::run::Input;
use saltern_core::time::Timestamp;

/// What a cancel of a launch did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchCancelled {
    /// Whether it was not cancelled, or not stopped, before
    pub news: bool,
    /// Runs that will not begin any more, in the order of steps and minions
    pub runs: Vec<(ActionId, MinionId)>,
    /// Minions that have ended with it, by name; those that have not are under way
    pub minions: Vec<MinionId>,
}

const OPEN: Locking = locking!("SELECT cancelled, stopped FROM launches WHERE id = ?1 AND ended IS NULL");
const CANCEL: &str = "UPDATE launches SET cancelled = coalesce(cancelled, ?2), cancelled_by = coalesce(cancelled_by, ?3), \
    stopped = CASE WHEN ?4 > stopped THEN ?4 ELSE stopped END WHERE id = ?1";
const WAITING: Locking =
    locking!("SELECT minion FROM launch_minions WHERE launch = ?1 AND state = 'waiting' ORDER BY minion");
const END_WAITING: &str = "UPDATE launch_minions SET state = 'ended', holds = 0, outcome = 'cancelled', since = ?2, \
    message = ?3 WHERE launch = ?1 AND state = 'waiting' RETURNING minion";
const OPEN_STEPS: &str = "SELECT id FROM actions \
    WHERE launch = ?1 AND step IS NOT NULL AND ended IS NULL AND deleting = 0 ORDER BY step, id";
const APPROVALS: Locking =
    locking!("SELECT approvals FROM launches WHERE id = ?1 AND cancelled IS NULL AND ended IS NULL");
const SET_APPROVALS: &str = "UPDATE launches SET approvals = ?2 WHERE id = ?1";

struct Cancel {
    launch: LaunchId,
    at: Timestamp,
    by: String,
    stop: bool,
    audit: Option<AuditEntry>,
    message: Option<String>,
}

impl Cancel {
    /// Ends the minions that nothing is under way on.
    async fn end_waiting(&self, tx: &Tx<'_>) -> Result<Vec<MinionId>> {
        // The update by itself would lock them in any order.
        tx.query_locking(&WAITING, params![self.launch]).await?;
        let rows = tx.query(END_WAITING, params![self.launch, self.at, self.message.as_ref()]).await?;
        let mut minions = rows.into_iter().map(|mut row| row.minion(0)).collect::<Result<Vec<_>>>()?;
        minions.sort();
        Ok(minions)
    }

    /// Cancels the runs of a step on minions that nothing is under way on. What a minion is at, it may go on with until it is
    /// told: what becomes of that is for it to say.
    async fn cancel_step(
        &self,
        tx: &Tx<'_>,
        effects: &mut Effects,
        action: ActionId,
        minions: &[MinionId],
    ) -> Result<Vec<MinionId>> {
        let verb = Verb {
            action,
            minions: Some(minions.to_vec()),
            only_failed: false,
            input: Input::Cancel,
            at: self.at,
            message: self.message.clone(),
            deadline: None,
            audit: None,
        };
        let fates = verb.apply(tx, effects).await?;
        Ok(fates.into_iter().filter(|(_, fate)| fate.is_ok()).map(|(minion, _)| minion).collect())
    }
}

impl Operation for Cancel {
    type Output = Option<LaunchCancelled>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Self::Output>> {
        Box::pin(async move {
            let rows = tx.query_locking(&OPEN, params![self.launch]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let news = row.opt_time(0)?.is_none() || (self.stop && !row.flag(1)?);
            if news {
                tx.execute(CANCEL, params![self.launch, self.at, &self.by, self.stop]).await?;
                effects.audit(&self.audit);
            }
            let minions = self.end_waiting(tx).await?;
            let mut runs = Vec::new();
            for row in tx.query(OPEN_STEPS, params![self.launch]).await? {
                let action = ActionId(row.int(0)?);
                let cancelled = self.cancel_step(tx, effects, action, &minions).await?;
                runs.extend(cancelled.into_iter().map(|minion| (action, minion)));
            }
            if !minions.is_empty() {
                let cancelled = i64::try_from(minions.len()).unwrap_or(i64::MAX);
                let ended = LaunchCounts { cancelled, ..LaunchCounts::default() };
                count_ended(tx, effects, self.launch, ended, self.at).await?;
            }
            Ok(Some(LaunchCancelled { news, runs, minions }))
        })
    }
}

struct Approve(LaunchId, Approval, AuditEntry);

impl Operation for Approve {
    type Output = bool;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Self(launch, approval, audit) = self;
            let rows = tx.query_locking(&APPROVALS, params![*launch]).await?;
            let Some(mut row) = rows.into_iter().next() else { return Ok(false) };
            let mut approvals = read_approvals(&row.text(0)?)?;
            if approvals.iter().any(|one| one.step == approval.step) {
                return Ok(false);
            }
            approvals.push(approval.clone());
            tx.execute(SET_APPROVALS, params![*launch, write_approvals(&approvals)?]).await?;
            effects.audit([audit]);
            Ok(true)
        })
    }
}

impl Store {
    /// Cancels a launch: minions that wait for a chunk have ended, and what they have not begun never will. What others are at
    /// goes on unless they are told; that, and the steps behind it, are for the caller to see to. Who cancelled it first, stays so. Nothing: there is no
    /// such launch, or it has ended.
    pub async fn cancel_launch(
        &self,
        launch: LaunchId,
        at: Timestamp,
        by: String,
        stop: bool,
        audit: Option<AuditEntry>,
        message: Option<String>,
    ) -> Result<Option<LaunchCancelled>> {
        self.write(Cancel { launch, at, by, stop, audit, message }).await
    }

    /// Lets a step of a launch begin; tells whether that was news. False for one that was cancelled or has ended, too.
    pub async fn approve(
        &self,
        launch: LaunchId,
        step: i64,
        by: String,
        at: Timestamp,
        audit: AuditEntry,
    ) -> Result<bool> {
        self.write(Approve(launch, Approval { step, by, at }, audit)).await
    }
}
