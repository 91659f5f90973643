//! Chains and maintenance windows: a chain begins on a minion while its window is open, and goes on whatever comes.

use super::super::window::{Opening, put_off};
use super::Open;
use super::round::Look;
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::action::types;
use saltern_core::chain::Plan;
use saltern_core::ids::{LaunchId, MinionId};
use saltern_core::run::{Input, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_store::{LaunchMinion, MinionMove, MinionState};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Master {
    /// Whether a minion's part may begin there now.
    pub(super) fn opening_of(&self, look: &Look, plan: &Plan, minion: &MinionId) -> Opening {
        self.windows.opening_by(minion, look.is_restricted(plan), look.is_overridden(), look.now)
    }

    /// Whose window is closed waits for the next, or fails, as the launch or the schedule says; tells who waits.
    pub(super) async fn wait_for_windows(
        self: &Arc<Self>,
        look: &Look,
        outside: Vec<(LaunchMinion, Option<Timestamp>)>,
        next: &mut Open,
    ) -> Result<Vec<LaunchMinion>, Error> {
        let Some(head) = look.actions.first() else { return Ok(Vec::new()) };
        let (mut waits, mut fails) = (Vec::new(), Vec::new());
        let mut later = None;
        for (row, opens) in outside {
            if self.windows.fails_outside(&row.minion, &head.new.policy) && self.had_its_window(look, &row).await? {
                fails.push(row);
                continue;
            }
            if let Some(opens) = opens {
                next.look = next.look.min(opens);
                let (due, deadline) = (look.launch.due, look.launch.deadline);
                later = later.max(put_off(due, deadline, opens, self.config.job_deadline));
            }
            waits.push(row);
        }
        if let Some(later) = later {
            self.store.extend_deadline(head.id, later).await?;
        }
        let message = "its maintenance window was closed when it could have started";
        self.end_rows(look, fails, Input::OutsideWindow, "failed", message).await?;
        Ok(waits)
    }

    /// Whether a minion's part has missed the window that it was for; not if it was launched to wait for one still to come.
    async fn had_its_window(&self, look: &Look, row: &LaunchMinion) -> Result<bool, Error> {
        let plan = self.plan_of(&look.going, &row.plan).await?;
        let first = plan.chunk(1).and_then(|chunk| chunk.steps.first()).and_then(|step| look.going.step(step.number));
        let Some(step) = first else { return Ok(true) };
        let waiting = self.store.waiting_runs(step.action, std::slice::from_ref(&row.minion)).await?;
        let was_moved = waiting.iter().any(|(_, what)| *what == Some(WaitingFor::Window));
        Ok(!was_moved || self.windows.was_open_since(&row.minion, look.launch.due, look.now))
    }

    /// What ends the parts of launches that have not begun on these minions.
    pub(in crate::engine) async fn cancelled_parts(
        self: &Arc<Self>,
        parts: Vec<(LaunchId, MinionId)>,
        message: &str,
    ) -> Result<Vec<MinionMove>, Error> {
        let mut by_launch: BTreeMap<LaunchId, Vec<LaunchMinion>> = BTreeMap::new();
        for (launch, minion) in parts {
            let row = self.store.launch_minion(launch, &minion).await?;
            let unbegun = |row: &LaunchMinion| row.state == MinionState::Waiting && row.chunk == 1;
            by_launch.entry(launch).or_default().extend(row.filter(unbegun));
        }
        let mut moves = Vec::new();
        for (id, rows) in by_launch {
            let (Some(launch), Some(going)) = (self.store.launch(id).await?, self.going(id).await?) else { continue };
            let actions = self.store.launch_actions(id).await?;
            let look = Look::new(going, launch, actions, clock::now());
            moves.extend(self.endings(&look, &rows, Input::Cancel, "cancelled", message).await?);
        }
        Ok(moves)
    }
}

impl Look {
    /// Whether windows are asked before a minion's part begins, also when it is sent.
    pub(super) fn keeps_to_windows(&self, plan: &Plan) -> bool {
        self.is_restricted(plan) && !self.is_overridden()
    }

    /// Whether windows are not asked, for somebody's reason.
    fn is_overridden(&self) -> bool {
        self.actions.iter().any(|action| action.new.policy.override_window.is_some())
    }

    /// Whether a minion's part changes something, so that it may begin only inside a window.
    fn is_restricted(&self, plan: &Plan) -> bool {
        let steps = plan.steps().filter_map(|step| self.going.step(step.number));
        steps
            .into_iter()
            .any(|step| types::find(&step.step.kind).is_none_or(|kind| kind.is_restricted(&step.step.params)))
    }
}
