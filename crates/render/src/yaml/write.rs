//! Values as YAML text: in blocks for people, in one line for templates.
//!
//! What is written here is read back by [`super::load`] as the same value (bytes that are UTF-8 and dates become text).

use std::fmt::Write as _;

use base64::Engine as _;
use saltern_core::value::{Map, Value};

use super::resolve::{Tag, resolve_plain};

/// A value in block style, ending in a newline: what `--out yaml` shows.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Map(map) if !map.is_empty() => write_map(&mut out, map, 0),
        Value::List(items) if !items.is_empty() => write_list(&mut out, items, 0),
        scalar => {
            write_scalar(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out
}

/// A value in flow style, on one line.
pub fn to_flow(value: &Value) -> String {
    let mut out = String::new();
    write_flow(&mut out, value);
    out
}

/// Text as a double-quoted scalar.
pub(crate) fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) < 0x100 => _ = write!(out, "\\x{:02X}", u32::from(c)),
            c if u32::from(c) < 0x1_0000 => _ = write!(out, "\\u{:04X}", u32::from(c)),
            c => _ = write!(out, "\\U{:08X}", u32::from(c)),
        }
    }
    out.push('"');
    out
}

/// Text as a single-quoted scalar; only for text without line breaks and control characters.
pub(crate) fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn write_map(out: &mut String, map: &Map, indent: usize) {
    for (n, (key, value)) in map.iter().enumerate() {
        if n > 0 {
            push_indent(out, indent);
        }
        out.push_str(&key_text(key));
        out.push(':');
        match value {
            Value::Map(map) if !map.is_empty() => {
                out.push('\n');
                push_indent(out, indent + 2);
                write_map(out, map, indent + 2);
            }
            // Salt's own output puts a list flush with its key.
            Value::List(items) if !items.is_empty() => {
                out.push('\n');
                push_indent(out, indent);
                write_list(out, items, indent);
            }
            scalar => {
                out.push(' ');
                write_scalar(out, scalar, indent);
                out.push('\n');
            }
        }
    }
}

fn write_list(out: &mut String, items: &[Value], indent: usize) {
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            push_indent(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Map(map) if !map.is_empty() => write_map(out, map, indent + 2),
            Value::List(items) if !items.is_empty() => write_list(out, items, indent + 2),
            scalar => {
                write_scalar(out, scalar, indent);
                out.push('\n');
            }
        }
    }
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a scalar or an empty collection; block text ends without its last newline, which the caller writes.
fn write_scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Text(text) if is_block_text(text) => write_block_text(out, text, indent + 2),
        value => write_flow(out, value),
    }
}

fn write_block_text(out: &mut String, text: &str, indent: usize) {
    let body = text.strip_suffix('\n').unwrap_or(text);
    out.push_str(match (text.ends_with('\n'), body.ends_with('\n')) {
        (false, _) => "|-",
        (true, false) => "|",
        (true, true) => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            push_indent(out, indent);
            out.push_str(line);
        }
    }
}

/// Whether text reads well, and reads back unchanged, as a literal block.
fn is_block_text(text: &str) -> bool {
    let Some(first) = text.split('\n').find(|line| !line.is_empty()) else { return false };
    text.contains('\n') && !first.starts_with([' ', '\t']) && text.chars().all(|c| c == '\n' || is_printable(c))
}

fn write_flow(out: &mut String, value: &Value) {
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Int(int) => _ = write!(out, "{int}"),
        Value::UInt(int) => _ = write!(out, "{int}"),
        Value::Float(float) => out.push_str(&float_text(*float)),
        Value::Text(text) => out.push_str(&text_scalar(text)),
        Value::Bytes(bytes) => {
            let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
            _ = write!(out, "!!binary \"{encoded}\"");
        }
        Value::Ext(..) => out.push_str(&text_scalar(&value.key_text())),
        Value::List(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                write_flow(out, item);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (n, (key, value)) in map.iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                out.push_str(&key_text(key));
                out.push_str(": ");
                write_flow(out, value);
            }
            out.push('}');
        }
    }
}

/// A key on one line. A list or map as a key, which YAML here cannot read, becomes its text.
fn key_text(key: &Value) -> String {
    match key {
        Value::List(_) | Value::Map(_) => double_quoted(&to_flow(key)),
        scalar => to_flow(scalar),
    }
}

fn float_text(float: f64) -> String {
    if float.is_nan() {
        return ".nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    // Rust writes `1e20`; a YAML 1.1 float has a point and a signed exponent.
    let text = format!("{float:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let point = if mantissa.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with('-') { "" } else { "+" };
            format!("{mantissa}{point}e{sign}{exponent}")
        }
        None => text,
    }
}

fn text_scalar(text: &str) -> String {
    if !text.chars().all(is_printable) {
        double_quoted(text)
    } else if is_plain(text) {
        text.to_owned()
    } else {
        single_quoted(text)
    }
}

/// Whether text can stand without quotes, in flow as in block, and is still text when YAML 1.1 or 1.2 reads it.
fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let (Some(first), second) = (chars.next(), chars.next()) else { return false };
    let starts_well = match first {
        '-' | '?' | ':' => second.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '/'),
        ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' | '=' | '<'
        | ' ' => false,
        _ => true,
    };
    let looks_like_number_or_date = matches!(first, '0'..='9' | '+' | '.')
        && (text.parse::<f64>().is_ok() || text.contains('-') || text.contains(':'));
    starts_well
        && !looks_like_number_or_date
        && resolve_plain(text) == Tag::Str
        && !text.ends_with([' ', ':'])
        // Fine by the book, but our parser stumbles over it before a closing bracket.
        && !text.ends_with(" -")
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.contains([',', '[', ']', '{', '}', '\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'])
}

fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
        || c > '\u{ffff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_lists_are_laid_out_as_salt_does() {
        let value = Value::map([
            ("a", Value::list([Value::Int(1), Value::map([("b", "x"), ("c", "yes")]), Value::list([1, 2])])),
            ("d", Value::map([("e", Value::Nil)])),
            ("f", Value::List(vec![])),
            ("g", Value::from("two\nlines\n")),
        ]);
        let text = "a:\n- 1\n- b: x\n  c: 'yes'\n- - 1\n  - 2\nd:\n  e: null\nf: []\ng: |\n  two\n  lines\n";
        assert_eq!(to_yaml(&value), text);
    }

    #[test]
    fn flow_style_is_one_line() {
        let value = Value::map([("a", Value::list(["x y", "a, b", "it's", "n\nl"])), ("b", Value::Float(1e20))]);
        assert_eq!(to_flow(&value), r#"{a: [x y, 'a, b', it's, "n\nl"], b: 1.0e+20}"#);
    }
}
