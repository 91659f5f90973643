//! Who asks: finds the token in a request, has it looked up, and leaves what was found in the request's extensions.
//!
//! A request without a valid token goes on as nobody's: what to do about it is the handler's to say. A cookie is sent by the
//! browser whoever wrote the page, so for everything that could change something it counts only if the page is ours or one
//! of an allowed origin.

use super::Peer;
use super::cors::Origins;
use super::limits::TimeLimit;
use super::log::Who;
use crate::error::ApiError;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{self, HeaderMap};
use axum::http::{Extensions, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use saltern_server::Error;
use std::future::Future;
use std::sync::Arc;

/// The name of the cookie, as salt-api has it.
const COOKIE: &[u8] = b"session_id";

/// Nothing longer is looked up.
const LONGEST: usize = 512;

/// The largest body of somebody who has shown no valid token: he has only himself to name. What is read of it takes twenty
/// times its size in memory.
const STRANGER: usize = 256 << 10;

/// Whether a request was made by our own page, one of an allowed origin, or no page at all. In the extensions of every
/// request: a page of another site must not be given a cookie either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnPage(pub bool);

/// Knows whose a token is.
pub trait Identify: Send + Sync + 'static {
    /// Looks up `secret`, which came from the address `origin`. `None`: it is nobody's, or not valid any more.
    fn identify(&self, secret: &str, origin: &str) -> impl Future<Output = Result<Option<Identified>, Error>> + Send;
}

/// Who was found, and what handlers shall find in the request's extensions.
#[derive(Clone, Debug)]
pub struct Identified {
    who: String,
    extensions: Extensions,
}

impl Identified {
    /// Somebody by the name the log shows.
    pub fn new(who: impl Into<String>) -> Self {
        Self { who: who.into(), extensions: Extensions::new() }
    }

    /// Something for handlers.
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.extensions.insert(extension);
        self
    }
}

/// Has each request to `router` identified by `by`.
pub fn identified(router: Router, by: impl Identify) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(by), look_up))
}

async fn look_up<I: Identify>(State(by): State<Arc<I>>, mut request: Request, next: Next) -> Response {
    let is_own = is_own_page(request.headers(), request.extensions());
    request.extensions_mut().insert(OwnPage(is_own));
    let mut is_stranger = true;
    if let Some(secret) = secret_of(&request) {
        let origin = request.extensions().get::<Peer>().map(Peer::origin).unwrap_or_default();
        match by.identify(&secret, &origin).await {
            Ok(Some(Identified { who, extensions })) => {
                if let Some(log) = request.extensions().get::<Who>() {
                    log.is(who);
                }
                request.extensions_mut().extend(extensions);
                if let Some(time) = request.extensions().get::<TimeLimit>() {
                    time.grant();
                }
                is_stranger = false;
            }
            Ok(None) => {}
            // Not to know whose it is must not look like a token that is not valid: clients would forget it.
            Err(error) => return ApiError::from(error).into_response(),
        }
    }
    if is_stranger {
        DefaultBodyLimit::max(STRANGER).apply(&mut request);
    }
    next.run(request).await
}

/// The first of: `X-Auth-Token`, `Authorization: Bearer`, the cookie. If that one is not valid, no other is tried.
fn secret_of(request: &Request) -> Option<String> {
    let headers = request.headers();
    let secret = header_token(headers).or_else(|| {
        let token = cookie_token(headers)?;
        let may_count = !may_change(request.method(), headers) || is_own_page(headers, request.extensions());
        if !may_count {
            tracing::debug!("a session's cookie was ignored: the request comes from a page of another site");
        }
        may_count.then_some(token)
    })?;
    (secret.len() <= LONGEST).then_some(secret)
}

fn header_token(headers: &HeaderMap) -> Option<String> {
    let own = headers.get("x-auth-token").and_then(|value| value.to_str().ok());
    let bearer = || {
        let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    };
    let token = own.map(str::trim).filter(|token| !token.is_empty());
    token.or_else(|| bearer().map(str::trim).filter(|token| !token.is_empty())).map(str::to_owned)
}

/// Other cookies may be anything, so this looks at bytes.
fn cookie_token(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    cookies.map(<[u8]>::trim_ascii).find_map(|cookie| {
        let value = cookie.strip_prefix(COOKIE)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii();
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        let token = std::str::from_utf8(value).ok()?;
        (!token.is_empty()).then(|| token.to_owned())
    })
}

/// What browsers guard by CORS can be left to them: reading an answer. A WebSocket they do not guard.
fn may_change(method: &Method, headers: &HeaderMap) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) || headers.contains_key(header::UPGRADE)
}

/// See [`OwnPage`].
fn is_own_page(headers: &HeaderMap, extensions: &Extensions) -> bool {
    let origin = headers.get(header::ORIGIN);
    let is_allowed = |origin| extensions.get::<Origins>().is_some_and(|origins| origins.contain(origin));
    match (headers.get("sec-fetch-site"), origin) {
        (_, Some(origin)) if is_allowed(origin) => true,
        // `none` is a person who typed the address.
        (Some(site), _) => site == "same-origin" || site == "none",
        (None, None) => true,
        (None, Some(origin)) => {
            let by_tls = extensions.get::<Peer>().is_some_and(|peer| peer.secure);
            origin.to_str().is_ok_and(|origin| is_own_origin(origin, headers, by_tls))
        }
    }
}

/// Compares with the name the client called us by. Without TLS of our own there may be a proxy that has it.
fn is_own_origin(origin: &str, headers: &HeaderMap, by_tls: bool) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_scheme_right = origin.scheme_str().is_some_and(|scheme| scheme == "https" || !by_tls);
    let is_host_right = |host: &str| origin.authority().is_some_and(|own| own.as_str().eq_ignore_ascii_case(host));
    is_scheme_right && host.is_some_and(is_host_right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    fn request(method: &str, headers: &[(&'static str, &str)]) -> Request {
        let mut request = Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
        request.headers_mut().insert("host", HeaderValue::from_static("salt.example.org:8000"));
        for (name, value) in headers {
            request.headers_mut().append(*name, HeaderValue::from_str(value).unwrap());
        }
        request
    }

    fn secret(method: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        secret_of(&request(method, headers))
    }

    #[test]
    fn a_token_comes_by_header_bearer_or_cookie() {
        for headers in [
            ("x-auth-token", "abc"),
            ("x-auth-token", "  abc "),
            ("authorization", "Bearer abc"),
            ("authorization", "bearer  abc"),
            ("cookie", "session_id=abc"),
            ("cookie", "a=b; session_id=\"abc\"; c"),
        ] {
            assert_eq!(secret("GET", &[headers]).as_deref(), Some("abc"), "{headers:?}");
        }
    }

    #[test]
    fn nothing_else_is_a_token() {
        for headers in [
            ("x-auth-token", ""),
            ("authorization", "Basic YTpi"),
            ("authorization", "Bearer"),
            ("authorization", "Bearer "),
            ("cookie", "xsession_id=abc"),
            ("cookie", "session_idx=abc"),
            ("cookie", "session_id="),
            ("cookie", "session_id"),
        ] {
            assert_eq!(secret("GET", &[headers]), None, "{headers:?}");
        }
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(secret("GET", &[("x-auth-token", &long)]), None);
    }

    #[test]
    fn the_header_wins() {
        let all = [("cookie", "session_id=c"), ("authorization", "Bearer b"), ("x-auth-token", "a")];
        assert_eq!(secret("GET", &all).as_deref(), Some("a"));
        assert_eq!(secret("GET", &all[..2]).as_deref(), Some("b"));
    }

    #[test]
    fn a_cookie_among_odd_bytes_is_found() {
        let mut request = request("GET", &[]);
        let value = HeaderValue::from_bytes(b"name=J\xc3\xb6rg\xff; session_id=abc").unwrap();
        request.headers_mut().insert("cookie", value);
        assert_eq!(secret_of(&request).as_deref(), Some("abc"));
    }

    #[test]
    fn a_cookie_counts_for_changes_only_from_our_own_page() {
        let cookie = ("cookie", "session_id=abc");
        for (headers, expected) in [
            (vec![], true),
            (vec![("origin", "http://salt.example.org:8000")], true),
            (vec![("origin", "https://SALT.example.org:8000")], true),
            (vec![("sec-fetch-site", "same-origin"), ("origin", "http://salt.example.org:8000")], true),
            (vec![("sec-fetch-site", "none")], true),
            (vec![("origin", "http://salt.example.org")], false),
            (vec![("origin", "http://evil.example.org:8000")], false),
            (vec![("origin", "null")], false),
            (vec![("origin", "http://evil.example.org/salt.example.org:8000")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("sec-fetch-site", "same-site"), ("origin", "http://x.example.org")], false),
            (vec![("sec-fetch-site", "cross-site"), ("origin", "http://salt.example.org:8000")], false),
        ] {
            let mut all = vec![cookie];
            all.extend(&headers);
            assert_eq!(secret("POST", &all).is_some(), expected, "{headers:?}");
            assert!(secret("GET", &all).is_some(), "{headers:?}");
            all.push(("upgrade", "websocket"));
            assert_eq!(secret("GET", &all).is_some(), expected, "websocket {headers:?}");
        }
    }

    #[test]
    fn a_header_counts_from_everywhere() {
        let headers =
            [("x-auth-token", "abc"), ("origin", "http://evil.example.org"), ("sec-fetch-site", "cross-site")];
        assert!(secret("POST", &headers).is_some());
    }

    #[test]
    fn a_cookie_counts_from_an_allowed_origin() {
        let headers =
            [("cookie", "session_id=abc"), ("origin", "https://gui.example.org"), ("sec-fetch-site", "cross-site")];
        let mut request = request("POST", &headers);
        assert!(secret_of(&request).is_none());
        request.extensions_mut().insert(Origins::parse(&["https://gui.example.org".to_owned()]).unwrap());
        assert!(secret_of(&request).is_some());
    }

    #[test]
    fn by_tls_a_page_without_it_is_another_site() {
        let headers = [("cookie", "session_id=abc"), ("origin", "http://salt.example.org:8000")];
        let mut request = request("POST", &headers);
        request.extensions_mut().insert(Peer { address: ([127, 0, 0, 1], 1).into(), secure: true });
        assert!(secret_of(&request).is_none());
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(
            name in prop::sample::select(vec!["cookie", "authorization", "x-auth-token", "origin", "sec-fetch-site"]),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut request = request("POST", &[("cookie", "session_id=abc")]);
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                request.headers_mut().append(name, value);
            }
            secret_of(&request);
        }
    }
}
