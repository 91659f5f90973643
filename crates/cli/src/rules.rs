//! When an action is carried out and by which rules, as it is typed and as it is told. `run` and `action create` take all of it,
//! `recurring` only how, and `chain launch` only what is about maintenance windows.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use saltern_api::shape::Time;
use saltern_core::action::schedule::{self, Zone};
use saltern_core::action::{Batch, Budget, Offline, OverBudget, Policy, Retry, RetryWhen, Size, Wave, WindowRule};
use saltern_core::time::Timestamp;
use std::time::Duration;

const HEADING: &str = "When and how";

/// The options for it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Rules {
    /// Begin at this time, not now: '2026-12-01 04:00', 2026-12-01T04:00:00+01:00, +90m
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    at: Option<String>,

    /// The time zone of --at: UTC (unless told), +01:00, Europe/Berlin
    #[arg(long, value_name = "ZONE", value_parser = zone, requires = "at", help_heading = HEADING)]
    zone: Option<Zone>,

    /// End everything so long after it was due, whatever happens: 90, 5m, 2h30m, 1d
    #[arg(long, value_name = "DURATION", value_parser = time_span, help_heading = HEADING)]
    deadline: Option<Duration>,

    #[command(flatten)]
    how: How,

    /// What it is called in lists
    #[arg(long, value_name = "TEXT", help_heading = HEADING)]
    name: Option<String>,

    /// Begin paused: `saltern action resume` lets it go
    #[arg(long, help_heading = HEADING)]
    paused: bool,
}

/// How something is carried out, whenever that is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct How {
    /// Where a minion is not there, wait until it is back
    #[arg(long, conflicts_with = "offline", help_heading = HEADING)]
    when_back: bool,

    /// Where a minion is not there: fail, hold (until it is back), or retry:N:EVERY
    #[arg(long, value_name = "RULE", value_parser = offline, help_heading = HEADING)]
    offline: Option<Offline>,

    /// Make so many attempts in all, if the one before cannot have begun; N:always after any failure
    #[arg(long, value_name = "N[:always]", value_parser = retry, help_heading = HEADING)]
    retry: Option<(u32, RetryWhen)>,

    /// How long one attempt may take once it was sent
    #[arg(long, value_name = "DURATION", value_parser = time_span, help_heading = HEADING)]
    job_timeout: Option<Duration>,

    /// At most so many minions at once: 10 or 25%
    #[arg(short, long, value_name = "SIZE", value_parser = some, help_heading = HEADING)]
    batch: Option<Size>,

    /// How long to wait after each minion of a batch before another takes its place
    #[arg(long, value_name = "DURATION", value_parser = schedule::duration, requires = "batch", help_heading = HEADING)]
    batch_wait: Option<Duration>,

    /// Pause the rest when more than so many have failed: 3 or 10%; SIZE:stop cancels the rest
    #[arg(long, value_name = "SIZE[:stop]", value_parser = budget, help_heading = HEADING)]
    max_failures: Option<(Size, OverBudget)>,

    /// The same for minions that could not be reached
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = HEADING)]
    max_unreachable: Option<Size>,

    /// Begin with so many, and with the next when they are done and SOAK has passed: 1:10m; may be given several times
    #[arg(long = "wave", value_name = "SIZE[:SOAK]", value_parser = wave, help_heading = HEADING)]
    waves: Vec<Wave>,

    #[command(flatten)]
    windows: WindowRules,
}

/// What happens where a minion's maintenance window is closed.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WindowRules {
    /// Where a minion's maintenance window is closed then, start in its next one
    #[arg(long, conflicts_with = "override_window", help_heading = WINDOWS)]
    in_window: bool,

    /// Do not ask maintenance windows, for this reason; for admins of the minions' organisation
    #[arg(long, value_name = "REASON", help_heading = WINDOWS)]
    override_window: Option<String>,

    /// Where the window is closed again when a minion's turn comes: wait for the next (unless told), or fail
    #[arg(long, value_name = "RULE", value_enum, conflicts_with = "override_window", help_heading = WINDOWS)]
    when_closed: Option<WhenClosed>,
}

const WINDOWS: &str = "Maintenance windows";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WhenClosed {
    /// Wait for the next window
    Hold,
    /// Fail
    Fail,
}

impl WindowRules {
    /// Whether each minion starts in its next window.
    pub(crate) fn in_window(&self) -> bool {
        self.in_window
    }

    /// For what reason windows are not asked.
    pub(crate) fn override_window(&self) -> Option<String> {
        self.override_window.clone()
    }

    /// What happens where the window is closed again.
    pub(crate) fn rule(&self) -> WindowRule {
        match self.when_closed {
            None | Some(WhenClosed::Hold) => WindowRule::Hold,
            Some(WhenClosed::Fail) => WindowRule::Fail,
        }
    }
}

impl How {
    /// The rules.
    pub(crate) fn policy(&self) -> Policy {
        let usual = Retry::default();
        let (attempts, when) = self.retry.unwrap_or((usual.attempts, usual.when));
        // Who counts only the unreachable lets all others fail.
        let budget = |(failures, then)| Budget { failures, unreachable: self.max_unreachable, then };
        let any = self.max_unreachable.map(|_| (Size::Percent(100), OverBudget::default()));
        Policy {
            offline: if self.when_back { Offline::Hold } else { self.offline.unwrap_or_default() },
            retry: Retry { attempts, when, ..usual },
            job_timeout: self.job_timeout,
            batch: self.batch.map(|size| Batch { size, wait: self.batch_wait.unwrap_or_default() }),
            budget: self.max_failures.or(any).map(budget),
            waves: self.waves.clone(),
            window: self.windows.rule(),
            override_window: self.windows.override_window(),
            ..Policy::default()
        }
    }

    /// Whether each minion starts in its next window.
    pub(crate) fn in_window(&self) -> bool {
        self.windows.in_window()
    }
}

impl Rules {
    /// The rules.
    pub(crate) fn policy(&self) -> Policy {
        self.how.policy()
    }

    /// Whether each minion starts in its next window.
    pub(crate) fn in_window(&self) -> bool {
        self.how.in_window()
    }

    /// When it is due; nothing means now.
    pub(crate) fn due(&self, now: Timestamp) -> Result<Option<Time>, Failure> {
        due(self.at.as_deref(), self.zone, now)
    }

    /// Seconds after that in which it ends.
    pub(crate) fn deadline(&self) -> Option<f64> {
        self.deadline.map(|deadline| deadline.as_secs_f64())
    }

    /// What it is called.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether it begins paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }
}

/// A due time as it is typed; `now` and nothing are nothing.
pub(crate) fn due(at: Option<&str>, zone: Option<Zone>, now: Timestamp) -> Result<Option<Time>, Failure> {
    let Some(at) = at else { return Ok(None) };
    let due = schedule::due(at, zone.unwrap_or(Zone::UTC), now).map_err(|error| Failure::usage(error.to_string()))?;
    Ok((due != now).then_some(Time(due)))
}

/// What differs from the usual, in words.
pub(crate) fn told(policy: &Policy) -> String {
    let mut words = Vec::new();
    match policy.offline {
        Offline::Fail => {}
        Offline::Hold => words.push("waits for minions that are off".into()),
        Offline::Retry { tries, every } => {
            words.push(format!("tries minions that are off {tries} times, every {every:?}"))
        }
    }
    let usual = Retry::default();
    if (policy.retry.attempts, policy.retry.when) != (usual.attempts, usual.when) {
        let when = if policy.retry.when == RetryWhen::Always { ", after any failure" } else { "" };
        let attempts = policy.retry.attempts;
        words.push(if attempts == 1 { "one attempt only".into() } else { format!("up to {attempts} attempts{when}") });
    }
    words.extend(policy.job_timeout.map(|time| format!("an attempt takes at most {time:?}")));
    if let Some(Batch { size, wait }) = policy.batch {
        let wait = if wait.is_zero() { String::new() } else { format!(", {wait:?} between") };
        words.push(format!("{size} at once{wait}"));
    }
    if let Some(Budget { failures, unreachable, then }) = policy.budget {
        let unreachable = unreachable.map_or_else(String::new, |size| format!(" or {size} unreachable"));
        let then = if then == OverBudget::Stop { "is cancelled" } else { "is paused" };
        words.push(format!("the rest {then} after more than {failures} failed{unreachable}"));
    }
    if !policy.waves.is_empty() {
        let wave = |wave: &Wave| {
            if wave.soak.is_zero() { wave.size.to_string() } else { format!("{} then {:?}", wave.size, wave.soak) }
        };
        words.push(format!("waves of {}", policy.waves.iter().map(wave).collect::<Vec<_>>().join(", ")));
    }
    if policy.window == WindowRule::Fail {
        words.push("fails where the maintenance window is closed".into());
    }
    words.extend(policy.override_window.as_ref().map(|why| format!("does not ask maintenance windows: {why}")));
    words.join("; ")
}

pub(crate) fn zone(text: &str) -> Result<Zone, schedule::BadTime> {
    Zone::parse(text)
}

/// A length of time that is not nothing.
pub(crate) fn time_span(text: &str) -> Result<Duration, String> {
    let time = schedule::duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("it must be longer than nothing".into()) } else { Ok(time) }
}

fn offline(text: &str) -> Result<Offline, String> {
    match text {
        "fail" => Ok(Offline::Fail),
        "hold" => Ok(Offline::Hold),
        _ => {
            let wrong = || "write fail, hold, or retry:N:EVERY such as retry:5:10m".to_owned();
            let (tries, every) = text.strip_prefix("retry:").and_then(|rest| rest.split_once(':')).ok_or_else(wrong)?;
            let tries = tries.parse().ok().filter(|tries| *tries > 0).ok_or_else(wrong)?;
            Ok(Offline::Retry { tries, every: time_span(every)? })
        }
    }
}

fn retry(text: &str) -> Result<(u32, RetryWhen), String> {
    let (attempts, when) = match text.strip_suffix(":always") {
        Some(attempts) => (attempts, RetryWhen::Always),
        None => (text, RetryWhen::NotStarted),
    };
    let attempts = attempts.parse().ok().filter(|attempts| *attempts > 0);
    attempts.map(|attempts| (attempts, when)).ok_or_else(|| "write a number above 0, or N:always".into())
}

fn size(text: &str) -> Result<Size, String> {
    Size::parse(text).ok_or_else(|| "write a number such as 10, or a part such as 25%".into())
}

/// A size that is not nobody.
fn some(text: &str) -> Result<Size, String> {
    match size(text)? {
        Size::Count(0) | Size::Percent(0) => Err("nobody would ever begin".into()),
        size => Ok(size),
    }
}

fn budget(text: &str) -> Result<(Size, OverBudget), String> {
    match text.split_once(':') {
        None => Ok((size(text)?, OverBudget::Pause)),
        Some((failures, "pause")) => Ok((size(failures)?, OverBudget::Pause)),
        Some((failures, "stop")) => Ok((size(failures)?, OverBudget::Stop)),
        Some((_, then)) => Err(format!("what happens then is pause or stop, not {then:?}")),
    }
}

fn wave(text: &str) -> Result<Wave, String> {
    let (text, soak) = match text.split_once(':') {
        Some((size, soak)) => (size, schedule::duration(soak).map_err(|error| error.to_string())?),
        None => (text, Duration::ZERO),
    };
    Ok(Wave { size: some(text)?, soak })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        rules: Rules,
    }

    fn rules(words: &str) -> Result<Rules, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.rules).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_said_is_the_default() {
        let rules = rules("").unwrap();
        assert_eq!(rules.policy(), Policy::default());
        assert_eq!((rules.due(NOW).unwrap(), rules.deadline(), rules.name()), (None, None, None));
        assert_eq!(told(&rules.policy()), "");
    }

    #[test]
    fn every_rule_can_be_typed() {
        let words = "--offline retry:5:10m --retry 2:always --job-timeout 1h -b 25% --batch-wait 5 --max-failures 3:stop \
                     --max-unreachable 10% --wave 1:10m --wave 100%";
        let policy = rules(words).unwrap().policy();
        assert_eq!(policy.offline, Offline::Retry { tries: 5, every: Duration::from_secs(600) });
        assert_eq!((policy.retry.attempts, policy.retry.when), (2, RetryWhen::Always));
        assert_eq!(policy.job_timeout, Some(Duration::from_secs(3_600)));
        assert_eq!(policy.batch, Some(Batch { size: Size::Percent(25), wait: Duration::from_secs(5) }));
        let budget = Budget { failures: Size::Count(3), unreachable: Some(Size::Percent(10)), then: OverBudget::Stop };
        assert_eq!(policy.budget, Some(budget));
        let waves = [(Size::Count(1), 600), (Size::Percent(100), 0)];
        assert_eq!(policy.waves, waves.map(|(size, soak)| Wave { size, soak: Duration::from_secs(soak) }));
        assert_eq!(
            told(&policy),
            "tries minions that are off 5 times, every 600s; up to 2 attempts, after any failure; an attempt takes at most \
             3600s; 25% at once, 5s between; the rest is cancelled after more than 3 failed or 10% unreachable; waves of 1 \
             then 600s, 100%"
        );
    }

    #[test]
    fn windows_are_kept_to_unless_somebody_says_why_not() {
        let rules = rules("--in-window --when-closed fail").unwrap();
        assert!(rules.in_window());
        assert_eq!((rules.policy().window, rules.policy().override_window), (WindowRule::Fail, None));
        let policy = self::rules("--override-window disk").unwrap().policy();
        assert_eq!(policy.override_window.as_deref(), Some("disk"));
        assert_eq!(told(&policy), "does not ask maintenance windows: disk");
    }

    #[test]
    fn a_time_is_in_the_zone_that_was_given() {
        let line = Line::try_parse_from(["x", "--at", "2026-12-01 04:00", "--zone", "Europe/Berlin"]).unwrap();
        assert_eq!(line.rules.due(NOW).unwrap().unwrap().0.rfc3339(), "2026-12-01T03:00:00Z");
        let line = Line::try_parse_from(["x", "--at", "2026-12-01 04:00"]).unwrap();
        assert_eq!(line.rules.due(NOW).unwrap().unwrap().0.rfc3339(), "2026-12-01T04:00:00Z");
        assert_eq!(rules("--at +90m").unwrap().due(NOW).unwrap().unwrap().0, NOW.plus(Duration::from_secs(5_400)));
        assert_eq!(rules("--at now").unwrap().due(NOW).unwrap(), None);
        assert!(rules("--at tomorrow").unwrap().due(NOW).is_err());
    }

    #[test]
    fn who_counts_only_the_unreachable_lets_others_fail() {
        let budget = rules("--max-unreachable 5").unwrap().policy().budget.unwrap();
        assert_eq!((budget.failures, budget.unreachable), (Size::Percent(100), Some(Size::Count(5))));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            "-b 0",
            "-b many",
            "--wave 0%",
            "--wave 1:soon",
            "--retry 0",
            "--retry 2:never",
            "--offline retry:0:5m",
            "--offline retry:5",
            "--offline maybe",
            "--max-failures 3:panic",
            "--deadline 0",
            "--job-timeout x",
            "--when-back --offline fail",
            "--batch-wait 5",
            "--zone UTC",
            "--in-window --override-window disk",
            "--when-closed fail --override-window disk",
            "--when-closed run",
            "--at +1h --zone Atlantis",
        ] {
            assert!(rules(words).is_err(), "{words}");
        }
    }
}
