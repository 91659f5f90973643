//! What all operations have in common, added to each: errors, headers, the selection of fields.

use crate::shape::Problem;
use serde_json::{Value, json};
use utoipa::PartialSchema;
use utoipa::openapi::response::Response;
use utoipa::openapi::{OpenApi, RefOr};

/// Operations that take no `Idempotency-Key`: their answer tells a secret, and an answer with a key is kept.
pub(crate) const WITHOUT_KEY: [&str; 2] = ["/api/v1/tokens", "/api/v1/sessions"];

/// What everybody should know before the first request.
const ABOUT: &str = "The API of a Saltern server.

**Log in** with `POST /api/v1/sessions`, or make a token with `POST /api/v1/tokens`, and send it as `X-Auth-Token` or as \
`Authorization: Bearer`; a browser has it as a cookie. On the control socket nothing is needed.

**Lists** come in pages: `limit` is how much is wanted, and `next` of the answer is the `before` or `after` of the next page, or \
null. A page that is exactly full may be followed by an empty one. `fields=a,b.c` leaves only these fields of each entry, or \
of the one thing that was asked for. Jobs, actions, launches, dead letters, the times of what \
recurs and the audit log come newest first; lists that are in the \
order of names are turned around by `order=desc`.

**Changes** of users, groups, organisations, chains, states, webhooks, what recurs, calendars and schedules need `If-Match` with the `ETag` that was read, or `*`.

**Repeating** a `POST` is safe with an `Idempotency-Key` of your choice: the first request with it is carried out, and its \
answer, if it was no error, is given to all that repeat it for a day, with `Idempotency-Replayed: true`. The same key with \
another request is answered 422. While the first is carried out, and after a crash that left its end unknown, the answer is \
409: look whether it was done before you ask anew.

**Unknown** names in a query or a body are refused, not ignored.

**Errors** are problem JSON (RFC 9457) with a stable `code`.";

/// The document as it is served.
pub(crate) fn complete(document: &OpenApi) -> Value {
    let mut document = serde_json::to_value(document).unwrap_or_default();
    document["info"] = json!({
        "title": "Saltern",
        "description": ABOUT,
        "version": env!("CARGO_PKG_VERSION"),
        "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
    });
    document["security"] = json!([{ "token": [] }, { "bearer": [] }, { "cookie": [] }]);
    document["components"]["securitySchemes"] = json!({
        "token": { "type": "apiKey", "in": "header", "name": "X-Auth-Token" },
        "bearer": { "type": "http", "scheme": "bearer" },
        "cookie": { "type": "apiKey", "in": "cookie", "name": "session_id" },
    });
    let schemas = &mut document["components"]["schemas"];
    schemas["Problem"] = serde_json::to_value(Problem::schema()).unwrap_or_default();
    for (_, schema) in schemas.as_object_mut().into_iter().flatten() {
        lift_descriptions(schema);
    }
    if let Some(schemas) = schemas.as_object_mut() {
        schemas.sort_keys();
    }
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            complete_operation(path, method, operation);
        }
    }
    document
}

fn complete_operation(path: &str, method: &str, operation: &mut Value) {
    let has_body = operation.get("requestBody").is_some();
    let is_open = operation["security"].as_array().is_some_and(|security| security.contains(&json!({})));
    let takes_key = method == "post" && !WITHOUT_KEY.contains(&path);
    let is_changed = operation["responses"].get("428").is_some();
    let is_tagged = operation["responses"].get("304").is_some();
    let has_fields = method == "get" && operation["responses"]["200"]["content"].get("application/json").is_some();

    let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    for parameter in parameters.iter_mut().filter(|parameter| parameter.get("description").is_none()) {
        parameter["description"] = parameter["schema"]["description"].clone();
    }
    if has_fields {
        parameters.push(json!({
            "name": "fields", "in": "query", "schema": { "type": "string", "minLength": 1 },
            "description": "Only these fields, separated by commas; `a.b` is `b` within `a`",
        }));
    }
    if takes_key {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" },
            "description": "Makes it safe to send this again: it is carried out once",
        }));
    }
    if is_changed {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": true, "schema": { "type": "string", "pattern": MATCH },
            "description": "The `ETag` that was read, or `*`: whatever it is now",
        }));
    }
    if is_tagged {
        parameters.push(json!({
            "name": "If-None-Match", "in": "header", "schema": { "type": "string" },
            "description": "The `ETag` of what you have",
        }));
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }

    let Some(responses) = operation["responses"].as_object_mut() else { return };
    let mut add = |status: &str, why: &str| {
        responses.entry(status).or_insert_with(|| serde_json::to_value(problem(why)).unwrap_or_default());
    };
    add("400", "The request makes no sense as it is");
    add("503", "Not now: the server is busy, stopping, or its database does not answer");
    if !is_open {
        add("401", "No valid token");
        add("403", "Not allowed");
    }
    if has_body {
        add("408", "The body took too long to arrive");
        add("413", "The body is too large");
        add("415", "The body is not JSON");
    }
    if takes_key {
        add("409", "A request with this `Idempotency-Key` is being carried out, or its end is not known");
        add("422", "The `Idempotency-Key` was used for another request");
    }
    if is_changed || is_tagged {
        for status in ["200", "201"] {
            if let Some(answer) = responses.get_mut(status) {
                answer["headers"] = json!({ "ETag": { "schema": { "type": "string" }, "description": "The version" } });
            }
        }
    }
    responses.sort_keys();
}

/// What is said of a field that may be null belongs to the field, not to one of the two things it may be.
fn lift_descriptions(schema: &mut Value) {
    // Not by index: that would make what is not there.
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        let parts = field.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten();
        let mut references = parts.filter_map(Value::as_object_mut).filter(|part| part.contains_key("$ref"));
        let said = references.find_map(|part| part.shift_remove("description"));
        if let (Some(said), Some(field)) = (said, field.as_object_mut()) {
            field.entry("description").or_insert(said);
        }
    }
    let parts = schema.get_mut("allOf").and_then(Value::as_array_mut);
    parts.into_iter().flatten().for_each(lift_descriptions);
}

/// What `If-Match` can be.
const MATCH: &str = r#"^(\*|"[1-9][0-9]{0,17}")$"#;

/// An answer that is a problem.
pub(super) fn problem(why: &str) -> RefOr<Response> {
    let answer = json!({
        "description": why,
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    // The text is ours and fits; an answer without content would still name the status.
    serde_json::from_value::<Response>(answer).unwrap_or_default().into()
}
