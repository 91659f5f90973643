//! Arguments as clients send them: `name=value` is a keyword argument, and a value is YAML where that makes something of it.
//!
//! What is sent as JSON has its types already, so only `name=value` is looked for there; what comes from a form is text and
//! is read as on the command line.

use saltern_core::value::{Map, Value};
use saltern_render::words::{self, keyword};

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

/// A word as a value.
pub(super) fn read(word: &str) -> Value {
    // A job's id is a number only by its looks.
    if word.len() >= LONG && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Value::from(word);
    }
    words::value(word)
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
