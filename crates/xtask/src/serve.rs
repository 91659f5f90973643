//! `make run`: the server and three minions in one process, on a data folder inside the checkout.

use std::os::unix::process::CommandExt as _;

use anyhow::{Context as _, Result, ensure};

use crate::plan::cargo;

/// Builds it and becomes it: Ctrl-C goes to the server itself.
pub(crate) fn run() -> Result<()> {
    let built = cargo(&["build", "--package", "saltern"]).status().context("cannot run cargo")?;
    ensure!(built.success(), "the build failed");
    println!("`saltern` below is target/debug/saltern in this folder.\n");
    let mut command = cargo(&["run", "--quiet", "--package", "saltern", "--"]);
    Err(command.args(["up", "--data-dir", ".data"]).exec()).context("cannot start the server")
}
