//! YAML files that say how things are to be: what the `apply -f` of several commands reads.
//!
//! A file has one document or several. What is wrong is told with the file, and with the line where one is known.

use crate::failure::Failure;
use saltern_core::value::{Map, Value};
use saltern_render::Error;
use saltern_render::yaml;
use serde::de::DeserializeOwned;
use std::io::Read;

/// The largest file that is read.
const LARGEST: u64 = 16 * 1024 * 1024;

/// A document of a file: a map.
#[derive(Debug)]
pub(crate) struct Document {
    file: String,
    line: usize,
    /// What it says
    pub(crate) map: Map,
}

impl Document {
    /// Something is wrong with it.
    pub(crate) fn wrong(&self, error: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{}, line {}: {error}", shown(&self.file), self.line))
    }
}

/// The text of a file; `-` is standard input.
pub(crate) fn content(file: &str) -> Result<String, Failure> {
    let cannot = |error: std::io::Error| Failure::new(format!("cannot read {}: {error}", shown(file)));
    let mut text = String::new();
    let read = if file == "-" {
        std::io::stdin().lock().take(LARGEST + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).map_err(cannot)?.take(LARGEST + 1).read_to_string(&mut text)
    };
    match read.map_err(cannot)? as u64 {
        LARGEST.. => Err(Failure::new(format!("{} is larger than {} MiB", shown(file), LARGEST >> 20))),
        _ => Ok(text),
    }
}

/// The documents of a file, without the empty ones; `form` says what they are to be.
pub(crate) fn read(file: &str, text: &str, form: &str) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for (line, text) in split(text) {
        let wrong = |error: Error| Failure::usage(format!("{}: {}", shown(file), moved(error, line - 1)));
        match yaml::load(text).map_err(wrong)? {
            Value::Nil => {}
            Value::Map(map) => documents.push(Document { file: file.to_owned(), line, map }),
            _ => return Err(Document { file: file.to_owned(), line, map: Map::new() }.wrong(form)),
        }
    }
    Ok(documents)
}

/// The name of a file for people.
pub(crate) fn shown(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

/// Refuses keys that are not known.
pub(crate) fn only(map: &Map, keys: &[&str]) -> Result<(), String> {
    match map.iter().map(|(key, _)| key.key_text()).find(|key| !keys.contains(&key.as_ref())) {
        Some(key) => Err(format!("`{key}` is not known here, only {}", keys.join(", "))),
        None => Ok(()),
    }
}

/// Reads a value as what the API takes.
pub(crate) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    if !value.is_json_exact() {
        return Err("its keys must be texts, and its values what JSON can carry: no bytes, no infinite numbers".into());
    }
    let json = serde_json::to_string(value).map_err(|error| error.to_string())?;
    serde_json::from_str(&json).map_err(|error| without_place(&error))
}

/// What is wrong, without the place in a JSON text that nobody has seen.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// The documents of a text with the lines they begin at. Three dashes at the beginning of a line begin one wherever they
/// stand, in texts too: so says YAML.
fn split(text: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let (mut begin, mut line, mut at) = (0, 1, 0);
    for (index, this) in text.split_inclusive('\n').enumerate() {
        let is_marker =
            this.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if is_marker && at > begin {
            documents.push((line, &text[begin..at]));
            (begin, line) = (at, index + 1);
        }
        at += this.len();
    }
    documents.push((line, &text[begin..]));
    documents
}

/// An error of a document, with the lines of its file.
fn moved(error: Error, lines: usize) -> Error {
    match error {
        Error::Yaml { problem, mut at, mut context } => {
            at.line += lines;
            if let Some((_, begin)) = &mut context {
                begin.line += lines;
            }
            Error::Yaml { problem, at, context }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_know_where_they_begin() {
        let documents = read("x.yml", "---\na: 1\n---\n# nothing\n--- \nb: 2\n", "a map").unwrap();
        let lines: Vec<usize> = documents.iter().map(|document| document.line).collect();
        assert_eq!(lines, [1, 5]);
        assert_eq!(documents[1].wrong("no").to_string(), "x.yml, line 5: no");
    }

    #[test]
    fn what_is_no_map_is_refused_with_what_it_should_be() {
        assert_eq!(read("-", "[1]", "write a map").unwrap_err().to_string(), "standard input, line 1: write a map");
        let broken = read("x.yml", "a: 1\n---\nb: [\n", "a map").unwrap_err().to_string();
        assert!(broken.starts_with("x.yml: ") && broken.contains("line "), "{broken}");
    }

    #[test]
    fn a_type_says_what_is_wrong_without_a_place_in_json() {
        let value = Value::map([("a", "x")]);
        let error = typed::<std::collections::BTreeMap<String, u8>>(&value).unwrap_err();
        assert!(error.contains("expected u8") && !error.contains("line"), "{error}");
    }
}
