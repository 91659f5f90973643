//! YAML against what Salt's own loader made of the same documents (`golden/regenerate.py`).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its cases has failed")]

use saltern_core::value::{Map, Value};
use saltern_render::{Error, yaml};

#[test]
fn documents_mean_what_they_mean_to_salt() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("golden/yaml.json")).unwrap();
    let mut wrong = Vec::new();
    for case in cases.as_array().unwrap() {
        let text = case["in"].as_str().unwrap();
        let got = yaml::load(text);
        let fits = match (&got, case.get("out"), case["error"].as_str()) {
            (Ok(value), Some(expected), None) => same(value, &from_plain(expected)),
            (Err(Error::Yaml { at, .. }), None, Some(_)) => {
                case["line"].as_u64().is_none_or(|line| (at.line as u64).abs_diff(line) <= 1)
            }
            _ => false,
        };
        if !fits {
            wrong.push(format!("{text:?}\n  salt: {case}\n  here: {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Undoes `plain` of `regenerate.py`.
fn from_plain(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Array(items) => Value::List(items.iter().map(from_plain).collect()),
        serde_json::Value::Object(entries) => {
            if let Some((tag, inner)) = entries.iter().next().filter(|(tag, _)| tag.starts_with('!')) {
                return wrapped(tag, inner);
            }
            let entries: Map = entries.iter().map(|(k, v)| (Value::from(k), from_plain(v))).collect();
            Value::Map(entries)
        }
        scalar => serde_json::from_value(scalar.clone()).unwrap(),
    }
}

fn wrapped(tag: &str, inner: &serde_json::Value) -> Value {
    use base64::Engine as _;
    match tag {
        "!map" => {
            let pairs = inner.as_array().unwrap().iter();
            Value::Map(pairs.map(|pair| (from_plain(&pair[0]), from_plain(&pair[1]))).collect())
        }
        "!set" => from_plain(inner),
        "!bytes" => base64::engine::general_purpose::STANDARD.decode(inner.as_str().unwrap()).unwrap().into(),
        "!float" => Value::Float(inner.as_str().unwrap().parse().unwrap()),
        // Salt sends integers that msgpack cannot carry as text.
        "!int" => inner.as_str().unwrap().into(),
        other => panic!("unknown wrapping {other}"),
    }
}

/// Equality in which a float is not an integer and NaN is itself.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
        (Value::Float(_), _) | (_, Value::Float(_)) => false,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ka, va), (kb, vb))| same(ka, kb) && same(va, vb))
        }
        _ => a == b,
    }
}
