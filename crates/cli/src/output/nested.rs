//! Salt's `nested` style: keys and values below each other, four blanks deeper each time.

use super::style::{Colour, Style};
use super::text;
use saltern_core::value::{Map, Value};

/// One minion's answer: its name, and below it the value.
pub(crate) fn answer(minion: &str, value: &Value, failed: bool, style: Style) -> String {
    let mut lines = Vec::new();
    let nest = Nest { style, failed };
    lines.push(nest.key(0, "", minion));
    nest.show(&mut lines, value, 4, "");
    lines.join("\n")
}

/// A value on its own, `indent` blanks deep.
pub(crate) fn value(value: &Value, indent: usize, style: Style) -> String {
    let mut lines = Vec::new();
    Nest { style, failed: false }.show(&mut lines, value, indent, "");
    lines.join("\n")
}

struct Nest {
    style: Style,
    failed: bool,
}

impl Nest {
    fn show(&self, lines: &mut Vec<String>, value: &Value, indent: usize, prefix: &str) {
        match value {
            Value::Text(_) | Value::Bytes(_) | Value::Ext(..) => {
                for (n, line) in text::lines(&value.key_text()).into_iter().enumerate() {
                    let prefix = if n == 0 { prefix.to_owned() } else { " ".repeat(prefix.len()) };
                    lines.push(self.line(indent, Colour::Green, &(prefix + &text::clean(line))));
                }
            }
            Value::List(items) => self.show_list(lines, items, indent),
            Value::Map(map) => self.show_map(lines, map, indent, prefix),
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => {
                lines.push(self.line(indent, Colour::Yellow, &format!("{prefix}{}", text::scalar(value))));
            }
        }
    }

    fn show_list(&self, lines: &mut Vec<String>, items: &[Value], indent: usize) {
        for item in items {
            if matches!(item, Value::List(_) | Value::Map(_)) {
                let colour = if self.failed { Colour::Red } else { Colour::Green };
                lines.push(self.line(indent, colour, "|_"));
                self.show(lines, item, indent + 2, "");
            } else {
                self.show(lines, item, indent, "- ");
            }
        }
    }

    fn show_map(&self, lines: &mut Vec<String>, map: &Map, indent: usize, prefix: &str) {
        if indent > 0 {
            let colour = if self.failed { Colour::Red } else { Colour::Cyan };
            lines.push(self.line(indent, colour, "----------"));
        }
        for (key, value) in sorted(map) {
            lines.push(self.key(indent, prefix, &text::scalar(key)));
            self.show(lines, value, indent + 4, "");
        }
    }

    fn key(&self, indent: usize, prefix: &str, key: &str) -> String {
        let colour = if self.failed { Colour::Red } else { Colour::Cyan };
        self.line(indent, colour, &format!("{prefix}{}", text::clean(key))) + ":"
    }

    fn line(&self, indent: usize, colour: Colour, text: &str) -> String {
        " ".repeat(indent) + &self.style.paint(colour, text)
    }
}

/// Entries in the order of their keys: numbers by size if all are numbers, else by their text.
fn sorted(map: &Map) -> Vec<(&Value, &Value)> {
    let mut entries: Vec<(&Value, &Value)> = map.iter().map(|(key, value)| (key, value)).collect();
    if entries.iter().all(|(key, _)| key.as_i64().is_some()) {
        entries.sort_by_key(|(key, _)| key.as_i64());
    } else {
        entries.sort_by_cached_key(|(key, _)| text::scalar(key));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_look_as_salts() {
        let golden: serde_json::Value = serde_json::from_str(include_str!("../../tests/golden/output.json")).unwrap();
        for case in golden["nested"].as_array().unwrap() {
            let value: Value = serde_json::from_value(case[0].clone()).unwrap();
            let shown = answer("m1", &value, false, Style::PLAIN);
            assert_eq!(shown, case[1].as_str().unwrap(), "{}", case[0]);
        }
    }

    #[test]
    fn numbers_as_keys_are_sorted_by_size() {
        let mut map = Map::new();
        map.push(10, "ten");
        map.push(9, "nine");
        assert_eq!(value(&map.into(), 0, Style::PLAIN), "9:\n    nine\n10:\n    ten");
    }
}
