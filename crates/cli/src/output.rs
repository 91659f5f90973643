//! How things look: Salt's own styles for returns, tables for lists, one line of progress, times for people.
//!
//! What minions send is shown, never obeyed: control characters are replaced before anything reaches a terminal.

pub(crate) mod fields;
pub(crate) mod highstate;
pub(crate) mod nested;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod when;
pub(crate) mod zones;

use crate::args::Format;
use crate::failure::Failure;
use saltern_core::value::Value;
use saltern_render::yaml;
use serde::Serialize;
use std::io::{self, Write};

/// Prints a line on stdout at once, so that a reader at the end of a pipe sees it.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Says something beside the result, on stderr.
pub(crate) fn note(text: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stderr().lock(), "{}", text.trim_end_matches('\n'))?)
}

/// Shows `shape` in the format that was asked for; `text` makes the form for people.
pub(crate) fn show(format: Format, shape: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    match format {
        Format::Text => line(&text()),
        Format::Json => line(&json(shape)?),
        Format::Yaml => line(&yaml(shape)?),
    }
}

/// JSON as Salt prints it: four blanks of indentation.
pub(crate) fn json(shape: &impl Serialize) -> Result<String, Failure> {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let written = shape.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter));
    written.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// YAML in blocks.
pub(crate) fn yaml(shape: &impl Serialize) -> Result<String, Failure> {
    let value = serde_json::to_value(shape).and_then(serde_json::from_value::<Value>);
    Ok(yaml::to_yaml(&value.map_err(|error| Failure::new(format!("cannot write YAML: {error}")))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_as_salts() {
        let value = Value::map([("m1", Value::map([("a", Value::list([1, 2]))]))]);
        assert_eq!(
            json(&value).unwrap(),
            "{\n    \"m1\": {\n        \"a\": [\n            1,\n            2\n        ]\n    }\n}"
        );
    }

    #[test]
    fn yaml_is_in_blocks() {
        assert_eq!(yaml(&serde_json::json!({"m1": {"a": [1, "2"]}})).unwrap(), "m1:\n  a:\n  - 1\n  - '2'\n");
    }
}
