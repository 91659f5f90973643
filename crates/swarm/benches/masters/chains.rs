//! A large launch: 2,000 minions go through ten steps with a reboot in the middle.
//!
//! Told apart: until the launch is stored (compiled, all of its runs visible), until it has begun on every minion, until it
//! has ended on every minion. No step may have run twice, and the server's memory has a limit.

use crate::machine::{self, Peak};
use anyhow::{Context as _, Result, ensure};
use saltern_swarm::{Options, Swarm};
use saltern_testkit::process::Saltern;
use serde_json::Value;
use std::time::{Duration, Instant};

const MINIONS: usize = 2_000;
const STEPS: usize = 10;
/// The step after which the machines go down
const REBOOT: usize = 5;
const PATIENCE: Duration = Duration::from_secs(300);
/// Until it has begun everywhere, and how much larger the server may become by it.
const MOST_SECONDS: f64 = 60.0;
const MOST_GROWTH_MB: f64 = 512.0;

/// Measures, prints, and fails beyond the limits.
pub(crate) async fn run() -> Result<()> {
    let mut server = Saltern::start("", &["--auto-accept", "--log-level", "warn"]).await;
    let options = Options { ret_port: server.ports().return_port, count: MINIONS, ..Options::default() };
    let swarm = Swarm::start(options).await?;
    ensure!(swarm.all_ready(PATIENCE).await, "the swarm did not come up: {:?}", swarm.report());
    let file = server.data_dir().join("chain.yaml");
    std::fs::write(&file, chain())?;
    told(&server, &["chain", "apply", "-f", &file.display().to_string()]).await?;
    let pid = server.pid().context("the server runs")?;
    let (before, cpu) = (machine::resident_mb(pid)?, machine::cpu_seconds(pid));
    let peak = Peak::watch(pid);

    let begun = Instant::now();
    let launch: Value = server.cli_json(&["chain", "launch", "large"]).await;
    let stored = begun.elapsed().as_secs_f64();
    let id = launch["id"].as_i64().context("a launch has a number")?.to_string();
    let started = until(&server, &id, begun, |status| status["steps"][0]["counts"]["queued"] == 0).await?;
    let ended = until(&server, &id, begun, |status| !status["ended"].is_null()).await?;
    let peak = machine::mebibytes(peak.stop());
    let cpu = machine::cpu_seconds(pid) - cpu;
    let status = server.cli_json(&["chain", "status", &id]).await;
    let report = swarm.stop().await;
    server.kill9();

    println!(
        "\n{MINIONS} minions, {STEPS} steps, a reboot after step {REBOOT}: stored after {stored:.1} s, begun everywhere after \
         {started:.1} s, ended after {ended:.1} s.\n{} steps were executed, {} of them twice. Server: {cpu:.1} CPU s, \
         {before:.0} MiB before, {peak:.0} at most.",
        report.steps.executed, report.steps.double_executions,
    );
    ensure!(status["counts"]["completed"] == MINIONS, "not everybody has ended well: {}", status["counts"]);
    ensure!(report.steps.double_executions == 0, "a step ran twice");
    ensure!(started <= MOST_SECONDS, "it took {started:.1} s until it had begun everywhere");
    ensure!(peak - before <= MOST_GROWTH_MB, "the server grew by {:.0} MiB", peak - before);
    Ok(())
}

fn chain() -> String {
    let mut text = "name: large\nsteps:\n".to_owned();
    for step in 1..=STEPS {
        let what = if step == REBOOT { "type: reboot" } else { "type: function\n    params: {fun: test.ping}" };
        text += &format!("  - {what}\n    target: '*'\n");
    }
    text
}

async fn told(server: &Saltern, words: &[&str]) -> Result<()> {
    let output = server.cli(words).await;
    ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Seconds until something is true of the launch.
async fn until(server: &Saltern, launch: &str, begun: Instant, is_so: impl Fn(&Value) -> bool) -> Result<f64> {
    loop {
        let status = server.cli_json(&["chain", "status", launch]).await;
        if is_so(&status) {
            return Ok(begun.elapsed().as_secs_f64());
        }
        ensure!(begun.elapsed() < PATIENCE, "it takes too long: {status}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
