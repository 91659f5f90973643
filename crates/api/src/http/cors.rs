//! Which other sites' pages may use the API. None by default: our own pages are of the same origin and need no permission.
//!
//! Every `OPTIONS` request is answered here, whatever its URL: nothing else is offered by that method.

use super::HttpError;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{Method, Uri};
use std::sync::Arc;
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long browsers may remember a permission.
const REMEMBERED: Duration = Duration::from_secs(1400);

const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

const REQUEST_HEADERS: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-requested-with"),
    header::AUTHORIZATION,
    header::IF_MATCH,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("last-event-id"),
];

const EXPOSED_HEADERS: [HeaderName; 5] = [
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-request-id"),
    header::ETAG,
    header::LOCATION,
    header::RETRY_AFTER,
];

/// The sites that were named. Cheap to clone; in the extensions of every request.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins(Arc<[HeaderValue]>);

impl Origins {
    /// Reads origins as browsers write them; a slash at the end is forgiven.
    pub(super) fn parse(origins: &[String]) -> Result<Self, HttpError> {
        let parsed = origins.iter().map(|text| {
            let plain = text.trim().trim_end_matches('/').to_ascii_lowercase();
            let is_origin = plain.parse().is_ok_and(|uri: Uri| is_origin(&uri, &plain));
            let value = HeaderValue::try_from(plain).ok().filter(|_| is_origin);
            value.ok_or_else(|| HttpError::Origin(text.clone()))
        });
        Ok(Self(parsed.collect::<Result<_, _>>()?))
    }

    /// Whether this is one of them.
    pub(super) fn contain(&self, origin: &HeaderValue) -> bool {
        self.0.contains(origin)
    }
}

fn is_origin(uri: &Uri, text: &str) -> bool {
    match (uri.scheme_str(), uri.authority()) {
        (Some(scheme @ ("http" | "https")), Some(authority)) => {
            !authority.host().is_empty()
                && !authority.host().contains('*')
                && text == format!("{scheme}://{authority}")
                && !authority.as_str().contains('@')
        }
        _ => false,
    }
}

/// Answers preflights, and tells browsers who may read an answer.
pub(super) fn layer(origins: &Origins) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins.0.iter().cloned()))
        .allow_credentials(true)
        .allow_methods(METHODS)
        .allow_headers(REQUEST_HEADERS)
        .expose_headers(EXPOSED_HEADERS)
        .max_age(REMEMBERED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_scheme_host_and_port() {
        let origins =
            ["https://gui.example.org", "http://127.0.0.1:3000/", "HTTPS://GUI2.example.org", "http://[::1]:80"];
        let origins = Origins::parse(&origins.map(str::to_owned)).unwrap();
        assert!(origins.contain(&HeaderValue::from_static("https://gui.example.org")));
        assert!(origins.contain(&HeaderValue::from_static("http://127.0.0.1:3000")));
        assert!(origins.contain(&HeaderValue::from_static("https://gui2.example.org")));
        assert!(!origins.contain(&HeaderValue::from_static("http://gui.example.org")));
        assert!(!origins.contain(&HeaderValue::from_static("null")));
    }

    #[test]
    fn what_no_browser_would_send_is_refused() {
        for text in [
            "",
            "*",
            "null",
            "gui.example.org",
            "https://",
            "https://gui.example.org/app",
            "https://gui.example.org?x",
            "https://*.example.org",
            "https://ann@gui.example.org",
            "ftp://gui.example.org",
        ] {
            assert!(matches!(Origins::parse(&[text.to_owned()]), Err(HttpError::Origin(_))), "{text}");
        }
    }
}
