//! JSON Schema (draft 2020-12) of the answer, for constrained decoding and editors.

use serde_json::{Value, json};

use super::options;
use crate::options::Options;

/// Returns the schema with the configured role key.
pub(super) fn schema(options: &Options) -> Value {
    let role = &options::role(options);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ai_say answer",
        "description": "The answer of one dialogue round.",
        "type": "object",
        "properties": {
            "assessment": {
                "description": "How well the user has understood, judged by what they said last.",
                "type": "object",
                "properties": {
                    "understanding_level": { "type": "number", "minimum": 0, "maximum": 100 },
                    "has_questions": {
                        "description": "Whether the user has open questions.",
                        "type": "boolean",
                    },
                    "expressed_understanding": {
                        "description": "Whether the user said that they understand.",
                        "type": "boolean",
                    },
                    "reasoning": { "description": "Why; never shown to the user.", "type": "string" },
                },
                "required": ["understanding_level", "has_questions", "expressed_understanding", "reasoning"],
                "additionalProperties": false,
            },
            "response": {
                "description": "The message to the user, under the role that speaks.",
                "type": "object",
                "properties": { (role): { "type": "string", "pattern": "\\S" } },
                "required": [role],
                "additionalProperties": false,
            },
            "should_exit": {
                "description": "Whether the topic should end. It ends only if the conditions hold too.",
                "type": "boolean",
            },
            "exit_reason": { "description": "Why it should or should not.", "type": "string" },
        },
        "required": ["assessment", "response", "should_exit", "exit_reason"],
        "additionalProperties": false,
    })
}
