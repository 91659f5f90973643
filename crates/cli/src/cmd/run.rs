//! `saltern run`: a function on minions, with the answers as they arrive and a word about those that did not come.

pub(crate) mod answers;
mod follow;

use crate::args::{Delimiter, TargetKind, metadata};
use crate::arguments;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, when};
use crate::rules::Rules;
use answers::Style;
use clap::ValueEnum;
use saltern_api::client::{Client, ClientError};
use saltern_api::shape::{Accepted, ActionRequest, Created, Functions, RunRequest, Time};
use saltern_core::action::Policy;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_server::clock;
use std::process::ExitCode;

/// Run a function on minions
///
/// Prints each minion's answer as it arrives, then who did not answer, and why. A minion that says it is still at it is
/// waited for; one that says nothing is given up after --timeout. Ctrl-C stops the waiting, not the job. What is for later
/// (--at, --paused) is not waited for.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which minions: a shell pattern over their ids, unless a target type is given
    target: String,

    /// The function, as MODULE.FUNCTION; several are separated by commas
    #[arg(value_name = "FUNCTION")]
    function: String,

    /// Arguments, read as YAML; NAME=VALUE is a keyword argument. For several functions separated by a single ','
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    arguments: Vec<String>,

    #[command(flatten)]
    kind: TargetKind,

    #[command(flatten)]
    delimiter: Delimiter,

    #[command(flatten)]
    rules: Rules,

    /// Print the job's id and do not wait
    #[arg(long = "async")]
    is_async: bool,

    /// Seconds to wait for a minion that says nothing; the server's own setting unless told
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<f64>,

    /// How to show the answers
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    out: Out,

    /// Ask minions to acknowledge the job, whatever is configured
    #[arg(long, conflicts_with = "no_ack")]
    ack: bool,

    /// Do not ask minions to acknowledge the job
    #[arg(long)]
    no_ack: bool,

    /// Print the summary even if all is well
    #[arg(long)]
    summary: bool,

    /// What separates the arguments of several functions
    #[arg(long, value_name = "TEXT", default_value = ",")]
    args_separator: String,

    /// A map that is kept with the job and its returns: '{ticket: 17}'
    #[arg(long, value_name = "YAML")]
    metadata: Option<String>,

    /// Returners that minions call themselves
    #[arg(long = "return", value_name = "RETURNER", default_value = "", hide_default_value = true)]
    returner: String,
}

const EXAMPLES: &str = "\
Examples:
  saltern run '*' test.ping
  saltern run -G os:Debian cmd.run 'uptime'
  saltern run web1 state.apply nginx test=True
  saltern run -L web1,web2 pkg.install pkgs='[vim, git]'
  saltern run '*' test.ping,cmd.run , 'date'
  saltern run '*' state.highstate --async
  saltern run '*' state.highstate -b 10% --max-failures 3
  saltern run laptop7 pkg.upgrade --when-back --deadline 7d --async
  saltern run 'web*' service.restart nginx --at '2026-12-01 04:00' --zone Europe/Berlin

Exit code 0 only if every minion answered and none failed.";

/// How answers are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Out {
    /// As the minion suggests: states as states, all else nested
    #[default]
    Text,
    /// Everything nested
    Nested,
    /// Everything as states
    Highstate,
    /// One line of text per line of the answer
    Txt,
    /// One object {minion: answer} at the end
    Json,
    /// One map of minions to answers at the end
    Yaml,
    /// Nothing but the exit code
    Quiet,
}

impl Args {
    /// The words after the function.
    #[cfg(test)]
    pub(crate) fn words(&self) -> &[String] {
        &self.arguments
    }

    fn request(&self, now: Timestamp) -> Result<RunRequest, Failure> {
        let functions: Vec<String> = self.function.split(',').map(|name| name.trim().to_owned()).collect();
        let (fun, arg, kwarg) = if functions.len() > 1 {
            let arg = arguments::read_several(functions.len(), &self.arguments, &self.args_separator);
            (Functions::Many(functions), arg.map_err(Failure::usage)?, Value::Nil)
        } else {
            let read = arguments::read(&self.arguments);
            (Functions::One(self.function.clone()), read.args, read.kwargs.into())
        };
        Ok(RunRequest {
            target: self.kind.expression(&self.target),
            tgt_type: self.kind.kind().as_str().to_owned(),
            delimiter: self.delimiter.get().map(str::to_owned),
            fun,
            arg,
            kwarg,
            ack: if self.ack {
                Some(true)
            } else if self.no_ack {
                Some(false)
            } else {
                None
            },
            policy: self.rules.policy(),
            due: self.rules.due(now)?,
            deadline: self.rules.deadline(),
            metadata: metadata(self.metadata.as_deref())?,
            ret: self.returner.clone(),
            in_window: self.rules.in_window(),
        })
    }

    /// Asks for it. What has a name of its own or begins paused is asked for as an action.
    async fn submit(&self, client: &Client, request: &RunRequest) -> Result<Accepted, ClientError> {
        if self.rules.name().is_none() && !self.rules.is_paused() {
            return client.run(request).await;
        }
        let Created { id, jid, minions, missing } = client.create_action(&self.as_action(request)).await?;
        Ok(Accepted { jid, action: id, minions, missing })
    }

    fn as_action(&self, request: &RunRequest) -> ActionRequest {
        let request = request.clone();
        let mut params = Map::new();
        params.push(
            "fun",
            match request.fun {
                Functions::One(fun) => Value::from(fun),
                Functions::Many(funs) => Value::list(funs),
            },
        );
        params.push("arg", Value::List(request.arg));
        params.push("kwarg", request.kwarg);
        ActionRequest {
            kind: "function".into(),
            params: params.into(),
            target: request.target,
            tgt_type: request.tgt_type,
            delimiter: request.delimiter,
            name: self.rules.name().map(str::to_owned),
            policy: Policy { ack: request.ack, ..request.policy },
            due: request.due,
            deadline: request.deadline,
            metadata: request.metadata,
            ret: request.ret,
            paused: self.rules.is_paused(),
            in_window: request.in_window,
        }
    }

    fn style(&self) -> Style {
        match self.out {
            Out::Text => Style::Suggested,
            Out::Nested => Style::Nested,
            Out::Highstate => Style::Highstate,
            Out::Txt => Style::Txt,
            Out::Json => Style::Json,
            Out::Yaml => Style::Yaml,
            Out::Quiet => Style::Quiet,
        }
    }
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let now = clock::now();
    let request = args.request(now)?;
    let mut interrupt = Interrupt::listen()?;
    let accepted = tokio::select! {
        accepted = args.submit(&client, &request) => accepted,
        () = interrupt.wait() => {
            output::note("saltern: interrupted; whether the job was accepted, `saltern job list` tells")?;
            return Err(Failure::silent(crate::failure::INTERRUPTED));
        }
    };
    let accepted = match accepted {
        Err(error) if error.is_not_found() => {
            // Nobody to ask is an empty answer, for programs too.
            answers::Answers::new(args.style()).finish()?;
            return Err(error.into());
        }
        accepted => accepted?,
    };
    let jid = match accepted.jid.clone() {
        Some(jid) if !args.is_async => jid,
        _ => return print_accepted(&accepted, args.out, request.due, now),
    };
    let (style, timeout, summary) = (args.style(), args.timeout, args.summary);
    follow::Follow { client: &client, jid, accepted, style, timeout, summary }.run(interrupt).await
}

fn print_accepted(accepted: &Accepted, out: Out, due: Option<Time>, now: Timestamp) -> Result<ExitCode, Failure> {
    let shape = serde_json::json!({ "jid": accepted.jid, "action": accepted.action, "minions": accepted.minions });
    match out {
        Out::Json => output::line(&output::json(&shape)?)?,
        Out::Yaml => output::line(&output::yaml(&shape)?)?,
        Out::Quiet => {}
        Out::Text | Out::Nested | Out::Highstate | Out::Txt => {
            output::line(&told(accepted, due, now))?;
        }
    }
    for name in &accepted.missing {
        output::note(&format!("saltern: no accepted minion has the id {name:?}"))?;
    }
    Ok(if accepted.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(crate::failure::FAILED) })
}

/// What has become of it so far.
fn told(accepted: &Accepted, due: Option<Time>, now: Timestamp) -> String {
    let Accepted { jid, action, minions, .. } = accepted;
    match (jid, due) {
        (Some(jid), _) => format!("Executed command with job ID: {jid}"),
        (None, Some(due)) => {
            let due = when::when(due.0, now);
            format!("Action {action} for {} minions is due {due}; `saltern action show {action}`", minions.len())
        }
        (None, None) => format!(
            "Action {action} for {} minions has not begun; `saltern action explain {action}` tells why",
            minions.len()
        ),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0).ok_or("not a number above 0".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn request(words: &[&str]) -> Result<RunRequest, Failure> {
        let cli = Cli::try_parse_from(["saltern", "run"].iter().chain(words)).unwrap();
        let Command::Run(args) = cli.command else { panic!("not a run") };
        args.request(NOW)
    }

    #[test]
    fn a_command_becomes_a_request() {
        let request = request(&["-G", "os:Debian", "state.apply", "nginx", "test=True", "--no-ack"]).unwrap();
        assert_eq!(request.tgt_type, "grain");
        assert_eq!(request.target, Value::from("os:Debian"));
        assert_eq!(request.arg, [Value::from("nginx")]);
        assert_eq!(request.kwarg, Value::map([("test", true)]));
        assert_eq!(request.ack, Some(false));
    }

    #[test]
    fn several_functions_have_a_list_of_arguments_each() {
        let request = request(&["*", "test.ping,cmd.run", ",", "date"]).unwrap();
        assert_eq!(request.fun, Functions::Many(vec!["test.ping".into(), "cmd.run".into()]));
        assert_eq!(request.arg, [Value::List(vec![]), Value::list(["date"])]);
    }

    #[test]
    fn a_list_target_is_a_list() {
        assert_eq!(request(&["-L", "a,b", "test.ping"]).unwrap().target, Value::list(["a", "b"]));
    }

    #[test]
    fn a_request_says_when_and_how() {
        let request =
            request(&["*", "test.ping", "--at", "+1h", "--deadline", "2h", "-b", "10%", "--when-back"]).unwrap();
        assert_eq!(request.due, Some(Time(NOW.plus(std::time::Duration::from_secs(3_600)))));
        assert_eq!(request.deadline, Some(7_200.0));
        assert_eq!(request.policy.offline, saltern_core::action::Offline::Hold);
        assert!(request.policy.batch.is_some());
    }

    #[test]
    fn what_has_a_name_is_an_action_with_the_same_call() {
        let words =
            ["saltern", "run", "*", "state.apply", "nginx", "test=True", "--name", "night", "--paused", "--no-ack"];
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else { panic!("not a run") };
        let action = args.as_action(&args.request(NOW).unwrap());
        assert_eq!((action.kind.as_str(), action.name.as_deref(), action.paused), ("function", Some("night"), true));
        assert_eq!(action.params.get("fun"), Some(&Value::from("state.apply")));
        assert_eq!(action.params.get("arg"), Some(&Value::list(["nginx"])));
        assert_eq!(action.params.get("kwarg"), Some(&Value::map([("test", true)])));
        assert_eq!(action.policy.ack, Some(false));
    }

    #[test]
    fn what_is_for_later_is_told_with_its_time() {
        let accepted = Accepted { jid: None, action: 7, minions: vec!["a".into(), "b".into()], missing: Vec::new() };
        let due = Some(Time(NOW.plus(std::time::Duration::from_secs(5_400))));
        assert_eq!(
            told(&accepted, due, NOW),
            "Action 7 for 2 minions is due 2026-11-15 21:26:31 UTC (in 90 min); `saltern action show 7`"
        );
        let begun = Accepted { jid: Some("20261115195631000000".into()), ..accepted };
        assert_eq!(told(&begun, None, NOW), "Executed command with job ID: 20261115195631000000");
    }

    #[test]
    fn metadata_is_a_map() {
        assert!(request(&["*", "test.ping", "--metadata", "x"]).is_err());
        assert_eq!(request(&["*", "test.ping", "--metadata", "{a: 1}"]).unwrap().metadata, Value::map([("a", 1)]));
    }
}
