//! The document as people look at it: operations by subject, and schemas in short.

use serde_json::{Map, Value};

/// One operation.
pub(super) struct Operation<'a> {
    pub(super) id: &'a str,
    pub(super) method: String,
    pub(super) path: &'a str,
    pub(super) summary: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: Vec<Parameter<'a>>,
    /// The schema of the body
    pub(super) body: Option<&'a Value>,
    pub(super) answers: Vec<Answer<'a>>,
    pub(super) is_open: bool,
}

/// One parameter of an operation.
pub(super) struct Parameter<'a> {
    pub(super) name: &'a str,
    pub(super) place: &'a str,
    pub(super) description: &'a str,
    pub(super) kind: String,
    pub(super) is_required: bool,
}

/// One answer of an operation.
pub(super) struct Answer<'a> {
    pub(super) status: &'a str,
    pub(super) description: &'a str,
    /// What the body is: a kind, or a content type
    pub(super) kind: Option<String>,
}

/// One field of a schema.
pub(super) struct Field<'a> {
    /// With dots between where it is within another
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) description: &'a str,
    pub(super) is_required: bool,
}

/// All operations by subject, in the order they are offered.
pub(super) fn subjects(document: &Value) -> Vec<(&str, Vec<Operation<'_>>)> {
    let mut subjects: Vec<(&str, Vec<Operation<'_>>)> = Vec::new();
    for (path, item) in entries(&document["paths"]) {
        for (method, operation) in entries(item) {
            let subject = text(&operation["tags"][0]);
            let operation = read(path, method, operation);
            match subjects.iter_mut().find(|(known, _)| *known == subject) {
                Some((_, operations)) => operations.push(operation),
                None => subjects.push((subject, vec![operation])),
            }
        }
    }
    subjects
}

fn read<'a>(path: &'a str, method: &str, operation: &'a Value) -> Operation<'a> {
    let parameters = operation["parameters"].as_array().into_iter().flatten().map(|parameter| Parameter {
        name: text(&parameter["name"]),
        place: text(&parameter["in"]),
        description: text(&parameter["description"]),
        kind: kind(&parameter["schema"]),
        is_required: parameter["required"] == true,
    });
    let answers = entries(&operation["responses"]).map(|(status, answer)| Answer {
        status,
        description: text(&answer["description"]),
        kind: entries(&answer["content"]).next().map(|(content_type, content)| match content_type {
            "application/json" => kind(&content["schema"]),
            other => other.to_owned(),
        }),
    });
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    Operation {
        id: text(&operation["operationId"]),
        method: method.to_uppercase(),
        path,
        summary: text(&operation["summary"]),
        description: text(&operation["description"]),
        parameters: parameters.collect(),
        body: body.is_object().then_some(body),
        answers: answers.collect(),
        is_open: operation["security"]
            .as_array()
            .is_some_and(|ways| ways.iter().any(|way| way == &Value::Object(Map::new()))),
    }
}

/// The schemas that have a name.
pub(super) fn schemas(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    entries(&document["components"]["schemas"])
}

/// The fields of an object, those it takes from others included.
pub(super) fn fields<'a>(document: &'a Value, schema: &'a Value) -> Vec<Field<'a>> {
    let mut found = Vec::new();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        let whole = part["$ref"].as_str().and_then(|name| document.pointer(name.strip_prefix('#')?)).unwrap_or(part);
        found.extend(fields(document, whole));
    }
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    for (name, field) in entries(&schema["properties"]) {
        let description = text(&field["description"]);
        found.push(Field { name: name.to_owned(), kind: kind(field), description, is_required: required(name) });
        // What an object without a name of its own has in it.
        let parts = field["oneOf"].as_array().into_iter().flatten().chain([field]);
        for part in parts.filter(|part| part["properties"].is_object()) {
            let within = fields(document, part).into_iter();
            found.extend(within.map(|field| Field { name: format!("{name}.{}", field.name), ..field }));
        }
    }
    found
}

/// What a schema is, in a word or two; names of other schemas stand as they are.
pub(super) fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(parts) = schema[key].as_array() {
            return parts.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{}`", text(word))).collect::<Vec<_>>().join(", ");
    }
    let one = |name: &str| match name {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", kind(&schema["additionalProperties"]))
        }
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => names.iter().map(|name| one(text(name))).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_are_short() {
        for (schema, expected) in [
            (json!({ "type": "string" }), "string"),
            (json!({ "type": ["string", "null"] }), "string or null"),
            (json!({ "type": "array", "items": { "$ref": "#/components/schemas/Job" } }), "list of Job"),
            (json!({ "type": "object", "additionalProperties": { "type": "integer" } }), "object of integer"),
            (json!({ "type": "string", "enum": ["a", "b"] }), "`a`, `b`"),
            (json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Time" }] }), "null or Time"),
            (json!({}), "any"),
        ] {
            assert_eq!(kind(&schema), expected);
        }
    }

    #[test]
    fn fields_of_others_are_fields() {
        let document =
            json!({ "components": { "schemas": { "A": { "required": ["a"], "properties": { "a": {} } } } } });
        let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/A" }, { "properties": { "b": { "properties": { "c": {} } } } }] });
        let fields = fields(&document, &schema);
        let names: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.is_required)).collect();
        assert_eq!(names, [("a", true), ("b", false), ("b.c", false)]);
    }
}
