//! The OpenAPI document: complete, and the one that is checked in.
//!
//! `UPDATE=1 cargo test -p saltern-api --test openapi` writes `docs/reference/openapi.json` and `docs/reference/api.md` anew.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use saltern_api::openapi::{document, reference};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn is_as_checked_in(name: &str, made: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if kept != made {
        let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
        panic!(
            "{name} is not what the routes say (line {differs:?}): UPDATE=1 cargo test -p saltern-api --test openapi"
        );
    }
}

/// Every operation with its method and path.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((format!("{} {path}", method.to_uppercase()), operation));
        }
    }
    all
}

#[test]
fn the_checked_in_document_is_the_one_that_is_served() {
    is_as_checked_in("openapi.json", &(serde_json::to_string_pretty(&document()).unwrap() + "\n"));
}

#[test]
fn the_reference_is_made_from_the_document() {
    is_as_checked_in("api.md", &reference(&document()));
}

#[test]
fn every_operation_is_described() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (name, operation) in operations(&document) {
        let text = |field: &str| operation[field].as_str().unwrap_or_else(|| panic!("{name} has no {field}"));
        assert!(ids.insert(text("operationId").to_owned()), "{name}: the id is taken");
        assert!(!text("summary").is_empty() && !text("description").is_empty(), "{name}");
        assert!(operation["tags"][0].is_string(), "{name} has no subject");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{name}: {parameter}");
        }
    }
}

#[test]
fn every_operation_tells_its_statuses() {
    let document = document();
    for (name, operation) in operations(&document) {
        let statuses: BTreeSet<&str> = operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
        let has = |status: &str| assert!(statuses.contains(status), "{name} does not tell of {status}");
        assert!(statuses.iter().any(|status| status.starts_with(['1', '2'])), "{name} never goes well");
        has("400");
        has("503");
        if operation["security"].is_null() {
            has("401");
            has("403");
        }
        if operation["requestBody"].is_object() {
            has("413");
            has("415");
        }
        let versioned =
            ["users/{", "chains/{", "groups/{", "organisations/{", "webhooks/{", "recurring/{", "calendars/{"];
        let is_versioned = versioned.iter().chain(&["schedules/{"]).any(|part| name.contains(part));
        if is_versioned && ["PUT", "PATCH", "DELETE"].iter().any(|method| name.starts_with(method)) {
            has("412");
            has("428");
        }
        if name.contains('{') && !name.contains("POST /api/v1/actions") {
            has("404");
        }
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let is_problem = answer["content"]["application/problem+json"].is_object();
            assert_eq!(status.starts_with(['4', '5']), is_problem, "{name} {status}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn check(document: &Value, value: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(name)) = map.get("$ref") {
                    let pointer = name.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some_and(Value::is_object), "{name}");
                }
                map.values().for_each(|value| check(document, value));
            }
            Value::Array(items) => items.iter().for_each(|value| check(document, value)),
            _ => {}
        }
    }
    let document = document();
    check(&document, &document);
}

#[test]
fn every_field_says_what_it_is() {
    let document = document();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string() || schema["oneOf"].is_array(), "{name} has no description");
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let is_described = schema["description"].is_string() || schema["$ref"].is_string();
            assert!(is_described, "{name}.{field} has no description");
        }
    }
}

/// Routes are made by `routes!` alone, which puts each into the document: nothing in `v1` may go around it.
#[test]
fn no_route_goes_around_the_document() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/v1");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(".route("), "{} adds a route that the document does not know", path.display());
    }
}
