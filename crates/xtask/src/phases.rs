//! A list of named phases: runs them in order, times them, and ends with a report.
//!
//! A failed phase does not stop the others, so that one run shows all there is to mend, unless nothing after it can work
//! without it. The very last line is always `N passed, N failed`, for programs that read no more than that.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::stream::Record;

/// One step of a verb.
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
}

/// What a phase does.
pub(crate) enum Work {
    /// Commands, until one fails.
    Commands(Vec<Command>),
    /// Installing what later phases need: when it fails, nothing else is tried.
    Prepare(fn() -> Result<()>),
}

struct Outcome {
    name: &'static str,
    ok: bool,
    took: Duration,
    record: Record,
}

/// Runs the chosen phases, or all of them, and prints the report. False when one failed.
pub(crate) fn run(verb: &str, phases: Vec<Phase>, chosen: &[String]) -> Result<bool> {
    let names: Vec<&str> = phases.iter().map(|phase| phase.name).collect();
    if let Some(unknown) = chosen.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("`{verb}` has no phase `{unknown}`; it has {}", names.join(", "));
    }
    let mut outcomes = Vec::new();
    for phase in phases.into_iter().filter(|phase| chosen.is_empty() || chosen.iter().any(|name| name == phase.name)) {
        println!("==> {}", phase.name);
        let essential = matches!(phase.work, Work::Prepare(_));
        let outcome = run_phase(phase);
        let verdict = if outcome.ok { "ok" } else { "FAILED" };
        println!("<== {} {verdict} in {}", outcome.name, seconds(outcome.took));
        let stop = essential && !outcome.ok;
        outcomes.push(outcome);
        if stop {
            break;
        }
    }
    print!("{}", report(verb, &outcomes));
    Ok(outcomes.iter().all(|outcome| outcome.ok))
}

fn run_phase(phase: Phase) -> Outcome {
    let start = Instant::now();
    let mut record = Record::default();
    let done = match phase.work {
        Work::Commands(commands) => run_commands(commands, &mut record),
        Work::Prepare(work) => work().map(|()| true),
    };
    let ok = done.unwrap_or_else(|error| {
        let line = format!("error: {error:#}");
        println!("{line}");
        record.take_line(&line);
        false
    });
    Outcome { name: phase.name, ok, took: start.elapsed(), record }
}

fn run_commands(commands: Vec<Command>, record: &mut Record) -> Result<bool> {
    for mut command in commands {
        if !record.run(&mut command)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn report(verb: &str, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes.iter().filter(|outcome| !outcome.ok) {
        text += &format!("\n---- {} failed; its last lines ----\n", outcome.name);
        for line in outcome.record.tail() {
            text += &format!("{line}\n");
        }
        text += &format!("---- this phase alone: make {verb} PHASE={} ----\n", outcome.name);
    }
    text += "\n";
    for outcome in outcomes {
        let verdict = if outcome.ok { "ok" } else { "FAILED" };
        text += &format!("{:<10} {verdict:<8} {:>10}\n", outcome.name, seconds(outcome.took));
    }
    let total = outcomes.iter().map(|outcome| outcome.took).sum();
    text += &format!("{:<10} {:<8} {:>10}\n\n", "total", "", seconds(total));

    let passed: u64 = outcomes.iter().map(|outcome| outcome.record.passed).sum();
    // A phase that failed before or beside its tests (format, clippy, a build) counts as one: a failed run never says 0.
    let failed = |outcome: &Outcome| if outcome.ok { 0 } else { outcome.record.failed.max(1) };
    let failed: u64 = outcomes.iter().map(failed).sum();
    text + &format!("{passed} passed, {failed} failed\n")
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &'static str, script: &str) -> Phase {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Phase { name, work: Work::Commands(vec![command]) }
    }

    fn outcomes(phases: Vec<Phase>) -> Vec<Outcome> {
        phases.into_iter().map(run_phase).collect()
    }

    #[test]
    fn the_report_sums_up_all_tests_in_its_last_line() {
        let phases = vec![
            shell("tests", "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'"),
            shell("e2e", "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'"),
        ];
        assert_eq!(report("test", &outcomes(phases)).lines().last(), Some("5 passed, 0 failed"));
    }

    #[test]
    fn a_failed_phase_without_tests_counts_as_a_failure() {
        let report = report("check", &outcomes(vec![shell("clippy", "echo bad code; exit 1")]));
        assert_eq!(report.lines().last(), Some("0 passed, 1 failed"));
        assert!(report.contains("bad code\n---- this phase alone: make check PHASE=clippy ----"));
    }

    #[test]
    fn a_failed_preparation_is_reported_with_its_reason() {
        let refuse = Phase { name: "setup", work: Work::Prepare(|| bail!("no network")) };
        assert!(report("test", &outcomes(vec![refuse])).contains("last lines ----\nerror: no network\n----"));
    }

    #[test]
    fn nothing_runs_after_a_failed_preparation() {
        let refuse = Phase { name: "setup", work: Work::Prepare(|| bail!("no network")) };
        let trace = std::env::temp_dir().join(format!("saltern-phases-{}", std::process::id()));
        let after = shell("after", &format!("touch {}", trace.display()));
        assert!(!run("test", vec![refuse, after], &[]).unwrap());
        assert!(!trace.exists());
    }

    #[test]
    fn an_unknown_phase_is_refused_by_name() {
        let error = run("test", vec![shell("fmt", "true")], &["fnt".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "`test` has no phase `fnt`; it has fmt");
    }
}
