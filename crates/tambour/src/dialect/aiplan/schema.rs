//! JSON Schema (draft 2020-12) of a plan, for constrained decoding and editors.

use serde_json::{Value, json};

use super::check::PLAN_FIELDS;
use super::modes::{AnswerRequirement, CallRequirement, plan_modes};
use super::options;
use crate::options::Options;

/// Returns the schema of a plan in the configured variant. It does not list the tools, except for a mode that
/// is limited to some of them.
pub(super) fn schema(options: &Options) -> Value {
    let filled_string = || json!({ "type": "string", "pattern": "\\S" });
    let modes = plan_modes(options::plan_variant(options));
    let tools = options::plan_tools(options);
    let reading_tools: Vec<&str> = options::callable_tools(&tools, options)
        .filter(|tool| tool.read_only)
        .map(|tool| tool.name.as_str())
        .collect();
    let branches: Vec<Value> = modes
        .iter()
        .map(|mode| {
            let mut branch = json!({
                "properties": {
                    "response_mode": { "const": mode.name, "description": mode.usage[1] },
                    "direct_response": match mode.text {
                        AnswerRequirement::Null => json!({ "type": "null" }),
                        AnswerRequirement::Required => filled_string(),
                        AnswerRequirement::Optional => json!({ "type": ["string", "null"], "pattern": "\\S" }),
                    },
                    "tool_calls": match mode.calls {
                        CallRequirement::Required => json!({ "minItems": 1 }),
                        CallRequirement::Forbidden => json!({ "maxItems": 0 }),
                        CallRequirement::ReadOnly if reading_tools.is_empty() => json!({ "maxItems": 0 }),
                        CallRequirement::ReadOnly => json!({
                            "description": "Only tools that change nothing.",
                            "items": { "properties": { "name": { "enum": reading_tools } } },
                        }),
                    },
                }
            });
            if let Some(field) = mode.extra_field {
                branch["properties"][field] = json!({
                    "type": "object",
                    "description": "The steps of the plan.",
                });
                branch["required"] = json!([field]);
            } else if mode.text == AnswerRequirement::Optional {
                // Without a text there must be calls.
                branch["anyOf"] = json!([
                    { "properties": { "direct_response": filled_string() } },
                    { "properties": { "tool_calls": { "minItems": 1 } } },
                ]);
            }
            branch
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "AIPlan",
        "description": "What a model is going to do.",
        "type": "object",
        "properties": {
            "thought": {
                "type": "string",
                "pattern": "\\S",
                "description": "Why this mode, how the request is understood, and the next step.",
            },
            "response_mode": { "enum": modes.iter().map(|mode| mode.name).collect::<Vec<_>>() },
            "direct_response": { "type": ["string", "null"] },
            "tool_calls": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "name": filled_string(), "args": { "type": "object" } },
                    "required": ["name", "args"],
                },
            },
        },
        "required": PLAN_FIELDS,
        "oneOf": branches,
    })
}
