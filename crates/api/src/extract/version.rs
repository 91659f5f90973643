//! Versions of things that people change: told as `ETag`, asked for with `If-Match`, spared with `If-None-Match`.

use crate::error::ApiError;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use saltern_server::app::ANY_VERSION;
use serde::Serialize;

/// The version that a change is meant for, from `If-Match`. A change without one is refused: it might undo another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected(pub(crate) i64);

/// A thing with its version.
pub(crate) struct Versioned<T>(pub(crate) T, pub(crate) i64);

impl<S: Send + Sync> FromRequestParts<S> for Expected {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        expected(&parts.headers).map(Self)
    }
}

fn expected(headers: &HeaderMap) -> Result<i64, ApiError> {
    let mut given = headers.get_all(header::IF_MATCH).iter();
    let Some(first) = given.next() else {
        let hint = "send the ETag you have read as If-Match, or If-Match: * to change it whatever it is";
        let message = "this changes something that others change too: say which version you mean";
        return Err(ApiError::new(StatusCode::PRECONDITION_REQUIRED, "precondition_required", message, hint));
    };
    let text = first.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(ANY_VERSION);
    }
    let tag = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|tag| !tag.contains('"'));
    match tag {
        Some(tag) if given.next().is_none() => {
            // A tag that is not one of ours is one that nothing is at.
            let hint = "read it again, then change it";
            let stale = || ApiError::new(StatusCode::PRECONDITION_FAILED, "stale", "it is not at that version", hint);
            tag.parse().ok().filter(|version| *version > 0).ok_or_else(stale)
        }
        _ => Err(ApiError::invalid("If-Match is one ETag, such as \"3\", or *")),
    }
}

impl<T: Serialize> IntoResponse for Versioned<T> {
    fn into_response(self) -> Response {
        let mut response = axum::Json(self.0).into_response();
        if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", self.1)) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// Answers 304 instead of what the client has already.
pub(crate) async fn not_modified(request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let known: Vec<HeaderValue> = request.headers().get_all(header::IF_NONE_MATCH).iter().cloned().collect();
    let response = next.run(request).await;
    let Some(tag) = response.headers().get(header::ETAG).filter(|_| is_read && !known.is_empty()) else {
        return response;
    };
    if !response.status().is_success() || !known.iter().any(|known| names(known, tag)) {
        return response;
    }
    let headers = [(header::ETAG, tag.clone())];
    (StatusCode::NOT_MODIFIED, headers).into_response()
}

/// Whether a list of tags has this one. Reading compares weakly.
fn names(list: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(list), Ok(tag)) = (list.to_str(), tag.to_str()) else { return false };
    let mut tags = list.split(',').map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<i64, u16> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, HeaderValue::from_str(value).unwrap());
        }
        expected(&headers).map_err(|error| error.into_response().status().as_u16())
    }

    #[test]
    fn a_change_says_which_version_it_means() {
        assert_eq!(read(&["\"3\""]), Ok(3));
        assert_eq!(read(&["*"]), Ok(ANY_VERSION));
        assert_eq!(read(&[]), Err(428));
        for foreign in ["\"x\"", "\"-1\"", "\"0\"", "\"\"", "\"99999999999999999999\""] {
            assert_eq!(read(&[foreign]), Err(412), "{foreign}");
        }
        for bad in ["3", "W/\"3\"", "\"3", "\"3\", \"4\"", ""] {
            assert_eq!(read(&[bad]), Err(400), "{bad}");
        }
        assert_eq!(read(&["\"3\"", "\"4\""]), Err(400));
    }

    #[test]
    fn what_a_client_has_is_known_by_its_tag() {
        let names = |list: &'static str| names(&HeaderValue::from_static(list), &HeaderValue::from_static("\"3\""));
        assert!(names("\"3\"") && names("\"1\", W/\"3\"") && names("*"));
        assert!(!names("\"4\"") && !names("") && !names("3"));
    }
}
