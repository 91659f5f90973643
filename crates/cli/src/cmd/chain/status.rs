//! Launches for people: a list, and one with how far each step and each minion is.

use crate::args::Format;
use crate::failure::Failure;
use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{self, text, when};
use saltern_api::client::{Client, LaunchQuery};
use saltern_api::shape::{Launch, LaunchDetail, LaunchMinion, LaunchStep};
use saltern_core::time::Timestamp;
use saltern_server::clock;
use serde::Serialize;
use std::process::ExitCode;

/// List launches, newest first
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only of this chain, by its number or name
    #[arg(value_name = "CHAIN")]
    chain: Option<String>,

    /// Only those that have not ended
    #[arg(long)]
    open: bool,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Only launches older than this one
    #[arg(long, value_name = "LAUNCH")]
    before: Option<i64>,
}

pub(super) async fn list(args: ListArgs, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    let ListArgs { chain, open, limit, before } = args;
    let launches = client.launches(&LaunchQuery { before, limit: Some(limit), open, chain }).await?.launches;
    output::show(format, &launches, || table(&launches, clock::now(), Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

/// A launch, for programs: with its minions if they were asked for.
#[derive(Serialize)]
struct Status<'a> {
    #[serde(flatten)]
    launch: &'a LaunchDetail,
    #[serde(skip_serializing_if = "Option::is_none")]
    minions: Option<&'a [LaunchMinion]>,
}

pub(super) async fn run(client: &Client, id: i64, minions: bool, format: Format) -> Result<ExitCode, Failure> {
    let launch = client.launch_detail(id).await?;
    let minions = if minions { Some(client.launch_minions(id).await?) } else { None };
    let status = Status { launch: &launch, minions: minions.as_deref() };
    output::show(format, &status, || {
        let (now, style) = (clock::now(), Style::of_stdout());
        let mut shown = detail(&launch, now, style);
        if let Some(minions) = &minions {
            shown.push_str(&format!("\n\n{}", minion_table(minions, now, style)));
        }
        shown
    })?;
    Ok(ExitCode::SUCCESS)
}

fn table(launches: &[Launch], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["ID", "WHEN", "USER", "STATE", "DONE", "FAILED", "NAME"]);
    for launch in launches {
        let counts = launch.counts;
        table.row([
            launch.id.to_string(),
            when::ago(launch.created.0, now),
            launch.user.clone(),
            state(launch, now),
            format!("{}/{}", counts.total - counts.open, counts.total),
            counts.failed.to_string(),
            launch.name.chars().take(60).collect(),
        ]);
    }
    table.show("There is no such launch.", style)
}

fn detail(detail: &LaunchDetail, now: Timestamp, style: Style) -> String {
    let launch = &detail.launch;
    let mut known = vec![
        ("State", state(launch, now)),
        ("Minions", minions(launch)),
        ("User", launch.user.clone()),
        ("Launched", when::when(launch.created.0, now)),
    ];
    known.extend(launch.chain.map(|chain| ("Chain", chain.to_string())));
    if launch.due != launch.created {
        known.push(("Due", when::when(launch.due.0, now)));
    }
    known.push(match launch.ended {
        Some(ended) => ("Ended", when::when(ended.0, now)),
        None => ("Deadline", when::when(launch.deadline.0, now)),
    });
    if let Some(cancelled) = &launch.cancelled {
        let what = if launch.stopped { "Stopped" } else { "Cancelled" };
        known.push((what, format!("{} by {}", when::when(cancelled.at.0, now), cancelled.by)));
    }
    let head = fields(&format!("Launch {} of {}", launch.id, launch.name), &known, style);
    let mut shown = format!("{head}\n\n{}", step_table(&detail.steps, style));
    if let Some(question) = question(detail) {
        shown.push_str(&format!("\n\n{question}"));
    }
    shown
}

fn step_table(steps: &[LaunchStep], style: Style) -> String {
    let mut table = Table::new(&["STEP", "STATE", "DONE", "RUNNING", "FAILED", "ACTION", "TARGET", "NAME"]);
    for step in steps {
        let counts = step.counts;
        table.row([
            step.step.to_string(),
            step.state.clone(),
            format!("{}/{}", counts.completed + counts.failed + counts.cancelled, counts.total),
            counts.running.to_string(),
            counts.failed.to_string(),
            step.action.to_string(),
            text::target(&step.target, &step.tgt_type).chars().take(40).collect(),
            format!("{} {}", step.name.chars().take(60).collect::<String>(), rules(step)).trim_end().to_owned(),
        ]);
    }
    table.show("It has no steps that you may see.", style)
}

fn minion_table(minions: &[LaunchMinion], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["MINION", "STATE", "CHUNK", "SINCE", "MESSAGE"]);
    for row in minions {
        let failed = if row.failed && row.outcome.is_none() { " (a step failed)" } else { "" };
        table.row([
            row.minion.clone(),
            format!("{}{failed}", row.outcome.as_ref().unwrap_or(&row.state)),
            row.chunk.to_string(),
            when::ago(row.since.0, now),
            row.message.clone().unwrap_or_default(),
        ]);
    }
    table.show("It has no minions that you may see.", style)
}

/// Where it stands; of what has ended, how.
fn state(launch: &Launch, now: Timestamp) -> String {
    let counts = launch.counts;
    match (launch.ended, &launch.cancelled) {
        (Some(_), _) if counts.failed > 0 => "failed".into(),
        (Some(_), _) if counts.cancelled > 0 => "cancelled".into(),
        (Some(_), _) => "completed".into(),
        (None, Some(_)) => "ending".into(),
        (None, None) if launch.state == "waiting" => format!("due {}", when::ago(launch.due.0, now)),
        (None, None) => launch.state.clone(),
    }
}

/// How many minions stand where.
pub(super) fn minions(launch: &Launch) -> String {
    let counts = launch.counts;
    let parts = [
        (counts.completed, "completed"),
        (counts.failed, "failed"),
        (counts.cancelled, "cancelled"),
        (counts.open, "open"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() { counts.total.to_string() } else { format!("{} of {}", parts.join(", "), counts.total) }
}

/// The step that waits for somebody's yes, if it is its turn.
pub(super) fn question(detail: &LaunchDetail) -> Option<String> {
    let open = detail.steps.iter().find(|step| step.counts.queued > 0)?;
    let asks = detail.launch.state == "running" && detail.launch.cancelled.is_none() && open.approved.is_none();
    let question = open.approval.as_ref().filter(|_| asks)?;
    let (id, step) = (detail.launch.id, open.step);
    Some(format!("Step {step} asks: {}  Yes: `saltern chain approve {id} {step}`", text::clean(question)))
}

/// The rules that differ from the usual, and who has said yes.
fn rules(step: &LaunchStep) -> String {
    let mut words = Vec::new();
    if step.barrier != "each" {
        words.push(format!("barrier {}", step.barrier));
    }
    words.extend(step.budget.as_ref().map(|budget| format!("budget {budget}")));
    if step.after != "ok" {
        words.push(format!("after {}", step.after));
    }
    match (&step.approval, &step.approved) {
        (_, Some(yes)) => words.push(format!("approved by {}", yes.by)),
        (Some(_), None) => words.push("approval".into()),
        (None, None) => {}
    }
    if words.is_empty() { String::new() } else { format!("[{}]", words.join(", ")) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::show::tests::NOW;
    use super::*;
    use saltern_api::shape::{Cancelled, Counts, LaunchCounts, StepApproval, Time};
    use saltern_core::value::Value;
    use std::time::Duration;

    fn ago(seconds: i64) -> Time {
        Time(Timestamp::from_secs(1_794_772_591 - seconds))
    }

    fn step(number: i64, counts: Counts) -> LaunchStep {
        LaunchStep {
            step: number,
            name: "reboot".into(),
            kind: "reboot".into(),
            params: Value::Nil,
            target: "web*".into(),
            tgt_type: "glob".into(),
            barrier: "each".into(),
            budget: None,
            after: "ok".into(),
            limit: 3_600.0,
            repeatable: true,
            approval: None,
            approved: None,
            action: 40 + number,
            jid: None,
            state: "open".into(),
            counts,
        }
    }

    pub(in super::super) fn launch() -> LaunchDetail {
        let launch = Launch {
            id: 9,
            chain: Some(7),
            name: "patch-web".into(),
            user: "ann".into(),
            org: "default".into(),
            state: "running".into(),
            created: ago(60),
            due: ago(60),
            deadline: Time(NOW.plus(Duration::from_secs(86_340))),
            ended: None,
            cancelled: None,
            stopped: false,
            approvals: Vec::new(),
            counts: LaunchCounts { total: 20, open: 7, completed: 12, failed: 1, cancelled: 0 },
        };
        let first = Counts { total: 20, completed: 17, failed: 1, running: 2, ..Counts::default() };
        let second = Counts { total: 20, completed: 12, cancelled: 1, queued: 7, ..Counts::default() };
        let second = LaunchStep {
            barrier: "80%".into(),
            budget: Some("10%".into()),
            approval: Some("all well?".into()),
            ..step(2, second)
        };
        LaunchDetail { launch, steps: vec![step(1, first), second] }
    }

    #[test]
    fn the_list_tells_how_far_each_is() {
        assert_eq!(
            table(&[launch().launch], NOW, Style::PLAIN),
            "\
ID  WHEN      USER  STATE    DONE   FAILED  NAME
9   60 s ago  ann   running  13/20  1       patch-web"
        );
    }

    #[test]
    fn a_launch_is_shown_step_by_step_with_the_question_it_asks() {
        assert_eq!(
            detail(&launch(), NOW, Style::PLAIN),
            "\
Launch 9 of patch-web:
    State     running
    Minions   12 completed, 1 failed, 7 open of 20
    User      ann
    Launched  2026-11-15 19:55:31 UTC (60 s ago)
    Chain     7
    Deadline  2026-11-16 19:55:31 UTC (in 23 h)

STEP  STATE  DONE   RUNNING  FAILED  ACTION  TARGET  NAME
1     open   18/20  2        1       41      web*    reboot
2     open   13/20  0        0       42      web*    reboot [barrier 80%, budget 10%, approval]

Step 2 asks: all well?  Yes: `saltern chain approve 9 2`"
        );
    }

    #[test]
    fn a_question_that_is_answered_is_not_asked_again() {
        let mut detail = launch();
        detail.steps[1].approved = Some(StepApproval { step: 2, at: ago(1), by: "bob".into() });
        assert_eq!(question(&detail), None);
        assert_eq!(rules(&detail.steps[1]), "[barrier 80%, budget 10%, approved by bob]");
    }

    #[test]
    fn a_question_waits_for_its_turn() {
        let mut detail = launch();
        detail.steps[0].counts.queued = 1;
        assert_eq!(question(&detail), None);
    }

    #[test]
    fn the_state_of_what_has_ended_is_how() {
        let now = launch().launch;
        let ended = |failed, cancelled| {
            let counts = LaunchCounts { total: 5, open: 0, completed: 3, failed, cancelled };
            state(&Launch { ended: Some(ago(1)), state: "ended".into(), counts, ..now.clone() }, NOW)
        };
        assert_eq!([ended(1, 1), ended(0, 1), ended(0, 0)], ["failed", "cancelled", "completed"]);
        let cancelled = Some(Cancelled { at: ago(1), by: "ann".into() });
        assert_eq!(state(&Launch { cancelled, ..now.clone() }, NOW), "ending");
        let due = Time(NOW.plus(Duration::from_secs(10_800)));
        assert_eq!(state(&Launch { due, state: "waiting".into(), ..now }, NOW), "due in 3 h");
    }

    #[test]
    fn each_minion_says_where_it_is() {
        let row = |minion: &str, state: &str| LaunchMinion {
            minion: minion.into(),
            state: state.into(),
            chunk: 2,
            failed: false,
            since: ago(60),
            outcome: None,
            message: None,
        };
        let ended = LaunchMinion {
            outcome: Some("failed".into()),
            failed: true,
            message: Some("step 2 (reboot): it is not back".into()),
            ..row("web2", "ended")
        };
        assert_eq!(
            minion_table(&[row("web1", "restarting"), ended], NOW, Style::PLAIN),
            "\
MINION  STATE       CHUNK  SINCE     MESSAGE
web1    restarting  2      60 s ago
web2    failed      2      60 s ago  step 2 (reboot): it is not back"
        );
    }
}
