//! Minions' answers, shown at once where the format allows it, together at the end where it does not.

use crate::failure::Failure;
use crate::output::{self, highstate, nested, style, text};
use saltern_api::shape::Return;
use saltern_core::value::{Map, Value};

/// How answers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// As the minion suggests
    Suggested,
    /// Nested
    Nested,
    /// As states
    Highstate,
    /// Lines of text
    Txt,
    /// One JSON object at the end
    Json,
    /// One YAML map at the end
    Yaml,
    /// Not at all
    Quiet,
}

/// Answers on their way to stdout.
pub(crate) struct Answers {
    style: Style,
    colours: style::Style,
    kept: Map,
}

impl Answers {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, colours: style::Style::of_stdout(), kept: Map::new() }
    }

    /// Takes one answer.
    pub(crate) fn add(&mut self, minion: &str, returned: Return) -> Result<(), Failure> {
        match self.style {
            Style::Json | Style::Yaml => {
                self.kept.insert(minion, returned.value);
                Ok(())
            }
            Style::Quiet => Ok(()),
            style => output::line(&show(minion, &returned, style, self.colours)),
        }
    }

    /// Shows what was kept for the end.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.style {
            Style::Json => output::line(&output::json(&Value::Map(self.kept))?),
            Style::Yaml => output::line(&output::yaml(&Value::Map(self.kept))?),
            _ => Ok(()),
        }
    }
}

/// One answer as text.
pub(crate) fn show(minion: &str, returned: &Return, style: Style, colours: style::Style) -> String {
    let is_states = match style {
        Style::Highstate => true,
        Style::Suggested => returned.out.as_deref() == Some("highstate"),
        _ => false,
    };
    if style == Style::Txt {
        return as_lines(minion, &returned.value);
    }
    let states = if is_states { highstate::answer(minion, &returned.value, colours) } else { None };
    states.unwrap_or_else(|| nested::answer(minion, &returned.value, !returned.success, colours))
}

fn as_lines(minion: &str, value: &Value) -> String {
    let minion = text::clean(minion);
    let shown = text::scalar(value);
    let lines = text::lines(&shown).into_iter().map(|line| format!("{minion}: {}\n", text::clean(line)));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Time;
    use saltern_core::time::Timestamp;

    fn returned(value: Value, out: Option<&str>) -> Return {
        Return { value, retcode: 0, success: true, at: Time(Timestamp(0)), out: out.map(str::to_owned) }
    }

    fn shown(value: Value, out: Option<&str>, style: Style) -> String {
        show("m1", &returned(value, out), style, style::Style::PLAIN)
    }

    #[test]
    fn states_are_shown_as_states_where_the_minion_says_so() {
        let states = Value::map([("test_|-a_|-a_|-nop", Value::map([("result", true)]))]);
        assert!(shown(states.clone(), Some("highstate"), Style::Suggested).contains("Succeeded: 1"));
        assert!(!shown(states.clone(), None, Style::Suggested).contains("Succeeded"));
        assert!(!shown(states, Some("highstate"), Style::Nested).contains("Succeeded"));
    }

    #[test]
    fn what_cannot_be_states_is_nested() {
        assert_eq!(shown(true.into(), Some("highstate"), Style::Suggested), "m1:\n    True");
    }

    #[test]
    fn lines_of_text_have_the_minion_in_front() {
        assert_eq!(shown("a\nb".into(), None, Style::Txt), "m1: a\nm1: b\n");
        assert_eq!(shown(true.into(), None, Style::Txt), "m1: True\n");
    }
}
