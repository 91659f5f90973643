//! `saltern chain launch`: a chain begins, now or later, on these minions and with these parameters.

use super::step::Whom;
use super::wait;
use crate::args::{Delimiter, Format};
use crate::failure::{FAILED, Failure};
use crate::output::style::{Colour, Style};
use crate::output::{self, text, when};
use crate::rules::WindowRules;
use crate::{params, rules};
use saltern_api::client::Client;
use saltern_api::shape::{ChainDetail, Launch, LaunchPreview, LaunchRequest, Time};
use saltern_core::action::schedule::Zone;
use saltern_core::chain::StepTarget;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_server::clock;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Launch a chain
///
/// Each minion does its steps one after the other at its own pace, across reboots. The launch is accepted when this returns, and not
/// waited for unless --wait is given. The chain stays as it is and can be launched again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The chain's number or name
    #[arg(value_name = "CHAIN")]
    which: String,

    #[command(flatten)]
    whom: Whom,

    #[command(flatten)]
    delimiter: Delimiter,

    /// Another value for a parameter of a step, in this launch only; may be given several times
    #[arg(long = "set", value_name = "STEP:NAME=VALUE")]
    set: Vec<String>,

    /// Begin at this time, not now: '2026-12-01 04:00', 2026-12-01T04:00:00+01:00, +90m
    #[arg(long, value_name = "TIME")]
    at: Option<String>,

    /// The time zone of --at: UTC (unless told), +01:00, Europe/Berlin
    #[arg(long, value_name = "ZONE", value_parser = rules::zone, requires = "at")]
    zone: Option<Zone>,

    /// End everything so long after it was due, whatever happens: 90, 5m, 2h30m, 1d
    #[arg(long, value_name = "DURATION", value_parser = rules::time_span)]
    deadline: Option<Duration>,

    #[command(flatten)]
    windows: WindowRules,

    /// What the launch is called, if not as the chain
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Launch nothing: show whom each step would be for, and where one cannot be done
    #[arg(long, conflicts_with = "wait")]
    preview: bool,

    /// Wait until it has ended; exit code 0 only if all of it completed
    #[arg(long)]
    wait: bool,
}

const EXAMPLES: &str = "\
Examples:
  saltern chain launch patch-web --preview
  saltern chain launch patch-web --wait
  saltern chain launch patch-web --target 'web*' --at '2026-12-01 04:00' --zone Europe/Berlin
  saltern chain launch deploy -L -t web1,web2 --set 2:packages=app=1.4.2

A target here is for all steps, in place of their own. With --preview the exit code is 1 if a step cannot be done somewhere.";

/// Minions that are named for one step; programs get all.
const NAMED: usize = 20;

impl Args {
    fn request(&self, chain: &ChainDetail, now: Timestamp) -> Result<LaunchRequest, Failure> {
        let target = self.whom.get()?.filter(|target| target.group().is_none());
        let (target, tgt_type) = target.map_or((Value::Nil, None), |target| (target.expression, Some(target.kind)));
        Ok(LaunchRequest {
            name: self.name.clone(),
            target,
            tgt_type,
            delimiter: self.delimiter.get().map(str::to_owned),
            params: overrides(chain, &self.set)?,
            due: rules::due(self.at.as_deref(), self.zone, now)?,
            deadline: self.deadline.map(|deadline| deadline.as_secs_f64()),
            in_window: self.windows.in_window(),
            window: self.windows.rule(),
            override_window: self.windows.override_window(),
        })
    }
}

pub(super) async fn run(args: &Args, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    let now = clock::now();
    let chain = client.chain(&args.which).await?;
    let mut request = args.request(&chain, now)?;
    if let Some(group) = args.whom.get()?.as_ref().and_then(StepTarget::group) {
        let minions = client.group(group).await?.minions;
        if minions.is_empty() {
            return Err(Failure::new(format!("there is no minion in the group {group:?}")));
        }
        (request.target, request.tgt_type) = (Value::list(minions), Some("list".into()));
    }
    // By its number: what the name means may change between two requests.
    let which = chain.chain.id.to_string();
    if args.preview {
        let preview = client.preview_launch(&which, &request).await?;
        output::show(format, &preview, || preview_told(&chain, &preview, Style::of_stdout()))?;
        return Ok(if preview.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) });
    }
    let launch = client.launch(&which, &request).await?;
    if args.wait {
        output::note(&told(&launch, request.due, now))?;
        return wait::run(client, launch.id, format).await;
    }
    output::show(format, &launch, || told(&launch, request.due, now))?;
    Ok(ExitCode::SUCCESS)
}

fn told(launch: &Launch, due: Option<Time>, now: Timestamp) -> String {
    let (id, minions) = (launch.id, count(launch.counts.total));
    let so_far = match due {
        Some(due) => format!("due {}", when::when(due.0, now)),
        None => format!("begun; `saltern chain wait {id}` waits for it"),
    };
    format!("Launch {id} of {} on {minions}: {so_far}", text::clean(&launch.name))
}

fn preview_told(chain: &ChainDetail, preview: &LaunchPreview, style: Style) -> String {
    let mut lines = Vec::new();
    for step in &preview.steps {
        let known = step.step.checked_sub(1).and_then(|index| chain.steps.get(index));
        let name = known.map_or_else(String::new, |known| text::clean(&known.describe()));
        lines.push(format!("{:>3}. {name}", step.step));
        let named: Vec<String> = step.minions.iter().take(NAMED).map(|minion| text::clean(minion)).collect();
        let more = step.minions.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more; `--out json` names them") } else { String::new() };
        lines.push(format!("     {}: {}{more}", minions(step.minions.len()), named.join(", ")));
    }
    if !preview.refused.is_empty() {
        lines.push(style.paint(Colour::Red, "It cannot be done on:"));
    }
    for refused in &preview.refused {
        lines.push(format!(
            "     {}, step {}: {}",
            text::clean(&refused.minion),
            refused.step,
            text::clean(&refused.reason)
        ));
    }
    lines.join("\n")
}

/// Other parameters by step, read by what the step's type says they are.
fn overrides(chain: &ChainDetail, words: &[String]) -> Result<BTreeMap<usize, Value>, Failure> {
    let mut by_step: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for word in words {
        let wrong = || Failure::usage(format!("{word:?} sets no parameter: write STEP:NAME=VALUE, such as 2:delay=5"));
        let (step, param) = word.split_once(':').ok_or_else(wrong)?;
        let step: usize = step.trim().parse().ok().filter(|step| *step > 0).ok_or_else(wrong)?;
        by_step.entry(step).or_default().push(param.to_owned());
    }
    let read = |(number, words): (usize, Vec<String>)| {
        let Some(step) = chain.steps.get(number - 1) else {
            let most = chain.steps.len();
            return Err(Failure::usage(format!("there is no step {number}: the chain has steps 1 to {most}")));
        };
        let params: Map =
            params::read(&step.kind, &words).map_err(|failure| failure.about(&format!("step {number}")))?;
        Ok((number, params.into()))
    };
    by_step.into_iter().map(read).collect()
}

/// So many minions.
fn count(minions: i64) -> String {
    self::minions(usize::try_from(minions).unwrap_or(0))
}

fn minions(number: usize) -> String {
    if number == 1 { "1 minion".into() } else { format!("{number} minions") }
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::{NOW, chain};
    use super::super::status::tests::launch;
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use saltern_api::shape::{StepPreview, StepRefusal};

    fn request(words: &[&str]) -> Result<LaunchRequest, String> {
        let cli = Cli::try_parse_from(["saltern", "chain", "launch"].iter().chain(words));
        let Command::Chain(super::super::Args { verb: super::super::Verb::Launch(args), .. }) =
            cli.map_err(|error| error.to_string())?.command
        else {
            panic!("not a launch")
        };
        args.request(&chain(), NOW).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_launch_needs_no_more_than_the_chain() {
        assert_eq!(request(&["7"]).unwrap(), LaunchRequest::default());
    }

    #[test]
    fn a_launch_says_whom_when_and_with_what() {
        let words = ["7", "-G", "-t", "os:Debian", "--at", "+90m", "--deadline", "4h", "--name", "x"];
        let more = ["--set", "1:packages=vim=9.10", "--set", "2:delay=5"];
        let request = request(&[&words[..], &more].concat()).unwrap();
        assert_eq!((request.target, request.tgt_type.as_deref()), ("os:Debian".into(), Some("grain")));
        assert_eq!(request.due, Some(Time(NOW.plus(Duration::from_secs(5_400)))));
        assert_eq!((request.deadline, request.name.as_deref()), (Some(14_400.0), Some("x")));
        assert_eq!(request.params[&1], Value::map([("packages", "vim=9.10")]));
        assert_eq!(request.params[&2], Value::map([("delay", 5)]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            &["7", "--set", "delay=5"][..],
            &["7", "--set", "0:delay=5"],
            &["7", "--set", "3:delay=5"],
            &["7", "--set", "2:delay"],
            &["7", "--set", "2:delay=5", "--set", "2:delay=6"],
            &["7", "--zone", "UTC"],
            &["7", "-G"],
            &["7", "--preview", "--wait"],
            &["7", "--at", "tomorrow"],
        ] {
            assert!(request(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_preview_names_everybody_and_where_it_cannot_be_done() {
        let refused = StepRefusal { minion: "win1".into(), step: 1, reason: "it has no packages".into() };
        let preview = LaunchPreview {
            steps: vec![
                StepPreview { step: 1, minions: vec!["web1".into()] },
                StepPreview { step: 2, minions: (0..22).map(|n| format!("m{n}")).collect() },
            ],
            refused: vec![refused],
        };
        let shown = preview_told(&chain(), &preview, Style::PLAIN);
        assert!(
            shown.starts_with("  1. update all packages\n     1 minion: web1\n  2. reboot\n     22 minions: m0, m1,"),
            "{shown}"
        );
        assert!(shown.contains("m19 and 2 more; `--out json` names them\n"), "{shown}");
        assert!(shown.ends_with("It cannot be done on:\n     win1, step 1: it has no packages"), "{shown}");
    }

    #[test]
    fn the_answer_says_what_happens_next() {
        let launch = launch().launch;
        assert_eq!(
            told(&launch, None, NOW),
            "Launch 9 of patch-web on 20 minions: begun; `saltern chain wait 9` waits for it"
        );
        let due = Some(Time(NOW.plus(Duration::from_secs(5_400))));
        assert!(told(&launch, due, NOW).ends_with(": due 2026-11-15 21:26:31 UTC (in 90 min)"));
    }
}
