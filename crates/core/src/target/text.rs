//! Values as Python prints them, since that is what Salt compares patterns with: `True`, `None`, `1.0`, `['a', 'b']`.

use crate::value::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// What Python's `str()` makes of a value.
pub fn python_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        Value::Bool(true) => Cow::Borrowed("True"),
        Value::Bool(false) => Cow::Borrowed("False"),
        Value::Nil => Cow::Borrowed("None"),
        other => {
            let mut out = String::new();
            write_repr(other, &mut out);
            Cow::Owned(out)
        }
    }
}

/// Calls `f` with the lower-cased text. Short ASCII, which is nearly everything, is lower-cased on the stack: a grain match
/// over a large fleet must not allocate once per minion.
pub(crate) fn with_lower<R>(text: &str, f: impl FnOnce(&str) -> R) -> R {
    let mut buffer = [0_u8; 128];
    if let Some(room) = buffer.get_mut(..text.len())
        && text.is_ascii()
    {
        room.copy_from_slice(text.as_bytes());
        room.make_ascii_lowercase();
        if let Ok(lower) = std::str::from_utf8(room) {
            return f(lower);
        }
    }
    f(&text.to_lowercase())
}

fn write_repr(value: &Value, out: &mut String) {
    match value {
        Value::Nil => out.push_str("None"),
        Value::Bool(bool) => out.push_str(if *bool { "True" } else { "False" }),
        Value::Int(int) => drop(write!(out, "{int}")),
        Value::UInt(int) => drop(write!(out, "{int}")),
        Value::Float(float) => write_float(*float, out),
        Value::Text(text) => write_quoted(text.chars().map(Piece::Char), out),
        Value::Bytes(bytes) => {
            out.push('b');
            write_quoted(bytes.iter().map(|&b| Piece::Byte(b)), out);
        }
        Value::List(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n == 0 { "" } else { ", " });
                write_repr(item, out);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (n, (key, item)) in map.iter().enumerate() {
                out.push_str(if n == 0 { "" } else { ", " });
                write_repr(key, out);
                out.push_str(": ");
                write_repr(item, out);
            }
            out.push('}');
        }
        Value::Ext(_, raw) => match value.date_text() {
            Some(date) => out.push_str(&date.replacen('T', " ", 1)),
            None => out.push_str(&String::from_utf8_lossy(raw)),
        },
    }
}

/// Python writes the shortest digits that read back, in plain form for exponents from -4 to 15.
fn write_float(float: f64, out: &mut String) {
    if !float.is_finite() {
        out.push_str(if float.is_nan() {
            "nan"
        } else if float > 0.0 {
            "inf"
        } else {
            "-inf"
        });
        return;
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let _ = write!(out, "{float:?}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
    }
}

enum Piece {
    Char(char),
    Byte(u8),
}

fn write_quoted(pieces: impl Iterator<Item = Piece> + Clone, out: &mut String) {
    let has = |wanted: char| {
        pieces.clone().any(|piece| match piece {
            Piece::Char(c) => c == wanted,
            Piece::Byte(b) => char::from(b) == wanted,
        })
    };
    let quote = if has('\'') && !has('"') { '"' } else { '\'' };
    out.push(quote);
    for piece in pieces {
        let c = match piece {
            Piece::Char(c) => c,
            Piece::Byte(b) if b.is_ascii() => char::from(b),
            Piece::Byte(b) => {
                let _ = write!(out, "\\x{b:02x}");
                continue;
            }
        };
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => drop(write!(out, "\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Map;

    fn check(value: impl Into<Value>, expected: &str) {
        assert_eq!(python_text(&value.into()), expected);
    }

    #[test]
    fn scalars_print_as_in_python() {
        check(true, "True");
        check(Value::Nil, "None");
        check(5, "5");
        check(u64::MAX, "18446744073709551615");
        check("it's", "it's");
    }

    #[test]
    fn floats_print_as_in_python() {
        for (float, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
        ] {
            check(float, text);
        }
    }

    #[test]
    fn containers_print_their_parts_quoted() {
        check(Value::list(["a", "it's", "b\\n"]), r#"['a', "it's", 'b\\n']"#);
        let mut map = Map::new();
        map.insert("k", Value::list([Value::Nil, true.into()]));
        map.insert(1, 2.5);
        check(map, "{'k': [None, True], 1: 2.5}");
        check(&b"\xff'"[..], r#"b"\xff'""#);
    }

    #[test]
    fn lower_casing_reaches_beyond_ascii_and_beyond_the_buffer() {
        assert!(with_lower("DEBIAN", |text| text == "debian"));
        assert!(with_lower("ÄÖ", |text| text == "äö"));
        let long = "X".repeat(500);
        assert!(with_lower(&long, |text| text == "x".repeat(500)));
    }
}
