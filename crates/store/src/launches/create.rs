//! How a launch comes in: with an action for each step, the runs of those, and the plans of its minions, in one transaction.

use super::plans;
use crate::actions::{self, NewAction};
use crate::audit::AuditEntry;
use crate::counters::{self, Counter};
use crate::counts::Counts;
use crate::db::{Effects, Operation, Param, Tx, params};
use crate::events::NewEvent;
use crate::fires::{self, FireSlot};
use crate::jobs::{self, NewJob};
use crate::{Error, Result, Store};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::{ActionId, ChainId, Jid, LaunchId, MinionId, RecurringId};
use saltern_core::run::{Reason, RunState, WaitingFor};
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;

/// Words the events of a launch once its id and those of its actions are known.
pub type LaunchEvents = Box<dyn Fn(LaunchId, &[ActionId]) -> Vec<NewEvent> + Send>;

/// A launch to be stored with all that belongs to it.
pub struct NewLaunch {
    /// The chain it is launched from
    pub chain: Option<ChainId>,
    /// What people call it
    pub name: String,
    /// Who launches it
    pub initiator: String,
    /// From where
    pub origin: String,
    /// The organisation it belongs to
    pub org: String,
    /// What minions know it by
    pub key: Jid,
    /// When it is launched
    pub created: Timestamp,
    /// When it is due
    pub due: Timestamp,
    /// When whatever is still open ends
    pub deadline: Timestamp,
    /// Its steps, as JSON text
    pub steps: String,
    /// An action for each step, in their order
    pub actions: Vec<NewStep>,
    /// The plans of its minions: hash and body
    pub plans: Vec<(String, String)>,
    /// Its minions; without those on which nothing can be done
    pub minions: Vec<NewLaunchMinion>,
    /// The events to log with it; they may name the launch and its actions. Of actions that have no open run, and of a
    /// launch without minions, nothing else is told: they have ended when they are made
    pub events: LaunchEvents,
    /// The audit entry to add with it
    pub audit: Option<AuditEntry>,
    /// The recurring action that it is one time of
    pub recurring: Option<RecurringId>,
    /// The instant of it that is accounted for with it
    pub fire: Option<FireSlot>,
}

/// A step to be stored.
#[derive(Clone, Debug)]
pub struct NewStep {
    /// Its action; it gets the launch's id, and its place as its number unless it has one
    pub action: NewAction,
    /// Its job, which is not published: what minions say about the step is stored as returns of it
    pub job: NewJob,
    /// Its runs
    pub runs: Vec<NewStepRun>,
}

/// A run of a step to be stored: queued, and not taken by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStepRun {
    /// On which minion
    pub minion: MinionId,
    /// What it waits for
    pub waiting_for: WaitingFor,
    /// Why it has failed before it could begin, and what to say about that
    pub refused: Option<(Reason, String)>,
}

/// A minion of a launch to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLaunchMinion {
    /// Which one
    pub minion: MinionId,
    /// The hash of its plan
    pub plan: String,
}

const INSERT: &str = "INSERT INTO launches (id, key, chain, name, initiator, origin, org, created, due, deadline, steps, \
    approvals, stopped, ended, total, open, completed, failed, cancelled_count, recurring) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, '[]', 0, ?12, ?13, ?13, 0, 0, 0, ?14) ON CONFLICT (key) DO NOTHING";
const INSERT_MINION: &str = "INSERT INTO launch_minions (launch, minion, plan, chunk, state, holds, failed, since, asked) \
    VALUES (?1, ?2, ?3, 1, 'waiting', 0, 0, ?4, 0)";
const INSERT_RUN: &str = "INSERT INTO runs \
    (action, minion, state, reason, waiting_for, attempt, deliveries, jid, ended, message, late) \
    VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6, ?7, ?8, 0)";

impl NewStepRun {
    /// Where it stands from the beginning.
    fn standing(&self) -> (RunState, Option<Reason>) {
        self.refused.as_ref().map_or((RunState::Queued, None), |(reason, _)| (RunState::Failed, Some(*reason)))
    }

    fn row(&self, action: ActionId, jid: Jid, created: Timestamp) -> Vec<Param> {
        let (state, reason) = self.standing();
        let is_open = self.refused.is_none();
        params![
            action,
            &self.minion,
            state.as_str(),
            reason.map(Reason::as_str),
            is_open.then_some(self.waiting_for.as_str()),
            jid,
            (!is_open).then_some(created),
            self.refused.as_ref().map(|(_, message)| message),
        ]
    }
}

impl NewLaunch {
    /// Stores a step; `number` is its place.
    async fn bring(&self, tx: &Tx<'_>, launch: LaunchId, number: i64, step: &NewStep) -> Result<ActionId> {
        let NewStep { action, job, runs } = step;
        let step = Some(action.step.unwrap_or(number));
        let action = NewAction { launch: Some(launch), step, ..action.clone() };
        let mut counts = Counts::default();
        for run in runs {
            let (state, reason) = run.standing();
            counts += Counts::of(state, reason);
        }
        let id = actions::insert(tx, &action, Some(job.jid), counts, self.created).await?;
        jobs::insert(tx, id, action.created, job, &jobs::Copied::from(&action)).await?;
        let rows = runs.iter().map(|run| run.row(id, job.jid, self.created));
        tx.execute_many(INSERT_RUN, rows.collect()).await?;
        Ok(id)
    }

    /// Fails if a minion would have no plan.
    fn check(&self) -> Result<()> {
        let plans: BTreeSet<&str> = self.plans.iter().map(|(hash, _)| hash.as_str()).collect();
        match self.minions.iter().all(|minion| plans.contains(minion.plan.as_str())) {
            true => Ok(()),
            false => Err(Error::Invalid("a minion of a launch has a plan that comes with it")),
        }
    }
}

impl Operation for NewLaunch {
    type Output = (LaunchId, Vec<ActionId>);
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Self::Output>> {
        Box::pin(async move {
            self.check()?;
            let launch = LaunchId(counters::take(tx, Counter::Launch, 1).await?);
            let total = self.minions.len();
            let values = params![
                launch,
                self.key,
                self.chain,
                &self.name,
                &self.initiator,
                &self.origin,
                &self.org,
                self.created,
                self.due,
                self.deadline,
                &self.steps,
                (total == 0).then_some(self.created),
                total,
                self.recurring,
            ];
            if tx.execute(INSERT, values).await? == 0 {
                return Err(Error::JidTaken);
            }
            plans::keep(tx, &self.plans).await?;
            let rows = self.minions.iter().map(|one| params![launch, &one.minion, &one.plan, self.created]);
            tx.execute_many(INSERT_MINION, rows.collect()).await?;
            let mut actions = Vec::with_capacity(self.actions.len());
            for (number, step) in (1..).zip(&self.actions) {
                actions.push(self.bring(tx, launch, number, step).await?);
            }
            if let Some(slot) = &self.fire {
                fires::fired(tx, slot, fires::Work::Launch(launch), total, self.created).await?;
            }
            effects.audit(&self.audit);
            effects.log(&(self.events)(launch, &actions));
            Ok((launch, actions))
        })
    }
}

impl Store {
    /// Stores a launch with its steps; returns its id and those of the steps' actions after the commit.
    /// [`Error::JidTaken`]: there is such a job or key already, and nothing was stored. [`Error::FireTaken`]: somebody else
    /// has accounted for that instant of a recurring action, likewise.
    pub async fn create_launch(&self, launch: NewLaunch) -> Result<(LaunchId, Vec<ActionId>)> {
        self.write(launch).await
    }
}
