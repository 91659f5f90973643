//! `saltern function`: what minions can be asked to do, as they describe it themselves.

use crate::args::{Delimiter, Out, TargetKind};
use crate::failure::{FAILED, Failure};
use crate::output::style::{Colour, Style};
use crate::output::table::Table;
use crate::output::{self, text, when};
use clap::Subcommand;
use saltern_api::client::Client;
use saltern_api::shape::{Function, FunctionDetail, FunctionRefresh, FunctionsRefreshed};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::clock;
use std::process::ExitCode;

/// Look up the functions that minions know
///
/// The documentation comes from minions themselves, one of each kind (version and operating system), and is kept by the server.
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
  saltern function refresh '*'
  saltern function list pkg.
  saltern function show pkg.install";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List functions, all or those that have these words in their name or documentation
    List {
        /// What to look for
        search: Option<String>,
    },
    /// Show a function's parameters and documentation
    Show {
        /// The function, as MODULE.FUNCTION
        name: String,
    },
    /// Ask minions what they know now
    Refresh {
        /// Among which minions: a shell pattern over their ids, unless a target type is given
        target: String,
        #[command(flatten)]
        kind: TargetKind,
        #[command(flatten)]
        delimiter: Delimiter,
    },
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    match args.verb {
        Verb::List { search } => {
            let functions = client.functions(search.as_deref()).await?;
            output::show(format, &functions, || table(&functions, Style::of_stdout()))?;
        }
        Verb::Show { name } => {
            let function = client.function(&name).await?;
            output::show(format, &function, || detail(&function, clock::now(), Style::of_stdout()))?;
        }
        Verb::Refresh { target, kind, delimiter } => {
            let wanted = FunctionRefresh {
                target: kind.expression(&target),
                tgt_type: kind.kind().as_str().to_owned(),
                delimiter: delimiter.get().map(str::to_owned),
            };
            let refreshed = client.refresh_functions(&wanted).await?;
            output::show(format, &refreshed, || outcome(&refreshed, Style::of_stdout()))?;
            let is_good =
                refreshed.unanswered.is_empty() && refreshed.kinds.iter().all(|kind| kind.functions.is_some());
            return Ok(ExitCode::from(if is_good { 0 } else { FAILED }));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(functions: &[Function], style: Style) -> String {
    let mut table = Table::new(&["NAME", "WHAT IT DOES"]);
    for function in functions {
        let first = function.doc.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        table.row([function.name.clone(), first.chars().take(90).collect()]);
    }
    table.show("No such function is known. `saltern function refresh TARGET` asks minions.", style)
}

fn detail(function: &FunctionDetail, now: Timestamp, style: Style) -> String {
    let kind = |said: &Function| {
        let usage = style.paint(Colour::Cyan, &text::clean(&usage(&said.name, &said.argspec)));
        let from = format!("{}, asked {}", text::clean(&said.kind), when::ago(said.at.0, now));
        let doc = text::clean_lines(said.doc.trim_matches('\n').trim_end());
        let doc: Vec<String> = doc.lines().map(|line| format!("    {line}").trim_end().to_owned()).collect();
        format!("{usage}\n    {}\n\n{}", style.paint(Colour::Grey, &from), doc.join("\n"))
    };
    let mut shown: Vec<String> = Vec::new();
    let mut seen: Vec<(&str, &Value)> = Vec::new();
    // Kinds that say the same say it once.
    for said in &function.kinds {
        if !seen.contains(&(said.doc.as_str(), &said.argspec)) {
            seen.push((&said.doc, &said.argspec));
            shown.push(kind(said));
        }
    }
    shown.join("\n\n")
}

/// How it is called: `pkg.install NAME=None … **kwargs`.
fn usage(name: &str, argspec: &Value) -> String {
    let list = |key: &str| argspec.get(key).and_then(Value::as_list).map_or(&[][..], |items| items);
    let (args, defaults) = (list("args"), list("defaults"));
    let required = args.len().saturating_sub(defaults.len());
    let mut words = vec![name.to_owned()];
    for (place, arg) in args.iter().enumerate() {
        words.push(match place.checked_sub(required).and_then(|place| defaults.get(place)) {
            Some(default) => format!("[{}={}]", text::scalar(arg), text::scalar(default)),
            None => text::scalar(arg),
        });
    }
    let is_set = |key: &str| matches!(argspec.get(key), Some(Value::Bool(true) | Value::Text(_)));
    if is_set("varargs") {
        words.push("[ARG...]".into());
    }
    if is_set("kwargs") {
        words.push("[NAME=VALUE...]".into());
    }
    words.join(" ")
}

fn outcome(refreshed: &FunctionsRefreshed, style: Style) -> String {
    let mut table = Table::new(&["KIND", "ASKED", "FUNCTIONS"]);
    for said in &refreshed.kinds {
        let functions = said.functions.map_or("answered with no documentation".into(), |count| count.to_string());
        table.row([said.kind.clone(), said.minion.clone(), functions]);
    }
    for silent in &refreshed.unanswered {
        table.row([String::new(), silent.minion.clone(), "did not answer".into()]);
    }
    table.show("No minion was asked.", style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Time;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn said(kind: &str, doc: &str) -> Function {
        let argspec = r#"{"args": ["name", "refresh"], "defaults": [false], "varargs": null, "kwargs": true}"#;
        Function {
            name: "pkg.install".into(),
            kind: kind.into(),
            doc: doc.into(),
            argspec: serde_json::from_str(argspec).unwrap(),
            at: Time(Timestamp::from_secs(1_794_772_591 - 600)),
        }
    }

    #[test]
    fn a_function_is_shown_as_it_is_called() {
        let detail =
            FunctionDetail { name: "pkg.install".into(), kinds: vec![said("3008.3 Debian", "\nInstall.\n\nmore\n")] };
        let shown = super::detail(&detail, NOW, Style::PLAIN);
        assert_eq!(
            shown,
            "pkg.install name [refresh=False] [NAME=VALUE...]\n    3008.3 Debian, asked 10 min ago\n\n    Install.\n\n    more"
        );
    }

    #[test]
    fn kinds_that_say_the_same_say_it_once() {
        let kinds =
            vec![said("3008.3 Debian", "Install."), said("3007.15 Debian", "Install."), said("3006.28 RedHat", "x")];
        let shown = super::detail(&FunctionDetail { name: "pkg.install".into(), kinds }, NOW, Style::PLAIN);
        assert!(shown.contains("3008.3") && !shown.contains("3007.15") && shown.contains("3006.28"), "{shown}");
    }

    #[test]
    fn the_list_has_the_first_line_of_each() {
        assert_eq!(
            table(&[said("x", "\n  Install packages\nmore")], Style::PLAIN),
            "NAME         WHAT IT DOES\npkg.install  Install packages"
        );
    }
}
