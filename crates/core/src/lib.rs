//! What the system decides, and the words it decides in.
//!
//! Pure: no I/O, no clock, no database, no socket, nothing `async`. Time comes in as a [`time::Timestamp`]; given the
//! same input the same output comes out.
//!
//! Main types: [`value::Value`] (anything Salt can say), [`ids::MinionId`] and [`ids::Jid`], [`target::Target`].

pub mod access;
pub mod action;
pub mod chain;
pub mod event;
pub mod ids;
pub mod keys;
pub mod run;
pub mod target;
pub mod time;
pub mod value;
