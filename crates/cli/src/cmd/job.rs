//! `saltern job`: what was run, and what became of it.

use crate::args::Out;
use crate::cmd::run::answers::{self, Style as Answer};
use crate::failure::Failure;
use crate::output::style::{Colour, Style};
use crate::output::table::Table;
use crate::output::{self, text, when};
use clap::Subcommand;
use saltern_api::client::{Client, JobQuery};
use saltern_api::shape::{Job, JobDetail, RunStatus};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::clock;
use std::process::ExitCode;

/// See what was run and what became of it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    out: Out,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  saltern job list
  saltern job active
  saltern job show 20261115195631000000 --out json";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List jobs, newest first
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Only jobs older than this one
        #[arg(long, value_name = "JID")]
        before: Option<String>,
        /// The server's own housekeeping too
        #[arg(long)]
        all: bool,
    },
    /// Show a job with the answer of every minion
    Show {
        /// The job's id
        jid: String,
    },
    /// List jobs that some minion has not finished
    Active,
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    let query = match args.verb {
        Verb::Show { jid } => {
            let job = client.job(&jid).await?;
            output::show(format, &job, || detail_text(&job, clock::now(), Style::of_stdout()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Verb::List { limit, before, all } => JobQuery { before, limit: Some(limit), internal: all, active: false },
        Verb::Active => JobQuery { limit: Some(1_000), active: true, ..JobQuery::default() },
    };
    let empty = if query.active { "No job is active." } else { "There is no job yet." };
    let jobs = client.jobs(&query).await?.jobs;
    output::show(format, &jobs, || table(&jobs, empty, clock::now(), Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn table(jobs: &[Job], empty: &str, now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["JID", "WHEN", "USER", "MINIONS", "TARGET", "FUNCTION"]);
    for job in jobs {
        let function = format!("{} {}", job.fun, arguments(&job.arg));
        let shortened: String = function.trim().chars().take(80).collect();
        table.row([
            job.jid.clone(),
            when::ago(job.created.0, now),
            job.user.clone(),
            job.minion_count.to_string(),
            text::target(&job.target, &job.tgt_type),
            shortened,
        ]);
    }
    table.show(empty, style)
}

fn detail_text(detail: &JobDetail, now: Timestamp, style: Style) -> String {
    let job = &detail.job;
    let mut lines = vec![format!("{}:", style.paint(Colour::Cyan, &format!("Job {}", job.jid)))];
    for (label, value) in [
        ("Action", job.action.to_string()),
        ("Function", job.fun.clone()),
        ("Arguments", arguments(&job.arg)),
        ("Target", text::target(&job.target, &job.tgt_type)),
        ("User", job.user.clone()),
        ("Accepted", when::when(job.created.0, now)),
    ] {
        lines.push(format!("    {label:<10} {}", text::clean(&value)).trim_end().to_owned());
    }
    let mut table = Table::new(&["MINION", "STATE", "CODE", "SINCE"]);
    for (minion, run) in &detail.runs {
        table.row([
            minion.clone(),
            text::state(run),
            run.retcode.map_or_else(String::new, |code| code.to_string()),
            since(run, now),
        ]);
    }
    for name in &detail.missing {
        table.row([name.clone(), "no accepted minion has this id".into(), String::new(), String::new()]);
    }
    lines.push(String::new());
    lines.push(table.show("No minion was asked.", style));
    if !detail.returns.is_empty() {
        lines.push(String::new());
    }
    for (minion, returned) in &detail.returns {
        lines.push(answers::show(minion, returned, Answer::Suggested, style));
    }
    lines.join("\n")
}

fn since(run: &RunStatus, now: Timestamp) -> String {
    run.ended.or(run.picked_up).or(run.sent).map_or_else(String::new, |at| when::when(at.0, now))
}

/// Arguments about as they were typed.
fn arguments(arg: &Value) -> String {
    let one = |value: &Value| match value {
        Value::Map(map) if map.get("__kwarg__").is_some() => {
            let named = map.iter().filter(|(name, _)| name.as_str() != Some("__kwarg__"));
            named
                .map(|(name, value)| format!("{}={}", text::scalar(name), text::scalar(value)))
                .collect::<Vec<_>>()
                .join(" ")
        }
        other => text::scalar(other),
    };
    arg.as_list().unwrap_or_default().iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::{Return, Time};
    use saltern_core::value::Map;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn job() -> Job {
        let at = Time(Timestamp::from_secs(1_794_772_591 - 30));
        let mut named = Map::new();
        named.push("test", true);
        named.push("__kwarg__", true);
        Job {
            jid: "20261115195601000000".into(),
            action: 7,
            created: at,
            fun: "state.apply".into(),
            arg: vec![Value::from("nginx"), named.into()].into(),
            target: Value::list(["web1", "web2"]),
            tgt_type: "list".into(),
            user: "root".into(),
            minion_count: 2,
            internal: false,
        }
    }

    #[test]
    fn the_list_reads_like_what_was_typed() {
        assert_eq!(
            table(&[job()], "", NOW, Style::PLAIN),
            "\
JID                   WHEN      USER  MINIONS  TARGET          FUNCTION
20261115195601000000  30 s ago  root  2        list web1,web2  state.apply nginx test=True"
        );
    }

    #[test]
    fn the_detail_has_every_minion_and_every_answer() {
        let at = Time(Timestamp::from_secs(1_794_772_591 - 10));
        let run = |state: &str, reason: Option<&str>, retcode| RunStatus {
            state: state.into(),
            reason: reason.map(str::to_owned),
            sent: Some(at),
            retcode,
            ..RunStatus::default()
        };
        let detail = JobDetail {
            job: job(),
            minions: vec!["web1".into(), "web2".into()],
            missing: vec!["web9".into()],
            runs: [
                ("web1".into(), run("failed", Some("returned_error"), Some(2))),
                ("web2".into(), run("sent", None, None)),
            ]
            .into(),
            returns: [("web1".into(), Return { value: "no".into(), retcode: 2, success: false, at, out: None })].into(),
        };
        assert_eq!(
            detail_text(&detail, NOW, Style::PLAIN),
            "\
Job 20261115195601000000:
    Action     7
    Function   state.apply
    Arguments  nginx test=True
    Target     list web1,web2
    User       root
    Accepted   2026-11-15 19:56:01 UTC (30 s ago)

MINION  STATE                           CODE  SINCE
web1    failed (returned_error)         2     2026-11-15 19:56:21 UTC (10 s ago)
web2    sent                                  2026-11-15 19:56:21 UTC (10 s ago)
web9    no accepted minion has this id

web1:
    no"
        );
    }
}
