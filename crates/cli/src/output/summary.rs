//! The end of a run: how many answered, and of each that did not, why not.

use super::style::{Colour, Style};
use super::{text, when};
use saltern_api::shape::{Unanswered, Why};
use saltern_core::time::Timestamp;

/// What became of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The job
    pub(crate) jid: String,
    /// The action it carries out
    pub(crate) action: i64,
    /// How many minions it was for
    pub(crate) total: usize,
    /// How many have answered
    pub(crate) answered: usize,
    /// Those whose answer is a failure, with its exit code
    pub(crate) failed: Vec<(String, i64)>,
    /// Those that have not answered
    pub(crate) unanswered: Vec<Unanswered>,
    /// Names of a list that no accepted minion has
    pub(crate) missing: Vec<String>,
}

impl Outcome {
    /// Whether every minion that was asked for has answered well.
    pub(crate) fn is_good(&self) -> bool {
        self.failed.is_empty() && self.unanswered.is_empty() && self.missing.is_empty() && self.answered == self.total
    }

    /// The summary.
    pub(crate) fn show(&self, now: Timestamp, style: Style) -> String {
        let count = |items: usize, what: &str| if items == 0 { String::new() } else { format!(", {items} {what}") };
        let colour = if self.is_good() { Colour::Green } else { Colour::Red };
        let head = format!(
            "Job {}: {} of {} answered{}{}",
            self.jid,
            self.answered,
            self.total,
            count(self.failed.len(), "failed"),
            count(self.missing.len(), "unknown"),
        );
        let mut lines = vec![style.paint(colour, &head)];
        let mut add = |minion: &str, why: &str| lines.push(format!("  {}: {}", text::clean(minion), text::clean(why)));
        for (minion, code) in &self.failed {
            // A function can fail without an exit code, e.g. one that does not exist.
            let code = if *code == 0 { String::new() } else { format!(" with exit code {code}") };
            add(minion, &format!("failed{code}"));
        }
        for Unanswered { minion, why } in &self.unanswered {
            add(minion, &self.reason(minion, *why, now));
        }
        for name in &self.missing {
            add(name, "no accepted minion has this id");
        }
        if self.unanswered.iter().any(|unanswered| matches!(unanswered.why, Why::Running(_) | Why::Waiting)) {
            lines.push(format!("The job goes on; `saltern job show {}` tells how.", self.jid));
        }
        lines.join("\n")
    }

    /// Why a minion did not answer, in words.
    fn reason(&self, minion: &str, why: Why, now: Timestamp) -> String {
        match why {
            Why::Offline(since) => format!("offline since {}", when::when(since.0, now)),
            Why::NotSeen(last) => format!("not seen since the server started, last seen {}", when::when(last.0, now)),
            Why::NotAcknowledged => "sent, but not acknowledged".into(),
            Why::Running(since) => format!("acknowledged, and still running since {}", when::when(since.0, now)),
            Why::Gone => "acknowledged, but no longer running: its agent was restarted or the job was killed".into(),
            Why::Silent => "sent, but no answer; it cannot acknowledge jobs".into(),
            Why::NotDelivered => "never said that it began".into(),
            Why::TimedOut => "took longer than its job_timeout".into(),
            Why::Stopped => "was stopped".into(),
            Why::Cancelled => "was cancelled".into(),
            Why::Expired => "its deadline passed before it could start".into(),
            Why::FailedByHand => "was declared failed".into(),
            Why::Waiting => format!("still waits: `saltern action explain {} {minion}`", self.action),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Time;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn outcome() -> Outcome {
        Outcome { jid: "20261115195631000000".into(), action: 7, total: 2, answered: 2, ..Outcome::default() }
    }

    #[test]
    fn a_good_end_is_one_line() {
        assert!(outcome().is_good());
        assert_eq!(outcome().show(NOW, Style::PLAIN), "Job 20261115195631000000: 2 of 2 answered");
    }

    #[test]
    fn everybody_who_did_not_answer_is_named_with_the_reason() {
        let past = Time(Timestamp::from_secs(1_794_772_591 - 7_200));
        let whys = [
            ("a", Why::Offline(past)),
            ("b", Why::NotSeen(past)),
            ("c", Why::NotAcknowledged),
            ("d", Why::Running(past)),
            ("e", Why::Gone),
            ("f", Why::Silent),
            ("g", Why::NotDelivered),
            ("h", Why::TimedOut),
            ("i", Why::Stopped),
            ("j", Why::Cancelled),
            ("k", Why::Expired),
            ("l", Why::FailedByHand),
            ("m", Why::Waiting),
        ];
        let unanswered = whys.map(|(minion, why)| Unanswered { minion: minion.into(), why }).to_vec();
        let outcome = Outcome {
            total: 15,
            failed: vec![("x".into(), 3)],
            unanswered,
            missing: vec!["nobody".into()],
            ..outcome()
        };
        assert!(!outcome.is_good());
        assert_eq!(
            outcome.show(NOW, Style::PLAIN),
            "\
Job 20261115195631000000: 2 of 15 answered, 1 failed, 1 unknown
  x: failed with exit code 3
  a: offline since 2026-11-15 17:56:31 UTC (2 h ago)
  b: not seen since the server started, last seen 2026-11-15 17:56:31 UTC (2 h ago)
  c: sent, but not acknowledged
  d: acknowledged, and still running since 2026-11-15 17:56:31 UTC (2 h ago)
  e: acknowledged, but no longer running: its agent was restarted or the job was killed
  f: sent, but no answer; it cannot acknowledge jobs
  g: never said that it began
  h: took longer than its job_timeout
  i: was stopped
  j: was cancelled
  k: its deadline passed before it could start
  l: was declared failed
  m: still waits: `saltern action explain 7 m`
  nobody: no accepted minion has this id
The job goes on; `saltern job show 20261115195631000000` tells how."
        );
    }

    #[test]
    fn a_name_nobody_has_is_not_a_good_end() {
        assert!(!Outcome { missing: vec!["x".into()], ..outcome() }.is_good());
    }
}
