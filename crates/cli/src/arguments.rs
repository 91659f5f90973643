//! Arguments of a function as they are typed, read as Salt's own command line reads them.
//!
//! A word is YAML if that makes something of it (`1`, `true`, `[1, 2]`), else text; `name=value` is a keyword argument.
//! The rules have corners that people rely on; `tests/golden/arguments.json` holds Salt's own answers.

use saltern_core::value::{Map, Value};
use saltern_render::words::keyword;
pub(crate) use saltern_render::words::value;

/// The arguments of one function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// By position
    pub(crate) args: Vec<Value>,
    /// By name
    pub(crate) kwargs: Map,
}

/// Reads the arguments of one function.
pub(crate) fn read(words: &[String]) -> Arguments {
    let mut read = Arguments::default();
    for word in words {
        match keyword(word) {
            Some((name, text)) => {
                read.kwargs.insert(name, value(text));
            }
            None => read.args.push(value(word)),
        }
    }
    read
}

/// Reads the arguments of several functions, separated by `separator`: one list each.
///
/// The separator stands as a word of its own, one fewer than there are functions; where it does not, it may be part of words.
pub(crate) fn read_several(functions: usize, words: &[String], separator: &str) -> Result<Vec<Value>, String> {
    let mut groups: Vec<Vec<String>> = vec![Vec::new()];
    let standalone = words.iter().filter(|word| *word == separator).count() == functions - 1;
    for word in words {
        if standalone && word == separator {
            groups.push(Vec::new());
        } else if standalone || separator.is_empty() || !word.contains(separator) {
            push_last(&mut groups, word);
        } else {
            for (n, part) in word.split(separator).enumerate() {
                if n > 0 {
                    groups.push(Vec::new());
                }
                if !part.is_empty() {
                    push_last(&mut groups, part);
                }
            }
        }
    }
    if groups.len() != functions {
        return Err(format!(
            "{functions} functions need {functions} groups of arguments, separated by {separator:?}; there are {}",
            groups.len()
        ));
    }
    Ok(groups.iter().map(|group| read(group).into_list()).collect())
}

fn push_last(groups: &mut [Vec<String>], word: &str) {
    if let Some(last) = groups.last_mut() {
        last.push(word.to_owned());
    }
}

impl Arguments {
    /// As one list, keyword arguments in a marked map at its end: how a job of several functions carries them.
    fn into_list(self) -> Value {
        let Self { mut args, mut kwargs } = self;
        if !kwargs.is_empty() {
            kwargs.insert("__kwarg__", true);
            args.push(kwargs.into());
        }
        args.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    const GOLDEN: &str = include_str!("../tests/golden/arguments.json");

    fn golden() -> Json {
        serde_json::from_str(GOLDEN).unwrap()
    }

    fn json(value: &Value) -> Json {
        match value {
            Value::Float(float) if float.is_infinite() => format!("float {float}").into(),
            _ => serde_json::to_value(value).unwrap(),
        }
    }

    #[test]
    fn words_are_read_as_salt_reads_them() {
        let golden = golden();
        let wrong: Vec<String> = golden["words"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|case| {
                let word = case[0].as_str().unwrap();
                let read = json(&value(word));
                (read != case[1]).then(|| format!("{word:?}: Salt {} ours {read}", case[1]))
            })
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn keyword_arguments_are_told_from_others_as_salt_does() {
        for case in golden()["inputs"].as_array().unwrap() {
            let words: Vec<String> = serde_json::from_value(case[0].clone()).unwrap();
            let read = read(&words);
            assert_eq!(Json::from(read.args.iter().map(json).collect::<Vec<_>>()), case[1], "{words:?}");
            assert_eq!(json(&read.kwargs.into()), case[2], "{words:?}");
        }
    }

    fn several(functions: usize, words: &[&str]) -> Result<Json, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        read_several(functions, &words, ",").map(|groups| json(&Value::List(groups)))
    }

    #[test]
    fn a_separator_of_its_own_separates_the_functions_arguments() {
        assert_eq!(
            several(2, &[",", "ls -l", "shell=x"]).unwrap(),
            serde_json::json!([[], ["ls -l", {"shell": "x", "__kwarg__": true}]])
        );
        assert_eq!(several(2, &["a,b", ",", "1"]).unwrap(), serde_json::json!([["a,b"], [1]]));
    }

    #[test]
    fn a_separator_within_words_separates_too() {
        assert_eq!(several(2, &["a", "b,c"]).unwrap(), serde_json::json!([["a", "b"], ["c"]]));
    }

    #[test]
    fn every_function_needs_its_group() {
        assert!(several(3, &[",", "x"]).is_err());
        assert!(several(2, &["a,b,c"]).is_err());
    }
}
