//! `make bench`: builds the server as it is released, and runs the benchmark that lives beside the swarm.

use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::plan::cargo;
use crate::setup;

/// What can be measured by itself.
const PHASES: [&str; 7] = ["stock", "saltern", "agent", "history", "readers", "chains", "recurring"];

/// Measures both masters, or what is chosen without writing anything.
pub(crate) fn run(chosen: &[String]) -> Result<()> {
    if let Some(unknown) = chosen.iter().find(|name| !PHASES.contains(&name.as_str())) {
        bail!("`bench` has no phase `{unknown}`; it has {}", PHASES.join(", "));
    }
    if chosen.is_empty() || chosen.iter().any(|name| name == "stock") {
        setup::setup()?;
    }
    succeed(&mut cargo(&["build", "--release", "--package", "saltern"]))?;
    let mut bench = cargo(&["bench", "--profile", "release", "--package", "saltern-swarm", "--bench", "masters", "--"]);
    succeed(bench.args(chosen))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().context("cannot run cargo")?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}
