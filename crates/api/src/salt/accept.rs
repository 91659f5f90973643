//! In which format a client wants its answer, decided before anything is done, and answers in it.
//!
//! JSON is spaced as Python writes it (scripts that look for `"retcode": 0` with grep are out there), YAML is in blocks with
//! sorted keys as rest_cherrypy writes it.

use super::error::Failure;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use saltern_core::value::{Map, Value};
use saltern_render::yaml;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// A format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// `application/json`, unless told otherwise
    Json,
    /// `application/x-yaml`
    Yaml,
}

impl Format {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/x-yaml",
        }
    }

    /// What the `Accept` headers prefer.
    pub(super) fn negotiate(headers: &HeaderMap) -> Result<Self, Failure> {
        let wanted: Vec<&str> =
            headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let wanted = wanted.join(", ");
        if wanted.trim().is_empty() {
            return Ok(Self::Json);
        }
        let (json, yaml) = (quality(&wanted, "application", "json"), quality(&wanted, "application", "x-yaml"));
        if json <= 0.0 && yaml <= 0.0 {
            let message = format!(
                "Your client sent this Accept header: {wanted}. But this resource only emits these media types: \
                 application/json, application/x-yaml."
            );
            return Err(Failure::new(StatusCode::NOT_ACCEPTABLE, message));
        }
        Ok(if yaml > json { Self::Yaml } else { Self::Json })
    }

    /// An answer in this format.
    pub(super) fn reply(self, value: &Value) -> Response {
        self.reply_as(StatusCode::OK, value)
    }

    /// An answer in this format with this status.
    pub(super) fn reply_as(self, status: StatusCode, value: &Value) -> Response {
        let body = match self {
            Self::Json => to_json(value),
            Self::Yaml => yaml::to_yaml(&sorted(value)).into_bytes(),
        };
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static(self.media_type())),
            (header::CACHE_CONTROL, HeaderValue::from_static("private")),
        ];
        (status, headers, body).into_response()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Format {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        Self::negotiate(&parts.headers)
    }
}

/// How much a type is wanted: what names it most exactly counts.
fn quality(accept: &str, kind: &str, subtype: &str) -> f32 {
    let mut best = (0, 0.0);
    for range in accept.split(',') {
        let mut parts = range.split(';');
        let Some((range_kind, range_subtype)) = parts.next().and_then(|range| range.trim().split_once('/')) else {
            continue;
        };
        let is = |range: &str, ours: &str| range.eq_ignore_ascii_case(ours);
        let exactness = match (range_kind, range_subtype) {
            ("*", "*") => 1,
            (range_kind, "*") if is(range_kind, kind) => 2,
            (range_kind, range_subtype) if is(range_kind, kind) && is(range_subtype, subtype) => 3,
            _ => continue,
        };
        let q = parts.find_map(|part| part.trim().strip_prefix("q=")?.trim().parse::<f32>().ok());
        if exactness > best.0 {
            best = (exactness, q.unwrap_or(1.0).clamp(0.0, 1.0));
        }
    }
    best.1
}

/// JSON as Python spaces it.
pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    match value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)) {
        Ok(()) => out,
        // Values are always serialisable; a broken reply is still better said than guessed.
        Err(_) => b"null".to_vec(),
    }
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(sorted).collect()),
        Value::Map(map) => {
            let mut entries: Vec<(Value, Value)> =
                map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.key_text().cmp(&b.key_text()));
            Value::Map(entries.into_iter().collect::<Map>())
        }
        leaf => leaf.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn check(accept: &[&str], expected: Option<Format>) {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(header::ACCEPT, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(Format::negotiate(&headers).ok(), expected, "{accept:?}");
    }

    #[test]
    fn json_is_the_default_and_quality_decides() {
        check(&[], Some(Format::Json));
        check(&[""], Some(Format::Json));
        check(&["*/*"], Some(Format::Json));
        check(&["application/*"], Some(Format::Json));
        check(&["application/json, text/plain, */*"], Some(Format::Json));
        check(&["application/x-yaml"], Some(Format::Yaml));
        check(&["application/json;q=0.2, application/x-yaml;q=0.9"], Some(Format::Yaml));
        check(&["application/x-yaml, */*;q=0.1"], Some(Format::Yaml));
        check(&["application/json;q=0.5", "application/x-yaml"], Some(Format::Yaml));
        check(&["application/json, application/x-yaml"], Some(Format::Json));
        check(&["APPLICATION/JSON"], Some(Format::Json));
    }

    #[test]
    fn what_we_cannot_write_is_refused() {
        check(&["application/xml"], None);
        check(&["text/html"], None);
        check(&["application/json;q=0"], None);
        check(&["nonsense"], None);
    }

    #[test]
    fn a_named_type_outweighs_a_wildcard() {
        check(&["*/*, application/json;q=0"], Some(Format::Yaml));
    }

    async fn text(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn answers_look_as_pythons_do() {
        let value = Value::map([("return", Value::list([Value::map([("web1", true)])]))]);
        assert_eq!(text(Format::Json.reply(&value)).await, r#"{"return": [{"web1": true}]}"#);
        assert_eq!(text(Format::Yaml.reply(&value)).await, "return:\n- web1: true\n");
    }

    #[tokio::test]
    async fn yaml_is_sorted_at_every_level() {
        let value = Value::map([("b", Value::map([("z", 1), ("y", 2)])), ("a", Value::from(3))]);
        assert_eq!(text(Format::Yaml.reply(&value)).await, "a: 3\nb:\n  y: 2\n  z: 1\n");
    }
}
