//! JSON Schema (draft 2020-12) of one line, for constrained decoding and editors. It cannot express the order
//! of lines.

use serde_json::{Value, json};

use crate::options::Options;

/// Returns the schema of one event, which is the same under all options.
pub(super) fn schema(_options: &Options) -> Value {
    let text = || json!({ "type": "string", "minLength": 1 });
    let id = || json!({ "type": "integer", "minimum": 1 });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "JSONSeq event",
        "description": "One line of a reply.",
        "oneOf": [
            event_schema("serp_summary", "What the user wants, in one or two plain sentences.", &json!({
                "text": { "type": "string", "pattern": "\\S" },
            })),
            event_schema("thinking_start", "Thinking begins.", &json!({})),
            event_schema("phase_start", "The next phase begins; ids are 1, 2, 3 and so on.", &json!({
                "id": id(),
                "title": { "type": "string", "pattern": "\\S" },
            })),
            event_schema("phase_delta", "Plain text of the phase that was started last.", &json!({
                "id": id(),
                "text": text(),
            })),
            event_schema("thinking_end", "Thinking is over.", &json!({})),
            event_schema("final_delta", "A piece of the answer in Markdown.", &json!({ "text": text() })),
            event_schema("serp_queries", "Search queries, usually one to three.", &json!({
                "queries": {
                    "type": "array",
                    "maxItems": 5,
                    "uniqueItems": true,
                    "items": { "type": "string", "pattern": "\\S", "maxLength": 80 },
                },
            })),
            event_schema("final_end", "The reply is complete.", &json!({})),
        ],
    })
}

/// Returns the schema of an event whose data has exactly these fields, all required.
fn event_schema(name: &str, description: &str, fields: &Value) -> Value {
    let required: Vec<&String> = fields.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    json!({
        "description": description,
        "type": "object",
        "properties": {
            "event": { "const": name },
            "data": {
                "type": "object",
                "properties": fields,
                "required": required,
                "additionalProperties": false,
            },
        },
        "required": ["event", "data"],
        "additionalProperties": false,
    })
}
