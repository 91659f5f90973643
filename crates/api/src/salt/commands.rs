//! The URLs that take commands: `/`, `/run`, `/minions` and what inherits from them.

use super::accept::Format;
use super::body::Body;
use super::call::{Asker, value_of};
use super::error::{Failure, Proof};
use super::lowdata::{self, CLIENTS, House, Low, given, text};
use super::session::{self, Credentials, Signed, Source};
use super::{Salt, halite, run};
use crate::http::TimeLimit;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use percent_encoding::percent_decode_str;
use saltern_core::value::{Map, Value};
use std::collections::HashMap;
use std::time::Duration;

/// How long a request for minions may take: as long as they do.
const PATIENCE: Duration = Duration::from_secs(7 * 86_400);

/// `GET /`, and what inherits it
pub(super) async fn welcome(RawQuery(query): RawQuery, format: Format) -> Result<Response, Failure> {
    refuse_query(query.as_deref(), &[])?;
    Ok(format.reply(&Value::map([("return", Value::from("Welcome")), ("clients", Value::list(CLIENTS))])))
}

/// `POST /`
pub(super) async fn post(
    State(salt): State<Salt>,
    format: Format,
    time: TimeLimit,
    signed: Signed,
    body: Body,
) -> Result<Response, Failure> {
    time.extend(PATIENCE);
    let elements = lowdata::elements(body.value)?;
    Ok(format.reply(&run::answer(run::all_for(&salt, &signed.asker(), &elements).await?)))
}

/// `POST /run`: every command shows its own credentials. Those without `client` are Halite's, which show a header.
pub(super) async fn post_run(
    State(salt): State<Salt>,
    format: Format,
    time: TimeLimit,
    source: Source,
    signed: Option<Signed>,
    body: Body,
) -> Result<Response, Failure> {
    time.extend(PATIENCE);
    let elements = lowdata::elements(body.value)?;
    if elements.first().is_some_and(halite::is_halites) {
        let asker = signed.map(Signed::asker).ok_or_else(Failure::no_session)?;
        return halite::run(&salt, format, asker, elements).await;
    }
    let commands = run::read(&salt, &elements)?;
    let mut known = HashMap::new();
    let mut identified = Vec::with_capacity(commands.len());
    for (element, low) in elements.iter().zip(commands) {
        identified.push((identify(&salt, source, element, &low, &mut known).await?, low));
    }
    Ok(format.reply(&run::answer(run::carry_out(&salt, identified).await?)))
}

/// `POST /run/<token>`, Halite's other form
pub(super) async fn post_run_by_path(
    State(salt): State<Salt>,
    Path(token): Path<String>,
    format: Format,
    time: TimeLimit,
    source: Source,
    body: Body,
) -> Result<Response, Failure> {
    time.extend(PATIENCE);
    let elements = lowdata::elements(body.value)?;
    let session = salt.app.caller_of_token(&token, &source.origin()).await.map_err(|_| Failure::no_session())?;
    halite::run(&salt, format, Asker { caller: session.caller, proof: Proof::Token }, elements).await
}

/// What somebody shows inside a command.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Shown {
    Token(String),
    Password(Credentials),
}

/// Who asks for a command. The same credentials are checked once in a request, however often they come.
async fn identify(
    salt: &Salt,
    source: Source,
    element: &Map,
    low: &Low,
    known: &mut HashMap<Shown, Asker>,
) -> Result<Asker, Failure> {
    let shown = match (given(element, "token"), session::credentials(element)) {
        (Some(token), _) => {
            let token = token.as_str().filter(|token| session::is_token(token)).ok_or_else(Failure::no_token)?;
            Shown::Token(token.to_owned())
        }
        (None, Some(credentials)) => Shown::Password(credentials),
        (None, None) => return Err(Failure::no_credentials()),
    };
    if let Some(asker) = known.get(&shown) {
        return Ok(asker.clone());
    }
    let asker = match &shown {
        Shown::Token(token) => {
            let session = salt.app.caller_of_token(token, &source.origin()).await;
            let user = text(element, "username").unwrap_or("UNKNOWN");
            let session = session.map_err(|error| Failure::of(error, low.voice(), Proof::Token, user))?;
            Asker { caller: session.caller, proof: Proof::Token }
        }
        Shown::Password(credentials) => {
            let wrong = || Failure::wrong_credentials(low.voice(), Proof::Password, &credentials.user);
            let identity = session::vouch(salt, source, credentials).await?.ok_or_else(wrong)?;
            Asker { caller: session::caller_of(salt, identity, source).await?, proof: Proof::Password }
        }
    };
    known.insert(shown, asker.clone());
    Ok(asker)
}

/// `GET /minions`
pub(super) async fn minions(
    salt: State<Salt>,
    query: RawQuery,
    format: Format,
    time: TimeLimit,
    signed: Signed,
) -> Result<Response, Failure> {
    grains(salt, query, format, time, signed, "*".into()).await
}

/// `GET /minions/<mid>`; the id may be a glob
pub(super) async fn minion(
    salt: State<Salt>,
    Path(mid): Path<String>,
    query: RawQuery,
    format: Format,
    time: TimeLimit,
    signed: Signed,
) -> Result<Response, Failure> {
    grains(salt, query, format, time, signed, mid).await
}

async fn grains(
    State(salt): State<Salt>,
    RawQuery(query): RawQuery,
    format: Format,
    time: TimeLimit,
    signed: Signed,
    mid: String,
) -> Result<Response, Failure> {
    refuse_query(query.as_deref(), &["mid"])?;
    time.extend(PATIENCE);
    let low = Value::map([("client", "local"), ("tgt", mid.as_str()), ("fun", "grains.items")]);
    let elements = lowdata::elements(low)?;
    Ok(format.reply(&run::answer(run::all_for(&salt, &signed.asker(), &elements).await?)))
}

/// `POST /minions`: everything is asynchronous here, whatever `client` says
pub(super) async fn post_minions(
    State(salt): State<Salt>,
    format: Format,
    signed: Signed,
    body: Body,
) -> Result<Response, Failure> {
    let mut elements = lowdata::elements(body.value)?;
    for element in &mut elements {
        element.insert("client", "local_async");
    }
    let elements = run::all_for(&salt, &signed.asker(), &elements).await?;
    let link = |element: &Value| {
        let href = format!("/jobs/{}", element.get("jid")?.key_text());
        Some(Value::map([("href", href)]))
    };
    let links = Value::map([("jobs", Value::List(elements.iter().filter_map(link).collect()))]);
    let answer = Value::map([("return", Value::List(elements)), ("_links", links)]);
    Ok(format.reply_as(StatusCode::ACCEPTED, &answer))
}

/// `GET /jobs`
pub(super) async fn jobs(
    State(salt): State<Salt>,
    RawQuery(query): RawQuery,
    format: Format,
    signed: Signed,
) -> Result<Response, Failure> {
    refuse_query(query.as_deref(), &["timeout"])?;
    let list = runner(&salt, signed.asker(), "jobs.list_jobs", Map::new()).await?;
    Ok(format.reply(&run::answer(vec![list])))
}

/// `GET /jobs/<jid>`
pub(super) async fn job(
    State(salt): State<Salt>,
    Path(jid): Path<String>,
    RawQuery(query): RawQuery,
    format: Format,
    signed: Signed,
) -> Result<Response, Failure> {
    refuse_query(query.as_deref(), &["timeout"])?;
    let info = runner(&salt, signed.asker(), "jobs.list_job", Map::from_iter([("jid".into(), jid.into())])).await?;
    Ok(format.reply(&job_answer(info)))
}

/// `GET /jobs/<jid>/<timeout>`: a time that was never used
pub(super) async fn job_with_timeout(
    salt: State<Salt>,
    Path((jid, _timeout)): Path<(String, String)>,
    query: RawQuery,
    format: Format,
    signed: Signed,
) -> Result<Response, Failure> {
    job(salt, Path(jid), query, format, signed).await
}

/// A job with its returns picked out.
fn job_answer(info: Value) -> Value {
    let mut returns = Map::new();
    if let Some(results) = info.get("Result").and_then(Value::as_map) {
        for (minion, result) in results {
            returns.push(minion.clone(), result.get("return").cloned().unwrap_or_default());
        }
    }
    Value::map([("info", Value::list([info])), ("return", Value::list([Value::Map(returns)]))])
}

async fn runner(salt: &Salt, asker: Asker, fun: &str, kwargs: Map) -> Result<Value, Failure> {
    check_enabled(salt, "runner")?;
    value_of(salt, asker, House::Runner, fun, kwargs).await
}

/// Refuses a client that is turned off, for URLs that stand for one.
pub(super) fn check_enabled(salt: &Salt, client: &str) -> Result<(), Failure> {
    match &salt.app.config().http.netapi_enable_clients {
        Some(enabled) if !enabled.iter().any(|name| name == client) => Err(Failure::invalid(format!(
            "Client disabled: '{client}'. Add to 'netapi_enable_clients' master config option to enable."
        ))),
        _ => Ok(()),
    }
}

/// A URL with parameters that mean nothing is no URL of ours.
pub(super) fn refuse_query(query: Option<&str>, known: &[&str]) -> Result<(), Failure> {
    let names = query.unwrap_or("").split('&').filter(|pair| !pair.is_empty());
    for pair in names {
        let name = pair.split('=').next().unwrap_or("");
        let name = percent_decode_str(name).decode_utf8_lossy();
        if !known.contains(&&*name) {
            return Err(Failure::no_such_path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_nobody_knows_make_another_url() {
        assert!(refuse_query(None, &[]).is_ok() && refuse_query(Some(""), &[]).is_ok());
        assert!(refuse_query(Some("timeout=5"), &["timeout"]).is_ok());
        assert!(refuse_query(Some("time%6Fut=5&"), &["timeout"]).is_ok());
        assert_eq!(refuse_query(Some("timeout=5&foo=1"), &["timeout"]).unwrap_err().status(), 404);
    }

    #[test]
    fn a_jobs_returns_are_picked_out() {
        let info: Value =
            serde_json::from_str(r#"{"jid": "1", "Result": {"web1": {"return": true, "retcode": 0}}}"#).unwrap();
        let expected =
            r#"{"info":[{"jid":"1","Result":{"web1":{"return":true,"retcode":0}}}],"return":[{"web1":true}]}"#;
        assert_eq!(serde_json::to_string(&job_answer(info)).unwrap(), expected);
        let nothing = job_answer(Value::map([("Error", "x")]));
        assert_eq!(nothing.get("return"), Some(&Value::list([Value::Map(Map::new())])));
    }
}
