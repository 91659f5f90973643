//! `saltern action show` and `runs`: one action with its counts, and its runs one by one.

use super::list;
use crate::args::Format;
use crate::failure::Failure;
use crate::output::style::{Colour, Style};
use crate::output::table::Table;
use crate::output::{self, text, when};
use crate::rules;
use clap::ValueEnum;
use saltern_api::client::{Client, RunQuery};
use saltern_api::shape::{ActionDetail, Run, RunStatus};
use saltern_core::run::RunState;
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Runs that are looked at for the reasons; what is beyond is counted without.
const SAMPLE: usize = 1_000;
/// Failures that are shown.
const FIRST: usize = 10;

/// List the runs of an action: where each minion stands
#[derive(Debug, clap::Args)]
pub(super) struct RunsArgs {
    #[command(flatten)]
    id: super::Id,

    /// Only in this state
    #[arg(long, value_enum)]
    state: Option<State>,

    /// Only minions after this one, in the order of ids
    #[arg(long, value_name = "MINION")]
    after: Option<String>,

    /// At most so many, up to 1000
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,
}

/// A state of a run, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum State {
    /// Nothing was sent yet
    Queued,
    /// The minion has not said anything yet
    Sent,
    /// The minion is at it
    PickedUp,
    /// Ended well
    Completed,
    /// Ended badly
    Failed,
    /// Ended before it was sent
    Cancelled,
}

impl From<State> for RunState {
    fn from(state: State) -> Self {
        match state {
            State::Queued => Self::Queued,
            State::Sent => Self::Sent,
            State::PickedUp => Self::PickedUp,
            State::Completed => Self::Completed,
            State::Failed => Self::Failed,
            State::Cancelled => Self::Cancelled,
        }
    }
}

pub(super) async fn run(client: &Client, id: i64, format: Format) -> Result<ExitCode, Failure> {
    let detail = client.action(id).await?;
    if format != Format::Text {
        output::show(format, &detail, String::new)?;
        return Ok(ExitCode::SUCCESS);
    }
    let sample = async |state: RunState, count: i64| {
        if count == 0 {
            return Ok(Vec::new());
        }
        let query = RunQuery { state: Some(state.as_str().into()), limit: Some(SAMPLE), ..RunQuery::default() };
        client.runs(id, &query).await.map(|list| list.runs)
    };
    let counts = detail.action.counts;
    let queued = sample(RunState::Queued, counts.queued).await?;
    let failed = sample(RunState::Failed, counts.failed).await?;
    output::line(&told(&detail, &queued, &failed, clock::now(), Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn runs(args: RunsArgs, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    let id = args.id.id;
    let state = args.state.map(|state| RunState::from(state).as_str().to_owned());
    let limit = args.limit.clamp(1, SAMPLE);
    let query = RunQuery { state, after: args.after, limit: Some(limit) };
    let runs = client.runs(id, &query).await?.runs;
    output::show(format, &runs, || table(&runs, clock::now(), Style::of_stdout()))?;
    if let Some(last) = runs.last().filter(|_| runs.len() == limit) {
        output::note(&format!("saltern: there may be more; go on with --after {}", text::clean(&last.minion)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn told(detail: &ActionDetail, queued: &[Run], failed: &[Run], now: Timestamp, style: Style) -> String {
    let action = &detail.action;
    let head = format!("Action {}: {}", action.id, text::clean(&action.name));
    let mut lines = vec![style.paint(Colour::Cyan, &head)];
    let held = action.paused.as_ref().map(|paused| {
        let why = if paused.why.is_empty() { String::new() } else { format!(": {}", paused.why) };
        format!("since {}, by {}{why}", when::when(paused.at.0, now), paused.by)
    });
    let late = if action.late { ", late: the server was down" } else { "" };
    for (label, value) in [
        ("State", list::state(action, now)),
        ("Paused", held.unwrap_or_default()),
        ("Type", action.kind.clone()),
        ("Function", action.fun.clone()),
        ("Target", text::target(&action.target, &action.tgt_type)),
        ("User", action.user.clone()),
        ("Accepted", when::when(action.created.0, now)),
        ("Due", format!("{}{late}", when::when(action.due.0, now))),
        ("Deadline", when::when(action.deadline.0, now)),
        ("Ended", action.ended.map_or_else(String::new, |at| when::when(at.0, now))),
        ("Archived", action.archived.map_or_else(String::new, |at| when::when(at.0, now))),
        ("Rules", rules::told(&detail.policy)),
        ("Jobs", detail.jobs.join(" ")),
    ] {
        if !value.is_empty() {
            lines.push(format!("    {label:<10} {}", text::clean(&value)));
        }
    }
    lines.push(String::new());
    let counts = action.counts;
    let mut table = Table::new(&["RUNS", "STATE", "OF THESE"]);
    for (count, state, of_these) in [
        (counts.queued, "queued", reasons(queued, |status| status.waiting_for.as_deref())),
        (counts.running, "running", String::new()),
        (counts.completed, "completed", String::new()),
        (counts.failed, "failed", reasons(failed, |status| status.reason.as_deref())),
        (counts.cancelled, "cancelled", String::new()),
    ] {
        if count > 0 {
            table.row([count.to_string(), state.into(), of_these]);
        }
    }
    lines.push(table.show("It has no runs.", style));
    if !failed.is_empty() {
        let first = &failed[..failed.len().min(FIRST)];
        let some = if counts.failed > FIRST as i64 { format!(", the first {FIRST}") } else { String::new() };
        lines.push(format!("\nFailed{some}:\n{}", self::table(first, now, style)));
    }
    if action.ended.is_none() {
        lines.push(format!("\n`saltern action explain {}` tells what is waited for.", action.id));
    }
    lines.join("\n")
}

/// How many for which reason, most first.
fn reasons(runs: &[Run], reason: impl Fn(&RunStatus) -> Option<&str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in runs.iter().filter_map(|run| reason(&run.status)) {
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let told = counts.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ");
    if runs.len() < SAMPLE { told } else { format!("{told} (of the first {SAMPLE})") }
}

fn table(runs: &[Run], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["MINION", "STATE", "ATTEMPT", "CODE", "SINCE", "MESSAGE"]);
    for Run { minion, status } in runs {
        let since = status.ended.or(status.picked_up).or(status.sent);
        let message = status.message.as_deref().unwrap_or_default();
        table.row([
            minion.clone(),
            text::state(status),
            status.attempt.to_string(),
            status.retcode.map_or_else(String::new, |code| code.to_string()),
            since.map_or_else(String::new, |at| when::ago(at.0, now)),
            message.chars().take(80).collect(),
        ]);
    }
    table.show("There is no such run.", style)
}

#[cfg(test)]
mod tests {
    use super::super::list::tests::{NOW, action};
    use super::*;
    use saltern_api::shape::Time;
    use saltern_core::action::{Offline, Policy};
    use saltern_core::value::Value;

    fn run(minion: &str, status: RunStatus) -> Run {
        Run { minion: minion.into(), status }
    }

    fn queued() -> Run {
        let waiting_for = Some("offline".into());
        run("web3", RunStatus { state: "queued".into(), waiting_for, ..RunStatus::default() })
    }

    fn failed() -> Run {
        let status = RunStatus {
            state: "failed".into(),
            reason: Some("returned_error".into()),
            attempt: 2,
            ended: Some(Time(Timestamp::from_secs(1_794_772_591 - 10))),
            retcode: Some(100),
            message: Some("no package vim\u{7}".into()),
            ..RunStatus::default()
        };
        run("web9", status)
    }

    #[test]
    fn an_action_is_shown_with_counts_reasons_and_failures() {
        let detail = ActionDetail {
            action: action(),
            params: Value::Nil,
            arg: Value::Nil,
            policy: Policy { offline: Offline::Hold, ..Policy::default() },
            decision: Value::Nil,
            metadata: Value::Nil,
            ret: String::new(),
            origin: String::new(),
            org: String::new(),
            jobs: vec!["20261115195601000000".into()],
        };
        assert_eq!(
            told(&detail, &[queued()], &[failed()], NOW, Style::PLAIN),
            "\
Action 7: install vim
    State      open
    Type       package_install
    Function   pkg.install
    Target     web*
    User       root
    Accepted   2026-11-15 19:56:01 UTC (30 s ago)
    Due        2026-11-15 19:56:01 UTC (30 s ago)
    Deadline   2026-11-16 19:56:01 UTC (in 23 h)
    Rules      waits for minions that are off
    Jobs       20261115195601000000

RUNS  STATE      OF THESE
1     queued     1 offline
1     running
2     completed
1     failed     1 returned_error

Failed:
MINION  STATE                    ATTEMPT  CODE  SINCE     MESSAGE
web9    failed (returned_error)  2        100   10 s ago  no package vim?

`saltern action explain 7` tells what is waited for."
        );
    }

    #[test]
    fn reasons_are_counted_most_first() {
        let waits = |word: &str| run("x", RunStatus { waiting_for: Some(word.into()), ..RunStatus::default() });
        let runs = [waits("offline"), waits("window"), waits("window")];
        assert_eq!(reasons(&runs, |status| status.waiting_for.as_deref()), "2 window, 1 offline");
    }
}
