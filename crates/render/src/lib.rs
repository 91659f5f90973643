//! Salt's languages: YAML as Salt reads it, Jinja, the file server's roots, top files and pillar.
//!
//! Everything here is synchronous and blocks on the file system; callers run it in a pool for blocking work. Nothing here
//! knows a socket, a database or a clock, and no template reaches a file outside the configured roots.
//!
//! Main types: [`fileserver::FileRoots`] (what may be read), [`pillar::Compiler`] (pillar for one minion) and
//! [`yaml::load`]. Read next: `pillar/mod.rs`, which uses all the others.

pub mod error;
pub mod fileserver;
pub mod jinja;
pub mod merge;
pub mod pillar;
pub mod sls;
pub mod targets;
pub mod top;
pub mod words;
pub mod yaml;

pub use error::{Error, Position};
