//! `make bench`: builds the server as it is released, and runs the benchmark that lives beside the swarm.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::plan::cargo;
use crate::setup;

/// Measures both masters, or the chosen one (`stock`, `saltern`) without writing anything.
pub(crate) fn run(chosen: &[String]) -> Result<()> {
    setup::setup()?;
    succeed(&mut cargo(&["build", "--release", "--package", "saltern"]))?;
    let mut bench = cargo(&["bench", "--profile", "release", "--package", "saltern-swarm", "--bench", "masters", "--"]);
    succeed(bench.args(chosen))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().context("cannot run cargo")?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}
