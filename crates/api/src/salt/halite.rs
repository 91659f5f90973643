//! The contract of Halite's own small server, which old clients copied: no `client`, but a `mode` and prefixed functions;
//! tokens in paths; errors as `{"error": text}`.

use super::accept::{Format, to_json};
use super::body::Body;
use super::call::Asker;
use super::error::{Failure, Proof};
use super::events::{comment, dialect, stream};
use super::lowdata::{self, text};
use super::session::{Signed, Source};
use super::{Salt, hook, run, runner, wheel};
use crate::follow::Form;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use saltern_core::value::{Map, Value};
use saltern_server::app::EventEntry;

/// Whether an element is in Halite's words.
pub(super) fn is_halites(element: &Map) -> bool {
    let fun = text(element, "fun").unwrap_or_default();
    element.get("client").is_none()
        && (element.get("mode").is_some() || fun.starts_with("runner.") || fun.starts_with("wheel."))
}

/// Carries out commands in Halite's words.
pub(super) async fn run(salt: &Salt, format: Format, asker: Asker, elements: Vec<Map>) -> Result<Response, Failure> {
    let elements: Vec<Map> = elements.into_iter().map(translate).collect();
    let told = match run::all_for(salt, &asker, &elements).await {
        Ok(elements) if elements.first().is_none_or(Value::is_truthy) => {
            return Ok(format.reply(&run::answer(elements)));
        }
        Ok(_) => (StatusCode::NOT_FOUND, "Failed to run command: no minion matches, or it answers nothing".to_owned()),
        Err(failure) => (failure.status(), failure.message().to_owned()),
    };
    Ok(format.reply_as(told.0, &Value::map([("error", told.1)])))
}

/// One element in the words of salt-api.
fn translate(mut element: Map) -> Map {
    let mode = element.remove("mode").and_then(|mode| mode.as_str().map(str::to_owned));
    let background = mode.as_deref() != Some("sync");
    let fun = text(&element, "fun").unwrap_or_default().to_owned();
    let (client, fun) = match (fun.strip_prefix("runner."), fun.strip_prefix("wheel.")) {
        (Some(rest), _) if rest.contains('.') => (if background { "runner_async" } else { "runner" }, rest.to_owned()),
        (_, Some(rest)) if rest.contains('.') => (if background { "wheel_async" } else { "wheel" }, rest.to_owned()),
        _ => (if background { "local_async" } else { "local" }, fun),
    };
    if client.starts_with("runner") || client.starts_with("wheel") {
        // Its form always sends them; they say nothing to the server's own functions.
        for name in ["tgt_type", "expr_form", "ret"] {
            element.remove(name);
        }
    }
    element.insert("client", client);
    if !fun.is_empty() {
        element.insert("fun", fun);
    }
    element
}

/// `GET /event/<token>`
pub(super) async fn events(
    State(salt): State<Salt>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
    source: Source,
) -> Result<Response, Failure> {
    let session = salt.app.caller_of_token(&token, &source.origin()).await.map_err(|_| Failure::no_session())?;
    let tag = query.as_deref().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("tag=")));
    let tag = tag.map(|tag| percent_decode_str(tag).decode_utf8_lossy().into_owned()).filter(|tag| !tag.is_empty());
    stream::<Frames>(&salt, &session.caller, tag.map(|tag| beginning(&tag))).await
}

/// A shell pattern for everything that begins so.
fn beginning(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 1);
    for letter in text.chars() {
        match letter {
            '*' | '?' | '[' => pattern.extend(['[', letter, ']']),
            other => pattern.push(other),
        }
    }
    pattern.push('*');
    pattern
}

/// The framing of Halite's server.
struct Frames;

impl Form for Frames {
    // Few ask in this form: what is made of an event is not kept for the next.
    const SLOT: usize = usize::MAX;
    const HEAD: &'static str = "retry: 250\n\n";
    const BEAT: &'static str = ": keepalive\n\n";

    fn shape(event: &EventEntry) -> Bytes {
        let mut out = b"data: ".to_vec();
        out.extend_from_slice(&to_json(&dialect(event)));
        out.extend_from_slice(b"\n\n");
        out.into()
    }

    fn gap(from: i64, to: i64) -> Bytes {
        comment(&format!("events {from} to {to} are not in the log any more"))
    }

    fn farewell(why: &str) -> Bytes {
        comment(why)
    }
}

/// `POST /fire`
pub(super) async fn fire(
    State(salt): State<Salt>,
    format: Format,
    signed: Signed,
    body: Body,
) -> Result<Response, Failure> {
    fire_as(&salt, format, signed.asker(), body).await
}

/// `POST /fire/<token>`
pub(super) async fn fire_by_path(
    State(salt): State<Salt>,
    Path(token): Path<String>,
    format: Format,
    source: Source,
    body: Body,
) -> Result<Response, Failure> {
    fire_as(&salt, format, by_path(&salt, &token, source).await?, body).await
}

async fn by_path(salt: &Salt, token: &str, source: Source) -> Result<Asker, Failure> {
    let session = salt.app.caller_of_token(token, &source.origin()).await.map_err(|_| Failure::no_session())?;
    Ok(Asker { caller: session.caller, proof: Proof::Token })
}

async fn fire_as(salt: &Salt, format: Format, asker: Asker, body: Body) -> Result<Response, Failure> {
    if body.raw.len() > hook::LARGEST {
        return Err(Failure::too_large(hook::LARGEST));
    }
    let elements = lowdata::elements(body.value)?;
    let mut events = Vec::with_capacity(elements.len());
    for mut element in elements {
        let tag = text(&element, "tag").ok_or_else(|| Failure::invalid("an event has a 'tag'"))?;
        events.push((format!("salt/wui/{tag}"), element.remove("data").unwrap_or_default()));
    }
    let mut fired = Vec::with_capacity(events.len());
    for (tag, data) in events {
        let data = if data.is_nil() { Value::Map(Map::new()) } else { data };
        salt.app.fire(&asker.caller, &tag, data).await?;
        fired.push(Value::map([("tag", Value::from(tag)), ("result", true.into())]));
    }
    Ok(format.reply(&Value::List(fired)))
}

/// `POST /signature`
pub(super) async fn signature(
    State(salt): State<Salt>,
    format: Format,
    signed: Signed,
    body: Body,
) -> Result<Response, Failure> {
    signature_as(&salt, format, signed.asker(), body).await
}

/// `POST /signature/<token>`
pub(super) async fn signature_by_path(
    State(salt): State<Salt>,
    Path(token): Path<String>,
    format: Format,
    source: Source,
    body: Body,
) -> Result<Response, Failure> {
    signature_as(&salt, format, by_path(&salt, &token, source).await?, body).await
}

/// What arguments functions take: minions are asked, the server's own functions are looked up.
async fn signature_as(salt: &Salt, format: Format, asker: Asker, body: Body) -> Result<Response, Failure> {
    let mut commands = Vec::new();
    let mut answers = Vec::new();
    for element in lowdata::elements(body.value)? {
        let module = text(&element, "module").or_else(|| text(&element, "fun")).unwrap_or_default().to_owned();
        if text(&element, "client") == Some("master") {
            answers.push(Value::map([("master", own_signatures(&module))]));
            continue;
        }
        let mut low = Map::from_iter([
            ("client".into(), "local".into()),
            ("fun".into(), "sys.argspec".into()),
            ("arg".into(), Value::list([module])),
        ]);
        for key in ["tgt", "tgt_type", "expr_form", "timeout"] {
            if let Some(value) = element.get(key) {
                low.insert(key, value.clone());
            }
        }
        commands.push(low);
    }
    answers.extend(run::all_for(salt, &asker, &commands).await?);
    Ok(format.reply(&run::answer(answers)))
}

/// The parameters of the server's own functions of a module (`jobs`, `runner.jobs.active`), as `sys.argspec` shows them.
fn own_signatures(module: &str) -> Value {
    let wanted = module.strip_prefix("runner.").or_else(|| module.strip_prefix("wheel.")).unwrap_or(module);
    let is_meant = |name: &str| wanted.is_empty() || name == wanted || name.starts_with(&format!("{wanted}."));
    let functions = runner::all().chain(wheel::all()).filter(|function| is_meant(function.name));
    let specs = functions.map(|function| (Value::from(function.name), spec(function.params)));
    Value::Map(specs.collect())
}

fn spec(params: &str) -> Value {
    let (mut args, mut defaults, mut varargs, mut kwargs) = (Vec::new(), Vec::new(), Value::Nil, Value::Nil);
    for param in params.split(',').map(str::trim).filter(|param| !param.is_empty()) {
        match (param.strip_prefix("**"), param.strip_prefix('*'), param.split_once('=')) {
            (Some(name), ..) => kwargs = name.into(),
            (None, Some(name), _) => varargs = name.into(),
            (None, None, Some((name, default))) => {
                args.push(Value::from(name));
                defaults.push(super::words::read(default));
            }
            (None, None, None) => args.push(param.into()),
        }
    }
    let defaults = if defaults.is_empty() { Value::Nil } else { Value::List(defaults) };
    Value::map([("args", Value::List(args)), ("defaults", defaults), ("varargs", varargs), ("kwargs", kwargs)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Map {
        match serde_json::from_str(json).unwrap() {
            Value::Map(map) => map,
            other => panic!("{other:?}"),
        }
    }

    fn check(theirs: &str, ours: &str) {
        let expected: Value = serde_json::from_str(ours).unwrap();
        assert_eq!(Value::Map(translate(object(theirs))), expected, "{theirs}");
    }

    #[test]
    fn the_mode_and_the_prefix_choose_the_client() {
        check(
            r#"{"fun": "test.ping", "tgt": "*", "mode": "sync"}"#,
            r#"{"fun": "test.ping", "tgt": "*", "client": "local"}"#,
        );
        check(
            r#"{"fun": "test.ping", "tgt": "*", "mode": "async"}"#,
            r#"{"fun": "test.ping", "tgt": "*", "client": "local_async"}"#,
        );
        check(r#"{"fun": "runner.manage.up"}"#, r#"{"fun": "manage.up", "client": "runner_async"}"#);
        check(r#"{"fun": "wheel.key.list_all", "mode": "sync"}"#, r#"{"fun": "key.list_all", "client": "wheel"}"#);
    }

    #[test]
    fn an_element_with_a_client_is_not_halites() {
        assert!(!is_halites(&object(r#"{"client": "local", "fun": "runner.manage.up", "mode": "sync"}"#)));
        assert!(!is_halites(&object(r#"{"fun": "test.ping", "tgt": "*"}"#)));
        assert!(is_halites(&object(r#"{"fun": "runner.manage.up"}"#)));
        assert!(is_halites(&object(r#"{"fun": "test.ping", "mode": "sync"}"#)));
    }

    #[test]
    fn a_beginning_is_taken_literally() {
        assert_eq!(beginning("salt/job/"), "salt/job/*");
        assert_eq!(beginning("a*[b"), "a[*][[]b*");
    }

    #[test]
    fn parameters_are_shown_as_pythons() {
        let expected: Value = serde_json::from_str(
            r#"{"args": ["jid", "missing"], "defaults": [false], "varargs": null, "kwargs": "kwargs"}"#,
        )
        .unwrap();
        assert_eq!(spec("jid, missing=False, **kwargs"), expected);
    }
}
