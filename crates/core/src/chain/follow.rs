//! What comes next: whether a step may begin, and what follows from how a chunk stands. Pure, so that it can be tested whole.

use super::answer::{Answer, ChunkState, StepState};
use super::form::Barrier;
use super::plan::Plan;
use super::step::Step;

/// How the step before stands, over all its minions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Its runs
    pub total: usize,
    /// Those that have ended, well or not
    pub ended: usize,
    /// Those of them that have failed
    pub failed: usize,
}

/// Whether a step may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// It may
    Open,
    /// The step before has not ended on enough minions
    Barrier,
    /// Too many of the step before have failed: it never will
    OverBudget,
    /// Somebody has to say yes
    Approval,
}

/// Whether a step may begin, given the step before it in the chain (none: it is the first).
///
/// Nobody is asked about a step that cannot begin anyway, so the question comes last.
pub fn gate(step: &Step, before: Option<Before>, approved: bool) -> Gate {
    if let Some(Before { total, ended, failed }) = before {
        let is_open = match step.barrier {
            Barrier::Each => true,
            Barrier::All => ended >= total,
            Barrier::Percent(percent) => ended.saturating_mul(100) >= total.saturating_mul(percent.into()),
        };
        if !is_open {
            return Gate::Barrier;
        }
        if step.budget.is_some_and(|budget| failed > budget.allowed_of(total)) {
            return Gate::OverBudget;
        }
    }
    if step.approval.is_some() && !approved { Gate::Approval } else { Gate::Open }
}

/// What follows from an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// The minion is at work, and will tell
    Wait,
    /// Nobody works on it though something is left: ask the minion to go on
    Ask,
    /// The machine goes down: go on when it is back
    Restarting,
    /// This chunk has ended, and another is to be sent
    Chunk {
        /// Its number
        next: usize,
        /// Whether something has failed so far, as far as this answer tells
        failed: bool,
    },
    /// The minion has nothing of this chunk: it has not come there, or was removed
    Nothing,
    /// All has ended on this minion
    End(End),
}

/// How a launch ends on a minion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// All is done
    Completed,
    /// Something failed
    Failed,
    /// A step was interrupted, and nobody knows how it ended
    Stopped,
    /// It was cancelled before its end
    Cancelled,
}

/// What follows from how a chunk, by its number, stands. That the answer is of the same launch is for the caller to see to.
pub fn follow(plan: &Plan, chunk: usize, answer: &Answer) -> Next {
    let has_it = answer.state != ChunkState::None && usize::try_from(answer.chunk) == Ok(chunk);
    // A launch that was cancelled before anything of it came there has no chunk.
    if !has_it && answer.state != ChunkState::Cancelled {
        return Next::Nothing;
    }
    let failed = answer.steps.iter().any(|(_, record)| record.state == StepState::Failed);
    match answer.state {
        ChunkState::Running | ChunkState::Rebooting | ChunkState::Updating if answer.alive => Next::Wait,
        ChunkState::Running => Next::Ask,
        ChunkState::Rebooting => Next::Restarting,
        ChunkState::Updating if answer.cancelled => Next::End(End::Cancelled),
        // It took its agent with it; the check that begins the next chunk knows how it ended.
        ChunkState::Updating => match plan.chunk(chunk + 1) {
            Some(_) => Next::Chunk { next: chunk + 1, failed },
            None => Next::End(End::Stopped),
        },
        ChunkState::Done => match wanted_after(plan, chunk, false) {
            Some(_) if answer.cancelled => Next::End(End::Cancelled),
            Some(next) => Next::Chunk { next, failed: false },
            None => Next::End(End::Completed),
        },
        ChunkState::Failed => match wanted_after(plan, chunk, true) {
            Some(next) if !answer.cancelled => Next::Chunk { next, failed: true },
            _ => Next::End(End::Failed),
        },
        ChunkState::Stopped => Next::End(End::Stopped),
        ChunkState::Cancelled => Next::End(End::Cancelled),
        ChunkState::None => Next::Nothing,
    }
}

/// Where a minion goes on whose chunk, by its number, the budget of its first step does not let begin: with what is done
/// after a failure, of this chunk or a later one. Nothing: all has ended there.
pub fn past_budget(plan: &Plan, chunk: usize) -> Option<usize> {
    let held_back = plan.chunk(chunk)?.steps.first()?;
    // Where nothing has begun there is nothing to be put right. And where what would be done anyway is what the budget holds
    // back, the rest of its chunk hangs on it.
    if chunk < 2 || held_back.after.wants(true) { None } else { wanted_after(plan, chunk - 1, true) }
}

/// The first chunk after this one that has a step to be done.
fn wanted_after(plan: &Plan, chunk: usize, failed: bool) -> Option<usize> {
    let mut later = plan.chunks.iter().enumerate().skip(chunk);
    let wanted = later.find(|(_, chunk)| chunk.steps.iter().any(|step| step.after.wants(failed)));
    wanted.map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests;
