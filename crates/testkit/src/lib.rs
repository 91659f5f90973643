//! Real processes for tests: stock minions and masters, PostgreSQL, our own binary.
//!
//! Nothing here is a mock. A test asks for a thing, gets the real one in a folder and on ports of its own, and loses it,
//! with every process it started, when the value is dropped, when the test panics, or when the test process is killed.
//!
//! Must never know: how the server works inside. It sees what an operator sees: processes, files, sockets, exit codes.
//!
//! Main types: [`process::Saltern`], [`salt::StockMinion`], [`postgres::Cluster`]. Then read `wait` (how tests wait) and
//! `tier` (what happens where Salt or PostgreSQL is not installed).

#![cfg_attr(
    feature = "harness",
    expect(clippy::panic, reason = "a fixture that cannot be set up has to fail the test that asked for it")
)]

pub mod installed;

#[cfg(feature = "harness")]
pub mod daemon;
#[cfg(feature = "harness")]
pub mod fake_minion;
#[cfg(feature = "harness")]
pub mod http;
#[cfg(feature = "harness")]
pub mod oracle;
#[cfg(feature = "harness")]
pub mod pepper;
#[cfg(feature = "harness")]
pub mod ports;
#[cfg(feature = "harness")]
pub mod postgres;
#[cfg(feature = "harness")]
pub mod process;
#[cfg(feature = "harness")]
pub mod salt;
#[cfg(feature = "harness")]
pub mod scratch;
#[cfg(feature = "harness")]
pub mod slapd;
#[cfg(feature = "harness")]
pub mod tier;
#[cfg(feature = "harness")]
pub mod wait;
#[cfg(feature = "harness")]
mod watchdog;
