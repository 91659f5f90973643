//! What runs: the master that stock minions talk to, the jobs, the events, the webhooks they are sent to. It serves no HTTP.
//!
//! [`serve`] brings a server up from a [`config::Config`]; [`app::App`] is the one facade that everything above this room
//! calls. Below it, `master/` speaks to minions and knows no user; nothing but `master::publish` publishes.
//!
//! Must never know: HTTP that is served, JSON shapes for clients, argument parsing, SQL.

mod access;
pub mod app;
pub mod body;
pub mod clock;
pub mod config;
mod engine;
mod error;
mod master;
mod pool;
mod secrets;
mod serve;
mod tasks;
mod webhooks;

pub use error::{Class, Error};
pub use master::Presence;
pub use serve::{Server, serve};
