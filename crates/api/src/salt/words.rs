//! Words as Salt reads them: `name=value` is a keyword argument, and a value is YAML where that makes something of it.
//!
//! What is sent as JSON has its types already, so only `name=value` is looked for there; what comes from a form is text and
//! is read as on the command line.

use saltern_core::value::{Map, Value};
use saltern_render::yaml;

/// From so many digits on a number is a job's id.
pub(super) const LONG: usize = 20;

/// Positional and keyword arguments, told apart: `name=value` in `words` and maps marked `__kwarg__` are the latter.
pub(super) fn sort(words: Vec<Value>, kwargs: Map) -> (Vec<Value>, Map) {
    let (mut args, mut named) = (Vec::with_capacity(words.len()), Map::new());
    for word in words {
        match word {
            Value::Text(text) => match keyword(&text) {
                Some((name, value)) => {
                    named.insert(name, read(value));
                }
                None => args.push(Value::Text(text)),
            },
            Value::Map(map) if map.get("__kwarg__").is_some_and(Value::is_truthy) => {
                for (name, value) in map {
                    if name.as_str() != Some("__kwarg__") {
                        named.insert(name, value);
                    }
                }
            }
            other => args.push(other),
        }
    }
    for (name, value) in kwargs {
        if name.as_str() != Some("__kwarg__") {
            named.insert(name, value);
        }
    }
    (args, named)
}

/// `name` and `value` of `name=value`, if it is that: `a==b`, `1a=b` and what has more lines are not.
fn keyword(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let mut letters = name.chars();
    let first = letters.next()?;
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    if !is_word(first) || first.is_numeric() || !letters.all(|c| is_word(c) || c == '.' || c == '-') {
        return None;
    }
    let value = value.strip_suffix('\n').unwrap_or(value);
    (!value.starts_with('=') && !value.contains('\n')).then_some((name, value))
}

/// A word as a value.
pub(super) fn read(word: &str) -> Value {
    let text = || Value::from(word);
    let trimmed = word.trim();
    if matches!(trimmed, "" | "---" | "...") || word.contains(['\t', '\r', '\n']) {
        return text();
    }
    // YAML 1.1 would read `1_000` as a thousand.
    if word.contains('_') && trimmed.chars().all(|c| c == '_' || c.is_ascii_digit()) {
        return text();
    }
    // A job's id is a number only by its looks.
    if word.len() >= LONG && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return text();
    }
    if word == "None" {
        return Value::Nil;
    }
    let Ok(value) = yaml::load(word) else { return text() };
    if word.contains('#') {
        // What follows would be lost as a comment: only if something else than text is before it.
        return if matches!(value, Value::Text(_) | Value::Nil) { text() } else { value };
    }
    match &value {
        Value::Map(_) if !word.starts_with('{') => text(),
        Value::List(_) if !word.starts_with('[') => text(),
        Value::Text(empty) if empty.is_empty() && matches!(word, "|" | "!") => text(),
        Value::Nil if word == "!" => text(),
        Value::Bytes(_) | Value::Ext(..) => text(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_read_as_on_the_command_line() {
        for (word, value) in [
            ("one", Value::from("one")),
            ("2", Value::from(2)),
            ("1.5", Value::from(1.5)),
            ("true", Value::from(true)),
            ("None", Value::Nil),
            ("{a: 1}", Value::map([("a", 1)])),
            ("[1, 2]", Value::list([1, 2])),
            ("a: 1", Value::from("a: 1")),
            ("- 1", Value::from("- 1")),
            ("1_000", Value::from("1_000")),
            ("20261115185506026288", Value::from("20261115185506026288")),
            ("red # not blue", Value::from("red # not blue")),
            ("", Value::from("")),
            ("{broken", Value::from("{broken")),
        ] {
            assert_eq!(read(word), value, "{word:?}");
        }
    }

    #[test]
    fn keyword_arguments_are_found_wherever_they_stand() {
        let marked = Value::map([("__kwarg__", Value::from(true)), ("m", Value::from(1))]);
        let words = vec!["a".into(), "k=v".into(), 2.into(), marked, "n=[1]".into(), "x==y".into()];
        let (args, kwargs) = sort(words, Map::from_iter([("z".into(), Value::Nil)]));
        assert_eq!(args, [Value::from("a"), 2.into(), "x==y".into()]);
        let expected =
            Value::map([("k", Value::from("v")), ("m", 1.into()), ("n", Value::list([1])), ("z", Value::Nil)]);
        assert_eq!(Value::Map(kwargs), expected);
    }

    #[test]
    fn what_is_no_name_makes_no_keyword_argument() {
        for word in ["1a=b", "=b", "a b=c", "a=b\nc", "http://x/?q=1"] {
            assert_eq!(sort(vec![word.into()], Map::new()).0, [Value::from(word)], "{word:?}");
        }
    }

    proptest! {
        #[test]
        fn any_word_is_read(word in "\\PC{0,40}") {
            read(&word);
            sort(vec![word.into()], Map::new());
        }
    }
}
