//! Who asks: log in, log out, tokens; and what a request or a command shows for it.
//!
//! There is one kind of secret, 64 hexadecimal digits, good everywhere: as header, as cookie, in low data, in a path. A log-in
//! makes a new one each time and ends the one it came with. The cookie is set at log-in and log-out only, and scripts of a
//! page cannot read it.

use super::Salt;
use super::accept::Format;
use super::body::Body;
use super::call::Asker;
use super::error::{Failure, Proof, Voice};
use super::lowdata::{self, given, text};
use super::stamp;
use crate::http::OwnPage;
use crate::session::{self, NotIn};
pub(super) use crate::session::{Credentials, Source};
use axum::extract::{FromRequestParts, OptionalFromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use saltern_core::value::{Map, Value};
use saltern_server::app::{Caller, Identity, Session, SignedIn};
use std::time::Duration;

/// The header that carries a token.
pub(super) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-auth-token");

/// Somebody who has shown a valid token; without one the request ends here.
pub(super) struct Signed(pub(super) Session);

impl<S: Send + Sync> FromRequestParts<S> for Signed {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        parts.extensions.get::<Session>().cloned().map(Self).ok_or_else(Failure::no_session)
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for Signed {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get::<Session>().cloned().map(Self))
    }
}

impl Signed {
    /// As the asker of commands.
    pub(super) fn asker(self) -> Asker {
        Asker { caller: self.0.caller, proof: Proof::Token }
    }
}

/// `GET /login`
pub(super) async fn ask_to_log_in(format: Format) -> Response {
    let told = Value::map([("status", Value::Nil), ("return", "Please log in".into())]);
    let mut response = format.reply(&told);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Session"));
    response
}

/// `POST /login`
pub(super) async fn log_in(
    State(salt): State<Salt>,
    format: Format,
    from: Source,
    page: Option<axum::Extension<OwnPage>>,
    old: Option<axum::Extension<Session>>,
    body: Body,
) -> Result<Response, Failure> {
    let asked = credentials_body(body.value)?;
    let shown = credentials(&asked).ok_or_else(Failure::not_signed_in)?;
    let lifetime = lowdata::seconds(&asked, "token_expire")?;
    let old = old.as_ref().map(|axum::Extension(old)| old);
    let signed_in = session::log_in(&salt.app, &salt.gate, from, &shown, lifetime, old).await;
    let signed_in = signed_in.map_err(|refused| match refused {
        NotIn::Denied => Failure::not_signed_in(),
        NotIn::TooMany(retry_after) => Failure::too_many(retry_after),
        NotIn::Failed(error) => error.into(),
    })?;
    let mut response = format.reply(&super::run::answer(vec![log_in_element(&salt, &signed_in)]));
    let cookie = from.cookie(&signed_in);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let (Ok(token), Ok(cookie)) = (HeaderValue::from_str(&signed_in.token), HeaderValue::from_str(&cookie)) {
        headers.insert(TOKEN_HEADER, token);
        // A form on another site must not log somebody's browser in as its author.
        if page.is_none_or(|page| page.0.0) {
            headers.insert(header::SET_COOKIE, cookie);
        }
    }
    Ok(response)
}

/// `POST /logout`
pub(super) async fn log_out(
    State(salt): State<Salt>,
    format: Format,
    from: Source,
    Signed(session): Signed,
) -> Result<Response, Failure> {
    salt.app.sign_out(&session).await?;
    let mut response = format.reply(&Value::map([("return", "Your token has been cleared")]));
    if let Ok(cookie) = HeaderValue::from_str(&from.no_cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// `POST /token`: a token for everybody who can log in, without a cookie.
pub(super) async fn make_token(
    State(salt): State<Salt>,
    format: Format,
    from: Source,
    body: Body,
) -> Result<Response, Failure> {
    let missing = || Failure::invalid("Require \"username\", \"password\", and \"eauth\" params");
    let asked: Vec<Credentials> = lowdata::elements(body.value)?
        .iter()
        .map(|element| credentials(element).filter(|_| text(element, "eauth").is_some()).ok_or_else(missing))
        .collect::<Result<_, _>>()?;
    let mut made = Vec::with_capacity(asked.len());
    for credentials in asked {
        let wrong = || Failure::wrong_credentials(Voice::Master, Proof::Password, &credentials.user);
        let identity = vouch(&salt, from, &credentials).await?.ok_or_else(wrong)?;
        let signed_in = sign_in(&salt, identity, from, None).await?;
        made.push(token_element(&signed_in));
    }
    let mut response = format.reply(&Value::List(made));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What `/token` and `auth.mk_token` tell of a token.
pub(super) fn token_element(signed_in: &SignedIn) -> Value {
    let SignedIn { token, session } = signed_in;
    Value::map([
        ("start", Value::from(stamp::seconds(session.created))),
        ("expire", stamp::seconds(session.expires).into()),
        ("name", session.caller.who.as_str().into()),
        ("eauth", session.auth.as_str().into()),
        ("token", token.as_str().into()),
    ])
}

fn log_in_element(salt: &Salt, signed_in: &SignedIn) -> Value {
    let SignedIn { token, session } = signed_in;
    let who = session.caller.who.as_str();
    Value::map([
        ("token", Value::from(token.as_str())),
        ("expire", stamp::seconds(session.expires).into()),
        ("start", stamp::seconds(session.created).into()),
        ("user", who.into()),
        ("eauth", session.auth.as_str().into()),
        ("perms", salt.app.perms(session)),
        // Halite knows him by these.
        ("name", who.into()),
        ("username", who.into()),
    ])
}

/// The object of a log-in: alone, or the first of a list.
fn credentials_body(body: Value) -> Result<Map, Failure> {
    let wrong = || Failure::invalid("a log-in is an object with username, password and eauth");
    match body {
        Value::Map(map) => Ok(map),
        Value::List(items) => match items.into_iter().next() {
            Some(Value::Map(map)) => Ok(map),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// The credentials of an object, if it has any. Without `eauth` the server's own users are meant.
pub(super) fn credentials(asked: &Map) -> Option<Credentials> {
    let user = text(asked, "username")?.to_owned();
    let password = given(asked, "password").filter(|value| value.as_list().is_none() && value.as_map().is_none())?;
    let auth = text(asked, "eauth").unwrap_or_default().to_owned();
    Some(Credentials { user, password: password.key_text().into_owned(), auth })
}

/// Asks the backend; nothing if it refuses. Whoever tries too often is told so.
pub(super) async fn vouch(salt: &Salt, from: Source, shown: &Credentials) -> Result<Option<Identity>, Failure> {
    match session::vouch(&salt.app, &salt.gate, from, shown).await {
        Ok(identity) => Ok(Some(identity)),
        Err(NotIn::Denied) => Ok(None),
        Err(NotIn::TooMany(retry_after)) => Err(Failure::too_many(retry_after)),
        Err(NotIn::Failed(error)) => Err(error.into()),
    }
}
/// Makes a session for somebody who was vouched for.
pub(super) async fn sign_in(
    salt: &Salt,
    identity: Identity,
    from: Source,
    lifetime: Option<Duration>,
) -> Result<SignedIn, Failure> {
    Ok(salt.app.sign_in(identity, &from.origin(), lifetime).await?)
}

/// The rights of somebody who was vouched for, for this request only.
pub(super) async fn caller_of(salt: &Salt, identity: Identity, source: Source) -> Result<Caller, Failure> {
    Ok(salt.app.caller_of(&identity, &source.origin()).await?)
}

/// Whether a text can be a token at all.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
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

    #[test]
    fn credentials_are_an_object_or_the_first_of_a_list() {
        let read = |json: &str| credentials_body(serde_json::from_str(json).unwrap()).is_ok();
        assert!(read(r#"{"username": "ann"}"#) && read(r#"[{"username": "ann"}]"#));
        for bad in ["[]", "null", "\"hello\"", "[1]"] {
            assert!(!read(bad), "{bad}");
        }
    }

    #[test]
    fn a_password_may_have_been_read_as_a_number() {
        let shown = credentials(&object(r#"{"username": "ann", "password": 1234, "eauth": "file"}"#)).unwrap();
        assert_eq!((shown.password.as_str(), shown.auth.as_str()), ("1234", "file"));
        assert!(credentials(&object(r#"{"username": "ann"}"#)).is_none());
        assert!(credentials(&object(r#"{"username": "ann", "password": null}"#)).is_none());
    }

    #[test]
    fn tokens_are_hexadecimal() {
        assert!(is_token("694355ef25bad1db"));
        assert!(!is_token("zzz") && !is_token(""));
    }
}
