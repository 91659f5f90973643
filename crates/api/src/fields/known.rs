//! Which fields the answers of each operation have, read from the OpenAPI document.

use super::Selection;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What can be selected, by the path of the operation.
#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<String, Arc<Selectable>>);

/// What can be selected of one operation's answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selectable {
    fields: Fields,
    /// The field that has the entries, if the answer is a page of a list
    items: Option<String>,
}

/// What fields there are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fields {
    /// Any: it is somebody else's data
    Any,
    /// None: it is no object
    None,
    /// These, and perhaps others of one kind
    Named(BTreeMap<String, Fields>, Option<Box<Fields>>),
}

/// The deepest that schemas are followed; none of ours comes near.
const DEEPEST: usize = 20;

impl Known {
    /// Reads a document.
    pub(crate) fn read(document: &Value) -> Self {
        let mut known = BTreeMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            let schema = &item["get"]["responses"]["200"]["content"]["application/json"]["schema"];
            if schema.is_object() {
                known.insert(path.clone(), Arc::new(Selectable::read(document, schema)));
            }
        }
        Self(known)
    }

    pub(super) fn get(&self, path: &str) -> Option<&Arc<Selectable>> {
        self.0.get(path)
    }
}

impl Selectable {
    fn read(document: &Value, schema: &Value) -> Self {
        let fields = Fields::read(document, schema, 0);
        let items = match &fields {
            Fields::Named(names, _) if names.contains_key("next") => {
                let is_list = |(_, fields): &(&String, &Fields)| **fields != Fields::None;
                names.iter().find(is_list).map(|(name, _)| name.clone())
            }
            _ => None,
        };
        match (fields, items) {
            (Fields::Named(mut names, _), Some(items)) => {
                let fields = names.remove(&items).unwrap_or(Fields::Any);
                Self { fields, items: Some(items) }
            }
            (fields, items) => Self { fields, items },
        }
    }

    /// The field that has the entries of a list.
    pub(super) fn items(&self) -> Option<&str> {
        self.items.as_deref()
    }

    /// Whether everything that is selected can be there; else the name that cannot.
    pub(super) fn check(&self, selection: &Selection) -> Result<(), String> {
        self.fields.check(selection, "")
    }
}

impl Fields {
    fn read(document: &Value, schema: &Value, depth: usize) -> Self {
        if depth > DEEPEST {
            return Self::Any;
        }
        if let Some(name) = schema["$ref"].as_str() {
            let pointer = name.strip_prefix('#').unwrap_or_default();
            return document.pointer(pointer).map_or(Self::Any, |schema| Self::read(document, schema, depth + 1));
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            if let Some(parts) = schema[key].as_array() {
                return parts.iter().map(|part| Self::read(document, part, depth + 1)).fold(Self::None, Self::and);
            }
        }
        if schema["items"].is_object() {
            return Self::read(document, &schema["items"], depth + 1);
        }
        let names = schema["properties"].as_object();
        let others = Some(&schema["additionalProperties"]).filter(|others| others.is_object());
        if names.is_some() || others.is_some() {
            let read = |schema: &Value| Self::read(document, schema, depth + 1);
            let names = names.into_iter().flatten().map(|(name, schema)| (name.clone(), read(schema))).collect();
            return Self::Named(names, others.map(|others| Box::new(read(others))));
        }
        match schema["type"].as_str() {
            None if !schema["type"].is_array() => Self::Any,
            Some("object") => Self::Any,
            _ => Self::None,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (Self::None, other) | (other, Self::None) => other,
            (Self::Named(mut names, others), Self::Named(more, more_others)) => {
                names.extend(more);
                Self::Named(names, others.or(more_others))
            }
        }
    }

    fn check(&self, selection: &Selection, place: &str) -> Result<(), String> {
        let Self::Named(names, others) = self else {
            return match (self, selection.0.keys().next()) {
                (Self::None, Some(name)) => Err(format!("{place}{name}")),
                _ => Ok(()),
            };
        };
        for (name, inner) in &selection.0 {
            let fields = names.get(name).or(others.as_deref()).ok_or_else(|| format!("{place}{name}"))?;
            if let Some(inner) = inner {
                fields.check(inner, &format!("{place}{name}."))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selectable(schema: Value) -> Selectable {
        let document = json!({ "components": { "schemas": { "Inner": {
            "type": "object", "properties": { "id": { "type": "string" }, "since": { "type": ["string", "null"] } },
        } } } });
        Selectable::read(&document, &schema)
    }

    fn check(schema: &Value, names: &str) -> Result<(), String> {
        selectable(schema.clone()).check(&Selection::parse(names).unwrap())
    }

    #[test]
    fn names_are_those_of_the_schema() {
        let inner = json!({ "$ref": "#/components/schemas/Inner" });
        let schema = json!({ "allOf": [inner, { "type": "object", "properties": {
            "grains": {}, "runs": { "type": "object", "additionalProperties": inner }, "list": { "type": "array", "items": inner },
        } }] });
        for good in ["id", "since,grains", "grains.os.name", "runs.web1.id", "list.id"] {
            assert_eq!(check(&schema, good), Ok(()), "{good}");
        }
        for (bad, name) in [("ids", "ids"), ("id.x", "id.x"), ("runs.web1.x", "runs.web1.x"), ("list.x,id", "list.x")] {
            assert_eq!(check(&schema, bad), Err(name.into()));
        }
    }

    #[test]
    fn of_a_page_the_entries_are_meant() {
        let schema = json!({ "type": "object", "properties": {
            "next": { "type": ["string", "null"] }, "fingerprint": { "type": "string" },
            "keys": { "type": "array", "items": { "$ref": "#/components/schemas/Inner" } },
        } });
        assert_eq!(selectable(schema.clone()).items(), Some("keys"));
        assert_eq!(check(&schema, "id"), Ok(()));
        assert_eq!(check(&schema, "keys"), Err("keys".into()));
    }
}
