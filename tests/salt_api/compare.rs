//! Compares what was answered with what salt-api answered once: the same, but for what no two answers share.
//!
//! Volatile parts (job ids, times, fingerprints, tokens, process ids, versions, addresses) count by their form. Of a trimmed
//! capture only the form is known at all. An expectation that was written by hand may say `"<any>"`, `"<text>"` or
//! `"<number>"` for a value, and `"<minion>"` for a key that is the only one.

use regex::Regex;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::LazyLock;

/// How strictly two answers are compared.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How<'a> {
    /// Only kinds are compared, what is missing in the expectation is allowed
    pub(crate) shape: bool,
    /// The elements of `return` may come in any order
    pub(crate) any_order: bool,
    /// Places that are not compared, as `return.*.web1`
    pub(crate) apart: &'a [&'a str],
}

/// Everything in which `got` is not what was expected, with its place.
pub(crate) fn differences(expected: &Value, got: &Value, how: How<'_>) -> Vec<String> {
    let mut found = Vec::new();
    compare(expected, got, "", how, &mut found);
    found
}

/// The text with its volatile parts named instead of written; `theirs` is text of the newer dialect, with offsets in stamps.
pub(crate) fn normal(text: &str, theirs: bool) -> String {
    let mut text = Cow::Borrowed(text);
    for (pattern, name) in VOLATILE.iter() {
        if let Cow::Owned(changed) = pattern.replace_all(&text, *name) {
            text = Cow::Owned(changed);
        }
    }
    if theirs { text.replace("<stamp>+00:00", "<stamp>") } else { text.into_owned() }
}

static VOLATILE: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let pattern = |text: &str| Regex::new(text).expect("a pattern of our own");
    vec![
        (pattern(r"(?s)-----BEGIN (RSA )?PRIVATE KEY-----.*-----END (RSA )?PRIVATE KEY-----\n?"), "<private key>"),
        (pattern(r"(?s)-----BEGIN PUBLIC KEY-----.*-----END PUBLIC KEY-----\n?"), "<public key>"),
        (pattern(r"\b20\d{18}\b"), "<jid>"),
        (pattern(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}"), "<stamp>"),
        (pattern(r"\b\d{4}, [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6}"), "<start time>"),
        (pattern(r"\b(?:[0-9a-f]{2}:){31}[0-9a-f]{2}\b"), "<sha-256>"),
        (pattern(r"\b(?:[0-9a-f]{2}:){15}[0-9a-f]{2}\b"), "<md5>"),
        (pattern(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b"), "<token>"),
        (pattern(r"\b\d\d:\d\d:\d\d\.\d{6}\b"), "<time>"),
        (pattern(r"\bat pid \d+"), "at pid <pid>"),
        (pattern(r"\bstarted at \w{3} \w{3} +\d+ [\d:]{8} \d{4}"), "started at <time>"),
        (pattern(r"\b\d{10}\.\d+\b"), "<seconds>"),
        (pattern(r"^\d+\.\d+\.\d+\.\d+$"), "<address>"),
        (pattern(r"^300\d\.\d+$"), "<version>"),
    ]
});

/// Numbers and texts of which only the kind counts, by the key they are under; and the process ids of who is `Running` a job.
const LOOSE: [&str; 6] = ["expire", "start", "duration", "start_time", "pid", "memusage"];

/// Lists in which the order means something; ids of minions and names of functions come in any.
const ORDERED: [&str; 6] = ["args", "arg", "fun_args", "__pub_arg", "Arguments", "perms"];

fn compare(expected: &Value, got: &Value, place: &str, how: How<'_>, found: &mut Vec<String>) {
    if how.apart.iter().any(|apart| is_at(place, apart)) {
        return;
    }
    let key = place.split('.').rfind(|part| part.parse::<usize>().is_err()).unwrap_or_default();
    let is_loose = how.shape || LOOSE.contains(&key) || place.split('.').any(|part| part == "Running");
    match (expected, got) {
        (Value::String(class), _) if is_class(class, got) => {}
        (Value::Object(expected), Value::Object(got)) => objects(expected, got, place, how, found),
        (Value::Array(expected), Value::Array(got)) => arrays(expected, got, (place, key), how, found),
        (Value::String(theirs), Value::String(ours)) => {
            if !(is_loose || is_same_text(theirs, ours)) {
                found.push(told(place, expected, got));
            }
        }
        // The target of a job is a list where a program gave one.
        (Value::String(_), Value::Array(_)) | (Value::Array(_), Value::String(_)) if how.shape && key == "Target" => {}
        _ if kind(expected) == kind(got) && (is_loose || expected == got) => {}
        _ => found.push(told(place, expected, got)),
    }
}

fn objects(
    expected: &Map<String, Value>,
    got: &Map<String, Value>,
    place: &str,
    how: How<'_>,
    found: &mut Vec<String>,
) {
    let at = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    let is_jid = |key: &String| normal(key, false) == "<jid>";
    // A table of jobs: which there are is another matter than what is told of each.
    if how.shape && !expected.is_empty() && expected.keys().chain(got.keys()).all(is_jid) {
        let Some(mut first) = expected.values().next().cloned() else { return };
        first.as_object_mut().map(|job| job.remove("Metadata"));
        for (jid, job) in got {
            compare(&first, job, &at(jid), how, found);
        }
        return;
    }
    let mut rest: Vec<&String> = got.keys().collect();
    for (name, value) in expected {
        let wanted = normal(name, true);
        let fits = |key: &&String| wanted == "<minion>" || normal(key, false) == wanted;
        match rest.iter().position(fits) {
            Some(index) => {
                let key = rest.remove(index);
                compare(value, &got[key], &at(key), how, found);
            }
            None if how.apart.iter().any(|apart| is_at(&at(name), apart)) => {}
            None => found.push(format!("{} is missing, expected {}", at(name), short(value))),
        }
    }
    rest.retain(|key| !how.shape && !how.apart.iter().any(|apart| is_at(&at(key), apart)));
    found.extend(rest.into_iter().map(|key| format!("{} is too much: {}", at(key), short(&got[key]))));
}

fn arrays(expected: &[Value], got: &[Value], (place, key): (&str, &str), how: How<'_>, found: &mut Vec<String>) {
    let at = |index: usize| if place.is_empty() { index.to_string() } else { format!("{place}.{index}") };
    if how.shape && place != "return" {
        // What a function was given is as it pleased the caller.
        if key == "Arguments" {
            return;
        }
        if let (Some(expected), Some(got)) = (expected.first(), got.first()) {
            compare(expected, got, &at(0), how, found);
        }
        return;
    }
    if expected.len() != got.len() {
        let (expected, got) = (Value::Array(expected.to_vec()), Value::Array(got.to_vec()));
        found.push(told(place, &expected, &got));
        return;
    }
    let all_texts = || expected.iter().chain(got).all(Value::is_string);
    let any_order = (how.any_order && place == "return") || key == "Running";
    if any_order || (!ORDERED.contains(&key) && all_texts()) {
        let same = |theirs: &Value, ours: &Value| {
            let mut found = Vec::new();
            compare(theirs, ours, place, How { apart: &[], ..how }, &mut found);
            found.is_empty()
        };
        let mut rest: Vec<&Value> = got.iter().collect();
        for value in expected {
            match rest.iter().position(|ours| same(value, ours)) {
                Some(index) => drop(rest.remove(index)),
                None => {
                    found.push(format!("{place} lacks {}, it has {}", short(value), short(&Value::Array(got.to_vec()))))
                }
            }
        }
        return;
    }
    for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
        compare(expected, got, &at(index), how, found);
    }
}

/// Whether a hand-written or shortened expectation allows this value, whatever it is exactly.
fn is_class(class: &str, got: &Value) -> bool {
    match class {
        "<any>" | "(trimmed)" => true,
        "<text>" => got.is_string(),
        "<number>" => got.is_number(),
        "(docstring)" => got.is_string() || got.is_null(),
        remark => remark.starts_with('(') && (remark.contains("same as") || remark.contains("as usual")),
    }
}

/// What stands in captures for text that was left out, and where text begins that only Salt's Python can write.
const CUTS: [&str; 6] =
    ["(docstring trimmed)", "(frames trimmed)", "(trimmed)", "Traceback (most", "UnboundLocalError:", "TypeError:"];

fn is_same_text(theirs: &str, ours: &str) -> bool {
    let (theirs, ours) = (normal(theirs, true), normal(ours, false));
    match CUTS.iter().filter_map(|cut| theirs.find(cut)).min() {
        Some(cut) => ours.starts_with(&theirs[..cut]),
        None => theirs == ours,
    }
}

/// Whether a place is at or below another, of which a part may be `*`.
fn is_at(place: &str, apart: &str) -> bool {
    let mut parts = place.split('.');
    apart.split('.').all(|wanted| parts.next().is_some_and(|part| wanted == "*" || wanted == part))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn told(place: &str, expected: &Value, got: &Value) -> String {
    let place = if place.is_empty() { "the body" } else { place };
    format!("{place}: expected {}, got {}", short(expected), short(got))
}

/// A value as one line that can be read.
pub(crate) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn differ(expected: Value, got: Value, how: How<'_>, count: usize) {
        let found = differences(&expected, &got, how);
        assert_eq!(found.len(), count, "{found:?}");
    }

    #[test]
    fn values_count_and_volatile_parts_count_by_their_form() {
        let theirs = json!({ "jid": "20261115190301104024", "_stamp": "2026-11-15T19:03:01.104433+00:00", "pid": 7, "ok": true });
        let ours = |stamp: &str| json!({ "jid": "20270101000000000000", "_stamp": stamp, "pid": 8, "ok": true });
        differ(theirs.clone(), ours("2027-01-01T00:00:00.000001"), How::default(), 0);
        differ(theirs.clone(), ours("2027-01-01T00:00:00.000001+00:00"), How::default(), 1);
        differ(theirs.clone(), ours("2027-01-01T00:00:00Z"), How::default(), 1);
        differ(
            theirs,
            json!({ "jid": "abc", "_stamp": "2027-01-01T00:00:00.000001", "pid": "8", "ok": 1 }),
            How::default(),
            3,
        );
    }

    #[test]
    fn keys_have_to_be_the_same() {
        differ(json!({ "a": 1, "b": 2 }), json!({ "a": 1, "c": 2 }), How::default(), 2);
        differ(json!({ "a": 1 }), json!({ "a": 1, "c": 2 }), How { apart: &["c"], ..How::default() }, 0);
        differ(json!({ "a": [{ "b": 1 }] }), json!({ "a": [{}] }), How { apart: &["a.*.b"], ..How::default() }, 0);
        differ(json!({ "20261115190301104024": 1 }), json!({ "20270101000000000000": 1 }), How::default(), 0);
        differ(json!({ "<minion>": true }), json!({ "web1": true }), How::default(), 0);
        differ(json!({ "<minion>": true }), json!({ "web1": true, "db1": true }), How::default(), 1);
    }

    #[test]
    fn of_a_trimmed_answer_only_the_form_counts() {
        let how = How { shape: true, ..How::default() };
        differ(json!({ "a": "x", "b": [1] }), json!({ "a": "y", "b": [2, 3], "c": null }), how, 0);
        differ(json!({ "a": "x", "b": [1] }), json!({ "a": 1, "b": ["x"] }), how, 2);
        let theirs = json!({ "20261115190301104024": { "Function": "x", "Metadata": {}, "Target": "*" } });
        differ(theirs.clone(), json!({ "20270101000000000000": { "Function": "y", "Target": ["a"] } }), how, 0);
        differ(theirs, json!({ "20270101000000000000": { "Target": "a" } }), how, 1);
    }

    #[test]
    fn order_counts_for_arguments_and_not_for_names() {
        differ(json!({ "minions": ["a", "b"] }), json!({ "minions": ["b", "a"] }), How::default(), 0);
        differ(json!({ "args": ["a", "b"] }), json!({ "args": ["b", "a"] }), How::default(), 2);
        let (theirs, ours) =
            (json!({ "return": [{ "a": 1 }, { "b": 1 }] }), json!({ "return": [{ "b": 1 }, { "a": 1 }] }));
        differ(theirs.clone(), ours.clone(), How::default(), 4);
        differ(theirs, ours, How { any_order: true, ..How::default() }, 0);
    }

    #[test]
    fn shortened_text_counts_up_to_the_cut() {
        let theirs =
            json!("Exception occurred in wheel key.x: Traceback (most recent call last):\n  (frames trimmed)\nE: boom");
        differ(theirs.clone(), json!("Exception occurred in wheel key.x: no such function"), How::default(), 0);
        differ(theirs, json!("Exception in wheel"), How::default(), 1);
        differ(json!({ "a": "(docstring)" }), json!({ "a": null }), How::default(), 0);
    }
}
