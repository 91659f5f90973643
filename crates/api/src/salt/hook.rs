//! `POST /hook/…`: what other programs send becomes an event, without what could be used to come in.

use super::Salt;
use super::accept::Format;
use super::body::Body;
use super::error::Failure;
use super::session::{Signed, Source};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use saltern_core::value::{Map, Value};

/// The largest body of a hook, and of an event that is sent by hand: it is kept in the log.
pub(super) const LARGEST: usize = 1 << 20;

/// `POST /hook`
pub(super) async fn fire_root(
    salt: State<Salt>,
    format: Format,
    source: Source,
    signed: Option<Signed>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    fire(salt, Path(String::new()), format, source, signed, headers, body).await
}

/// `POST /hook/<any/path>`
pub(super) async fn fire(
    State(salt): State<Salt>,
    Path(path): Path<String>,
    format: Format,
    source: Source,
    signed: Option<Signed>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    if salt.app.config().http.hooks_need_login && signed.is_none() {
        return Err(Failure::no_session());
    }
    if body.raw.len() > LARGEST {
        return Err(Failure::too_large(LARGEST));
    }
    let told = Value::map([
        ("body", Value::from(body.raw)),
        ("post", if body.value.is_nil() { Value::Map(Map::new()) } else { body.value }),
        ("headers", told_headers(&headers, &source.origin())),
    ]);
    let caller = signed.as_ref().map(|Signed(session)| &session.caller);
    salt.app.fire_hook(caller, path.trim_matches('/'), told).await?;
    Ok(format.reply(&Value::map([("success", true)])))
}

/// Headers that let somebody in, here or behind a proxy.
const SECRET: [&str; 6] = ["x-auth-token", "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];

/// The headers as CherryPy names them, and where they came from.
fn told_headers(headers: &HeaderMap, origin: &str) -> Value {
    let mut told = Map::new();
    told.push("Remote-Addr", origin);
    for name in headers.keys().filter(|name| !SECRET.contains(&name.as_str())) {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let told_name = if name == header::TE { "TE".to_owned() } else { title(name.as_str()) };
        told.push(told_name, values.join(", "));
    }
    Value::Map(told)
}

/// `content-type` as `Content-Type`.
fn title(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn credentials_are_not_passed_on() {
        let mut headers = HeaderMap::new();
        for name in SECRET {
            headers.insert(name, HeaderValue::from_static("secret"));
        }
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("x-github-event", HeaderValue::from_static("push"));
        let told = serde_json::to_string(&told_headers(&headers, "192.0.2.1")).unwrap();
        assert_eq!(told, r#"{"Remote-Addr":"192.0.2.1","Content-Type":"application/json","X-Github-Event":"push"}"#);
    }
}
