//! Salt's bytes: what stock minions and masters say to each other, and nothing about what it means to us.
//!
//! Both ends of the protocol are here, so that each is tested against the other and against recorded traffic. This room
//! never opens a database, never reads a clock and decides nothing: time and policy come in as arguments.
//!
//! Main types: [`envelope::Request`] (what a minion asks), [`load::Return`] (what came of a job), [`crypto::Crypticle`]
//! (how it is sealed). Read `msgpack`, `crypto`, `envelope`, `load` in this order.

pub mod crypto;
pub mod envelope;
mod error;
pub mod limits;
pub mod load;
pub mod msgpack;
pub mod zmtp;

pub use error::Error;
