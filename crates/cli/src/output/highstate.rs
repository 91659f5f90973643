//! Salt's `highstate` style: each state with its result and changes in the order of running, then the counts.

use super::nested;
use super::style::{Colour, Style};
use super::text;
use saltern_core::value::{Map, Value};
use std::fmt::Write;

/// How wide a warning may be.
const WIDTH: usize = 80;

/// How deep what belongs to a state stands.
const DEPTH: usize = 14;

/// One minion's states; `None` if this is not a return of states.
pub(crate) fn answer(minion: &str, value: &Value, style: Style) -> Option<String> {
    let minion = text::clean(minion);
    match value {
        Value::Map(map) => Some(states(&minion, map, style)),
        Value::List(errors) => Some(compile_errors(&minion, errors, style)),
        Value::Text(told) => {
            let lines = text::lines(told).into_iter().map(|line| format!("    {}", text::clean(line)));
            Some(
                std::iter::once(format!("{}:", style.paint(Colour::Cyan, &minion)))
                    .chain(lines)
                    .collect::<Vec<_>>()
                    .join("\n"),
            )
        }
        _ => None,
    }
}

/// What is counted while states are shown.
#[derive(Default)]
struct Counts {
    succeeded: usize,
    failed: usize,
    unchanged: usize,
    changed: usize,
    warnings: usize,
    /// Milliseconds
    duration: f64,
    /// The longest of those that ran beside each other
    parallel: f64,
}

fn states(minion: &str, map: &Map, style: Style) -> String {
    let mut entries: Vec<(&Value, &Map)> = map
        .iter()
        .filter_map(|(tag, state)| Some((tag, state.as_map().filter(|state| state.get("result").is_some())?)))
        .collect();
    entries.sort_by_key(|(_, state)| state.get("__run_num__").and_then(Value::as_i64).unwrap_or(0));
    let mut counts = Counts::default();
    let mut worst = Colour::Green;
    let mut body = String::new();
    for (tag, state) in entries {
        let changed = state.get("changes").is_some_and(Value::is_truthy);
        let colour = match state.get("result") {
            Some(Value::Bool(false)) => Colour::Red,
            Some(Value::Nil) => Colour::Yellow,
            _ if changed => Colour::Cyan,
            _ => Colour::Green,
        };
        if colour == Colour::Red || colour == Colour::Yellow && worst != Colour::Red {
            worst = colour;
        }
        counts.add(state, changed);
        body.push('\n');
        body.push_str(&one_state(&tag.key_text(), state, colour, style));
    }
    format!("{}:{body}\n{}", style.paint(worst, minion), counts.show(minion, style))
}

/// One state. The parts of its tag are `module_|-id_|-name_|-function`.
fn one_state(tag: &str, state: &Map, colour: Colour, style: Style) -> String {
    let parts: Vec<&str> = tag.split("_|-").collect();
    let part = |n: usize| text::clean(parts.get(n).copied().unwrap_or_default());
    let field = |name: &str| state.get(name).map(text::scalar).unwrap_or_default();
    let indented =
        |text: &str| text.trim().lines().map(text::clean).collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(DEPTH)));
    let mut lines = vec![style.paint(colour, "----------")];
    let mut add = |label: &str, value: &str| {
        lines.push(format!("    {}", style.paint(colour, &format!("{label:>8}: {value}"))));
    };
    add("ID", &part(1));
    add("Function", &format!("{}.{}", part(0), part(3)));
    if part(1) != part(2) {
        add("Name", &part(2));
    }
    add("Result", &field("result"));
    add("Comment", &indented(&field("comment")));
    if state.get("start_time").is_some() {
        add("Started", &text::clean(&field("start_time")));
        let duration = text::clean(&field("duration"));
        add("Duration", &if duration.is_empty() { duration } else { format!("{duration} ms") });
    }
    let changes = state.get("changes").filter(|changes| changes.is_truthy());
    let changes = changes.map_or_else(String::new, |changes| format!("\n{}", nested::value(changes, DEPTH, style)));
    lines.push(style.paint(colour, &format!("     Changes:   {changes}")));
    if let Some(warnings) = state.get("warnings").and_then(Value::as_list).filter(|warnings| !warnings.is_empty()) {
        let words: Vec<String> = warnings.iter().map(text::scalar).collect();
        lines.push(format!("   {}", style.paint(Colour::Red, &format!(" Warnings: {}", wrap(&words.join("\n"))))));
    }
    lines.join("\n")
}

fn compile_errors(minion: &str, errors: &[Value], style: Style) -> String {
    let mut out =
        format!("{}:\n    {}", style.paint(Colour::Red, minion), style.paint(Colour::Red, "Data failed to compile:"));
    for error in errors {
        let error = text::clean_lines(&text::scalar(error));
        let _ = write!(out, "\n{}", style.paint(Colour::Red, &format!("----------\n    {error}")));
    }
    out
}

impl Counts {
    fn add(&mut self, state: &Map, changed: bool) {
        match state.get("result") {
            Some(Value::Bool(false)) => self.failed += 1,
            Some(Value::Nil) => self.unchanged += 1,
            _ => self.succeeded += 1,
        }
        self.changed += usize::from(changed);
        self.warnings += usize::from(state.get("warnings").is_some_and(Value::is_truthy));
        let duration = match state.get("duration") {
            Some(Value::Float(float)) => *float,
            Some(other) => text::scalar(other).trim_end_matches(" ms").parse().unwrap_or(0.0),
            None => 0.0,
        };
        if state.get("__parallel__").is_some() {
            self.parallel = self.parallel.max(duration);
        } else {
            self.duration += duration;
        }
    }

    fn show(&self, minion: &str, style: Style) -> String {
        let states = self.succeeded + self.unchanged + self.failed;
        // Salt makes the column as wide as the longest single count, and counts only what occurred.
        let widest =
            [self.succeeded, self.unchanged, self.failed, self.warnings].into_iter().filter(|count| *count > 0).max();
        let width = "Succeeded: ".len() + widest.map_or(0, |count| count.to_string().len());
        let count = |label: &str, count: usize| format!("{label}: {count:>width$}", width = width - label.len() - 2);
        let rule = "-".repeat(width);

        let mut notes = Vec::new();
        if self.unchanged > 0 {
            notes.push(style.paint(Colour::Yellow, &format!("unchanged={}", self.unchanged)));
        }
        if self.changed > 0 {
            notes.push(style.paint(Colour::Green, &format!("changed={}", self.changed)));
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };

        let mut lines = vec![
            style.paint(Colour::Cyan, &format!("\nSummary for {minion}\n{rule}")),
            style.paint(Colour::Green, &count("Succeeded", self.succeeded + self.unchanged)) + &notes,
            style.paint(if self.failed > 0 { Colour::Red } else { Colour::Cyan }, &count("Failed", self.failed)),
        ];
        if self.warnings > 0 {
            lines.push(style.paint(Colour::Red, &count("Warnings", self.warnings)));
        }
        let (time, unit) = match self.duration + self.parallel {
            ms if ms > 999.0 => (ms / 1000.0, "s"),
            ms => (ms, "ms"),
        };
        lines
            .push(style.paint(Colour::Cyan, &format!("{rule}\nTotal states run: {states:>width$}", width = width - 7)));
        let time = format!("{time:.3}");
        lines.push(style.paint(Colour::Cyan, &format!("Total run time: {time:>width$} {unit}", width = width - 5)));
        lines.join("\n")
    }
}

/// Words in lines of [`WIDTH`], the lines after the first as deep as a state's other fields.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().map(text::clean) {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if DEPTH + line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines.join(&format!("\n{}", " ".repeat(DEPTH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_look_as_salts() {
        let golden: serde_json::Value = serde_json::from_str(include_str!("../../tests/golden/output.json")).unwrap();
        for case in golden["highstate"].as_array().unwrap() {
            let value: Value = serde_json::from_value(case[0].clone()).unwrap();
            let shown = answer("m1", &value, Style::PLAIN).unwrap();
            assert_eq!(shown, case[1].as_str().unwrap(), "{}", case[0]);
        }
    }

    #[test]
    fn a_state_cannot_write_on_the_terminal() {
        let state =
            Value::map([("result", Value::from(true)), ("comment", "\x1b[2J".into()), ("__run_num__", 0.into())]);
        let shown = answer("m1", &Value::map([("a_|-b_|-c_|-d", state)]), Style::PLAIN).unwrap();
        assert!(!shown.contains('\x1b'), "{shown}");
    }

    #[test]
    fn what_is_no_states_is_left_to_others() {
        assert_eq!(answer("m1", &true.into(), Style::PLAIN), None);
    }
}
