//! Action chains: what a step is, what a chain comes to on one minion, and what follows from what the minion tells.
//!
//! A *chain* is a template of [`Step`]s. A *launch* is one execution of it. [`compile`] turns the steps that concern one minion
//! into a [`Plan`] of *chunks*, which end where the machine or its agent restarts and where other minions, or people, have a
//! say. The minion runs one chunk at a time and tells how it stands; [`read`] understands that, [`follow`] says what comes
//! next, and [`gate`] whether a step may begin.
//!
//! Steps and chunks are numbered from 1, here and everywhere.
//!
//! Not here: who may do it (`access`), what becomes of a step's run (`run::step`), bringing chunks to minions
//! (`server::engine::chain`).

mod answer;
mod follow;
mod form;
mod plan;
mod sls;
mod step;
mod target;

pub use answer::{Answer, ChunkState, Heard, Progress, Record, StepState, read, read_progress};
pub use follow::{Before, End, Gate, Next, follow, gate, past_budget};
pub use form::Barrier;
pub use plan::{Agent, BadPlan, CannotCompile, Chunk, Plan, PlanStep, StepKind, compile};
pub use step::{After, BadStep, DEFAULT_LIMIT, MOST_STEPS, Step, check_all, check_name};
pub use target::StepTarget;
