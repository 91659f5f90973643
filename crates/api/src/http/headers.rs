//! Headers that tell browsers what not to do with our answers. A handler's own word counts more.

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

/// Whether answers go out by TLS.
#[derive(Clone, Copy)]
pub(super) struct Secured(pub(super) bool);

const ALWAYS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
    // A cache in between does not know that X-Auth-Token makes an answer private.
    (header::CACHE_CONTROL, "private, no-cache"),
];

/// Half a year; subdomains are not ours to speak for.
const HSTS: (HeaderName, &str) = (header::STRICT_TRANSPORT_SECURITY, "max-age=15768000");

/// Adds what the handler did not say itself.
pub(super) async fn secure(State(Secured(by_tls)): State<Secured>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    add(response.headers_mut(), by_tls);
    response
}

fn add(headers: &mut HeaderMap, by_tls: bool) {
    for (name, value) in ALWAYS.into_iter().chain(by_tls.then_some(HSTS)) {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_transport_is_asked_for_by_tls_only() {
        let mut headers = HeaderMap::new();
        add(&mut headers, false);
        assert_eq!(headers.get(header::STRICT_TRANSPORT_SECURITY), None);
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        add(&mut headers, true);
        assert_eq!(headers[header::STRICT_TRANSPORT_SECURITY], "max-age=15768000");
    }

    #[test]
    fn a_handlers_own_word_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        add(&mut headers, true);
        assert_eq!(headers.get_all(header::CACHE_CONTROL).iter().collect::<Vec<_>>(), ["max-age=60"]);
    }
}
