//! Jinja as Salt's SLS files use it, over `minijinja`.
//!
//! `minijinja` brings the language; this module brings what Salt adds: lists and maps that can be changed, the
//! `load_yaml` family of tags and `%` on text (`prepare` rewrites the source), Salt's filters (`filters`), and the
//! `salt` object with the few functions a server offers to pillar (`functions`).
//!
//! Invariants: a template reads files of its environment's roots and nothing else; work is bounded by
//! [`Limits::fuel`], output by [`Limits::output`], nesting by the engine's recursion limit.
//!
//! Differences from Jinja2 that are known and left: an imported template always sees the importer's variables (`with
//! context` is the only way), `strftime` and everything random, networked or outside the roots is missing.

mod args;
mod engine;
mod filters;
mod functions;
mod json;
mod prepare;
mod regexes;
mod texts;
mod value;

pub use engine::{Engine, Limits, Template, Whitespace};
pub use functions::Scope;
