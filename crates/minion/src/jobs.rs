//! Jobs on this minion: each runs once, and its answer is kept until the master has it.
//!
//! `ledger` remembers every job id on disk, `spool` every answer that is not delivered, `running` what is under way now,
//! `runner` does the work in the order that makes these promises true: write down, acknowledge, run, write down, send.

mod ledger;
mod runner;
mod running;
mod spool;

use ledger::{Ledger, Standing};
pub(crate) use runner::{Backoff, Runner, call_one, event_load};
pub(crate) use running::{JobHandle, Running};
pub(crate) use spool::Spool;
