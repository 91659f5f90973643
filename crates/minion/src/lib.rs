//! The native minion: connects to a Salt master, ours or a stock one, runs what it is told, loses no answer.
//!
//! The way of a job: `link` receives a publication and checks it, `jobs` decides whether it is for us and new, writes it
//! down, acknowledges it, runs its `functions`, writes the answer down, and sends it until the master has it.
//!
//! Must never know: the server, its database, HTTP.
//!
//! Main types: [`Minion`] (the running agent), [`Config`], [`functions::Function`].

mod chain;
mod clock;
mod config;
mod error;
mod fileclient;
mod files;
pub mod functions;
pub mod grains;
mod jobs;
mod link;
mod minion;
mod reboot_wish;

pub use config::Config;
pub use error::Error;
pub use minion::{Minion, call};
