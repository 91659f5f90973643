//! A plan as the states it amounts to, for people to read and for the state catalogue to keep.
//!
//! One YAML document that Salt's `state.apply` takes: a state for each step, which calls the step's function and requires the
//! step before. What states cannot say, such as waiting for a machine that restarts, is said in comments.

use super::plan::{Chunk, Plan, PlanStep, StepKind};
use super::step::After;
use crate::value::{Map, Value};
use std::fmt::Write as _;

/// Characters of a step's title in the id of its state.
const LONGEST_TITLE: usize = 100;

/// Functions that Salt runs in a shell when a job calls them, and without one when a state does.
const SHELLED: [&str; 5] = ["cmd.run", "cmd.run_all", "cmd.run_stdout", "cmd.run_stderr", "cmd.retcode"];

impl Plan {
    /// The plan as states, with comments that tell where its chunks begin and why.
    pub fn to_sls(&self, title: &str) -> String {
        // Only YAML: what people wrote into a step is no template.
        let mut out = format!("#!yaml\n# {}\n# Saltern plan {}\n", comment(title), self.hash());
        let mut before: Vec<&PlanStep> = Vec::new();
        for (at, chunk) in self.chunks.iter().enumerate() {
            head(&mut out, at + 1, self.chunks.len(), chunk);
            for step in &chunk.steps {
                out.push('\n');
                match (step.kind, step.after) {
                    (StepKind::Check, _) => check(&mut out, step),
                    (_, After::Failed) if before.is_empty() => {
                        let _ = writeln!(
                            out,
                            "# {}\n# is for after a failure, and nothing comes before it here.",
                            id(step)
                        );
                    }
                    _ => {
                        state(&mut out, step, &before);
                        before.push(step);
                    }
                }
            }
        }
        out
    }
}

fn head(out: &mut String, number: usize, of: usize, chunk: &Chunk) {
    let _ = writeln!(out, "\n# ---- chunk {number} of {of} ----");
    if let Some(gate) = chunk.gate {
        let _ =
            writeln!(out, "# Begins when step {gate} may: after its barrier, within its budget, with its approval.");
    }
    match chunk.steps.last().map(|step| step.kind) {
        Some(StepKind::Reboot) => {
            out.push_str("# Ends with a restart of the machine; what follows waits until it is up again.\n")
        }
        Some(StepKind::Update) => {
            out.push_str("# Ends with a restart of the agent; what follows waits until it is back.\n")
        }
        Some(StepKind::Call | StepKind::Check) | None => {}
    }
}

fn check(out: &mut String, step: &PlanStep) {
    let arguments = step
        .arg
        .iter()
        .map(inline)
        .chain(step.kwarg.iter().map(|(name, value)| format!("{}={}", inline(name), inline(value))));
    let call = std::iter::once(step.fun.clone()).chain(arguments).collect::<Vec<_>>().join(" ");
    let expected = step.expect.as_ref().map(inline).unwrap_or_default();
    let _ = writeln!(out, "# {}\n# {} must return {}", id(step), comment(&call), comment(&expected));
}

fn state(out: &mut String, step: &PlanStep, before: &[&PlanStep]) {
    let named = step
        .kwarg
        .iter()
        .map(|(name, value)| Value::from([(name.clone(), value.clone())].into_iter().collect::<Map>()));
    let mut arguments: Vec<Value> = step.arg.iter().cloned().chain(named).collect();
    if SHELLED.contains(&step.fun.as_str()) && step.kwarg.get("python_shell").is_none() {
        arguments.push(Value::map([("python_shell", true)]));
    }
    let mut calls = vec![Value::map([(step.fun.as_str(), Value::List(arguments))])];
    let requisite = match step.after {
        After::Ok => Some("require"),
        After::Failed => Some("onfail"),
        After::Always => None,
    };
    if let Some(requisite) = requisite.filter(|_| !before.is_empty()) {
        let steps: Vec<Value> = nearest(before).map(|step| Value::map([("module", id(step))])).collect();
        calls.push(Value::map([(requisite, steps)]));
    }
    let whole = Value::map([(id(step), Value::map([("module.run", calls)]))]);
    block(out, &whole, 0);
}

/// The steps that tell whether anything before has failed: back to the last that is done only if nothing had.
fn nearest<'a>(before: &'a [&'a PlanStep]) -> impl Iterator<Item = &'a PlanStep> {
    let first = before.iter().rposition(|step| step.after == After::Ok).unwrap_or(0);
    before[first..].iter().copied()
}

/// The id of a step's state.
fn id(step: &PlanStep) -> String {
    let title = comment(&step.title);
    let short: String = title.chars().take(LONGEST_TITLE).collect();
    format!("step {}: {short}", step.id)
}

/// One line, without what YAML forbids.
fn comment(text: &str) -> String {
    let words: String = text.chars().map(|c| if is_plain_char(c) { c } else { ' ' }).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A map or a list in block style, at this depth of spaces.
fn block(out: &mut String, value: &Value, depth: usize) {
    let indent = " ".repeat(depth);
    match value {
        Value::Map(map) => {
            for (key, value) in map {
                let _ = write!(out, "{indent}{}:", scalar(&Value::from(&*key.key_text())));
                nested(out, value, depth + 2);
            }
        }
        Value::List(items) => {
            for item in items {
                match item {
                    // A map or list begins on the dash's own line.
                    Value::Map(map) if !map.is_empty() => first_on_dash(out, item, depth),
                    Value::List(list) if !list.is_empty() => first_on_dash(out, item, depth),
                    _ => {
                        let _ = write!(out, "{indent}-");
                        nested(out, item, depth + 2);
                    }
                }
            }
        }
        other => {
            let _ = writeln!(out, "{indent}{}", scalar(other));
        }
    }
}

fn first_on_dash(out: &mut String, item: &Value, depth: usize) {
    let mut inner = String::new();
    block(&mut inner, item, depth + 2);
    let _ = write!(out, "{}- {}", " ".repeat(depth), inner.trim_start_matches(' '));
}

/// What stands behind a key or a dash.
fn nested(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Map(map) if !map.is_empty() => {
            out.push('\n');
            block(out, value, depth);
        }
        Value::List(items) if !items.is_empty() => {
            out.push('\n');
            block(out, value, depth);
        }
        Value::Text(text) if is_literal(text) => literal(out, text, depth),
        other => {
            let _ = writeln!(out, " {}", scalar(other));
        }
    }
}

/// Whether text of several lines can be shown as it is.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.ends_with("\n\n")
        && text.split('\n').all(|line| line.is_empty() || !line.trim().is_empty())
        && text.chars().all(|c| c == '\n' || is_plain_char(c))
}

fn literal(out: &mut String, text: &str, depth: usize) {
    out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str(&" ".repeat(depth));
        }
        out.push_str(line);
        out.push('\n');
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Nil => "null".into(),
        Value::Bool(bool) => bool.to_string(),
        Value::List(_) | Value::Map(_) => inline(value),
        Value::Int(_) | Value::UInt(_) => value.key_text().into_owned(),
        Value::Float(float) if float.is_finite() => format!("{float:?}"),
        other => {
            let text = other.key_text();
            if is_plain(&text) { text.into_owned() } else { quoted(&text) }
        }
    }
}

/// A value in one line.
fn inline(value: &Value) -> String {
    match value {
        Value::List(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entry = |(key, value): &(Value, Value)| format!("{}: {}", quoted(&key.key_text()), inline(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        other => scalar(other),
    }
}

/// Whether a text can stand without quotes wherever it is, and is read as that text.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./@+-".contains(c))
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_plain_char(c) => out.push(c),
            c if u32::from(c) <= 0xff => drop(write!(out, "\\x{:02x}", u32::from(c))),
            c if u32::from(c) <= 0xffff => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => drop(write!(out, "\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Whether YAML takes a character as it is, on one line.
fn is_plain_char(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests;
