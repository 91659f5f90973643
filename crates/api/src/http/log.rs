//! One line in the log for each request, under an id that the answer carries too.
//!
//! The line has what says who did what, and nothing that could be a secret: no query, no headers, no bodies. Salt's clients
//! put tokens into paths (`/ws/TOKEN`), so parts of a path that are or look like one are left out.

use super::Peer;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;
use tracing::Instrument as _;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken from a client.
const LONGEST_ID: usize = 64;

/// The longest path that is logged whole, in characters.
const LONGEST_PATH: usize = 256;

/// From this length on, hexadecimal digits in a path are taken for a secret. A job id has 20.
const SECRET_DIGITS: usize = 32;

/// What asks whether we live, many times a minute, and is not worth a line each.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// A request's id: the client's own if it sent a sane one. In the extensions of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub Arc<str>);

/// Where the name of the user is left for the log, once it is known. In the extensions of every request.
#[derive(Clone, Debug, Default)]
pub struct Who(Arc<OnceLock<String>>);

impl Who {
    /// Names the user; the first name counts.
    pub fn is(&self, name: impl Into<String>) {
        let _ = self.0.set(name.into());
    }
}

/// Makes ids that differ within a run of the server and, most likely, between runs.
#[derive(Debug)]
pub(super) struct Ids {
    run: u32,
    next: AtomicU64,
}

impl Ids {
    pub(super) fn new() -> Self {
        // Half of a hash with the process's random key is as good as any number.
        let run = (RandomState::new().hash_one(0) >> 32) as u32;
        Self { run, next: AtomicU64::new(1) }
    }

    fn id_for(&self, headers: &HeaderMap) -> RequestId {
        let sent = headers.get(HEADER).and_then(|id| id.to_str().ok()).filter(|id| is_sane(id));
        let id = sent.map(Into::into);
        RequestId(id.unwrap_or_else(|| {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            format!("{:08x}-{number}", self.run).into()
        }))
    }
}

fn is_sane(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(is_plain)
}

/// Gives the request its id and writes the line.
pub(super) async fn write(State(ids): State<Arc<Ids>>, mut request: Request, next: Next) -> Response {
    let id = ids.id_for(request.headers());
    let who = Who::default();
    let line = Line {
        started: Instant::now(),
        method: request.method().clone(),
        path: path_of(&request),
        peer: request.extensions().get::<Peer>().map(Peer::origin).unwrap_or_default(),
        id: id.clone(),
        who: who.clone(),
        status: None,
    };
    request.extensions_mut().insert(id.clone());
    request.extensions_mut().insert(who);
    let span = tracing::info_span!("request", id = &*id.0);
    let mut response = next.run(request).instrument(span).await;
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(HEADER, value);
    }
    line.end(response.status());
    response
}

/// A line that is written when it is dropped: also if the client left and nobody waits for the answer.
struct Line {
    started: Instant,
    method: Method,
    path: String,
    peer: String,
    id: RequestId,
    who: Who,
    status: Option<StatusCode>,
}

impl Line {
    fn end(mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Self { started, method, path, peer, id, who, status } = self;
        let user = who.0.get().map_or("", String::as_str);
        let status = status.map(|status| status.as_u16());
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        macro_rules! line {
            ($level:ident, $message:literal) => {
                tracing::$level!(%method, path, status, ms, user, peer, id = &*id.0, $message)
            };
        }
        match status {
            None => line!(info, "a client left before its answer"),
            Some(500..) => line!(warn, "a request failed"),
            Some(..400) if PROBES.contains(&path.as_str()) => line!(debug, "a request was answered"),
            Some(_) => line!(info, "a request was answered"),
        }
    }
}

fn path_of(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    without_secrets(request.uri().path(), route)
}

/// The path without what is a secret by the route's own word, and without what looks like one.
fn without_secrets(path: &str, route: Option<&str>) -> String {
    let mut names = route.unwrap_or_default().split('/');
    let shown = path.split('/').map(|segment| {
        let is_secret = names.next() == Some("{token}") && !segment.is_empty();
        if is_secret || looks_secret(segment) { "***" } else { segment }
    });
    let mut shown = shown.collect::<Vec<_>>().join("/");
    if let Some((end, _)) = shown.char_indices().nth(LONGEST_PATH) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

/// Whether there are as many hexadecimal digits in a row as a token has; `%61` is one, too.
fn looks_secret(segment: &str) -> bool {
    let is_other = |byte: &u8| !byte.is_ascii_hexdigit() && *byte != b'%';
    segment.as_bytes().split(is_other).any(|digits| digits.len() >= SECRET_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF";

    #[test]
    fn a_sane_id_is_taken_and_another_is_replaced() {
        let ids = Ids::new();
        let id_for = |id: &'static [u8]| {
            let headers = HeaderMap::from_iter([(HEADER, HeaderValue::from_bytes(id).unwrap())]);
            ids.id_for(&headers).0
        };
        assert_eq!(&*id_for(b"Build-7.2_a"), "Build-7.2_a");
        for id in [b"".as_slice(), b"a b", b"a\"b", b"\xff\xfe", &[b'a'; LONGEST_ID + 1]] {
            let made = id_for(id);
            assert!(is_sane(&made) && made.as_bytes() != id, "{made}");
        }
    }

    #[test]
    fn made_ids_differ() {
        let ids = Ids::new();
        assert_ne!(ids.id_for(&HeaderMap::new()), ids.id_for(&HeaderMap::new()));
    }

    #[test]
    fn tokens_in_paths_are_not_shown() {
        let shown = |path: &str, route| without_secrets(path, route);
        assert_eq!(shown(&format!("/ws/{TOKEN}"), None), "/ws/***");
        assert_eq!(shown(&format!("/x/a={TOKEN}/y"), None), "/x/***/y");
        assert_eq!(shown("/ws/short", Some("/ws/{token}")), "/ws/***");
        assert_eq!(shown("/jobs/20261115195631000000", Some("/jobs/{jid}")), "/jobs/20261115195631000000");
        assert_eq!(shown("/minions/web1.example.org", None), "/minions/web1.example.org");
        assert_eq!(shown("/", None), "/");
    }

    #[test]
    fn long_paths_are_cut() {
        let shown = without_secrets(&"/ä".repeat(LONGEST_PATH), None);
        assert_eq!(shown.chars().count(), LONGEST_PATH + 1);
        assert!(shown.ends_with('…'), "{shown}");
    }

    proptest! {
        #[test]
        fn a_token_is_not_shown_wherever_it_stands(before in "[ -~]{0,40}", after in "[ -~]{0,40}") {
            let shown = without_secrets(&format!("/{before}{TOKEN}{after}"), None);
            prop_assert!(!shown.contains(&TOKEN[..SECRET_DIGITS]));
        }

        #[test]
        fn no_path_makes_it_panic(path in any::<String>(), route in any::<Option<String>>()) {
            without_secrets(&path, route.as_deref());
        }
    }
}
