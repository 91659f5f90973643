//! Every planned instant of what recurs is accounted for exactly once: through absences, clocks that are put forward or back,
//! and crowds that are due together. Servers that are killed at random are processes: see `fires` among the end-to-end tests.
//!
//! What is asserted is read from the tables when nobody writes to them any more, and compared with what cron says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that meets the unexpected fails its test")]

mod absence;
mod clock;
mod crowd;
#[path = "../security/house.rs"]
#[expect(dead_code, reason = "shared with the security tests, which use the rest")]
mod house;
#[expect(dead_code, reason = "shared with the end-to-end tests, which use the rest")]
mod ledger;
#[path = "../security/logs.rs"]
#[expect(dead_code, reason = "shared with the security tests, which use the rest")]
mod logs;
mod planner;
