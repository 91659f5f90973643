//! One file per command.

pub(crate) mod action;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod event;
pub(crate) mod job;
pub(crate) mod key;
pub(crate) mod minion;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod swarm;
pub(crate) mod up;
