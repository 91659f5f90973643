//! Grain and pillar targets: `key:pattern`, where either side may itself contain the delimiter.
//!
//! Salt tries every place where the key could end, the longest key first, and on the way down it compares whatever it
//! finds (a scalar, the members of a list, the keys of a map) with the rest of the expression. So every pattern that can
//! come up is a tail of the expression; the tails are compiled once, and matching allocates nothing in the usual case.
//!
//! Rules: wire reference, section 8.1. Below the top level the delimiter is always `:`, whatever was given.

use super::TargetError;
use super::glob::Glob;
use super::regex::{MAX_PATTERN, Regex, RegexFault};
use super::text::{python_text, with_lower};
use crate::value::{Map, Value};

/// Deepest expression we compile: parts between delimiters.
const MAX_PARTS: usize = 64;
/// How many maps and lists one match may visit. Crafted data can make Salt's search exponential; real data needs tens.
const MAX_VISITS: u32 = 20_000;
/// The delimiter below the top level.
const COLON: char = ':';

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Glob,
    Regex,
    Exact,
}

/// A compiled `key:pattern`.
#[derive(Debug, Clone)]
pub(crate) struct KeyValue {
    expression: Box<str>,
    delimiter: char,
    /// By where they start in the expression, ascending
    tails: Box<[(usize, Pattern)]>,
}

#[derive(Debug, Clone)]
enum Pattern {
    Glob(Glob),
    Regex(Box<Regex>),
    Exact(Box<str>),
    /// A tail that happens not to be a regular expression, as `debian)` in `os:(?:debian)`
    Nothing,
}

impl KeyValue {
    pub(crate) fn compile(expression: &str, delimiter: char, reading: Reading) -> Result<Self, TargetError> {
        if expression.len() > MAX_PATTERN {
            return Err(TargetError::TooLarge { what: "a longer pattern", limit: MAX_PATTERN });
        }
        let Some((_, value)) = expression.split_once(delimiter) else {
            return Err(TargetError::NoDelimiter { expression: expression.into(), delimiter });
        };
        // `*:` in front of a pattern is a wildcard, not a part of it.
        let value_at = expression.len() - value.trim_start_matches("*:").len();
        let ends = expression.char_indices().filter(|&(_, c)| c == delimiter || c == COLON);
        let starts: Vec<usize> = std::iter::once(0).chain(ends.map(|(at, c)| at + c.len_utf8())).collect();
        if starts.len() > MAX_PARTS {
            return Err(TargetError::TooLarge { what: "more parts between delimiters", limit: MAX_PARTS });
        }
        let mut tails = Vec::with_capacity(starts.len());
        for start in starts {
            let lower = expression[start..].to_lowercase();
            let pattern = match reading {
                Reading::Glob => Pattern::Glob(Glob::new(&lower)),
                Reading::Exact => Pattern::Exact(lower.into()),
                Reading::Regex => match Regex::at_start(&lower) {
                    Ok(regex) => Pattern::Regex(Box::new(regex)),
                    // Salt skips a tail that does not compile. If it is the whole value, that is a typing error,
                    // unless it is the bare `*` that means any key of a map.
                    Err(RegexFault { at, reason }) if start == value_at && lower != "*" => {
                        return Err(TargetError::BadRegex { pattern: lower, at, reason });
                    }
                    Err(_) => Pattern::Nothing,
                },
            };
            tails.push((start, pattern));
        }
        Ok(Self { expression: expression.into(), delimiter, tails: tails.into() })
    }

    /// Whether `data`, the minion's grains or pillar, has what the expression asks for.
    pub(crate) fn matches(&self, data: &Value) -> bool {
        Search { target: self, visits: 0 }.tree(data, 0, self.delimiter)
    }

    /// The one top-level key that decides; none if any may.
    pub(crate) fn top_key(&self) -> Option<&str> {
        let key = self.expression.split(self.delimiter).next()?;
        (key != "*" && typed_key(key).is_none()).then_some(key)
    }

    fn tail(&self, start: usize) -> &Pattern {
        match self.tails.binary_search_by_key(&start, |(at, _)| *at) {
            Ok(found) => &self.tails[found].1,
            Err(_) => &Pattern::Nothing,
        }
    }
}

impl Pattern {
    fn matches(&self, value: &Value) -> bool {
        with_lower(&python_text(value), |text| match self {
            Self::Glob(glob) => glob.matches(text),
            Self::Regex(regex) => regex.matches(text),
            Self::Exact(exact) => **exact == *text,
            Self::Nothing => false,
        })
    }
}

/// One match under way. `start` is always where the part of the expression begins that is still to be found.
struct Search<'t> {
    target: &'t KeyValue,
    visits: u32,
}

impl Search<'_> {
    /// Tries every place where the key could end, the longest key first.
    fn tree(&mut self, data: &Value, start: usize, delimiter: char) -> bool {
        let expression = &self.target.expression[start..];
        for (end, _) in expression.rmatch_indices(delimiter) {
            let key = &expression[..end];
            let hit = if key == "*" {
                self.found(data, start)
            } else {
                let rest = start + end + delimiter.len_utf8();
                walk(data, key, delimiter).is_some_and(|found| self.found(found, rest))
            };
            if hit {
                return true;
            }
        }
        false
    }

    fn found(&mut self, found: &Value, start: usize) -> bool {
        match found {
            Value::Map(map) => !map.is_empty() && self.map(found, map, start),
            Value::List(items) => items.iter().any(|item| {
                item.as_map().is_some_and(|map| self.map(item, map, start)) || self.target.tail(start).matches(item)
            }),
            scalar => self.target.tail(start).matches(scalar),
        }
    }

    fn map(&mut self, value: &Value, map: &Map, start: usize) -> bool {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return false;
        }
        let wildcard = self.target.expression[start..].starts_with("*:");
        let start = if wildcard { start + 2 } else { start };
        let text = &self.target.expression[start..];
        let pattern = self.target.tail(start);
        text == "*"
            || map.get(text).is_some()
            || map.iter().any(|(key, _)| pattern.matches(key))
            || self.tree(value, start, COLON)
            || wildcard && map.values().any(|child| self.child(child, start))
    }

    /// A child of a map under `*:`; unlike elsewhere, maps inside a list are only compared as text.
    fn child(&mut self, child: &Value, start: usize) -> bool {
        let pattern = self.target.tail(start);
        match child {
            Value::Map(map) => self.map(child, map, start),
            Value::List(items) => items.iter().any(|item| pattern.matches(item)),
            scalar => pattern.matches(scalar),
        }
    }
}

/// Walks down by the parts of a key: map keys, list indexes, or the key inside any map of a list.
fn walk<'v>(data: &'v Value, key: &str, delimiter: char) -> Option<&'v Value> {
    key.split(delimiter).try_fold(data, |at, part| match at {
        Value::Map(map) => map.get(part).or_else(|| typed_key(part).and_then(|key| map.find(&key))),
        Value::List(items) => {
            let index = list_index(part);
            let key = index.map_or_else(|| Value::from(part), Value::from);
            let embedded = items.iter().filter_map(Value::as_map).find_map(|map| map.find(&key));
            embedded.or_else(|| {
                let index = index?;
                let from_start = if index < 0 { index + i64::try_from(items.len()).ok()? } else { index };
                items.get(usize::try_from(from_start).ok()?)
            })
        }
        _ => None,
    })
}

/// A list index as Python's `int()` reads it: signs, blanks and single underscores allowed.
fn list_index(part: &str) -> Option<i64> {
    let digits = part.trim();
    let bare = digits.trim_start_matches(['+', '-']);
    if bare.starts_with('_') || bare.ends_with('_') || bare.contains("__") {
        return None;
    }
    digits.replace('_', "").parse().ok()
}

/// What YAML would make of a part that is no key as it stands: a number, a truth value, nil, or the text without its
/// quotes or blanks. `None` where YAML would leave it alone.
fn typed_key(part: &str) -> Option<Value> {
    let plain = part.trim();
    if plain.is_empty() || part.contains(['\t', '\r', '\n', '#']) {
        return None;
    }
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return plain.parse::<i64>().ok().map(Value::from);
    }
    if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && digits.contains('.') {
        return plain.parse::<f64>().ok().map(Value::from);
    }
    if let Some(hex) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).ok().map(Value::from);
    }
    match plain {
        "None" | "~" | "null" | "Null" | "NULL" => return Some(Value::Nil),
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Some(true.into()),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Some(false.into()),
        _ => {}
    }
    let unquoted = ['"', '\''].iter().find_map(|&quote| plain.strip_prefix(quote)?.strip_suffix(quote));
    let text = unquoted.unwrap_or(plain);
    (text != part).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    fn check(expression: &str, json: &str, expected: bool) {
        let target = KeyValue::compile(expression, ':', Reading::Glob).unwrap();
        assert_eq!(target.matches(&data(json)), expected, "{expression} on {json}");
    }

    #[test]
    fn deepest_key_and_value_with_colons_both_work() {
        check("a:b:c", r#"{"a": {"b": "C"}}"#, true);
        check("a:b:c", r#"{"a": "b:c"}"#, true);
        check("a:b:c", r#"{"a:b": "c"}"#, false);
    }

    #[test]
    fn wildcards_reach_children() {
        check("*:x", r#"{"a": {"x": 1}}"#, true);
        check("*:c:d", r#"{"a": {"c": {"d": 1}}}"#, true);
        check("*:1", r#"{"a": [2, 1]}"#, true);
        check("*:2", r#"{"a": [{"x": 2}]}"#, false);
    }

    #[test]
    fn crafted_data_cannot_make_the_search_explode() {
        let mut nested = Value::from("leaf");
        for _ in 0..40 {
            nested = Value::map([("a", Value::list([Value::map([("a", nested)])]))]);
        }
        let expression = format!("{}nothing", "a:".repeat(60));
        assert!(!KeyValue::compile(&expression, ':', Reading::Glob).unwrap().matches(&nested));
        let stars = format!("{}nothing", "*:".repeat(60));
        assert!(!KeyValue::compile(&stars, ':', Reading::Glob).unwrap().matches(&nested));
    }

    #[test]
    fn a_broken_pattern_is_refused_but_a_broken_tail_is_not() {
        assert!(KeyValue::compile("os:(?:debian|ubuntu)", ':', Reading::Regex).is_ok());
        assert!(matches!(
            KeyValue::compile("os:(debian", ':', Reading::Regex),
            Err(TargetError::BadRegex { at: 1, .. })
        ));
        assert!(matches!(KeyValue::compile("os", ':', Reading::Glob), Err(TargetError::NoDelimiter { .. })));
    }
}
