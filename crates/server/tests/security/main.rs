//! The security rules of the wire, one test each, against a real server on real sockets.
//!
//! Every file is one kind of attack. The attacker is a `FakeMinion` that forges something, or a plain TCP connection; the
//! measure is always the same: what was refused changed nothing, and an honest minion is served as before.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that meets the unexpected fails its test")]

mod algorithms;
mod autosign;
mod events;
mod fairness;
mod files;
mod frames;
mod half_open;
mod house;
mod ids;
mod impersonation;
mod keys;
mod limits;
mod logs;
mod methods;
mod mine;
mod peers;
mod postgres;
mod replay;
mod restart;
mod secrets;
mod strangers;
mod versions;
