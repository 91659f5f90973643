//! Request bodies: four content types, one value.
//!
//! Limits: the listener bounds the size, YAML and JSON their own depth, and a form has at most [`MOST_FIELDS`] fields.

use super::error::Failure;
use super::words;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use bytes::Bytes;
use percent_encoding::percent_decode;
use saltern_core::value::{Map, Value};
use saltern_render::yaml;
use std::borrow::Cow;
use std::collections::HashMap;

/// Most fields of a form.
const MOST_FIELDS: usize = 1_000;

/// A request's body.
#[derive(Debug)]
pub(super) struct Body {
    /// What it says; nothing if it is empty
    pub(super) value: Value,
    /// The bytes as they came
    pub(super) raw: Bytes,
}

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
        let raw = Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "The entity sent with the request exceeds the maximum size")
            }
            _ => Failure::invalid(rejection.body_text()),
        })?;
        let content_type = content_type.as_ref().map(|value| value.to_str().unwrap_or("unreadable"));
        Ok(Self { value: parse(content_type, &raw)?, raw })
    }
}

/// Reads a body by its content type.
pub(super) fn parse(content_type: Option<&str>, raw: &[u8]) -> Result<Value, Failure> {
    let kind = content_type.map(|kind| kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase());
    match kind.as_deref() {
        Some("application/json") => json(raw),
        Some("application/x-yaml" | "text/yaml") => {
            yaml::load(text(raw)?).map_err(|error| Failure::invalid(format!("Invalid YAML document: {error}")))
        }
        Some("text/plain") => Ok(json(raw).or_else(|_| text(raw).map(Value::from))?),
        Some("application/x-www-form-urlencoded") => form(raw),
        None if raw.is_empty() => Ok(Value::Nil),
        _ => Err(Failure::new(StatusCode::NOT_ACCEPTABLE, "Content type not supported")),
    }
}

fn json(raw: &[u8]) -> Result<Value, Failure> {
    if raw.is_empty() {
        return Ok(Value::Nil);
    }
    serde_json::from_slice(&quote_long_numbers(raw)).map_err(|_| Failure::invalid("Invalid JSON document"))
}

/// Whole numbers of 20 digits and more become text: they are job ids, which pepper sends as numbers, and no number here can
/// hold them.
fn quote_long_numbers(raw: &[u8]) -> Cow<'_, [u8]> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let is_long = |digits: &[u8]| digits.len() >= words::LONG;
    if !raw.chunk_by(|a, b| is_digit(a) == is_digit(b)).any(|run| is_digit(&run[0]) && is_long(run)) {
        return raw.into();
    }
    let mut quoted = Vec::with_capacity(raw.len() + 64);
    let (mut at, mut in_text) = (0, false);
    while at < raw.len() {
        match raw[at] {
            b'"' => in_text = !in_text,
            b'\\' if in_text => {
                quoted.push(raw[at]);
                at += 1;
            }
            b'0'..=b'9' if !in_text => {
                let end = raw[at..].iter().position(|byte| !is_digit(byte)).map_or(raw.len(), |length| at + length);
                let digits = &raw[at..end];
                // Part of a fraction or an exponent, or with one behind it: a number after all.
                let is_whole = !matches!(raw.get(at.wrapping_sub(1)), Some(b'.' | b'e' | b'E' | b'+' | b'-'))
                    && !matches!(raw.get(end), Some(b'.' | b'e' | b'E'));
                if is_whole && is_long(digits) {
                    quoted.push(b'"');
                    quoted.extend_from_slice(digits);
                    quoted.push(b'"');
                } else {
                    quoted.extend_from_slice(digits);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        quoted.extend(raw.get(at));
        at += 1;
    }
    quoted.into()
}

fn text(raw: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(raw).map_err(|_| Failure::invalid("the body is not UTF-8"))
}

/// Repeated fields become lists; `arg` and `kwarg` are read as YAML, everything else stays text.
fn form(raw: &[u8]) -> Result<Value, Failure> {
    let mut fields: Vec<(String, Vec<Value>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (n, field) in raw.split(|byte| *byte == b'&').filter(|field| !field.is_empty()).enumerate() {
        if n >= MOST_FIELDS {
            return Err(Failure::invalid(format!("a form has at most {MOST_FIELDS} fields; send JSON instead")));
        }
        let (name, value) = match field.iter().position(|byte| *byte == b'=') {
            Some(at) => (&field[..at], &field[at + 1..]),
            None => (field, &b""[..]),
        };
        let (name, value) = (decode(name)?, decode(value)?);
        let value = if name == "arg" { words::read(&value) } else { Value::from(value) };
        let place = *places.entry(name.clone()).or_insert_with(|| {
            fields.push((name, Vec::new()));
            fields.len() - 1
        });
        fields[place].1.push(value);
    }
    let shaped = fields.into_iter().map(|(name, mut values)| {
        let value = match name.as_str() {
            "arg" => Value::List(values),
            "kwarg" => values.pop().and_then(|value| value.as_str().map(words::read)).unwrap_or_default(),
            _ if values.len() == 1 => values.pop().unwrap_or_default(),
            _ => Value::List(values),
        };
        (Value::from(name), value)
    });
    Ok(Value::Map(shaped.collect::<Map>()))
}

fn decode(raw: &[u8]) -> Result<String, Failure> {
    let spaced: Cow<'_, [u8]> = if raw.contains(&b'+') {
        raw.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect::<Vec<u8>>().into()
    } else {
        raw.into()
    };
    let decoded = percent_decode(&spaced).decode_utf8().map_err(|_| Failure::invalid("the form is not UTF-8"))?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(content_type: &str, body: &str, expected: Value) {
        assert_eq!(parse(Some(content_type), body.as_bytes()).unwrap(), expected, "{content_type} {body:?}");
    }

    fn status(content_type: Option<&str>, body: &[u8]) -> u16 {
        parse(content_type, body).unwrap_err().status().as_u16()
    }

    #[test]
    fn each_content_type_is_read_its_way() {
        let ping = || Value::map([("client", "local"), ("fun", "test.ping")]);
        check("application/json", r#"{"client": "local", "fun": "test.ping"}"#, ping());
        check("application/json; charset=utf-8", r#"{"client": "local", "fun": "test.ping"}"#, ping());
        check("text/plain;charset=UTF-8", r#"{"client": "local", "fun": "test.ping"}"#, ping());
        check("application/x-yaml", "client: local\nfun: test.ping\n", ping());
        check("text/yaml", "- a\n- 1\n", Value::list([Value::from("a"), 1.into()]));
        check("application/x-www-form-urlencoded", "client=local&fun=test.ping", ping());
        check("text/plain", "plain words", "plain words".into());
    }

    #[test]
    fn forms_read_arguments_as_the_command_line_does() {
        check(
            "application/x-www-form-urlencoded",
            "arg=one&arg=2&arg=key%3Dval&arg=%7Ba%3A+1%7D&kwarg=%7B%22a%22%3A+1%7D&timeout=5&tag=x&tag=y&flag",
            Value::map([
                ("arg", Value::list([Value::from("one"), 2.into(), "key=val".into(), Value::map([("a", 1)])])),
                ("kwarg", Value::map([("a", 1)])),
                ("timeout", "5".into()),
                ("tag", Value::list(["x", "y"])),
                ("flag", "".into()),
            ]),
        );
    }

    #[test]
    fn a_job_id_that_is_sent_as_a_number_keeps_its_digits() {
        check(
            "application/json",
            r#"{"jid": 20261115185506026288, "a": [20261115185506026288], "b": "\"20261115185506026288", "c": 7}"#,
            Value::map([
                ("jid", Value::from("20261115185506026288")),
                ("a", Value::list(["20261115185506026288"])),
                ("b", "\"20261115185506026288".into()),
                ("c", 7.into()),
            ]),
        );
        check("application/json", "[0.50000000000000000000, 2e-00000000000000000001]", Value::list([0.5, 0.2]));
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(parse(None, b"").unwrap().is_nil());
        assert!(parse(Some("application/json"), b"").unwrap().is_nil());
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert_eq!(status(Some("application/json"), b"{\"a\": "), 400);
        assert_eq!(status(Some("application/x-yaml"), b"a: [b\n c: }"), 400);
        assert_eq!(status(Some("application/xml"), b"<a/>"), 406);
        assert_eq!(status(Some("multipart/form-data; boundary=x"), b"--x"), 406);
        assert_eq!(status(None, b"{}"), 406);
        assert_eq!(status(Some("text/plain"), b"\xff"), 400);
        assert_eq!(status(Some("application/x-www-form-urlencoded"), b"a=%ff"), 400);
    }

    #[test]
    fn a_form_of_too_many_fields_is_refused() {
        let form: String = (0..=MOST_FIELDS).map(|n| format!("f{n}=1&")).collect();
        assert_eq!(status(Some("application/x-www-form-urlencoded"), form.as_bytes()), 400);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(raw in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..5usize) {
            let kinds = ["application/json", "text/yaml", "text/plain", "application/x-www-form-urlencoded", "x/y"];
            if let Err(failure) = parse(Some(kinds[kind]), &raw) {
                prop_assert!(failure.status().is_client_error());
            }
        }

        #[test]
        fn quoting_changes_no_json_without_long_numbers(text in "[\\PC]{0,30}", number in any::<i64>()) {
            let json = serde_json::json!({ "text": text, "long": format!("{text}20261115185506026288"), "n": number }).to_string();
            let quoted = quote_long_numbers(json.as_bytes());
            prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&quoted).unwrap(), serde_json::from_str::<serde_json::Value>(&json).unwrap());
        }

        #[test]
        fn form_fields_come_back(fields in proptest::collection::btree_map("[b-z]{1,8}", "[ -~]{0,12}", 1..8)) {
            prop_assume!(!fields.contains_key("kwarg") && !fields.contains_key("arg"));
            let escape = |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
            let encoded: Vec<String> = fields.iter().map(|(k, v)| format!("{}={}", escape(k), escape(v))).collect();
            let read = parse(Some("application/x-www-form-urlencoded"), encoded.join("&").as_bytes()).unwrap();
            prop_assert_eq!(read, Value::map(fields));
        }
    }
}
