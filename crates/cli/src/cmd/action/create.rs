//! `saltern action create`: an action of a type, with its parameters.

use crate::args::{Delimiter, Format, TargetKind, metadata};
use crate::arguments;
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::output::when;
use crate::rules::Rules;
use saltern_api::client::Client;
use saltern_api::shape::{ActionRequest, Created};
use saltern_core::action::types::{self, Kind};
use saltern_core::time::Timestamp;
use saltern_core::value::Map;
use saltern_server::clock;
use std::process::ExitCode;

/// Ask for an action
///
/// It is accepted when this returns, and not waited for: `saltern action wait ID` does that.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// What to do; `saltern action types` lists what there is
    #[arg(value_name = "TYPE")]
    kind: String,

    /// Which minions: a shell pattern over their ids, unless a target type is given
    target: String,

    /// Parameters as NAME=VALUE; a script's body may come from a file: body=@FILE
    #[arg(value_name = "NAME=VALUE")]
    params: Vec<String>,

    #[command(flatten)]
    target_kind: TargetKind,

    #[command(flatten)]
    delimiter: Delimiter,

    #[command(flatten)]
    rules: Rules,

    /// A map that is kept with the action, its jobs and their returns: '{ticket: 17}'
    #[arg(long, value_name = "YAML")]
    metadata: Option<String>,

    /// Returners that minions call themselves
    #[arg(long = "return", value_name = "RETURNER", default_value = "", hide_default_value = true)]
    returner: String,
}

const EXAMPLES: &str = "\
Examples:
  saltern action create package_install -G os:Debian packages=vim,git
  saltern action create script web1 body=@cleanup.sh timeout=600
  saltern action create states '*' mods=nginx test=true
  saltern action create package_update 'web*' --at '2026-12-01 04:00' --zone Europe/Berlin
  saltern action create reboot '*' --wave 1:10m --wave 100% --batch 10% --max-failures 3
  saltern action create function db1 fun=test.ping --when-back --deadline 7d";

impl Args {
    fn request(&self, now: Timestamp) -> Result<ActionRequest, Failure> {
        Ok(ActionRequest {
            kind: self.kind.clone(),
            params: params(&self.kind, &self.params)?.into(),
            target: self.target_kind.expression(&self.target),
            tgt_type: self.target_kind.kind().as_str().to_owned(),
            delimiter: self.delimiter.get().map(str::to_owned),
            name: self.rules.name().map(str::to_owned),
            policy: self.rules.policy(),
            due: self.rules.due(now)?,
            deadline: self.rules.deadline(),
            metadata: metadata(self.metadata.as_deref())?,
            ret: self.returner.clone(),
            paused: self.rules.is_paused(),
        })
    }
}

pub(super) async fn run(args: &Args, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    let now = clock::now();
    let request = args.request(now)?;
    let created = client.create_action(&request).await?;
    output::show(format, &created, || told(&created, &request, now))?;
    for name in &created.missing {
        output::note(&format!("saltern: no accepted minion has the id {name:?}"))?;
    }
    Ok(if created.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn told(created: &Created, request: &ActionRequest, now: Timestamp) -> String {
    let Created { id, jid, minions, .. } = created;
    let so_far = match (jid, request.due) {
        _ if request.paused => format!("paused; `saltern action resume {id}` lets it begin"),
        (Some(jid), _) => format!("begun as job {jid}; `saltern action wait {id}` waits for it"),
        (None, Some(due)) => format!("due {}", when::when(due.0, now)),
        (None, None) => format!("waits; `saltern action explain {id}` tells what for"),
    };
    format!("Action {id} on {}: {so_far}", count(minions.len()))
}

/// So many minions.
fn count(minions: usize) -> String {
    if minions == 1 { "1 minion".into() } else { format!("{minions} minions") }
}

/// Reads parameters by what they are: the version `3.10` of a package is no number.
fn params(kind: &str, words: &[String]) -> Result<Map, Failure> {
    let known = types::find(kind).map(|kind| kind.params()).unwrap_or_default();
    let mut params = Map::new();
    for word in words {
        let Some((name, text)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(format!("{word:?} is not a parameter: write NAME=VALUE")));
        };
        let param = known.iter().find(|param| param.name == name);
        let value = match param.map(|param| param.kind) {
            Some(Kind::Body) => body(text)?.into(),
            Some(Kind::Text) => text.into(),
            // A list in YAML, or names with commas between them.
            Some(Kind::Names) if !text.starts_with('[') => text.into(),
            _ => arguments::value(text),
        };
        if params.get(name).is_some() {
            return Err(Failure::usage(format!("the parameter {name:?} is given twice")));
        }
        params.push(name, value);
    }
    Ok(params)
}

/// A text of many lines, or the file it is in.
fn body(text: &str) -> Result<String, Failure> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    std::fs::read_to_string(file).map_err(|error| Failure::new(format!("cannot read {file}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use saltern_core::value::Value;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn request(words: &[&str]) -> Result<ActionRequest, Failure> {
        let cli = Cli::try_parse_from(["saltern", "action", "create"].iter().chain(words)).unwrap();
        let Command::Action(super::super::Args { verb: super::super::Verb::Create(args), .. }) = cli.command else {
            panic!("not a create")
        };
        args.request(NOW)
    }

    #[test]
    fn a_command_becomes_a_request() {
        let request =
            request(&["reboot", "-L", "a,b", "--when-back", "--deadline", "7d", "--paused", "--name", "night"])
                .unwrap();
        assert_eq!((request.kind.as_str(), request.tgt_type.as_str()), ("reboot", "list"));
        assert_eq!(request.target, Value::list(["a", "b"]));
        assert_eq!((request.deadline, request.paused, request.name.as_deref()), (Some(604_800.0), true, Some("night")));
    }

    #[test]
    fn parameters_are_read_by_what_they_are() {
        let request = request(&["package_install", "*", "packages=python=3.10", "refresh=false"]).unwrap();
        assert_eq!(
            request.params,
            Value::map([("packages", Value::from("python=3.10")), ("refresh", Value::from(false))])
        );
        let list = super::params("package_install", &["packages=[vim, git]".into()]).unwrap();
        assert_eq!(list.get("packages"), Some(&Value::list(["vim", "git"])));
    }

    #[test]
    fn a_body_may_have_many_lines_or_come_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.sh");
        std::fs::write(&file, "echo 1\necho 2\n").unwrap();
        let body = |text: String| super::params("script", &[format!("body={text}")]).unwrap().get("body").cloned();
        assert_eq!(body("a\nb: 1".into()), Some("a\nb: 1".into()));
        assert_eq!(body(format!("@{}", file.display())), Some("echo 1\necho 2\n".into()));
        assert!(super::params("script", &["body=@/does/not/exist".into()]).is_err());
    }

    #[test]
    fn what_is_no_parameter_is_refused() {
        assert!(request(&["reboot", "*", "now"]).is_err());
        assert!(request(&["function", "*", "fun=a.b", "fun=c.d"]).is_err());
    }

    #[test]
    fn the_answer_says_what_happens_next() {
        let created = |jid: Option<&str>| Created {
            id: 7,
            jid: jid.map(str::to_owned),
            minions: vec!["a".into(), "b".into()],
            missing: Vec::new(),
        };
        let later = request(&["reboot", "*", "--at", "+90m"]).unwrap();
        assert_eq!(told(&created(None), &later, NOW), "Action 7 on 2 minions: due 2026-11-15 21:26:31 UTC (in 90 min)");
        let now = request(&["reboot", "*"]).unwrap();
        assert!(told(&created(Some("20261115195631000000")), &now, NOW).contains("saltern action wait 7"));
    }
}
