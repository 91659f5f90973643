//! Outgoing webhooks: a real server sends to a real receiver on a real socket.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that meets the unexpected fails its test")]

mod delivery;
mod failures;
#[path = "../security/house.rs"]
#[expect(dead_code, reason = "shared with the security tests, which use the rest")]
mod house;
#[path = "../security/logs.rs"]
mod logs;
mod management;
mod owners;
mod people;
mod receiver;
mod servers;
