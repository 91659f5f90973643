//! salt-api's HTTP interface, as its clients know it: recorded requests asked again, and the clients themselves.
//!
//! One server with two stock minions serves all tests; each has its turn. What a real salt-api answered is in
//! `data/salt-api`; where the answers here differ on purpose is in [`differences`], with the reason.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected fails")]

mod capture;
mod captures;
mod checks;
mod compare;
mod defects;
mod dialect;
mod differences;
mod pepper;
mod saltgui;
mod stand;
mod streams;
