//! `fields=a,b.c`: leaves only these fields of what is answered.
//!
//! A layer over the JSON, so that no handler has to know of it. Which names there are is taken from the OpenAPI document: a
//! misspelt name is refused before anything is looked up, and a field that one entry happens not to have is no mistake.

mod known;

pub(crate) use known::Known;

use crate::error::ApiError;
use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name in the query.
const FIELDS: &str = "fields";

/// Most names at once, and the deepest.
const MOST: usize = 100;
const DEEPEST: usize = 10;

/// What is wanted of an object: everything of a field, or some of what is in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selection(BTreeMap<String, Option<Selection>>);

/// Selects, where something is to be selected.
pub(crate) async fn select(State(known): State<Arc<Known>>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let selectable = path.and_then(|path| known.get(&path).cloned());
    let (Method::GET, Some(selectable)) = (request.method().clone(), selectable) else {
        return next.run(request).await;
    };
    let selection = match take(request.uri_mut()) {
        Ok(None) => return next.run(request).await,
        Ok(Some(selection)) => selection,
        Err(error) => return error.into_response(),
    };
    if let Err(name) = selectable.check(&selection) {
        return ApiError::invalid(format!("there is no field {name:?} here")).into_response();
    }
    let response = next.run(request).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = body.collect().await else {
        return ApiError::from(saltern_server::Error::Internal("an answer could not be read".into())).into_response();
    };
    let body = cut(&body.to_bytes(), selectable.items(), &selection);
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    Response::from_parts(parts, Body::from(body))
}

/// Takes the selection out of a query, if there is one.
fn take(uri: &mut Uri) -> Result<Option<Selection>, ApiError> {
    let Some(query) = uri.query() else { return Ok(None) };
    let is_ours = |piece: &&str| piece.split('=').next() == Some(FIELDS);
    if !query.split('&').any(|piece| is_ours(&piece)) {
        return Ok(None);
    }
    let all =
        Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|error| ApiError::invalid(error.body_text()))?;
    let mut named = all.0.iter().filter(|(name, _)| name == FIELDS).map(|(_, value)| value);
    let selection = match (named.next(), named.next()) {
        (Some(names), None) => Selection::parse(names)?,
        _ => return Err(ApiError::invalid("fields is given once, with commas between the names")),
    };
    let rest: Vec<&str> = query.split('&').filter(|piece| !is_ours(piece)).collect();
    let path = if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), rest.join("&")) };
    let mut parts = uri.clone().into_parts();
    let unread = |_| ApiError::invalid("the query cannot be read");
    parts.path_and_query = Some(PathAndQuery::try_from(path).map_err(unread)?);
    *uri = Uri::from_parts(parts).map_err(|_| ApiError::invalid("the query cannot be read"))?;
    Ok(Some(selection))
}

impl Selection {
    fn parse(names: &str) -> Result<Self, ApiError> {
        let mut selection = Self::default();
        let names: Vec<&str> = names.split(',').collect();
        if names.len() > MOST {
            return Err(ApiError::invalid(format!("at most {MOST} fields are named")));
        }
        for name in names {
            let steps: Vec<&str> = name.split('.').collect();
            if steps.len() > DEEPEST || steps.iter().any(|step| step.is_empty()) {
                return Err(ApiError::invalid(format!("{name:?} is not the name of a field")));
            }
            selection.add(&steps);
        }
        Ok(selection)
    }

    fn add(&mut self, steps: &[&str]) {
        let Some((first, rest)) = steps.split_first() else { return };
        if rest.is_empty() {
            // All of it: what was wanted of it before is in that.
            self.0.insert((*first).to_owned(), None);
            return;
        }
        let inner = self.0.entry((*first).to_owned()).or_insert_with(|| Some(Self::default()));
        if let Some(inner) = inner {
            inner.add(rest);
        }
    }

    /// What is left of a value. Lists are selected from item by item; what has no fields is left as it is.
    fn of(&self, value: Value) -> Value {
        match value {
            Value::Array(items) => items.into_iter().map(|item| self.of(item)).collect(),
            Value::Object(mut fields) => {
                let mut left = Map::new();
                for (name, inner) in &self.0 {
                    if let Some(value) = fields.shift_remove(name) {
                        left.insert(name.clone(), inner.as_ref().map_or(value.clone(), |inner| inner.of(value)));
                    }
                }
                Value::Object(left)
            }
            other => other,
        }
    }
}

/// Selects from an answer: from its items if it is a list, else from itself.
fn cut(body: &Bytes, items: Option<&str>, selection: &Selection) -> Vec<u8> {
    let Ok(mut answer) = serde_json::from_slice::<Value>(body) else { return body.to_vec() };
    let answer = match items {
        Some(items) => {
            if let Some(list) = answer.get_mut(items) {
                *list = selection.of(list.take());
            }
            answer
        }
        None => selection.of(answer),
    };
    serde_json::to_vec(&answer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn selected(names: &str, value: Value) -> Value {
        Selection::parse(names).unwrap().of(value)
    }

    #[test]
    fn only_what_is_named_is_left() {
        let value = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": [{ "f": 4, "g": 5 }, { "g": 6 }] });
        assert_eq!(selected("a", value.clone()), json!({ "a": 1 }));
        assert_eq!(selected("b.c,e.f", value.clone()), json!({ "b": { "c": 2 }, "e": [{ "f": 4 }, {}] }));
        assert_eq!(selected("b.c,b", value.clone()), json!({ "b": { "c": 2, "d": 3 } }));
        assert_eq!(selected("b,b.c", value), json!({ "b": { "c": 2, "d": 3 } }));
    }

    #[test]
    fn names_are_names() {
        for bad in ["", ",", "a,,b", "a.", ".a", "a..b", "a.b.c.d.e.f.g.h.i.j.k"] {
            assert!(Selection::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Selection::parse(&vec!["a"; MOST + 1].join(",")).is_err());
    }

    fn taken(uri: &str) -> (Option<Selection>, String) {
        let mut uri: Uri = uri.parse().unwrap();
        let selection = take(&mut uri).unwrap();
        (selection, uri.to_string())
    }

    #[test]
    fn handlers_do_not_see_it() {
        assert_eq!(taken("/x?a=1&fields=b%2Cc&d=2").1, "/x?a=1&d=2");
        assert_eq!(taken("/x?fields=b").1, "/x");
        assert_eq!(taken("/x?a=fields"), (None, "/x?a=fields".into()));
        assert_eq!(taken("/x?fields=b%2Cc").0, Selection::parse("b,c").ok());
        assert!(take(&mut "/x?fields=a&fields=b".parse().unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn no_query_makes_it_panic(query in "[a-z=&%.,0-9]{0,60}") {
            if let Ok(mut uri) = format!("/x?{query}").parse::<Uri>() {
                let _ = take(&mut uri);
            }
        }
    }
}
