//! Thousands of light minions in one process, against any Salt master: for benchmarks, and for trying a server's nerves.
//!
//! A light minion signs in, subscribes, says that it has started, acknowledges and returns as a stock minion does, with
//! the stock minion's time-outs, and does no work but waiting. To be much cheaper than the server it loads, the swarm
//! shares what can be shared: one RSA key (or a few), one opened copy of each publication, one value that is returned.
//!
//! Main types: [`Options`] (what to play), [`Swarm`] (the minions while they live), [`Report`] (what came of it). Then read
//! `minion` (one light minion's life), `work` (what it is at), `chain` (its part of action chains) and `tally` (what is counted).
//!
//! Must never know: how a server works inside. It speaks Salt's wire protocol and nothing else.

mod access;
mod answer;
mod chain;
mod chance;
mod clock;
mod counters;
mod error;
#[cfg(test)]
mod fake_master;
mod flood;
mod keys;
mod latency;
mod ledger;
mod link;
mod load;
mod minion;
mod options;
mod publications;
mod records;
mod report;
mod steps;
mod swarm;
mod tally;
mod usage;
mod wire;
mod work;

pub use error::Error;
pub use flood::Flood;
pub use ledger::Entry;
pub use options::{Acks, Options, Patience};
pub use report::{JobReport, Latency, Report};
pub use steps::StepEntry;
pub use swarm::{Progress, Swarm};
pub use usage::Usage;
