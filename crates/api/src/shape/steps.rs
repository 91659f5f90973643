//! The schema of a chain's step, which `core` reads and writes itself.
//!
//! As with an action's rules, what the type takes is written down here once more; a test holds both together.

use super::policy::from_json;
use saltern_core::action::types;
use saltern_core::target::TargetType;
use serde_json::json;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Stands for [`saltern_core::chain::Step`] in the document.
pub(super) enum StepShape {}

impl PartialSchema for StepShape {
    fn schema() -> RefOr<Schema> {
        from_json(json!({
            "description": "One step of a chain: one action, and when it is done. What is left out is as usual, and is left out \
                of answers, too",
            "type": "object",
            "required": ["type"],
            "additionalProperties": false,
            "properties": {
                "type": { "description": "The action's type", "type": "string", "enum": types::ALL.map(|kind| kind.name()) },
                "params": { "description": "Its parameters", "type": "object" },
                "name": { "description": "What people call it; nothing: what it does",
                          "type": ["string", "null"], "minLength": 1, "maxLength": 1000 },
                "target": target(),
                "barrier": { "description": "How much of the step before must have ended before it begins: on `each` minion for \
                                 itself (usual), on `all` of them, or on so many of them, such as `80%`",
                             "type": "string", "pattern": "^(each|all|(100|[1-9][0-9]?)%)$" },
                "budget": {
                    "description": "How many runs of the step before may have failed for it to begin at all: a number, or a part \
                        such as `10%`; nothing: any number",
                    "oneOf": [{ "type": "null" }, { "type": "integer", "minimum": 0 },
                              { "type": "string", "pattern": "^(100|[1-9][0-9]?)%$" }],
                },
                "after": { "description": "After what it is done, on each minion: if nothing before it failed there (`ok`, usual), \
                               if something did (`failed`), or `always`",
                           "type": "string", "enum": ["ok", "failed", "always"] },
                "approval": { "description": "A question: the step begins when somebody who may has said yes to it",
                              "type": ["string", "null"], "minLength": 1, "maxLength": 1000 },
                "limit": {
                    "description": "How long it may take: seconds, or a text such as `30m`; nothing: an hour",
                    "oneOf": [{ "type": "null" }, { "type": "number", "minimum": 1, "maximum": 604_800 }, { "type": "string" }],
                },
                "repeatable": { "description": "Whether it may be done again where it was interrupted; nothing: what its type says",
                                "type": ["boolean", "null"] },
            },
        }))
    }
}

impl ToSchema for StepShape {
    fn name() -> std::borrow::Cow<'static, str> {
        "Step".into()
    }
}

fn target() -> serde_json::Value {
    let ids = json!({ "type": "array", "items": { "type": "string" }, "maxItems": 10_000 });
    let object = |properties: serde_json::Value| {
        let names: Vec<&String> = properties.as_object().into_iter().flat_map(|object| object.keys()).collect();
        json!({ "type": "object", "required": names, "additionalProperties": false, "properties": properties })
    };
    json!({
        "description": "On which minions: a text is a glob, a group is resolved at the launch; nothing: the launch says it",
        "oneOf": [
            { "type": "null" },
            { "type": "string" },
            object(json!({ "minions": ids })),
            object(json!({ "group": { "type": "string" } })),
            object(json!({
                "type": { "type": "string", "enum": TargetType::ALL.map(TargetType::as_str) },
                "expression": { "oneOf": [{ "type": "string" }, ids] },
            })),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::chain::Step;

    fn step(json: serde_json::Value) -> Result<Step, String> {
        let step: Step = serde_json::from_value(json).map_err(|error| error.to_string())?;
        step.check().map_err(|error| error.to_string())?;
        Ok(step)
    }

    #[test]
    fn every_field_of_a_step_is_in_the_document_and_no_other() {
        let schema = serde_json::to_value(StepShape::schema()).unwrap();
        let full = step(json!({
            "type": "function", "params": { "fun": "test.ping" }, "name": "a", "target": "*", "barrier": "all", "budget": 1,
            "after": "always", "approval": "ok?", "limit": "30m", "repeatable": true,
        }))
        .unwrap();
        let full = serde_json::to_value(full).unwrap();
        let names = |value: &serde_json::Value| -> std::collections::BTreeSet<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(names(&full), names(&schema["properties"]));
    }

    #[test]
    fn targets_are_written_as_the_document_says() {
        for (target, forms) in [(json!("web*"), 1), (json!({ "minions": ["a"] }), 2), (json!({ "group": "web" }), 3)] {
            let read = step(json!({ "type": "reboot", "target": target })).unwrap();
            let written = serde_json::to_value(read).unwrap();
            assert_eq!(written["target"], target);
            let schema = serde_json::to_value(StepShape::schema()).unwrap();
            let form = &schema["properties"]["target"]["oneOf"][forms];
            let keys = target.as_object().and_then(|object| object.keys().next());
            assert_eq!(keys.is_some(), keys.is_some_and(|key| form["properties"][key].is_object()));
        }
        step(json!({ "type": "reboot", "target": { "type": "grain", "expression": "os:Debian" } })).unwrap();
    }
}
