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
use crate::http::Peer;
use crate::login::Refused;
use axum::extract::{FromRequestParts, OptionalFromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use saltern_core::value::{Map, Value};
use saltern_server::app::{Caller, Identity, Session, SignedIn, TokenKind};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The header that carries a token.
pub(super) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-auth-token");

/// Somebody who has shown a valid token; without one the request ends here.
pub(super) struct Signed(pub(super) Session);

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    address: IpAddr,
    secure: bool,
}

/// A user name, a password, and who is to check them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Credentials {
    user: String,
    password: String,
    eauth: String,
}

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

impl<S: Send + Sync> FromRequestParts<S> for Source {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<Peer>();
        Ok(Self {
            address: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address.ip().to_canonical()),
            secure: peer.is_some_and(|peer| peer.secure),
        })
    }
}

impl Source {
    /// Of somebody whose origin is known already.
    pub(super) fn of(origin: &str) -> Self {
        Self { address: origin.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), secure: false }
    }

    /// As audit entries have it.
    pub(super) fn origin(&self) -> String {
        self.address.to_string()
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
    old: Option<axum::Extension<Session>>,
    body: Body,
) -> Result<Response, Failure> {
    let asked = credentials_body(body.value)?;
    let credentials = Credentials::read(&asked).ok_or_else(Failure::not_signed_in)?;
    let identity = vouch(&salt, from, &credentials).await?.ok_or_else(Failure::not_signed_in)?;
    let lifetime = lowdata::seconds(&asked, "token_expire")?;
    let signed_in = sign_in(&salt, identity, from, lifetime).await?;
    // The token it came with may be known to others: it ends when its owner logs in anew.
    if let Some(axum::Extension(old)) = old
        && old.kind == TokenKind::Session
        && old.caller.who == signed_in.session.caller.who
    {
        salt.app.sign_out(&old).await?;
    }
    let mut response = format.reply(&super::run::answer(vec![log_in_element(&salt, &signed_in)]));
    let cookie = cookie(&signed_in.token, signed_in.session.expires.since(signed_in.session.created), from.secure);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let (Ok(token), Ok(cookie)) = (HeaderValue::from_str(&signed_in.token), HeaderValue::from_str(&cookie)) {
        headers.insert(TOKEN_HEADER, token);
        headers.insert(header::SET_COOKIE, cookie);
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
    if let Ok(cookie) = HeaderValue::from_str(&cookie("", Duration::ZERO, from.secure)) {
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
        .map(|element| Credentials::read(element).filter(|_| text(element, "eauth").is_some()).ok_or_else(missing))
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

impl Credentials {
    /// Those of an object, if it has any. Without `eauth` the server's own users are meant.
    pub(super) fn read(asked: &Map) -> Option<Self> {
        let user = text(asked, "username")?.to_owned();
        let password =
            given(asked, "password").filter(|value| value.as_list().is_none() && value.as_map().is_none())?;
        let eauth = text(asked, "eauth").unwrap_or_default().to_owned();
        Some(Self { user, password: password.key_text().into_owned(), eauth })
    }

    /// The name somebody goes by.
    pub(super) fn user(&self) -> &str {
        &self.user
    }
}

/// Asks the backend; nothing if it refuses. Whoever tries too often is told so.
pub(super) async fn vouch(salt: &Salt, from: Source, asked: &Credentials) -> Result<Option<Identity>, Failure> {
    match salt.gate.vouch(from.address, &asked.eauth, &asked.user, &asked.password).await {
        Ok(identity) => {
            let crate::login::Identity { user, auth, groups } = identity;
            Ok(Some(Identity { user, auth, groups }))
        }
        Err(Refused::TooMany { retry_after }) => Err(Failure::too_many(retry_after)),
        Err(Refused::Denied) => {
            salt.app.refused_sign_in(&asked.user, &asked.eauth, &from.origin()).await?;
            Ok(None)
        }
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

fn cookie(token: &str, lifetime: Duration, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("session_id={token}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", lifetime.as_secs())
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
    fn scripts_cannot_read_the_cookie_and_other_sites_do_not_send_it() {
        assert_eq!(
            cookie("ab", Duration::from_secs(60), true),
            "session_id=ab; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(cookie("", Duration::ZERO, false), "session_id=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
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
        let credentials =
            Credentials::read(&object(r#"{"username": "ann", "password": 1234, "eauth": "file"}"#)).unwrap();
        assert_eq!((credentials.password.as_str(), credentials.eauth.as_str()), ("1234", "file"));
        assert!(Credentials::read(&object(r#"{"username": "ann"}"#)).is_none());
        assert!(Credentials::read(&object(r#"{"username": "ann", "password": null}"#)).is_none());
    }

    #[test]
    fn tokens_are_hexadecimal() {
        assert!(is_token("694355ef25bad1db"));
        assert!(!is_token("zzz") && !is_token(""));
    }
}
