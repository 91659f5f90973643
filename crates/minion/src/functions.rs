//! Execution functions: what a job can call on this minion.
//!
//! One file per Salt module. A function is one entry in its file's `FUNCTIONS`: name, parameters, documentation and code
//! stand together, so `sys.doc` and `sys.argspec` cannot lie. Adding one is adding an entry; adding a module is adding a
//! file and its line in [`MODULES`].
//!
//! Values, error texts and exit codes are those of stock Salt, so that whoever reads a return cannot tell the difference.

pub(crate) mod accounts;
mod call;
mod cmd;
mod command;
mod config;
mod cp;
mod cron;
mod digest;
mod disk;
mod event;
mod file;
mod grains;
mod group;
mod hashutil;
mod lookup;
mod matching;
mod mine;
mod mount;
mod network;
mod pillar;
mod pkg;
mod ps;
mod saltern_chain;
mod saltutil;
mod service;
mod status;
#[cfg(test)]
mod stock;
mod sys;
mod sysctl;
mod system;
mod test;
#[cfg(test)]
pub(crate) mod testing;
mod timezone;
mod user;
pub(crate) mod words;

pub use call::{Call, Context, Failure, Outcome};
pub(crate) use command::find_program;
pub(crate) use digest::Digest;

use futures_util::future::BoxFuture;

/// The modules, in the order of their names.
const MODULES: &[&[Function]] = &[
    cmd::FUNCTIONS,
    config::FUNCTIONS,
    cp::FUNCTIONS,
    cron::FUNCTIONS,
    disk::FUNCTIONS,
    event::FUNCTIONS,
    file::CHANGE,
    file::INSPECT,
    file::OWNER,
    file::SEARCH,
    file::TEXT,
    grains::CHANGING,
    grains::FUNCTIONS,
    group::FUNCTIONS,
    hashutil::FUNCTIONS,
    matching::FUNCTIONS,
    mine::FUNCTIONS,
    mount::FUNCTIONS,
    network::FUNCTIONS,
    pillar::FUNCTIONS,
    pkg::FUNCTIONS,
    ps::FUNCTIONS,
    saltern_chain::FUNCTIONS,
    saltutil::FUNCTIONS,
    service::FUNCTIONS,
    status::FUNCTIONS,
    sys::FUNCTIONS,
    sysctl::FUNCTIONS,
    system::FUNCTIONS,
    test::FUNCTIONS,
    timezone::FUNCTIONS,
    user::FUNCTIONS,
];

/// One function.
#[derive(Clone, Copy)]
pub struct Function {
    /// `module.function`
    pub name: &'static str,
    /// Its parameters, in order
    pub params: &'static [Param],
    /// What it does, with an example: the text of `sys.doc`
    pub doc: &'static str,
    /// The code
    pub run: fn(Call) -> BoxFuture<'static, Result<Outcome, Failure>>,
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub enum Param {
    /// Must be given
    Required(&'static str),
    /// Has a default, written as in Python
    Optional(&'static str, &'static str),
    /// Takes all further positional arguments
    Rest(&'static str),
    /// Takes all further keyword arguments
    Keywords(&'static str),
}

/// The function of this name.
pub fn find(name: &str) -> Option<&'static Function> {
    all().find(|function| function.name == name)
}

/// Every function.
pub fn all() -> impl Iterator<Item = &'static Function> {
    MODULES.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_documented_with_an_example() {
        let mut seen = HashSet::new();
        for function in all() {
            assert!(seen.insert(function.name), "{} stands twice", function.name);
            assert!(function.name.split('.').count() == 2, "{}", function.name);
            assert!(function.doc.contains("CLI Example:"), "{} has no example", function.name);
        }
    }
}
