//! Who may what: people, groups, organisations and tokens against a real server, as App's callers meet them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that meets the unexpected fails its test")]

#[path = "../security/house.rs"]
#[expect(dead_code, reason = "shared with the security tests, which use the rest")]
mod house;
#[path = "../security/logs.rs"]
#[expect(dead_code, reason = "shared with the security tests, which use the rest")]
mod logs;
mod people;
mod sight;
mod states;
mod streams;
mod tokens;
mod town;
