//! The native minion by itself: how long until `saltern up` answers, and how large an idle agent is.

use crate::machine;
use anyhow::{Result, ensure};
use saltern_testkit::daemon::Daemon;
use saltern_testkit::process::{Saltern, binary, run_to_end};
use saltern_testkit::scratch::Scratch;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long any of it may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most that each may be.
pub(crate) const MOST_UP_MS: f64 = 3_000.0;
pub(crate) const MOST_RESIDENT_MB: f64 = 15.0;

/// What was measured.
#[derive(Debug)]
pub(crate) struct Agent {
    /// From the start of `saltern up --minions 3` to three answers to a `test.ping`
    pub(crate) up_ms: f64,
    /// Resident memory of an idle `saltern minion`
    pub(crate) resident_mb: f64,
}

pub(crate) async fn measure() -> Result<Agent> {
    Ok(Agent { up_ms: up().await?, resident_mb: resident().await? })
}

impl Agent {
    /// Fails if it is larger or slower than it may be.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { up_ms, resident_mb } = self;
        ensure!(*resident_mb <= MOST_RESIDENT_MB, "an idle minion has {resident_mb:.1} MB, not {MOST_RESIDENT_MB}");
        ensure!(*up_ms <= MOST_UP_MS, "`saltern up` answers after {up_ms:.0} ms, not {MOST_UP_MS}");
        Ok(())
    }
}

async fn up() -> Result<f64> {
    let scratch = Scratch::new("up");
    let data_dir = scratch.path().join("data");
    let started = Instant::now();
    let mut command = Command::new(binary());
    command.args(["up", "--minions", "3", "--data-dir"]).arg(&data_dir);
    let log = scratch.path().join("log");
    let _up = Daemon::spawn("saltern up", &mut command, &log, &[]);
    // Like a person, who reads what it says and then does it.
    let is_up = || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("saltern is up"));
    saltern_testkit::wait::until_blocking("saltern to be up", PATIENCE, is_up);
    let mut ask = Command::new(binary());
    ask.args(["run", "*", "test.ping", "--out", "json", "--data-dir"]).arg(&data_dir);
    let output = run_to_end(ask, PATIENCE).await;
    let answers: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let all =
        answers.as_object().is_some_and(|answers| answers.len() == 3 && answers.values().all(|answer| *answer == true));
    ensure!(all, "not every minion answered: {answers}");
    Ok(started.elapsed().as_secs_f64() * 1_000.0)
}

async fn resident() -> Result<f64> {
    let server = Saltern::start("", &["--auto-accept"]).await;
    let scratch = Scratch::new("agent");
    let mut command = Command::new(binary());
    let master = format!("127.0.0.1:{}", server.ports().return_port);
    command.args(["minion", "--id", "agent", "--master", &master, "--data-dir"]).arg(scratch.path().join("data"));
    let agent = Daemon::spawn("saltern minion", &mut command, &scratch.path().join("log"), &[]);
    saltern_testkit::wait::until_ok("the agent to answer", PATIENCE, async || {
        let answers = server.cli_json(&["run", "*", "test.ping"]).await;
        if answers["agent"] == true { Ok(()) } else { Err(answers.to_string()) }
    })
    .await;
    machine::resident_mb(agent.pid())
}
