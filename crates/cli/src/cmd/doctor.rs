//! `saltern doctor`: is everything as it should be? Each finding with what to do about it.

mod local;
mod remote;

use crate::args::Out;
use crate::cmd::serve::ConfigFile;
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::output::style::{Colour, Style};
use saltern_api::client::{Client, ClientError};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check whether everything is as it should be
///
/// Asks a running server; where none runs, checks the configuration, the data directory and the ports. Exit code 1 if
/// something needs to be repaired.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigFile,

    #[command(flatten)]
    out: Out,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// As it should be
    Ok,
    /// Worth a look
    Warn,
    /// To be repaired
    Fail,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    level: Level,
    /// What was looked at
    what: &'static str,
    /// What was seen
    seen: String,
    /// What to do about it
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
}

impl Finding {
    fn ok(what: &'static str, seen: impl Into<String>) -> Self {
        Self { level: Level::Ok, what, seen: seen.into(), hint: String::new() }
    }

    fn warn(what: &'static str, seen: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { level: Level::Warn, what, seen: seen.into(), hint: hint.into() }
    }

    fn fail(what: &'static str, seen: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { level: Level::Fail, what, seen: seen.into(), hint: hint.into() }
    }
}

pub(crate) async fn run(args: Args, client: Client, data_dir: Option<PathBuf>) -> Result<ExitCode, Failure> {
    let findings = match client.status().await {
        Ok(status) => remote::check(&client, &status).await?,
        Err(error @ (ClientError::Unreachable { .. } | ClientError::Lost(_))) => {
            let mut findings = vec![Finding::fail("server", error.to_string(), error.hint())];
            findings.extend(local::check(&args.config, data_dir.as_deref()));
            findings
        }
        Err(error) => vec![Finding::fail("server", error.to_string(), error.hint())],
    };
    output::show(args.out.format, &findings, || show(&findings, Style::of_stdout()))?;
    let failed = findings.iter().any(|finding| finding.level == Level::Fail);
    Ok(ExitCode::from(if failed { FAILED } else { 0 }))
}

fn show(findings: &[Finding], style: Style) -> String {
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let line = |Finding { level, what, seen, hint }: &Finding| {
        let level = match level {
            Level::Ok => style.paint(Colour::Green, "ok  "),
            Level::Warn => style.paint(Colour::Yellow, "warn"),
            Level::Fail => style.paint(Colour::Red, "fail"),
        };
        let hint = if hint.is_empty() { String::new() } else { format!("\n      {:width$}  → {hint}", "") };
        format!("{level}  {what:<width$}  {seen}{hint}")
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_a_line_with_a_hint_below() {
        let findings = [Finding::ok("server", "up"), Finding::warn("keys", "2 wait", "saltern key list")];
        assert_eq!(
            show(&findings, Style::PLAIN),
            "ok    server  up\nwarn  keys    2 wait\n              → saltern key list"
        );
    }
}
