//! Why a step of a launch stands where it stands on a minion, beyond what its run says.

use super::super::{Explanation, Fact};
use crate::Error;
use crate::master::Master;
use saltern_core::ids::{LaunchId, MinionId};
use saltern_core::run::{RunState, WaitingFor};
use saltern_store::{Action, LaunchMinion, MinionState};
use std::sync::Arc;

impl Master {
    /// Adds to the explanation of a step's run what its launch knows.
    pub(in crate::engine) async fn explain_step(
        self: &Arc<Self>,
        action: &Action,
        explanation: &mut Explanation,
    ) -> Result<(), Error> {
        let (Some(launch), Some(step)) = (action.new.launch, action.new.step) else { return Ok(()) };
        let (Some(going), Some(row)) =
            (self.going(launch).await?, self.store.launch_minion(launch, &explanation.minion).await?)
        else {
            return Ok(());
        };
        let number = usize::try_from(step).unwrap_or(0);
        let what = format!("it is step {number} of {} of launch {launch}", going.steps.len());
        explanation.facts.insert(1.min(explanation.facts.len()), Fact { at: None, what });
        explanation.facts.push(Fact { at: Some(row.since), what: standing(&row) });
        if let Some(message) = row.message.clone() {
            explanation.facts.push(Fact { at: Some(row.since), what: message });
        }
        if explanation.run.state != RunState::Queued {
            return Ok(());
        }
        if let Some(why) = self.why_waiting(&going, &row, number, explanation.run.waiting_for).await? {
            explanation.why = why;
        }
        explanation.next = match explanation.run.waiting_for {
            Some(WaitingFor::Approval) => format!("`saltern chain approve {launch} {number}` lets it go on"),
            _ => format!("begun when its turn comes, or ended {}", going.deadline.rfc3339()),
        };
        Ok(())
    }

    async fn why_waiting(
        &self,
        going: &super::book::Going,
        row: &LaunchMinion,
        number: usize,
        waiting_for: Option<WaitingFor>,
    ) -> Result<Option<String>, Error> {
        let step = going.step(number);
        Ok(match waiting_for {
            Some(WaitingFor::Chain) => {
                let holder = self.store.holders(std::slice::from_ref(&row.minion)).await?;
                let other = holder.into_iter().find(|(_, launch)| *launch != going.id);
                other.map(|(_, launch)| format!("it waits for launch {launch}, which is under way on this minion"))
            }
            Some(WaitingFor::Approval) => {
                let question = step.and_then(|step| step.step.approval.clone());
                question.map(|question| format!("it waits for somebody's yes: {question}"))
            }
            Some(WaitingFor::Barrier) => {
                let before = self.store.launch_actions(going.id).await?;
                let before = number.checked_sub(2).and_then(|index| before.get(index).cloned());
                before.map(|action| {
                    let counts = &action.counts;
                    let open = counts.queued + counts.running;
                    format!(
                        "it waits for {}, which has not ended on {open} of {} minions",
                        going.name(number - 1),
                        counts.total
                    )
                })
            }
            Some(WaitingFor::EarlierStep) => self.earlier(going, &row.minion, number).await?,
            Some(WaitingFor::Facts) => Some("it waits until the minion has the module that runs chains".into()),
            _ => None,
        })
    }

    /// The step before this one that is not over on the minion.
    async fn earlier(
        &self,
        going: &super::book::Going,
        minion: &MinionId,
        number: usize,
    ) -> Result<Option<String>, Error> {
        for earlier in 1..number {
            let Some(step) = going.step(earlier) else { continue };
            let run = self.store.run(step.action, minion).await?;
            if let Some(run) = run.filter(|run| !run.state.is_terminal()) {
                let name = going.name(earlier);
                return Ok(Some(format!("it waits for {name}, which is {}", run.state.as_str())));
            }
        }
        Ok(None)
    }

    /// The first step of a launch that is open on a minion, or the last one it had there.
    pub(crate) async fn open_step(&self, launch: LaunchId, minion: &MinionId) -> Result<Option<Action>, Error> {
        let mut last = None;
        for action in self.store.launch_actions(launch).await? {
            if let Some(run) = self.store.run(action.id, minion).await? {
                if !run.state.is_terminal() {
                    return Ok(Some(action));
                }
                last = Some(action);
            }
        }
        Ok(last)
    }
}

fn standing(row: &LaunchMinion) -> String {
    let chunk = row.chunk;
    match row.state {
        MinionState::Waiting => format!("chunk {chunk} of the minion's plan has not been sent"),
        MinionState::Sent => format!("chunk {chunk} of the minion's plan was sent"),
        MinionState::Restarting => format!("chunk {chunk} ended with a restart, and the minion is waited for"),
        MinionState::Asking => format!("the minion was asked how chunk {chunk} stands"),
        MinionState::Ended => format!("the launch is over on this minion, in chunk {chunk}"),
    }
}
