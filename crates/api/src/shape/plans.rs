//! Plans as JSON: what a launch comes to on one minion.

use saltern_core::chain;
use saltern_core::value::Value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a launch comes to on one minion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Names the plan: minions that do the same have the same one
    pub hash: String,
    /// The parts that the minion does by itself, in order; the first has number 1
    pub chunks: Vec<PlanChunk>,
    /// The same to be read, as states
    pub sls: String,
}

/// A part of a plan, up to where the machine or its agent restarts, or others have a say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanChunk {
    /// The number of its first step, if a barrier, a budget or an approval decides when it begins
    pub gate: Option<usize>,
    /// Its steps, in order
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanStep {
    /// What the minion calls it: its number, or `2.check` for the check after step 2
    pub id: String,
    /// The number of the step it belongs to
    pub step: usize,
    /// What people call it
    pub name: String,
    /// How it ends: a `call` with its return, a `reboot` with the next boot, an `update` with another agent, a `check` with the
    /// return that is expected
    pub kind: String,
    /// The function
    pub fun: String,
    /// Its arguments by position
    #[schema(value_type = Vec<Value>)]
    pub arg: Vec<Value>,
    /// Its arguments by name
    #[schema(value_type = Object)]
    pub kwarg: Value,
    /// Whether it may be done again where it was interrupted
    pub repeatable: bool,
    /// After what it is done: `ok`, `failed` or `always`
    pub after: String,
    /// What a check must return
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub expect: Option<Value>,
}

impl Plan {
    /// A plan with its states.
    pub(crate) fn of(plan: chain::Plan, sls: String) -> Self {
        Self { hash: plan.hash(), chunks: plan.chunks.into_iter().map(Into::into).collect(), sls }
    }
}

impl From<chain::Chunk> for PlanChunk {
    fn from(chunk: chain::Chunk) -> Self {
        Self { gate: chunk.gate, steps: chunk.steps.into_iter().map(Into::into).collect() }
    }
}

impl From<chain::PlanStep> for PlanStep {
    fn from(step: chain::PlanStep) -> Self {
        Self {
            id: step.id,
            step: step.number,
            name: step.title,
            kind: step.kind.as_str().into(),
            fun: step.fun,
            arg: step.arg,
            kwarg: Value::Map(step.kwarg),
            repeatable: step.repeatable,
            after: step.after.as_str().into(),
            expect: step.expect,
        }
    }
}
