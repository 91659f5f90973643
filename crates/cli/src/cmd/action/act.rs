//! The verbs: what was done, and what was not as asked.

use crate::args::Format;
use crate::failure::{FAILED, Failure};
use crate::output::{self, text};
use saltern_api::client::Client;
use saltern_api::shape::{ActionVerb, Done, Outcome, VerbRequest, VerbResult};
use std::process::ExitCode;

/// Minions that are named for one action; programs get all.
const NAMED: usize = 50;

pub(super) async fn run(
    client: &Client,
    verb: ActionVerb,
    request: &VerbRequest,
    format: Format,
) -> Result<ExitCode, Failure> {
    let result = client.act(verb, request).await?;
    let asked = Asked { verb, whole: request.minions.is_none() };
    output::show(format, &result, || asked.told(&result))?;
    let good = result.actions.iter().all(|done| asked.was_done(done));
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// What was asked for.
struct Asked {
    verb: ActionVerb,
    /// Of the whole action, not of minions by name
    whole: bool,
}

impl Asked {
    fn told(&self, result: &VerbResult) -> String {
        let mut lines = Vec::new();
        for done in &result.actions {
            lines.push(format!("Action {}: {}", done.action, text::clean(&done.note)));
            let odd: Vec<_> = done.minions.iter().filter(|(_, outcome)| !self.is_as_asked(outcome)).collect();
            let shown = odd.iter().take(NAMED);
            lines.extend(
                shown.map(|(minion, outcome)| format!("  {}: {}", text::clean(minion), text::clean(&outcome.outcome))),
            );
            if odd.len() > NAMED {
                lines.push(format!("  and {} more; `--out json` names them", odd.len() - NAMED));
            }
        }
        lines.join("\n")
    }

    fn was_done(&self, done: &Done) -> bool {
        let in_vain = self.verb != ActionVerb::Stop
            && !done.minions.is_empty()
            && !done.minions.values().any(|outcome| outcome.done);
        !in_vain && done.minions.values().all(|outcome| self.is_as_asked(outcome))
    }

    /// Of a whole action, what has ended already needs nothing done to it; of a minion by name, it was to be changed.
    fn is_as_asked(&self, outcome: &Outcome) -> bool {
        let closes = matches!(self.verb, ActionVerb::Cancel | ActionVerb::Stop | ActionVerb::Fail);
        outcome.done || self.whole && closes && outcome.outcome == "has ended"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(minions: &[(&str, bool, &str)]) -> Done {
        let outcome = |(minion, done, outcome): &(&str, bool, &str)| {
            ((*minion).to_owned(), Outcome { done: *done, outcome: (*outcome).to_owned() })
        };
        Done { action: 7, note: "1 of 3 runs changed".into(), minions: minions.iter().map(outcome).collect() }
    }

    fn cancel(whole: bool) -> Asked {
        Asked { verb: ActionVerb::Cancel, whole }
    }

    #[test]
    fn only_what_is_not_as_asked_is_named() {
        let done = done(&[("a", true, "cancelled"), ("b", false, "too late: it was sent"), ("c", false, "has ended")]);
        assert!(!cancel(true).was_done(&done));
        let result = VerbResult { actions: vec![done] };
        assert_eq!(cancel(true).told(&result), "Action 7: 1 of 3 runs changed\n  b: too late: it was sent");
        assert_eq!(
            cancel(false).told(&result),
            "Action 7: 1 of 3 runs changed\n  b: too late: it was sent\n  c: has ended"
        );
    }

    #[test]
    fn what_has_ended_is_no_obstacle_unless_all_has() {
        assert!(cancel(true).was_done(&done(&[("a", true, "cancelled"), ("c", false, "has ended")])));
        assert!(!cancel(true).was_done(&done(&[("c", false, "has ended")])));
        assert!(Asked { verb: ActionVerb::Stop, whole: true }.was_done(&done(&[("c", false, "has ended")])));
    }

    #[test]
    fn a_retry_of_what_runs_is_not_done() {
        let asked = Asked { verb: ActionVerb::Retry, whole: true };
        assert!(!asked.was_done(&done(&[("a", true, "queued"), ("b", false, "has not ended")])));
    }

    #[test]
    fn many_are_not_all_named() {
        let minions: Vec<String> = (0..60).map(|n| format!("m{n:02}")).collect();
        let minions: Vec<_> = minions.iter().map(|id| (id.as_str(), false, "too late: it was sent")).collect();
        let text = cancel(true).told(&VerbResult { actions: vec![done(&minions)] });
        assert!(text.ends_with("  m49: too late: it was sent\n  and 10 more; `--out json` names them"), "{text}");
    }
}
