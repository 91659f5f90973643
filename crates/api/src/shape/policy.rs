//! The schemas of what is read by `core` itself: an action's rules, and targets.
//!
//! `core` knows nothing of OpenAPI, so what its types take is written down here once more; a test holds both together.

use saltern_core::target::TargetType;
use serde_json::json;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Stands for [`saltern_core::action::Policy`] in the document.
pub(super) enum PolicyShape {}

impl PartialSchema for PolicyShape {
    fn schema() -> RefOr<Schema> {
        let seconds = json!({ "type": "number", "minimum": 0, "maximum": 3_155_760_000_u64 });
        let described = |mut schema: serde_json::Value, what: &str| {
            schema["description"] = what.into();
            schema
        };
        let count = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
        let size = json!({ "description": "A number of minions, or a part of them in percent", "oneOf": [
            { "type": "object", "required": ["count"], "properties": { "count": count }, "additionalProperties": false },
            { "type": "object", "required": ["percent"], "additionalProperties": false,
              "properties": { "percent": { "type": "integer", "minimum": 0, "maximum": 255 } } },
        ] });
        from_json(json!({
            "description": "The rules an action is carried out by; what is left out is as usual. Times are in seconds",
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "offline": {
                    "description": "What happens where the minion is not there: `fail` (usual), `hold` until it is back, or \
                        try so often, so far apart",
                    "oneOf": [
                        { "type": "string", "enum": ["fail", "hold"] },
                        { "type": "object", "required": ["retry"], "additionalProperties": false, "properties": {
                            "retry": { "type": "object", "required": ["tries", "every"],
                                       "description": "Tries in all, and how far apart",
                                       "properties": { "tries": count, "every": seconds } } } },
                    ],
                },
                "retry": {
                    "description": "What is tried again",
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "attempts": described(count.clone(), "Attempts in all; usually 3"),
                        "when": { "type": "string", "enum": ["not_started", "always"],
                                  "description": "Only if the one before provably did not start (usual), or after any failure" },
                        "backoff": { "type": "object", "additionalProperties": false,
                                     "description": "How long to wait before another: twice as long each time",
                                     "properties": { "first": described(seconds.clone(), "Usually 5"),
                                                     "most": described(seconds.clone(), "Usually 300") } },
                    },
                },
                "job_timeout": { "description": "How long one attempt may take once it was sent",
                                 "type": ["number", "null"], "minimum": 0, "maximum": 3_155_760_000_u64 },
                "batch": {
                    "description": "How many at once, and how long a place stays free",
                    "oneOf": [{ "type": "null" }, {
                        "type": "object", "required": ["size"], "additionalProperties": false,
                        "properties": { "size": size, "wait": described(seconds.clone(), "How long a place stays free") },
                    }],
                },
                "budget": {
                    "description": "How many may fail, how many may be out of reach, and what happens beyond that",
                    "oneOf": [{ "type": "null" }, {
                        "type": "object", "required": ["failures"], "additionalProperties": false,
                        "properties": {
                            "failures": described(size.clone(), "More failures than this are too many"),
                            "unreachable": { "oneOf": [{ "type": "null" }, size],
                                             "description": "More minions out of reach are too many; nothing: any number" },
                            "then": { "type": "string", "enum": ["pause", "stop"],
                                      "description": "What becomes of the rest; usually it is paused" },
                        },
                    }],
                },
                "waves": {
                    "description": "Parts that are begun one after the other, each counted over all so far",
                    "type": "array",
                    "items": { "type": "object", "required": ["size"], "additionalProperties": false,
                               "properties": { "size": size, "soak": described(seconds, "How long to wait before the next") } },
                },
                "ack": { "description": "Whether minions are asked to acknowledge; nothing: as configured",
                         "type": ["boolean", "null"] },
                "interactive": { "description": "Whether it does not queue behind large actions", "type": "boolean" },
                "window": window_rule(),
                "override_window": { "type": ["string", "null"], "maxLength": 1000,
                                     "description": "For what reason maintenance windows are not asked; for admins of the \
                                         minions' organisation; nothing: they are asked" },
            },
        }))
    }
}

impl ToSchema for PolicyShape {
    fn name() -> std::borrow::Cow<'static, str> {
        "Policy".into()
    }
}

/// A target: text, or a list of ids.
pub(super) fn target() -> RefOr<Schema> {
    from_json(json!({
        "description": "Which minions: a target expression, or a list of ids where the type takes one",
        "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
    }))
}

/// A type of target.
pub(crate) fn tgt_type() -> RefOr<Schema> {
    let words = TargetType::ALL.map(TargetType::as_str);
    from_json(json!({ "description": "How to read the target: Salt's `tgt_type`", "type": "string", "enum": words }))
}

/// What happens outside of a maintenance window.
pub(super) fn window_rule() -> RefOr<Schema> {
    from_json(json!({
        "description": "What happens where the maintenance window is closed when its turn comes: it waits for the next one \
            (usual), or it fails",
        "type": "string", "enum": ["hold", "fail"],
    }))
}

/// A schema that is easier to write down than to derive.
pub(crate) fn from_json(schema: serde_json::Value) -> RefOr<Schema> {
    serde_json::from_value(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::action::Policy;

    fn names(value: &serde_json::Value) -> Vec<String> {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    }

    #[test]
    fn every_rule_is_in_the_document_and_no_other() {
        let schema = serde_json::to_value(PolicyShape::schema()).unwrap();
        let size = json!({ "count": 1 });
        let policy: Policy = serde_json::from_value(json!({
            "job_timeout": 1, "batch": { "size": size }, "budget": { "failures": size, "unreachable": size },
            "waves": [{ "size": size }], "ack": true, "window": "fail", "override_window": "x",
        }))
        .unwrap();
        let written = serde_json::to_value(policy).unwrap();
        assert_eq!(names(&written), names(&schema["properties"]));
        let inner = |name: &str| &schema["properties"][name]["oneOf"][1]["properties"];
        assert_eq!(names(&written["batch"]), names(inner("batch")));
        assert_eq!(names(&written["budget"]), names(inner("budget")));
        assert_eq!(names(&written["retry"]), names(&schema["properties"]["retry"]["properties"]));
        assert_eq!(names(&written["waves"][0]), names(&schema["properties"]["waves"]["items"]["properties"]));
    }
}
