//! Text from elsewhere, made fit for a terminal; numbers as Python prints them.

use saltern_api::shape::RunStatus;
use saltern_core::value::Value;

/// The lines of a text, by Python's idea of where lines end.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends_line).unwrap_or(rest.len());
        lines.push(&rest[..end]);
        rest = &rest[end..];
        let ending = if rest.starts_with("\r\n") { 2 } else { rest.chars().next().map_or(0, char::len_utf8) };
        rest = &rest[ending..];
    }
    lines
}

fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Replaces what a terminal would obey. A tab stays.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '?' } else { c }).collect()
}

/// The same for text of several lines.
pub(crate) fn clean_lines(text: &str) -> String {
    lines(text).into_iter().map(clean).collect::<Vec<_>>().join("\n")
}

/// A value that is no list and no map, as Python prints it; lists and maps as JSON.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::Nil => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Float(float) => number(*float),
        Value::List(_) | Value::Map(_) => clean(&serde_json::to_string(value).unwrap_or_default()),
        other => other.key_text().into_owned(),
    }
}

/// A target about as it was typed.
pub(crate) fn target(expression: &Value, kind: &str) -> String {
    let expression = match expression {
        Value::List(items) => items.iter().map(scalar).collect::<Vec<_>>().join(","),
        other => scalar(other),
    };
    if kind == "glob" { expression } else { format!("{kind} {expression}") }
}

/// The state of a run, with why it failed or what it waits for.
pub(crate) fn state(run: &RunStatus) -> String {
    let note = run.reason.as_ref().or(run.waiting_for.as_ref());
    note.map_or_else(|| run.state.clone(), |note| format!("{} ({note})", run.state))
}

/// Rust and Python agree on when to use an exponent, not on how to write it.
fn number(float: f64) -> String {
    let text = format!("{float:?}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        assert_eq!(lines("a\r\nb\rc\u{2028}d\n"), ["a", "b", "c", "d"]);
        assert_eq!(lines("\n\nx"), ["", "", "x"]);
        assert!(lines("").is_empty());
    }

    #[test]
    fn a_minion_cannot_write_on_the_terminal_but_text() {
        assert_eq!(clean("\x1b[2J\u{9b}x\ty\u{7}"), "?[2J?x\ty?");
        assert_eq!(clean_lines("a\x1b\r\nb"), "a?\nb");
    }

    #[test]
    fn numbers_are_pythons() {
        let shown = |float: f64| scalar(&Value::Float(float));
        assert_eq!(shown(1.0), "1.0");
        assert_eq!(shown(1e16), "1e+16");
        assert_eq!(shown(1.5e-7), "1.5e-07");
        assert_eq!(shown(1e300), "1e+300");
        assert_eq!(shown(f64::INFINITY), "inf");
    }
}
