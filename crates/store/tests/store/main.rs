//! The store against real databases: what it promises has to hold on SQLite and on PostgreSQL alike.
//!
//! `database` hands out empty databases and the macro that runs a behaviour on both kinds; `fixtures` makes rows. Then one
//! file per thing that is remembered, and one per kind of trouble: crashes, full disks, lost connections, bad addresses.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that meets the unexpected fails its test")]

mod database;
mod fixtures;

mod access_agreement;
mod actions;
mod addresses;
mod agreement;
mod audit;
mod audit_chain;
mod banks;
mod calls;
mod claims;
mod counters;
mod counts;
mod crashes;
mod events;
mod full_disk;
mod functions;
mod group_commit;
mod groups;
mod jobs;
mod keys;
mod lifecycle;
mod mine;
mod minions;
mod organisations;
mod outages;
mod requests;
mod retention;
mod returns;
mod runs;
mod schema;
mod servers;
mod teller;
mod tls;
mod tokens;
mod transitions;
mod users;
mod verbs;
mod webhooks;
