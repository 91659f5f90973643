//! The steps of a chain as sentences, numbered: what is done, for whom, and in brackets the rules that differ from the usual.
//!
//! The words in brackets are those of the options of `saltern chain add`.

use crate::output::style::{Colour, Style};
use crate::output::text;
use saltern_core::chain::{After, Barrier, Step};
use std::time::Duration;

/// All steps, a line each.
pub(super) fn list(steps: &[Step], style: Style) -> String {
    if steps.is_empty() {
        return "It has no steps yet; `saltern chain add` adds one.".into();
    }
    let width = steps.len().to_string().len();
    let line = |(at, step): (usize, &Step)| {
        let rules = rules(step);
        let rules = if rules.is_empty() { rules } else { format!(" {}", style.paint(Colour::Yellow, &rules)) };
        format!("  {:>width$}. {}{rules}", at + 1, sentence(step))
    };
    steps.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// What is done, and for whom.
pub(super) fn sentence(step: &Step) -> String {
    let whom = step.target.as_ref().map_or_else(|| "whom the launch names".to_owned(), ToString::to_string);
    text::clean(&format!("{} on {whom}", step.describe()))
}

/// The rules that differ from the usual; nothing if none does.
pub(super) fn rules(step: &Step) -> String {
    let mut words = Vec::new();
    if step.barrier != Barrier::Each {
        words.push(format!("barrier {}", step.barrier));
    }
    words.extend(step.budget.map(|budget| format!("budget {budget}")));
    if step.after != After::Ok {
        words.push(format!("after {}", step.after.as_str()));
    }
    words.extend(step.approval.as_ref().map(|question| format!("approval {question:?}")));
    words.extend(step.limit.map(|limit| format!("limit {}", time(limit))));
    words.extend(step.repeatable.map(|is| if is { "repeatable" } else { "not repeatable" }.to_owned()));
    if words.is_empty() { String::new() } else { text::clean(&format!("[{}]", words.join(", "))) }
}

/// A length of time as it may be typed, exactly.
fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        _ if time.subsec_nanos() != 0 => format!("{}s", time.as_secs_f64()),
        0 => "0s".into(),
        _ if seconds.is_multiple_of(3_600) => format!("{}h", seconds / 3_600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::action::Size;
    use saltern_core::chain::StepTarget;
    use saltern_core::value::Map;

    #[test]
    fn steps_are_numbered_sentences_with_their_rules_beside_them() {
        let update = Step { target: Some(StepTarget::glob("web*")), ..Step::new("package_update", Map::new()) };
        let reboot = Step {
            target: Some(StepTarget::of_group("web")),
            barrier: Barrier::All,
            budget: Some(Size::Percent(10)),
            approval: Some("now?".into()),
            limit: Some(Duration::from_secs(5_400)),
            ..Step::new("reboot", Map::new())
        };
        let after = Step { after: After::Failed, repeatable: Some(false), ..Step::new("reboot", Map::new()) };
        assert_eq!(
            list(&[update, reboot, after], Style::PLAIN),
            "  \
  1. update all packages on glob web*
  2. reboot on group web [barrier all, budget 10%, approval \"now?\", limit 90m]
  3. reboot on whom the launch names [after failed, not repeatable]"
        );
    }

    #[test]
    fn a_chain_without_steps_says_how_to_get_some() {
        assert!(list(&[], Style::PLAIN).contains("saltern chain add"));
    }

    #[test]
    fn a_name_from_elsewhere_cannot_write_on_the_terminal() {
        let step = Step { name: Some("x\x1b[2J".into()), ..Step::new("reboot", Map::new()) };
        assert_eq!(sentence(&step), "x?[2J on whom the launch names");
    }

    #[test]
    fn a_limit_is_told_as_it_may_be_typed() {
        for (seconds, told) in [(45, "45s"), (90, "90s"), (1_800, "30m"), (7_200, "2h")] {
            assert_eq!(time(Duration::from_secs(seconds)), told);
        }
    }
}
