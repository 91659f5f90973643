//! Compares what the server says became of every run with what the swarm knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use saltern_swarm::{Report, Swarm};
use saltern_testkit::process::Saltern;
use serde_json::Value;

use crate::crowd;

/// How a run may end that never began.
const NEVER_BEGAN: [&str; 3] = ["failed(not_delivered)", "failed(offline)", "failed(expired)"];
/// How many contradictions are shown.
const SHOWN: usize = 20;

/// What the swarm knows of one run, over all of its jobs.
#[derive(Clone, Debug, Default)]
struct Truth {
    executed: u64,
    failed: bool,
    confirmed: bool,
}

/// What the swarm knows of every run: by action and minion.
type Truths = BTreeMap<(i64, String), Truth>;
/// The returns that were answered: by job and minion, whether they were good.
type Returned = BTreeMap<String, BTreeMap<String, bool>>;

/// What became of all runs.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// How many runs ended how
    ends: BTreeMap<String, usize>,
    /// How often one was sent again under its job id
    redeliveries: u64,
    /// Further attempts under another job id
    retries: u64,
    /// Executions that the swarm counts
    executed: usize,
    /// What is not as it should be
    contradictions: Vec<String>,
}

impl Verdict {
    /// Reads both sides; each of the actions is for every minion of the swarm, which has been halted.
    pub(crate) async fn reach(server: &Saltern, swarm: &Swarm, actions: &[i64]) -> Self {
        let mut verdict = Self::default();
        let (truths, returned) = verdict.read_ledger(swarm, actions);
        verdict.check_returns(server, &returned).await;
        let minions = swarm.progress().minions as usize;
        for action in actions {
            verdict.check_action(server, *action, minions, &truths).await;
        }
        verdict.check_report(&swarm.report());
        verdict
    }

    /// Fails the test with what contradicts itself, if anything does.
    pub(crate) fn assert_agreement(&self) {
        let shown = self.contradictions.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(self.contradictions.is_empty(), "{} contradictions:\n{shown}", self.contradictions.len());
    }

    /// For people: how many runs ended how, and what it took.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for (end, count) in &self.ends {
            let _ = writeln!(text, "  {end:<28} {count:>7}");
        }
        let _ = writeln!(text, "  {:<28} {:>7}", "runs", self.ends.values().sum::<usize>());
        let _ = writeln!(text, "  {:<28} {:>7}", "executed", self.executed);
        let _ = writeln!(text, "  {:<28} {:>7}", "redeliveries", self.redeliveries);
        let _ = writeln!(text, "  {:<28} {:>7}", "further attempts", self.retries);
        text
    }

    /// What the swarm knows of each run, and which returns of which jobs were answered, with whether they are good.
    fn read_ledger(&mut self, swarm: &Swarm, actions: &[i64]) -> (Truths, Returned) {
        let ours: BTreeSet<i64> = actions.iter().copied().collect();
        let mut truths = Truths::new();
        let mut returned = Returned::new();
        for entry in swarm.ledger() {
            let Some(action) = entry.action.filter(|action| ours.contains(action)) else { continue };
            if entry.executed > 1 {
                self.contradictions.push(format!("{} ran {} times on {}", entry.jid, entry.executed, entry.minion));
            }
            if entry.executed > 0 && !entry.confirmed {
                self.contradictions.push(format!("the return of {} on {} was never answered", entry.jid, entry.minion));
            }
            if entry.confirmed {
                returned.entry(entry.jid).or_default().insert(entry.minion.clone(), !entry.failed);
            }
            let truth = truths.entry((action, entry.minion)).or_default();
            truth.executed += entry.executed;
            if entry.executed > 0 {
                (truth.failed, truth.confirmed) = (entry.failed, entry.confirmed);
            }
        }
        self.executed = truths.values().filter(|truth| truth.executed > 0).count();
        (truths, returned)
    }

    /// Every return that was answered is there.
    async fn check_returns(&mut self, server: &Saltern, returned: &Returned) {
        for (jid, minions) in returned {
            let job = server.cli_json(&["job", "show", jid]).await;
            for (minion, success) in minions {
                let kept = &job["returns"][minion];
                if kept["success"] != *success {
                    self.contradictions.push(format!("{minion} was answered {success} for {jid}, kept is {kept}"));
                }
            }
        }
    }

    async fn check_action(&mut self, server: &Saltern, action: i64, minions: usize, truths: &Truths) {
        let shown = server.cli_json(&["action", "show", &action.to_string()]).await;
        let runs = crowd::runs(server, action).await;
        for state in ["completed", "failed", "cancelled"] {
            let listed = runs.iter().filter(|run| run["state"] == state).count();
            if shown["counts"][state] != listed {
                self.contradictions.push(format!("action {action} lists {listed} {state}: {}", shown["counts"]));
            }
        }
        if runs.len() != minions || shown["counts"]["total"] != minions {
            self.contradictions.push(format!("action {action} has {} runs on {minions} minions", runs.len()));
        }
        for run in &runs {
            self.check_run(action, run, truths);
        }
    }

    fn check_run(&mut self, action: i64, run: &Value, truths: &Truths) {
        let minion = run["minion"].as_str().unwrap_or_default().to_owned();
        let end = crowd::end(run);
        let number = |name: &str| run[name].as_u64().unwrap_or_default();
        self.redeliveries += number("deliveries").saturating_sub(1);
        self.retries += number("attempt").saturating_sub(1);
        let truth = truths.get(&(action, minion)).cloned().unwrap_or_default();
        let agrees = match (truth.executed, truth.failed) {
            (0, _) => NEVER_BEGAN.contains(&&*end),
            (1, false) => end == "completed",
            (1, true) => end == "failed(returned_error)",
            (_, _) => false,
        };
        if !agrees {
            self.contradictions.push(format!("action {action}: {truth:?}, but the server says {end}: {run}"));
        }
        *self.ends.entry(end).or_default() += 1;
    }

    /// The swarm's own count of what ran twice; meaningless if it has forgotten jobs.
    fn check_report(&mut self, report: &Report) {
        let jobs = &report.jobs;
        for (what, count) in [
            ("jobs were forgotten", jobs.forgotten),
            ("jobs ran twice on a minion", jobs.double_executions),
            ("attempts ran twice on a minion", jobs.run_double_executions),
            ("runs began twice", jobs.runs_executed_more_than_once),
        ] {
            if count > 0 {
                self.contradictions.push(format!("{count} {what}"));
            }
        }
    }
}
