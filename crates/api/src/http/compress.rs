//! Gzip for answers that are text, large enough to be worth it, and have an end.
//!
//! Small answers stay as they are also because those that carry a token are small: compressing a secret next to something
//! the asker chose tells its length.

use super::streams::{is_stream, media_type};
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Extensions, StatusCode, Version};
use axum::middleware::Next;
use axum::response::Response;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{And, Predicate as _, SizeAbove};

/// Below this an answer fits into one packet anyway.
const WORTH_IT: u64 = 1024;

type Judge = fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool;

/// Compresses what is worth it.
pub(super) fn layer() -> CompressionLayer<And<SizeAbove, Judge>> {
    let judge: Judge = |_, _, headers, extensions| is_text(headers) && !is_stream(headers, extensions);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(SizeAbove::new(WORTH_IT).and(judge))
}

/// Leaves of `Accept-Encoding` what matters to the layer, before it.
///
/// It would turn an answer into a 406 for a client that takes neither gzip nor plain bytes, after the handler has done its
/// work. A client with such wishes gets plain bytes.
pub(super) async fn choose(mut request: Request, next: Next) -> Response {
    let takes_gzip = takes_gzip(request.headers());
    request.headers_mut().remove(header::ACCEPT_ENCODING);
    if takes_gzip {
        request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    next.run(request).await
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        is_gzip && weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0))
    })
}

fn is_text(headers: &HeaderMap) -> bool {
    let Some(found) = media_type(headers) else { return false };
    found.starts_with("text/")
        || found.ends_with("+json")
        || found.ends_with("+xml")
        || matches!(
            found.as_str(),
            "application/json" | "application/yaml" | "application/x-yaml" | "application/javascript"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_by_those_who_take_it() {
        for (value, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip; q=1.0, *;q=0", true),
            ("gzip;q=0", false),
            ("gzip;q=much", false),
            ("br, *;q=0", false),
            ("identity;q=0", false),
            ("xgzip", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        }
    }

    #[test]
    fn only_text_is_compressed() {
        for (value, expected) in [
            ("application/json", true),
            ("application/problem+json; charset=utf-8", true),
            ("text/html;charset=utf-8", true),
            ("image/svg+xml", true),
            ("application/x-yaml", true),
            ("image/png", false),
            ("application/x-tar", false),
        ] {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(is_text(&headers), expected, "{value}");
        }
        assert!(!is_text(&HeaderMap::new()));
    }
}
