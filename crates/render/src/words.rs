//! Words as people type them and as Salt reads them: `name=value` is a keyword argument, and a value is YAML where that makes
//! something of it (`1`, `true`, `[1, 2]`), else text.
//!
//! The rules have corners that people rely on; the command line's tests hold Salt's own answers.

use crate::yaml;
use saltern_core::value::Value;

/// `name` and `value` of `name=value`, if it is that: `a==b`, `1a=b` and what has more lines are not.
pub fn keyword(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let mut letters = name.chars();
    let first = letters.next()?;
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    if !is_word(first) || first.is_numeric() || !letters.all(|c| is_word(c) || c == '.' || c == '-') {
        return None;
    }
    // A line end at the very end is not part of the value, one within is no keyword argument.
    let value = value.strip_suffix('\n').unwrap_or(value);
    (!value.starts_with('=') && !value.contains('\n')).then_some((name, value))
}

/// A word as a value.
pub fn value(word: &str) -> Value {
    let text = || Value::from(word);
    let trimmed = word.trim();
    if matches!(trimmed, "" | "---" | "...") || word.contains(['\t', '\r', '\n']) {
        return text();
    }
    if word.contains('_') && trimmed.chars().all(|c| c == '_' || c.is_ascii_digit()) {
        return text();
    }
    if word == "None" {
        return Value::Nil;
    }
    let Ok(read) = yaml::load(word) else { return text() };
    if word.contains('#') {
        // What follows would be lost as a comment: only if something else than text is before it.
        return if matches!(read, Value::Text(_) | Value::Nil) { text() } else { read };
    }
    match &read {
        Value::Map(_) if !word.starts_with('{') => text(),
        Value::List(_) if !word.starts_with('[') => text(),
        Value::Text(empty) if empty.is_empty() && matches!(word, "|" | "!") => text(),
        Value::Nil if word == "!" => text(),
        Value::Bytes(_) | Value::Ext(..) => text(),
        _ => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_argument_has_a_name() {
        assert_eq!(keyword("a=1"), Some(("a", "1")));
        assert_eq!(keyword("a=b=c"), Some(("a", "b=c")));
        for word in ["a", "=1", "a==b", "1a=b", "a b=c", "a=b\nc"] {
            assert_eq!(keyword(word), None, "{word:?}");
        }
    }

    #[test]
    fn a_word_is_yaml_if_that_makes_something_of_it() {
        assert_eq!(value("2"), Value::from(2));
        assert_eq!(value("{a: 1}"), Value::map([("a", 1)]));
        for text in ["one", "a: 1", "- 1", "1_000", "red # not blue", "", "{broken"] {
            assert_eq!(value(text), Value::from(text), "{text:?}");
        }
        assert_eq!(value("None"), Value::Nil);
    }
}
