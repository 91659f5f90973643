//! What a scalar means: the YAML 1.1 rules of Salt's loader.
//!
//! The shapes are those of PyYAML's resolver, read by hand instead of by regular expression because every scalar of every
//! pillar file passes here.

use base64::Engine as _;
use bytes::Bytes;
use saltern_core::value::Value;

/// What a node is said to be, by its tag or by its looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Str,
    Timestamp,
    Binary,
    Merge,
    /// `=`, which means something only as a key
    Value,
    Seq,
    Map,
    Omap,
    Set,
    Pairs,
    /// A tag without a meaning here, by its full name
    Unknown(String),
}

const CORE: &str = "tag:yaml.org,2002:";

impl Tag {
    pub(super) fn from_uri(uri: &str) -> Self {
        let Some(name) = uri.strip_prefix(CORE) else { return Self::Unknown(uri.to_owned()) };
        match name {
            "null" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "float" => Self::Float,
            "str" | "python/unicode" => Self::Str,
            "timestamp" => Self::Timestamp,
            "binary" => Self::Binary,
            "merge" => Self::Merge,
            "value" => Self::Value,
            "seq" => Self::Seq,
            "map" => Self::Map,
            "omap" => Self::Omap,
            "set" => Self::Set,
            "pairs" => Self::Pairs,
            _ => Self::Unknown(uri.to_owned()),
        }
    }

    /// The full name, for messages.
    pub(super) fn uri(&self) -> String {
        let name = match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::Timestamp => "timestamp",
            Self::Binary => "binary",
            Self::Merge => "merge",
            Self::Value => "value",
            Self::Seq => "seq",
            Self::Map => "map",
            Self::Omap => "omap",
            Self::Set => "set",
            Self::Pairs => "pairs",
            Self::Unknown(uri) => return uri.clone(),
        };
        format!("{CORE}{name}")
    }
}

/// The tag of a plain scalar, by its looks. Dates are text in Salt, so nothing looks for them.
pub(super) fn resolve_plain(text: &str) -> Tag {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Tag::Null,
        "<<" => Tag::Merge,
        "=" => Tag::Value,
        _ if bool_of(text, false).is_some() => Tag::Bool,
        _ if looks_like_int(text) => Tag::Int,
        _ if looks_like_float(text) => Tag::Float,
        _ => Tag::Str,
    }
}

/// The value of a scalar that carries `tag`, or what is wrong with it.
pub(super) fn scalar_value(tag: &Tag, text: &str) -> Result<Value, String> {
    match tag {
        Tag::Null => Ok(Value::Nil),
        Tag::Bool => bool_of(text, true).map(Value::Bool).ok_or_else(|| format!("'{text}' is not a boolean")),
        Tag::Int => int_of(text),
        Tag::Float => float_of(text).map(Value::Float).ok_or_else(|| format!("could not convert '{text}' to a float")),
        Tag::Str | Tag::Timestamp => Ok(text.into()),
        Tag::Binary => binary_of(text),
        Tag::Seq | Tag::Pairs => Err("expected a sequence node, but found scalar".to_owned()),
        Tag::Map | Tag::Omap | Tag::Set => Err("expected a mapping node, but found scalar".to_owned()),
        Tag::Merge | Tag::Value | Tag::Unknown(_) => {
            Err(format!("could not determine a constructor for the tag '{}'", tag.uri()))
        }
    }
}

/// Plain scalars know three spellings of each word; under an explicit `!!bool` any spelling counts.
fn bool_of(text: &str, any_case: bool) -> Option<bool> {
    const WORDS: [(&str, bool); 6] =
        [("yes", true), ("true", true), ("on", true), ("no", false), ("false", false), ("off", false)];
    let (_, value) = WORDS.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(text))?;
    let rest = text.get(1..)?;
    let is_usual = text.bytes().all(|b| b.is_ascii_uppercase()) || rest.bytes().all(|b| b.is_ascii_lowercase());
    (any_case || is_usual).then_some(value)
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn all(text: &str, ok: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(ok)
}

fn looks_like_int(text: &str) -> bool {
    let digits = unsigned(text);
    if digits == "0" {
        return true;
    }
    if let Some(bits) = digits.strip_prefix("0b") {
        return all(bits, |b| matches!(b, b'0' | b'1' | b'_'));
    }
    if let Some(hex) = digits.strip_prefix("0x") {
        return all(hex, |b| b.is_ascii_hexdigit() || b == b'_');
    }
    if let Some(octal) = digits.strip_prefix('0') {
        return all(octal, |b| matches!(b, b'0'..=b'7' | b'_'));
    }
    let mut parts = digits.split(':');
    parts.next().is_some_and(|first| first.starts_with(|c: char| c.is_ascii_digit()) && is_digits(first))
        && parts.all(is_sixtieth)
}

fn is_digits(text: &str) -> bool {
    all(text, |b| b.is_ascii_digit() || b == b'_')
}

/// One of the later parts of a base 60 number: `[0-5]?[0-9]`.
fn is_sixtieth(text: &str) -> bool {
    match text.as_bytes() {
        [ones] => ones.is_ascii_digit(),
        [tens, ones] => matches!(tens, b'0'..=b'5') && ones.is_ascii_digit(),
        _ => false,
    }
}

fn looks_like_float(text: &str) -> bool {
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let digits = unsigned(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let Some((whole, rest)) = digits.split_once('.') else { return false };
    let (fraction, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    // PyYAML wants the exponent's sign: `1.0e3` is text.
    let exponent_ok = exponent.is_none_or(|e| e.starts_with(['+', '-']) && all(&e[1..], |b| b.is_ascii_digit()));
    let fraction_ok = fraction.is_empty() || is_digits(fraction);
    if whole.is_empty() {
        return digits.len() == text.len()
            && fraction.starts_with(|c: char| c.is_ascii_digit())
            && fraction_ok
            && exponent_ok;
    }
    let mut parts = whole.split(':');
    let first_ok = parts.next().is_some_and(|p| p.starts_with(|c: char| c.is_ascii_digit()) && is_digits(p));
    let is_sexagesimal = whole.contains(':');
    first_ok && parts.all(is_sixtieth) && fraction_ok && exponent_ok && !(is_sexagesimal && exponent.is_some())
}

/// Reads an integer the way Salt's `construct_scalar` followed by PyYAML's does: leading zeros of an unsigned number are
/// dropped (`0644` is 644), while `-0644` stays octal.
fn int_of(text: &str) -> Result<Value, String> {
    let mut text = text.to_owned();
    if text.starts_with('0') && !text.starts_with("0b") && !text.starts_with("0x") && text != "0" {
        text = text.trim_start_matches('0').to_owned();
        if text.is_empty() {
            text.push('0');
        }
    }
    let digits = text.replace('_', "");
    let (is_negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let (radix, digits) = match digits {
        "0" => (10, digits),
        _ if digits.starts_with("0b") => (2, &digits[2..]),
        _ if digits.starts_with("0x") => (16, &digits[2..]),
        _ if digits.starts_with('0') => (8, digits),
        _ => (10, digits),
    };
    let invalid = || format!("invalid literal for an integer with base {radix}: '{digits}'");
    if digits.contains(':') {
        let mut sum: i64 = 0;
        for part in digits.split(':') {
            let part: i64 = part.parse().map_err(|_| invalid())?;
            sum = sum.checked_mul(60).and_then(|sum| sum.checked_add(part)).ok_or_else(invalid)?;
        }
        return Ok(Value::Int(if is_negative { -sum } else { sum }));
    }
    if !all(digits, |b| char::from(b).is_digit(radix)) {
        return Err(invalid());
    }
    let magnitude = u128::from_str_radix(digits, radix).ok();
    let fits = magnitude.and_then(|magnitude| {
        if is_negative {
            i64::try_from(-i128::try_from(magnitude).ok()?).ok().map(Value::Int)
        } else {
            u64::try_from(magnitude).ok().map(Value::from)
        }
    });
    // Python counts on; msgpack cannot, and Salt sends such a number as text.
    Ok(fits.unwrap_or_else(|| match radix {
        10 => Value::from(format!("{}{digits}", if is_negative { "-" } else { "" })),
        _ => Value::from(text),
    }))
}

fn float_of(text: &str) -> Option<f64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(&text)),
    };
    match digits {
        ".inf" => return Some(sign * f64::INFINITY),
        ".nan" => return Some(f64::NAN),
        _ => {}
    }
    let mut sum = 0.0;
    for part in digits.split(':') {
        if !all(part, |b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+' | b'-')) {
            return None;
        }
        sum = sum * 60.0 + part.parse::<f64>().ok()?;
    }
    Some(sign * sum)
}

/// Python's `base64.decodebytes` over text that may lack its padding: what is not of the alphabet is skipped.
fn binary_of(text: &str) -> Result<Value, String> {
    if !text.is_ascii() {
        return Err("failed to convert base64 data into ascii".to_owned());
    }
    let alphabet: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/')).collect();
    base64::engine::general_purpose::STANDARD_NO_PAD
        .decode(alphabet)
        .map(|raw| Value::from(Bytes::from(raw)))
        .map_err(|err| format!("failed to decode base64 data: {err}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Value {
        scalar_value(&resolve_plain(text), text).unwrap()
    }

    #[test]
    fn leading_zeros_are_dropped() {
        assert_eq!(plain("0644"), Value::Int(644));
        assert_eq!(plain("00"), Value::Int(0));
        assert_eq!(plain("-0644"), Value::Int(-0o644));
        assert_eq!(plain("0899"), Value::from("0899"));
    }

    #[test]
    fn words_are_booleans_in_three_spellings() {
        assert_eq!(plain("On"), Value::Bool(true));
        assert_eq!(plain("OFF"), Value::Bool(false));
        assert_eq!(plain("yEs"), Value::from("yEs"));
        assert_eq!(plain("y"), Value::from("y"));
    }

    #[test]
    fn numbers_beyond_the_wire_become_text() {
        assert_eq!(plain("18446744073709551615"), Value::UInt(u64::MAX));
        assert_eq!(plain("18446744073709551616"), Value::from("18446744073709551616"));
        assert_eq!(plain("-9223372036854775808"), Value::Int(i64::MIN));
    }

    #[test]
    fn base_sixty_is_a_number() {
        assert_eq!(plain("12:30:45"), Value::Int(45045));
        assert_eq!(plain("1:30.5"), Value::Float(90.5));
        assert_eq!(plain("01:30"), Value::from("01:30"));
    }

    #[test]
    fn exponents_need_a_sign() {
        assert_eq!(plain("1.0e+3"), Value::Float(1000.0));
        assert_eq!(plain("1.0e3"), Value::from("1.0e3"));
    }
}
