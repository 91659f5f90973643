//! The action engine against a real server on real sockets: the acceptance scenarios by their numbers, and what else it promises.
//!
//! Minions are played by the test, message by message, so each can be as silent, as late or as confused as a scenario asks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that meets the unexpected fails its test")]

mod admission;
mod chains;
mod delivery;
#[path = "../security/house.rs"]
#[expect(dead_code, reason = "shared with the security tests, which use the rest")]
mod house;
mod letters;
#[path = "../security/logs.rs"]
#[expect(dead_code, reason = "shared with the security tests, which use the rest")]
mod logs;
mod offline;
mod pace;
mod reboot;
mod recurring;
mod retention;
mod schedule;
mod servers;
mod sight;
mod verbs;
mod ward;
mod windows;
