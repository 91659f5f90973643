//! Launches: start a chain, see how it goes on each minion, cancel it, say yes.
//!
//! Whoever sees none of a launch's minions sees no launch; whoever sees some sees those.

use super::chains::steps_of;
use super::{App, Caller};
use crate::Error;
use crate::engine::{Asked, Explanation, LaunchDone, LaunchVerb, Preview};
use crate::master::Master;
use saltern_core::access::{Sight, Wish};
use saltern_core::action::WindowRule;
use saltern_core::chain::{Plan, Step};
use saltern_core::ids::{ChainId, LaunchId, MinionId};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Map;
use saltern_store::{Action, Launch, LaunchCounts, LaunchMinion, LaunchPage, MinionState};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a chain is to be launched.
#[derive(Clone, Debug, Default)]
pub struct LaunchRequest {
    /// What it is called; nothing: as the chain is
    pub name: Option<String>,
    /// Whom all steps are for, in place of their own targets
    pub target: Option<Target>,
    /// Other parameters, by step
    pub params: BTreeMap<usize, Map>,
    /// When it is due; nothing: now
    pub due: Option<Timestamp>,
    /// How long after its due time it ends, whatever happens; nothing: as configured
    pub deadline: Option<Duration>,
    /// Where a minion's maintenance window is closed when it is due: begun when that opens, in place of a refusal
    pub in_window: bool,
    /// What happens where the window is closed again when its turn comes
    pub window: WindowRule,
    /// For what reason maintenance windows are not asked; for admins of the minions' organisations
    pub override_window: Option<String>,
}

/// Which launches are wanted, newest first.
#[derive(Clone, Debug, Default)]
pub struct LaunchQuery {
    /// Only older than this one
    pub before: Option<LaunchId>,
    /// At most so many
    pub limit: usize,
    /// Only those that have not ended
    pub open: bool,
    /// Only of this chain
    pub chain: Option<ChainId>,
}

/// A launch with its steps.
#[derive(Clone, Debug)]
pub struct LaunchView {
    /// The launch
    pub launch: Launch,
    /// Its steps with their actions, in order
    pub steps: Vec<(Step, Action)>,
}

/// Most rows in one answer.
const PAGE: usize = 1_000;

impl App {
    /// Launches a chain.
    pub async fn launch(&self, caller: &Caller, id: ChainId, request: LaunchRequest) -> Result<Launch, Error> {
        let asked = self.asked(caller, id, request).await?;
        let launch = self.master.launch(caller, asked).await?;
        let none = || Error::Internal(format!("launch {launch} is gone"));
        self.master.store.launch(launch).await?.ok_or_else(none)
    }

    /// Whom a launch would be for, and everything that would refuse it; nothing is stored.
    pub async fn preview_launch(&self, caller: &Caller, id: ChainId, request: LaunchRequest) -> Result<Preview, Error> {
        let asked = self.asked(caller, id, request).await?;
        self.master.preview_launch(caller, &asked).await
    }

    async fn asked(&self, caller: &Caller, id: ChainId, request: LaunchRequest) -> Result<Asked, Error> {
        let chain = self.chain(caller, &id.to_string()).await?;
        let mut steps = steps_of(&chain)?;
        if steps.is_empty() {
            return Err(Error::Invalid(format!("chain {:?} has no steps yet", chain.name)));
        }
        let most = steps.len();
        for (number, params) in &request.params {
            let step = number.checked_sub(1).and_then(|index| steps.get_mut(index));
            let none = || Error::Invalid(format!("there is no step {number}: the chain has {most}"));
            step.ok_or_else(none)?.changes(params);
        }
        let name = request.name.unwrap_or_else(|| chain.name.clone());
        saltern_core::chain::check_name(&name).map_err(|error| Error::Invalid(error.to_string()))?;
        let LaunchRequest { target, due, deadline, in_window, window, override_window, .. } = request;
        Ok(Asked {
            chain: Some(chain.id),
            name,
            steps,
            target,
            due,
            deadline,
            in_window,
            window,
            override_window,
            recurs: None,
        })
    }

    /// A page of launches, newest first.
    pub async fn launches(&self, caller: &Caller, query: &LaunchQuery) -> Result<Vec<Launch>, Error> {
        let limit = query.limit.clamp(1, PAGE);
        let mut page =
            LaunchPage { before: query.before, limit, open: query.open, chain: query.chain, initiator: None };
        let mut seen = Vec::new();
        loop {
            let rows = self.master.store.launches(&page).await?;
            let last = rows.len() < limit;
            page.before = rows.last().map(|launch| launch.id);
            for launch in rows {
                seen.extend(self.launch_as_seen(caller, launch).await?);
            }
            if last || seen.len() >= limit {
                seen.truncate(limit);
                return Ok(seen);
            }
        }
    }

    /// One launch with its steps.
    pub async fn launch_of(&self, caller: &Caller, id: LaunchId) -> Result<LaunchView, Error> {
        let launch = self.seen_launch(caller, id).await?;
        let steps: Vec<Step> = serde_json::from_str(&launch.steps)
            .map_err(|_| Error::Internal(format!("launch {id} cannot be read: its steps are broken")))?;
        let mut seen = Vec::with_capacity(steps.len());
        let actions = self.master.store.launch_actions(id).await?;
        for (step, action) in steps.into_iter().zip(actions) {
            // A step that concerns none of his minions is none of his business.
            if let Some(action) = self.as_seen(caller, action).await? {
                seen.push((step, action));
            }
        }
        Ok(LaunchView { launch, steps: seen })
    }

    /// How a launch stands on its minions, after this one in the order of ids.
    pub async fn launch_minions(
        &self,
        caller: &Caller,
        id: LaunchId,
        after: &str,
        limit: usize,
    ) -> Result<Vec<LaunchMinion>, Error> {
        self.seen_launch(caller, id).await?;
        let mut rows = self.rows_seen(caller, id, after, limit.clamp(1, PAGE)).await?;
        rows.sort_unstable_by(|a, b| a.minion.cmp(&b.minion));
        Ok(rows)
    }

    /// What a launch comes to on one minion: its plan, and the states it amounts to.
    pub async fn launch_plan(&self, caller: &Caller, id: LaunchId, minion: &MinionId) -> Result<(Plan, String), Error> {
        let launch = self.seen_launch(caller, id).await?;
        let none = || Error::NotFound(format!("launch {id} has no part for {minion}"));
        if !caller.sight().sees(minion) {
            return Err(none());
        }
        let row = self.master.store.launch_minion(id, minion).await?.ok_or_else(none)?;
        let body = self.master.store.plan(&row.plan).await?.ok_or_else(none)?;
        let plan = Plan::read(&body).map_err(|error| Error::Internal(error.to_string()))?;
        let sls = plan.to_sls(&format!("{}, launch {id} on {minion}", launch.name));
        Ok((plan, sls))
    }

    /// Why a launch stands where it stands on a minion: about its first step there that has not ended.
    pub async fn explain_launch(&self, caller: &Caller, id: LaunchId, minion: &MinionId) -> Result<Explanation, Error> {
        self.seen_launch(caller, id).await?;
        let none = || Error::NotFound(format!("launch {id} has no part for {minion}"));
        if !caller.sight().sees(minion) {
            return Err(none());
        }
        let action = self.master.open_step(id, minion).await?.ok_or_else(none)?;
        self.explain(caller, action.id, minion).await
    }

    /// Does something with a launch. It concerns all of its minions, so he has to operate them all.
    pub async fn act_on_launch(&self, caller: &Caller, id: LaunchId, verb: LaunchVerb) -> Result<LaunchDone, Error> {
        let launch = self.seen_launch(caller, id).await?;
        let minions = self.master.minions_of_launch(id).await?;
        let wish = match verb {
            LaunchVerb::Approve { .. } => Wish::Approve(&minions),
            LaunchVerb::Cancel | LaunchVerb::Stop => Wish::Operate(&minions),
        };
        self.may(caller, &wish)
            .map_err(|_| Error::Forbidden(format!("{} concerns minions that are not yours", verb.word())))?;
        self.master.act_on_launch(caller, &launch, &verb).await
    }

    /// Clears what minions keep of chains that are over; with force, of any that nobody works on there. Tells the job.
    pub async fn clear_chain(
        &self,
        caller: &Caller,
        minions: &[MinionId],
        force: bool,
    ) -> Result<BTreeMap<MinionId, String>, Error> {
        if minions.is_empty() {
            return Err(Error::Invalid("name the minions whose chain is to be cleared".into()));
        }
        if let Some(unseen) = minions.iter().find(|minion| !caller.sight().sees(minion)) {
            return Err(Error::NotFound(format!("no accepted minion is called {unseen}")));
        }
        self.may(caller, &Wish::Operate(minions))?;
        let names: Vec<&str> = minions.iter().map(MinionId::as_str).collect();
        let audit = caller.audit("chain.clear", "minions", serde_json::json!({ "minions": names, "force": force }));
        self.master.store.record_audit(audit).await?;
        self.master.clear_chains(minions, force).await
    }

    async fn seen_launch(&self, caller: &Caller, id: LaunchId) -> Result<Launch, Error> {
        let none = || Error::NotFound(format!("there is no launch {id}"));
        let launch = self.master.store.launch(id).await?.ok_or_else(none)?;
        self.launch_as_seen(caller, launch).await?.ok_or_else(none)
    }

    /// A launch with the counts of the minions he sees; nothing if he sees none.
    async fn launch_as_seen(&self, caller: &Caller, mut launch: Launch) -> Result<Option<Launch>, Error> {
        if *caller.sight() == Sight::All {
            return Ok(Some(launch));
        }
        let mut counts = LaunchCounts::default();
        for row in self.rows_seen(caller, launch.id, "", usize::MAX).await? {
            counts.total += 1;
            match (row.state, row.outcome.as_deref()) {
                (MinionState::Ended, Some("completed")) => counts.completed += 1,
                (MinionState::Ended, Some("cancelled")) => counts.cancelled += 1,
                (MinionState::Ended, _) => counts.failed += 1,
                _ => counts.open += 1,
            }
        }
        launch.counts = counts;
        Ok((launch.counts.total > 0 || launch.initiator == caller.who).then_some(launch))
    }

    async fn rows_seen(
        &self,
        caller: &Caller,
        id: LaunchId,
        after: &str,
        limit: usize,
    ) -> Result<Vec<LaunchMinion>, Error> {
        let store = &self.master.store;
        let mut rows = Vec::new();
        let mut after = after.to_owned();
        loop {
            let page = store.launch_minions(id, None, &after, PAGE).await?;
            let last = page.len() < PAGE;
            if let Some(row) = page.last() {
                after = row.minion.to_string();
            }
            rows.extend(page.into_iter().filter(|row| caller.sight().sees(&row.minion)));
            if last || rows.len() >= limit {
                rows.truncate(limit);
                return Ok(rows);
            }
        }
    }
}

impl Master {
    /// Everybody a launch has a step for.
    async fn minions_of_launch(&self, id: LaunchId) -> Result<Vec<MinionId>, Error> {
        let mut minions = std::collections::BTreeSet::new();
        for action in self.store.launch_actions(id).await? {
            minions.extend(self.all_runs(action.id).await?.into_iter().map(|run| run.minion));
        }
        Ok(minions.into_iter().collect())
    }
}
