//! Action chains with real minions of every kind: stock ones of each line and native ones.
//!
//! Scenarios have the numbers of the action engine's list. What needs no process is tested beside the engine, with minions
//! that are told what to do. A reboot here is the machine's agent killed and started again under another boot id, through the
//! setting meant for that; `shutdown` is a script that only notes that it was called.
//!
//! Sizes of the long tests: `SALTERN_CHAOS_SEED`, `SALTERN_CHAOS_LAUNCHES` and `SALTERN_CHAOS_KILLS`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a scenario that meets the unexpected fails")]

mod across;
#[path = "../chaos/chance.rs"]
mod chance;
mod drafts;
mod machine;
mod order;
mod outage;
mod power;
mod restarts;
mod town;
mod verbs;
