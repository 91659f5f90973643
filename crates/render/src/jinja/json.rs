//! JSON as Python's `json.dumps` writes it: a space after commas and colons, any scalar as a key, `NaN` allowed.

use std::fmt::Write as _;

use saltern_core::value::{Map, Value};

/// How to write.
#[derive(Clone, Copy, Default)]
pub(super) struct Style {
    pub(super) sort_keys: bool,
    pub(super) indent: Option<usize>,
    /// Whether everything beyond ASCII is escaped.
    pub(super) ascii: bool,
}

/// The value as JSON text.
pub(super) fn dumps(value: &Value, style: Style) -> String {
    let mut out = String::new();
    write(&mut out, value, style, 0);
    out
}

fn write(out: &mut String, value: &Value, style: Style, level: usize) {
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Int(int) => _ = write!(out, "{int}"),
        Value::UInt(int) => _ = write!(out, "{int}"),
        Value::Float(float) => out.push_str(&float_text(*float)),
        Value::Text(_) | Value::Bytes(_) | Value::Ext(..) => write_text(out, &value.key_text(), style.ascii),
        Value::List(items) => {
            write_items(out, ('[', ']'), items.len(), style, level, |out, n| write(out, &items[n], style, level + 1));
        }
        Value::Map(map) => {
            let entries = entries(map, style.sort_keys);
            write_items(out, ('{', '}'), entries.len(), style, level, |out, n| {
                let (key, value) = &entries[n];
                write_text(out, key, style.ascii);
                out.push_str(": ");
                write(out, value, style, level + 1);
            });
        }
    }
}

fn entries(map: &Map, sort: bool) -> Vec<(String, &Value)> {
    let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.key_text().into_owned(), value)).collect();
    if sort {
        entries.sort_by(|a, b| a.0.cmp(&b.0));
    }
    entries
}

fn write_items(
    out: &mut String,
    (open, close): (char, char),
    count: usize,
    style: Style,
    level: usize,
    write_item: impl Fn(&mut String, usize),
) {
    let new_line = |out: &mut String, level: usize| {
        if let Some(indent) = style.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * level));
        }
    };
    out.push(open);
    for n in 0..count {
        if n > 0 {
            out.push_str(if style.indent.is_some() { "," } else { ", " });
        }
        new_line(out, level + 1);
        write_item(out, n);
    }
    if count > 0 {
        new_line(out, level);
    }
    out.push(close);
}

fn write_text(out: &mut String, text: &str, ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (ascii && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // Python pads the exponent to two digits and signs it.
    let text = format!("{float:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}
