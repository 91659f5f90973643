//! One step of a chain as it is typed: its type and parameters, whom it is for, and by which rules it begins.

use crate::args::TargetKind;
use crate::failure::Failure;
use crate::{params, rules};
use clap::ValueEnum;
use saltern_core::action::Size;
use saltern_core::chain::{After, Barrier, Step, StepTarget};
use saltern_core::value::Map;
use std::time::Duration;

/// Whom something is for.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Whom {
    /// Which minions: a shell pattern over their ids, unless a target type is given
    #[arg(short, long, value_name = "TARGET")]
    target: Option<String>,

    /// The minions that are in this group then
    #[arg(long, value_name = "GROUP", conflicts_with = "target")]
    group: Option<String>,

    #[command(flatten)]
    kind: TargetKind,
}

/// By which rules a step begins, ends, and is done again.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct StepRules {
    /// What the step is called, if not by what it does
    #[arg(long, value_name = "TEXT", help_heading = HEADING)]
    name: Option<String>,

    /// Begin when the step before has ended: on each minion for itself (each), on all, or on a part of them (80%)
    #[arg(long, value_name = "each|all|P%", value_parser = barrier, help_heading = HEADING)]
    barrier: Option<Barrier>,

    /// Begin only if the step before has failed on no more than so many minions: 2 or 10%
    #[arg(long, value_name = "N|P%", value_parser = budget, help_heading = HEADING)]
    budget: Option<Size>,

    /// Do it where nothing before it has failed (ok), only where something has (failed), or always
    #[arg(long, value_name = "ok|failed|always", value_parser = after, help_heading = HEADING)]
    after: Option<After>,

    /// Begin when somebody has answered this question with yes: `saltern chain approve`
    #[arg(long, value_name = "QUESTION", help_heading = HEADING)]
    approval: Option<String>,

    /// How long it may take on a minion, a reboot until it is back: 90, 30m, 2h; 60 minutes unless told
    #[arg(long, value_name = "DURATION", value_parser = rules::time_span, help_heading = HEADING)]
    limit: Option<Duration>,

    /// Do it again where it was interrupted and nobody knows how far it came
    #[arg(long, conflicts_with = "not_repeatable", help_heading = HEADING)]
    repeatable: bool,

    /// Do not do it again where it was interrupted, though its type would allow it
    #[arg(long, help_heading = HEADING)]
    not_repeatable: bool,
}

const HEADING: &str = "Rules of the step";

/// What can be taken off a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// For the minions that the launch names
    Target,
    /// Called by what it does
    Name,
    /// Each minion for itself
    Barrier,
    /// However many have failed before
    Budget,
    /// Only where nothing has failed
    After,
    /// Nobody is asked
    Approval,
    /// The usual 60 minutes
    Limit,
    /// As its type says
    Repeatable,
}

/// What is to be different about a step.
#[derive(Clone, Debug, Default)]
pub(super) struct StepChange {
    /// Parameters as they were typed
    pub(super) params: Vec<String>,
    /// Parameters that are taken off
    pub(super) unset: Vec<String>,
    pub(super) whom: Whom,
    pub(super) rules: StepRules,
    pub(super) clear: Vec<Part>,
}

impl Whom {
    /// The target, if one was given.
    pub(super) fn get(&self) -> Result<Option<StepTarget>, Failure> {
        match (&self.target, &self.group) {
            (None, None) if self.kind.is_given() => {
                Err(Failure::usage("a target type says how to read --target: give that, too"))
            }
            (_, Some(_)) if self.kind.is_given() => {
                Err(Failure::usage("a group is named as it is: give --group without a target type"))
            }
            (None, None) => Ok(None),
            (_, Some(group)) => Ok(Some(StepTarget::of_group(group))),
            (Some(target), None) => Ok(Some(StepTarget {
                kind: self.kind.kind().as_str().to_owned(),
                expression: self.kind.expression(target),
            })),
        }
    }
}

impl StepRules {
    /// Whether anything was said.
    pub(super) fn is_given(&self) -> bool {
        let usual = Step::new("", Map::new());
        let mut step = usual.clone();
        self.onto(&mut step);
        step != usual || self.barrier.is_some() || self.after.is_some()
    }

    /// Writes what was said into a step, and leaves the rest as it is.
    pub(super) fn onto(&self, step: &mut Step) {
        step.name = self.name.clone().or(step.name.take());
        step.barrier = self.barrier.unwrap_or(step.barrier);
        step.budget = self.budget.or(step.budget);
        step.after = self.after.unwrap_or(step.after);
        step.approval = self.approval.clone().or(step.approval.take());
        step.limit = self.limit.or(step.limit);
        if self.repeatable || self.not_repeatable {
            step.repeatable = Some(self.repeatable);
        }
    }
}

impl Whom {
    /// A new step for them, checked as far as it can be without the server.
    pub(super) fn step(&self, kind: &str, params: &[String], rules: &StepRules) -> Result<Step, Failure> {
        let mut step = Step { target: self.get()?, ..Step::new(kind, params::read(kind, params)?) };
        rules.onto(&mut step);
        checked(step)
    }
}

impl StepChange {
    /// The step as it is to be.
    pub(super) fn apply(&self, mut step: Step) -> Result<Step, Failure> {
        let before = step.clone();
        for name in &self.unset {
            if step.params.remove(name).is_none() {
                return Err(Failure::usage(format!("the step has no parameter {name:?}")));
            }
        }
        step.changes(&params::read(&step.kind, &self.params)?);
        for part in &self.clear {
            part.clear(&mut step);
        }
        step.target = self.whom.get()?.or(step.target);
        self.rules.onto(&mut step);
        if step == before {
            return Err(Failure::usage("the step is like that already").hint("`saltern chain edit --help`"));
        }
        checked(step)
    }
}

impl Part {
    fn clear(self, step: &mut Step) {
        match self {
            Self::Target => step.target = None,
            Self::Name => step.name = None,
            Self::Barrier => step.barrier = Barrier::Each,
            Self::Budget => step.budget = None,
            Self::After => step.after = After::Ok,
            Self::Approval => step.approval = None,
            Self::Limit => step.limit = None,
            Self::Repeatable => step.repeatable = None,
        }
    }
}

/// The step, if it can be one; the server knows more about its minions.
pub(in crate::cmd) fn checked(step: Step) -> Result<Step, Failure> {
    match step.check() {
        Ok(()) => Ok(step),
        Err(error) => Err(Failure::usage(error.to_string()).hint("`saltern action types` lists types and parameters")),
    }
}

fn barrier(text: &str) -> Result<Barrier, String> {
    Barrier::parse(text).ok_or_else(|| "write each, all, or a part such as 80%".into())
}

fn budget(text: &str) -> Result<Size, String> {
    Size::parse(text).ok_or_else(|| "write a number such as 2, or a part such as 10%".into())
}

fn after(text: &str) -> Result<After, String> {
    After::parse(text).ok_or_else(|| "write ok, failed or always".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use saltern_core::value::Value;

    #[derive(Debug, Parser)]
    struct Line {
        kind: String,
        params: Vec<String>,
        #[command(flatten)]
        whom: Whom,
        #[command(flatten)]
        rules: StepRules,
    }

    fn line(words: &[&str]) -> Result<Line, String> {
        Line::try_parse_from(std::iter::once(&"x").chain(words)).map_err(|error| error.to_string())
    }

    fn step(words: &[&str]) -> Result<Step, String> {
        let line = line(words)?;
        line.whom.step(&line.kind, &line.params, &line.rules).map_err(|failure| failure.to_string())
    }

    #[test]
    fn every_part_of_a_step_can_be_typed() {
        let words = ["package_install", "packages=vim", "-t", "os:Debian", "-G", "--barrier", "80%", "--budget", "10%"];
        let more = ["--after", "always", "--approval", "go?", "--limit", "30m", "--not-repeatable", "--name", "editor"];
        let step = step(&[&words[..], &more].concat()).unwrap();
        assert_eq!(step.target, Some(StepTarget { kind: "grain".into(), expression: "os:Debian".into() }));
        assert_eq!(step.params.get("packages"), Some(&Value::from("vim")));
        assert_eq!((step.barrier, step.budget), (Barrier::Percent(80), Some(Size::Percent(10))));
        assert_eq!((step.after, step.approval.as_deref()), (After::Always, Some("go?")));
        assert_eq!((step.limit, step.repeatable), (Some(Duration::from_secs(1_800)), Some(false)));
        assert_eq!(step.describe(), "editor");
    }

    #[test]
    fn a_step_is_for_a_target_a_group_or_whom_the_launch_names() {
        assert_eq!(step(&["reboot"]).unwrap().target, None);
        assert_eq!(step(&["reboot", "--group", "web"]).unwrap().target, Some(StepTarget::of_group("web")));
        assert_eq!(step(&["reboot", "-L", "-t", "a,b"]).unwrap().target, Some(StepTarget::minions(["a", "b"])));
        for bad in [&["reboot", "-G"][..], &["reboot", "--group", "web", "-L"], &["reboot", "--group", "x", "-t", "y"]]
        {
            assert!(step(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_cannot_be_a_step_is_refused_here_already() {
        for bad in [
            &["fly"][..],
            &["package_install"],
            &["reboot", "now"],
            &["reboot", "--barrier", "some"],
            &["reboot", "--budget", "many"],
            &["reboot", "--after", "lunch"],
            &["reboot", "--limit", "8d"],
            &["reboot", "--repeatable", "--not-repeatable"],
            &["function", "fun=[test.ping, test.version]"],
        ] {
            assert!(step(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_change_leaves_the_rest_as_it_was() {
        let known = step(&["package_install", "packages=vim", "refresh=false", "-t", "web*", "--budget", "2"]).unwrap();
        let change = StepChange {
            params: vec!["packages=git".into()],
            unset: vec!["refresh".into()],
            rules: line(&["x", "--barrier", "all"]).unwrap().rules,
            clear: vec![Part::Budget],
            ..StepChange::default()
        };
        let expected = step(&["package_install", "packages=git", "-t", "web*", "--barrier", "all"]).unwrap();
        assert_eq!(change.apply(known).unwrap(), expected);
    }

    #[test]
    fn a_change_that_changes_nothing_is_refused() {
        let known = step(&["reboot", "--budget", "2"]).unwrap();
        assert!(StepChange::default().apply(known.clone()).is_err());
        let unset = vec!["delay".into()];
        assert!(StepChange { unset, ..StepChange::default() }.apply(known).is_err());
    }
}
