//! What somebody asked for: its type, when it is due, and the rules it is carried out by.
//!
//! Not here: the runs it is made of (`run`), whether it may be done at all (`server::engine::admission`).

mod policy;
pub mod schedule;
pub mod types;

pub use policy::{Backoff, Batch, Budget, Offline, OverBudget, Policy, Retry, RetryWhen, Size, Wave, WindowRule};
pub use types::ActionType;
