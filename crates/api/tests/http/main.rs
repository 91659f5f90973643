//! The HTTP listener on a real port, with real clients and hostile ones before it and small handlers behind it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod browsers;
mod connections;
mod hostile;
mod house;
mod identity;
mod limits;
mod log;
mod stop;
mod tls;
