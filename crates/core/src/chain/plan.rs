//! What a chain comes to on one minion: its steps as Salt calls, cut into chunks.
//!
//! Invariants: every step is there once, in order; nothing is in a chunk behind a restart; a gated step begins a chunk; what
//! replaces the agent is followed by a chunk that begins by checking that it took effect.

use super::step::{After, BadStep, Step};
use crate::action::types::{Call, Expected, Restarts};
use crate::value::{Map, Value};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The chunks of one minion, in order. Minions with equal plans share one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The chunks; the first has number 1
    pub chunks: Vec<Chunk>,
}

/// A part of a plan that a minion runs without anybody's help.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    /// The step, its first, that others have a say in: by a barrier, a budget or an approval
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<usize>,
    /// Its steps; never none
    pub steps: Vec<PlanStep>,
}

/// One step of a chunk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What the minion calls it: its number, or `<number>.check`
    pub id: String,
    /// The number of the chain's step it belongs to
    pub number: usize,
    /// What people call it
    pub title: String,
    /// How it ends
    pub kind: StepKind,
    /// The function
    pub fun: String,
    /// Its arguments by position
    pub arg: Vec<Value>,
    /// Its arguments by name
    pub kwarg: Map,
    /// Whether it may be done again where it was interrupted
    pub repeatable: bool,
    /// After what it is done
    pub after: After,
    /// What a check must return
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Value>,
}

/// How a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// With its return
    Call,
    /// With another boot of the machine
    Reboot,
    /// With its return, or with the agent that it replaced; the check after it knows
    Update,
    /// With a return that is the expected one
    Check,
}

/// What runs on a minion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agent {
    /// Salt's own minion
    Stock,
    /// Ours
    Native,
}

/// Why a minion cannot have a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step} cannot be done there: {reason}")]
pub struct CannotCompile {
    /// The step's number
    pub step: usize,
    /// The reason
    pub reason: String,
}

/// Why a text is not a plan.
#[derive(Debug, thiserror::Error)]
#[error("not a plan: {0}")]
pub struct BadPlan(#[from] serde_json::Error);

/// Compiles the steps that concern one minion, each with its number in the chain, in their order. No steps, no chunks.
pub fn compile(steps: &[(usize, &Step)], agent: Agent) -> Result<Plan, CannotCompile> {
    let mut chunks = Vec::new();
    let mut open = Chunk::default();
    for (number, step) in steps.iter().copied() {
        let cannot = |reason: String| CannotCompile { step: number, reason };
        let call = step.call().map_err(|error: BadStep| cannot(error.to_string()))?;
        let (Some(kind), Some(fun)) = (step.action_type(), call.funs.first()) else {
            return Err(cannot(BadStep::SeveralFunctions.to_string()));
        };
        if agent == Agent::Native && fun.starts_with("state.") {
            return Err(cannot("the native minion has no state engine; use steps of other types there".into()));
        }
        if step.is_gated() {
            close(&mut chunks, &mut open);
            open.gate = Some(number);
        }
        let restarts = kind.restarts(&step.params);
        open.steps.push(PlanStep::of(number, step, restarts, call));
        if restarts != Restarts::Nothing {
            close(&mut chunks, &mut open);
        }
        if let (Restarts::Agent, Some(expected)) = (restarts, kind.check_after(&step.params)) {
            open.steps.push(PlanStep::check_of(number, step, expected));
        }
    }
    close(&mut chunks, &mut open);
    Ok(Plan { chunks })
}

fn close(chunks: &mut Vec<Chunk>, open: &mut Chunk) {
    let chunk = std::mem::take(open);
    if !chunk.steps.is_empty() {
        chunks.push(chunk);
    }
}

impl PlanStep {
    fn of(number: usize, step: &Step, restarts: Restarts, call: Call) -> Self {
        let kind = match restarts {
            Restarts::Nothing => StepKind::Call,
            Restarts::Machine => StepKind::Reboot,
            Restarts::Agent => StepKind::Update,
        };
        Self {
            id: number.to_string(),
            number,
            title: step.describe(),
            kind,
            fun: call.funs.into_iter().next().unwrap_or_default(),
            arg: call.arg,
            kwarg: call.kwarg,
            // The boot id tells whether it was done, so one that was not is safely asked for again.
            repeatable: kind == StepKind::Reboot || step.is_repeatable(),
            after: step.after,
            expect: None,
        }
    }

    /// The check belongs to its update: it is done when that was.
    fn check_of(number: usize, step: &Step, Expected { call, expect }: Expected) -> Self {
        Self {
            id: format!("{number}.check"),
            number,
            title: format!("check that it took effect: {}", step.describe()),
            kind: StepKind::Check,
            fun: call.funs.into_iter().next().unwrap_or_default(),
            arg: call.arg,
            kwarg: call.kwarg,
            repeatable: true,
            after: step.after,
            expect: Some(expect),
        }
    }

    /// The map that the minion's module takes.
    fn load(&self) -> Value {
        let mut map = Map::new();
        map.push("id", &self.id);
        map.push("kind", self.kind.as_str());
        map.push("fun", &self.fun);
        map.push("arg", self.arg.clone());
        map.push("kwarg", self.kwarg.clone());
        map.push("repeatable", self.repeatable);
        map.push("after", self.after.as_str());
        if let Some(expect) = &self.expect {
            map.push("expect", expect.clone());
        }
        map.into()
    }
}

impl StepKind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Reboot => "reboot",
            Self::Update => "update",
            Self::Check => "check",
        }
    }
}

impl Plan {
    /// A chunk by its number, from 1.
    pub fn chunk(&self, number: usize) -> Option<&Chunk> {
        self.chunks.get(number.checked_sub(1)?)
    }

    /// The steps of all chunks, in order.
    pub fn steps(&self) -> impl Iterator<Item = &PlanStep> {
        self.chunks.iter().flat_map(|chunk| &chunk.steps)
    }

    /// The name of its content: SHA-256 of its JSON, in hexadecimal.
    pub fn hash(&self) -> String {
        Sha256::digest(self.json()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// As it is kept.
    pub fn json(&self) -> String {
        // Texts, numbers and maps with keys of text cannot fail to become JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what was kept.
    pub fn read(json: &str) -> Result<Self, BadPlan> {
        Ok(serde_json::from_str(json)?)
    }

    /// The `steps` argument of `saltern_chain.start` for a chunk, by its number from 1.
    pub fn load(&self, chunk: usize) -> Value {
        let steps = self.chunk(chunk).map(|chunk| chunk.steps.as_slice()).unwrap_or_default();
        Value::List(steps.iter().map(PlanStep::load).collect())
    }
}

#[cfg(test)]
mod tests;
