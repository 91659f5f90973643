//! `saltern action create`: an action of a type, with its parameters.

use crate::args::{Delimiter, Format, TargetKind, metadata};
use crate::cmd::chain;
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::output::when;
use crate::params;
use crate::rules::Rules;
use saltern_api::client::Client;
use saltern_api::shape::{ActionRequest, Created};
use saltern_core::chain::{Step, StepTarget};
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::process::ExitCode;

/// Ask for an action
///
/// It is accepted when this returns, and not waited for: `saltern action wait ID` does that. With --chain it becomes a step of a
/// chain instead.
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

    /// Do not do it now: make it a step of this chain, by its number or name, at the end unless --position is given
    #[arg(long, value_name = "CHAIN", conflicts_with_all = NOT_OF_STEPS)]
    chain: Option<String>,

    /// Which number the step is to have in the chain
    #[arg(long, value_name = "N", requires = "chain", value_parser = clap::value_parser!(u16).range(1..))]
    position: Option<u16>,

    /// A map that is kept with the action, its jobs and their returns: '{ticket: 17}'
    #[arg(long, value_name = "YAML")]
    metadata: Option<String>,

    /// Returners that minions call themselves
    #[arg(long = "return", value_name = "RETURNER", default_value = "", hide_default_value = true)]
    returner: String,
}

/// What a step of a chain has not: when and how it is done is up to the chain.
const NOT_OF_STEPS: [&str; 18] = [
    "at",
    "zone",
    "deadline",
    "when_back",
    "offline",
    "retry",
    "batch",
    "batch_wait",
    "max_failures",
    "max_unreachable",
    "waves",
    "paused",
    "metadata",
    "returner",
    "delimiter",
    "in_window",
    "override_window",
    "when_closed",
];

const EXAMPLES: &str = "\
Examples:
  saltern action create package_install -G os:Debian packages=vim,git
  saltern action create script web1 body=@cleanup.sh timeout=600
  saltern action create states '*' mods=nginx test=true
  saltern action create package_update 'web*' --at '2026-12-01 04:00' --zone Europe/Berlin
  saltern action create reboot '*' --wave 1:10m --wave 100% --batch 10% --max-failures 3
  saltern action create function db1 fun=test.ping --when-back --deadline 7d
  saltern action create package_update 'web*' --in-window
  saltern action create reboot 'web*' --chain patch-web";

impl Args {
    fn request(&self, now: Timestamp) -> Result<ActionRequest, Failure> {
        Ok(ActionRequest {
            kind: self.kind.clone(),
            params: params::read(&self.kind, &self.params)?.into(),
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
            in_window: self.rules.in_window(),
        })
    }
}

impl Args {
    /// The same as a step of a chain.
    fn step(&self) -> Result<Step, Failure> {
        let target = StepTarget {
            kind: self.target_kind.kind().as_str().to_owned(),
            expression: self.target_kind.expression(&self.target),
        };
        let step = Step {
            name: self.rules.name().map(str::to_owned),
            limit: self.rules.policy().job_timeout,
            ..Step::new(&self.kind, params::read(&self.kind, &self.params)?)
        };
        chain::checked(Step { target: Some(target), ..step })
    }
}

pub(super) async fn run(args: &Args, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    if let Some(which) = &args.chain {
        return chain::add(client, which, args.step()?, args.position.map(usize::from), format).await;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use saltern_core::value::Value;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn args(words: &[&str]) -> Result<Box<Args>, String> {
        let cli = Cli::try_parse_from(["saltern", "action", "create"].iter().chain(words));
        match cli.map_err(|error| error.to_string())?.command {
            Command::Action(super::super::Args { verb: super::super::Verb::Create(args), .. }) => Ok(args),
            _ => panic!("not a create"),
        }
    }

    fn request(words: &[&str]) -> Result<ActionRequest, Failure> {
        args(words).unwrap().request(NOW)
    }

    #[test]
    fn the_same_words_make_a_step_of_a_chain() {
        let words =
            ["reboot", "-L", "a,b", "--chain", "night", "--position", "2", "--name", "x", "--job-timeout", "2h"];
        let args = args(&words).unwrap();
        let step = args.step().unwrap();
        assert_eq!((args.chain.as_deref(), args.position), (Some("night"), Some(2)));
        assert_eq!((step.kind.as_str(), step.target), ("reboot", Some(StepTarget::minions(["a", "b"]))));
        assert_eq!((step.name.as_deref(), step.limit), (Some("x"), Some(std::time::Duration::from_secs(7_200))));
    }

    #[test]
    fn a_step_has_no_time_of_its_own() {
        for words in [
            &["reboot", "*", "--chain", "x", "--at", "+1h"][..],
            &["reboot", "*", "--chain", "x", "--batch", "2"],
            &["reboot", "*", "--chain", "x", "--return", "y"],
            &["reboot", "*", "--position", "2"],
        ] {
            assert!(args(words).is_err(), "{words:?}");
        }
        assert!(args(&["fly", "*", "--chain", "x"]).unwrap().step().is_err());
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
