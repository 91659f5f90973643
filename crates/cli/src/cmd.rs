//! One file per command.

pub(crate) mod action;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod chain;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod event;
pub(crate) mod function;
pub(crate) mod group;
pub(crate) mod job;
pub(crate) mod key;
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod minion;
pub(crate) mod org;
pub(crate) mod recurring;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod state;
pub(crate) mod swarm;
pub(crate) mod token;
pub(crate) mod up;
pub(crate) mod user;
pub(crate) mod webhook;
pub(crate) mod window;
