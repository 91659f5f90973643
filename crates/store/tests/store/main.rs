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
mod chains;
mod claims;
mod counters;
mod counts;
mod crashes;
mod events;
mod fires;
mod full_disk;
mod functions;
mod group_commit;
mod groups;
mod jobs;
mod keys;
mod launch_crowds;
mod launch_moves;
mod launch_purge;
mod launch_verbs;
mod launches;
mod lifecycle;
mod mine;
mod minions;
mod organisations;
mod outages;
mod recurring;
mod requests;
mod retention;
mod returns;
mod runs;
mod schema;
mod servers;
mod states;
mod teller;
mod tls;
mod tokens;
mod transitions;
mod users;
mod verbs;
mod webhooks;
mod window_changes;
mod window_queue;
mod windows;
